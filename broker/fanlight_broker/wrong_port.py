"""The wrong port: clients that speak another protocol than the listener they connect to.

    first bytes of a connection --spoken--> HTTP --PortGuide--> "this is HTTP; the broker speaks it on port 7421"

The text goes into the log, and to the client if its protocol has an answer for it. Only the first bytes of a connection
are looked at. Each protocol recognises its own clients (core/protocol_part.py); HTTP and TLS are recognised here, and
so are protocols that the broker does not speak.
"""

from collections.abc import Sequence
from typing import Final

from fanlight_broker.core.ports import WrongProtocol
from fanlight_broker.core.protocol_part import ProtocolPart

HTTP: Final = "HTTP"
TLS: Final = "TLS"
METHODS: Final = (
    b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ",
    b"PRI * HT",
)  # fmt: skip
TLS_HANDSHAKE: Final = b"\x16\x03"
TLS_ALERT: Final = bytes.fromhex("15 0301 0002 02 28")  # fatal, handshake_failure (RFC 8446, 6): it has no text
NOT_SPOKEN: Final = {b"STOMP\n": "STOMP"}  # by their first bytes


class PortGuide:
    """The ports that are open, and the advice for clients that connect to the wrong one."""

    def __init__(self, protocols: Sequence[type[ProtocolPart]]) -> None:
        self._protocols = tuple(protocols)
        self._titles = {port.name: each.title for each in protocols for port in each.settings.ports}
        # What each listener expects, by its name; and the listeners of each protocol, the plain one first.
        self.expected = {"http": HTTP, "https": TLS} | {
            port.name: TLS if port.tls else HTTP if port.websocket else each.title
            for each in protocols for port in each.settings.ports
        }  # fmt: skip
        self._listeners = {HTTP: ("http", "https")}
        self._listeners |= {each.title: (each.name, f"{each.name}_tls") for each in protocols}
        self._ports: dict[str, int] = {}
        self._alike: dict[str, str] = {}  # listeners of one's own -> that of their protocol

    def opened(self, listener: str, port: int) -> None:
        self._ports[listener] = port

    def add(self, listener: str, protocol: str, *, tls: bool, websocket: bool) -> None:
        """A listener of one's own speaks this protocol."""
        self._alike[listener] = protocol
        self.expected[listener] = TLS if tls else HTTP if websocket else self._titles[protocol]

    def pages(self) -> dict[str, int]:
        """The ports of the HTTP listener, by scheme: "http" and "https"."""
        return {scheme: self._ports[scheme] for scheme in ("http", "https") if scheme in self._ports}

    def sockets(self, protocol: str) -> dict[str, int]:
        """The ports of a protocol over WebSocket, by scheme: "ws" and "wss"."""
        names = {"ws": f"{protocol}_websocket", "wss": f"{protocol}_websocket_tls"}
        return {scheme: self._ports[name] for scheme, name in names.items() if name in self._ports}

    def spoken(self, first: bytes) -> str | None:
        """The protocol of a connection that begins like this; None if it is unknown, or there are too few bytes."""
        if first.startswith(METHODS):
            return HTTP
        if first.startswith(TLS_HANDSHAKE):
            return TLS
        for protocol in self._protocols:
            if protocol.recognises(first):
                return protocol.title
        return next((title for begin, title in NOT_SPOKEN.items() if first.startswith(begin)), None)

    def check(self, listener: str, first: bytes) -> WrongProtocol | None:
        """What to say to a client that begins like this; None if it may speak the listener's protocol."""
        found = self.spoken(first)
        if found is None or found == self.expected[listener]:
            return None
        text = f"this is {self._described(listener, found)}; {self._elsewhere(listener, found)}"
        return WrongProtocol(text, self._answer(found, first, text))

    def missing_upgrade(self, listener: str) -> str:
        """What to say to an HTTP request that asks for no WebSocket."""
        elsewhere = self._elsewhere(listener, HTTP).replace("speaks it", "answers HTTP requests")
        return f"this port speaks {self._titles[listener]} over WebSocket; {elsewhere}"

    def _described(self, listener: str, found: str) -> str:
        return f"{found} without TLS" if self.expected[listener] == TLS else found

    def _elsewhere(self, listener: str, found: str) -> str:
        """Where what was found is spoken."""
        listener = self._alike.get(listener, listener)
        if found == TLS:
            secure = self._ports.get(f"{listener}_tls" if listener != "http" else "https")
            return f"the broker speaks the protocol of this port by TLS on port {secure}" if secure else \
                "TLS is turned off (tls_certificate)"
        if found not in self._listeners:
            return "the broker does not speak it"
        plain, secure = (self._ports.get(name) for name in self._listeners[found])
        if plain is None:
            return f"it is turned off in this broker ({self._listeners[found][0]})"
        where = f"the broker speaks it on port {plain}" + (f", by TLS on port {secure}" if secure else "")
        websocket = self._ports.get(f"{listener}_websocket")
        if found == HTTP and websocket is not None:
            where += f", and {self._titles[listener]} over WebSocket on port {websocket}"
        return where

    def _answer(self, found: str, first: bytes, text: str) -> bytes:
        """The text as an answer in the client's own protocol; empty if that protocol has no answer."""
        if found == HTTP:
            body = f"{text}\n".encode()
            return (
                b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
                b"Connection: close\r\n\r\n%s" % (len(body), body)
            )
        if found == TLS:
            return TLS_ALERT
        return next((each.refusal(first, text) for each in self._protocols if each.title == found), b"")
