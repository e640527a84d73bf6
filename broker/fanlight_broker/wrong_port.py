"""The wrong port: clients that speak another protocol than the listener they connect to.

    first bytes of a connection --spoken--> HTTP --PortGuide--> "this is HTTP; the broker speaks it on port 7421"

The text goes into the log, and to the client if its protocol has an answer for it. Only the first bytes of a connection
are looked at. Part of the composition: like listeners.py it knows all protocols, and all ports.
"""

from enum import StrEnum
from typing import Final

from fanlight_broker.core.ports import WrongProtocol
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import ConnAck
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from fanlight_broker.protocols.native import frames

METHODS: Final = (
    b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ",
    b"PRI * HT",
)  # fmt: skip
NAMES_OF_MQTT: Final = (b"\x00\x04MQTT", b"\x00\x06MQIsdp")
CONNECT: Final = 0x10
TLS_HANDSHAKE: Final = b"\x16\x03"
TLS_ALERT: Final = bytes.fromhex("15 0301 0002 02 28")  # fatal, handshake_failure (RFC 8446, 6): it has no text
HELLO: Final = bytes((frames.Type.HELLO,))


class Spoken(StrEnum):
    """A protocol, as people call it."""

    NATIVE = "Fanlight's native protocol"
    MQTT = "MQTT"
    HTTP = "HTTP"
    TLS = "TLS"
    AMQP = "AMQP"


# What each listener expects, by its name; and under which names its protocol is spoken, the plain one first.
EXPECTED: Final = {
    "native": Spoken.NATIVE, "native_tls": Spoken.TLS, "mqtt": Spoken.MQTT, "mqtt_tls": Spoken.TLS,
    "mqtt_websocket": Spoken.HTTP, "mqtt_websocket_tls": Spoken.TLS, "http": Spoken.HTTP, "https": Spoken.TLS,
}  # fmt: skip
SPOKEN_AT: Final = {
    Spoken.NATIVE: ("native", "native_tls"), Spoken.MQTT: ("mqtt", "mqtt_tls"), Spoken.HTTP: ("http", "https"),
}  # fmt: skip


def spoken(first: bytes) -> Spoken | None:
    """What begins like this; None if that is none of these, or too little to tell."""
    if first.startswith(METHODS):
        return Spoken.HTTP
    if first.startswith(TLS_HANDSHAKE):
        return Spoken.TLS
    if first.startswith(b"AMQP"):
        return Spoken.AMQP
    if first[:1] == bytes((CONNECT,)):
        name = _variable_header(first)
        return Spoken.MQTT if len(name) >= 2 and any(name.startswith(each[: len(name)]) for each in NAMES_OF_MQTT) \
            else None
    # A length of less than 16 MiB, an array of few elements, and HELLO's type.
    if first[:1] == b"\0" and first[4:5] and 0x90 <= first[4] <= 0x9F and first[5:6] == HELLO:
        return Spoken.NATIVE
    return None


def _variable_header(first: bytes) -> bytes:
    """What stands behind the Remaining Length, up to the end of the longer name."""
    for at in range(1, min(5, len(first))):
        if first[at] < 0x80:
            return first[at + 1 : at + 9]
    return b""


class PortGuide:
    """The ports that are open, and the advice for clients that connect to the wrong one."""

    def __init__(self) -> None:
        self._ports: dict[str, int] = {}

    def opened(self, listener: str, port: int) -> None:
        self._ports[listener] = port

    def check(self, listener: str, first: bytes) -> WrongProtocol | None:
        """What to say to a client that begins like this; None if it may speak the listener's protocol."""
        found = spoken(first)
        if found is None or found is EXPECTED[listener]:
            return None
        text = f"this is {self._described(listener, found)}; {self._elsewhere(listener, found)}"
        return WrongProtocol(text, answer(found, first, text))

    def missing_upgrade(self, listener: str) -> str:
        """What to say to an HTTP request that asks for no WebSocket."""
        elsewhere = self._elsewhere(listener, Spoken.HTTP).replace("speaks it", "answers HTTP requests")
        return f"this port speaks MQTT over WebSocket; {elsewhere}"

    def _described(self, listener: str, found: Spoken) -> str:
        return f"{found} without TLS" if EXPECTED[listener] is Spoken.TLS else found

    def _elsewhere(self, listener: str, found: Spoken) -> str:
        """Where what was found is spoken."""
        if found is Spoken.AMQP:
            return "the broker does not speak it"
        if found is Spoken.TLS:
            secure = self._ports.get(f"{listener}_tls" if listener != "http" else "https")
            return f"the broker speaks the protocol of this port by TLS on port {secure}" if secure else \
                "TLS is turned off (tls_certificate)"
        plain, secure = (self._ports.get(name) for name in SPOKEN_AT[found])
        if plain is None:
            return f"it is turned off in this broker ({SPOKEN_AT[found][0]})"
        where = f"the broker speaks it on port {plain}" + (f", by TLS on port {secure}" if secure else "")
        websocket = self._ports.get("mqtt_websocket")
        if found is Spoken.HTTP and listener == "mqtt" and websocket is not None:
            where += f", and MQTT over WebSocket on port {websocket}"
        return where


def answer(found: Spoken, first: bytes, text: str) -> bytes:
    """The text as an answer in the client's own protocol; empty if that protocol has no answer."""
    if found is Spoken.HTTP:
        body = f"{text}\n".encode()
        return (
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%s" % (len(body), body)
        )
    if found is Spoken.TLS:
        return TLS_ALERT
    if found is Spoken.NATIVE:
        return frames.error(None, "protocol_error", text, {}) + frames.goodbye("protocol_error", text)
    if found is Spoken.MQTT and _variable_header(first)[6:7] == bytes((V5,)):
        refusal = ConnAck(False, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, Properties(reason_string=text))
        return encode(refusal, V5)
    return b""
