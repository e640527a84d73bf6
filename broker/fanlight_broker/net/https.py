"""TLS, or a proxy, in front of the HTTP server, which is not a Listener and counts its own connections.

Handshakes that fail count for their address, and none begins with one that has too many (strangers.py). Of plain
connections without a proxy, and of what comes after a handshake, the HTTP server does the same.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.ports import ProtocolCheck, WrongProtocol
from fanlight_broker.net.acceptor import TlsAcceptor
from fanlight_broker.net.handshake import Handshake, HandshakeTurns
from fanlight_broker.net.proxies import LoopPlain, Proxies
from fanlight_broker.net.proxy_header import ProxyOrigin
from fanlight_broker.net.strangers import StrangersNow
from fanlight_broker.net.tls import Tls, serial_of
from fanlight_broker.net.tls_handshake import LoopTls

log: Final = event_log.get("net")

BACKLOG: Final = 64  # connections that wait to be accepted, in the kernel


class TlsServer:
    """tls             None: connections are plain, and come through a proxy
    handshakes_max  at once; further connections are closed and counted
    proxies         those that all connections come through, with a header of the PROXY protocol
    """

    def __init__(
        self, tls: Tls | None, name: str, turns: HandshakeTurns, *, handshakes_max: int, limits: Callable[[], Limits],
        strangers: StrangersNow, protocol_check: ProtocolCheck | None = None, proxies: Proxies | None = None,
    ) -> None:
        self.failures = 0
        self.without_proxy = 0  # connections from no proxy, or without its header
        self._strangers = strangers
        self._proxies = proxies
        self.refused = 0
        self._tls = tls
        self._name = name
        self._turns = turns
        self._handshakes_max = handshakes_max
        self._protocol_check = protocol_check
        self._limits = limits
        self._shaking_hands: set[Handshake] = set()
        self._acceptor: TlsAcceptor | None = None

    async def start(self, factory: Callable[[str], asyncio.BaseProtocol], host: str, port: int) -> tuple[str, int]:
        """Listen, and hand each connection to a protocol from `factory` after its handshake. Raises OSError.

        factory  is given the address that a proxy has named; "" without proxies
        """
        def made(handshake: Handshake) -> asyncio.BaseProtocol:
            return factory(handshake.address if self._proxies is not None else "")

        secure = LoopPlain(made) if self._tls is None else \
            LoopTls(self._tls, made, lambda: self._limits().linger_seconds_max)
        self._acceptor = TlsAcceptor(
            secure, self, self._limits, self._name, self._turns, proxies=self._proxies, move=self._move,
            plain=self._tls is None,
        )
        return await self._acceptor.start(host, port, BACKLOG)

    def stop(self) -> None:
        """Stop accepting, and close connections that are still in their handshake."""
        if self._acceptor is not None:
            self._acceptor.close()
        for handshake in list(self._shaking_hands):
            handshake.abort("the broker stops")

    def certified(self, transport: asyncio.BaseTransport | None) -> str:
        """The name in the client's certificate; "" without one, or if it has been revoked since the handshake."""
        if transport is None or self._tls is None:
            return ""
        certificate = transport.get_extra_info("peercert")
        return "" if self._tls.revokes(serial_of(certificate)) else self._tls.name_of(certificate)

    def counters(self) -> dict[str, int]:
        return {"http_tls_handshakes_failed": self.failures, "http_tls_handshakes_refused": self.refused}

    def begin_handshake(self, handshake: Handshake) -> bool:
        if self._strangers.refusal(handshake.charged) is not None:
            return False
        if len(self._shaking_hands) >= self._handshakes_max:
            self.refused += 1
            return False
        self._shaking_hands.add(handshake)
        return True

    def check(self, listener: str, first: bytes) -> WrongProtocol | None:
        return self._protocol_check(listener, first) if self._protocol_check is not None else None

    def end_handshake(self, handshake: Handshake) -> None:
        self._shaking_hands.discard(handshake)

    def fail_handshake(self, handshake: Handshake, reason: str) -> None:
        self._shaking_hands.discard(handshake)
        if handshake.welcome:
            self._strangers.note(handshake.charged)
        if handshake.stage == "proxy":
            self.without_proxy += 1
        else:
            self.failures += 1
        log.info(
            "handshake_failed", listener=self._name, stage=handshake.stage, address=handshake.address,
            port=handshake.port, reason=reason,
        )

    def _move(self, handshake: Handshake, origin: ProxyOrigin, stage: str) -> bool:
        """Go on as a connection of the address that its proxy has named (acceptor.Move)."""
        handshake.address, handshake.port, handshake.stage = origin.address, origin.port, stage
        handshake.charged = origin.address
        refusal = self._strangers.refusal(origin.address)
        handshake.welcome = refusal is None
        if refusal is not None:
            handshake.refuse(f"refused: this broker has {refusal}")
        return refusal is None
