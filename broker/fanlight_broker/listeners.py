"""The listeners: one for each protocol, with the ports that the settings open: plain, TLS, WebSocket.

No protocol is named here. assembly.py lists them; core/protocol_part.py is what each brings.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import PartView
from fanlight_broker.authentication import Authentication
from fanlight_broker.config import Settings
from fanlight_broker.config.settings import Tcp
from fanlight_broker.core.listening_port import ListeningPort
from fanlight_broker.core.protocol_part import PluginError, ProtocolPart
from fanlight_broker.core_part import Core
from fanlight_broker.encryption import Encryption
from fanlight_broker.handover import Handover
from fanlight_broker.listening import log_listening, opening, reachable
from fanlight_broker.net.admission import Admission
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.connection import Connection
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.handshake import Handshake, HandshakeTurns
from fanlight_broker.net.listener import Listener, Upgrade
from fanlight_broker.net.listener_metrics import families_of
from fanlight_broker.net.proxies import Proxies, networks_of
from fanlight_broker.parts import Apply, Part, PartError
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wrong_port import PortGuide

try:
    from fanlight_broker.net.poller import Poller
except ImportError:  # it needs epoll, which only Linux has: see `tcp` in config/settings.py
    Poller = None  # type: ignore[assignment, misc]

log: Final = logs.get("app")

GOODBYE: Final = "the broker is shutting down; reconnect later"


class Listeners(Part):
    """All that clients connect to; the HTTP listener is not among them (administration.py)."""

    name = "listeners"

    def __init__(
        self, settings: Settings, protocols: Sequence[type[ProtocolPart]], core: Core, access: Authentication,
        encryption: Encryption,
    ) -> None:
        self.settings = settings
        self.port_guide = PortGuide(protocols)
        self.handshake_turns = HandshakeTurns(core.broker.turns.later)
        self._classes = [each for each in protocols if any(port.wanted(settings) for port in each.settings.ports)]
        self._core, self._access, self._encryption = core, access, encryption
        self._protocols: list[tuple[ProtocolPart, Listener]] = []
        self._poller: Poller | None = None
        self._draining = False
        self._admission = Admission()
        self._proxied: frozenset[str] = frozenset()  # names of listeners that are behind a proxy
        self._proxies: Proxies | None = None
        self.handover = Handover(core.broker, self._admission, monotonic)

    @property
    def _listeners(self) -> list[Listener]:
        return [listener for _, listener in self._protocols]

    # -- its life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        try:
            made = [each(self.settings) for each in self._classes]
        except PluginError as error:
            raise PartError(str(error)) from error
        self._poller = new_poller(self.settings.tcp, self._core.flusher)
        self._proxied, self._proxies = proxies_of(self.settings, self._classes)
        admission, shared = self._admission, ReceiveBuffer()
        for protocol in made:
            listener = Listener(
                protocol.name, self._core.broker, protocol.connection, self._access.authenticator, clock=monotonic,
                shared=shared, admission=admission, poller=self._poller, protocol_check=self.port_guide.check,
                handshake_turns=self.handshake_turns, durability=protocol.durability,
            )
            self._protocols.append((protocol, listener))

    async def start(self) -> None:
        for protocol, _ in self._protocols:
            protocol.begin(self._core.broker)
        for protocol, listener in self._protocols:
            for port in protocol.settings.ports:
                if port.wanted(self.settings):
                    await self._listen(protocol, listener, port)

    async def _listen(self, protocol: ProtocolPart, listener: Listener, port: ListeningPort) -> None:
        host, number = port.host(self.settings), port.number(self.settings)
        tls = self._encryption.tls if port.tls else None
        upgrade = self._websocket(protocol) if port.websocket else None
        proxies = self._proxies if port.name in self._proxied else None
        with opening(port.setting, host, number):
            host, number = await listener.start(host, number, tls=tls, upgrade=upgrade, proxies=proxies)
        self.port_guide.opened(port.name, number)
        example = protocol.example(port, reachable(host), number, credentials=self._access.required)
        log_listening(port.name, host, number, example)

    def _websocket(self, protocol: ProtocolPart) -> Upgrade:
        def make() -> Upgrade:
            from fanlight_broker.net.websocket import WebSocket

            return WebSocket(
                subprotocols=protocol.subprotocols, origins=origins, advice=advice, pages=self.port_guide.pages
            )

        origins = tuple(each.strip() for each in (protocol.origins or "").split(",") if each.strip())
        advice = partial(self.port_guide.missing_upgrade, f"{protocol.name}_websocket")
        return LateUpgrade(make)

    async def drain(self, seconds: float) -> None:
        self._draining = True
        self.handover.cancel()
        log.info("draining", connections=len(self._core.broker.everybody), grace_seconds=seconds)
        try:
            late = sum(await asyncio.gather(*(each.drain(seconds, GOODBYE) for each in self._listeners)))
        except asyncio.CancelledError:
            await self._stop_listeners()
            raise
        if late:
            log.warning("grace_over", connections=late, reason="they did not read what they were still to get")

    async def stop(self) -> None:
        self.handover.cancel()
        await self._stop_listeners()
        if self._poller is not None:
            self._poller.close()

    async def _stop_listeners(self) -> None:
        for listener in self._listeners:
            await listener.stop()

    def reload(self, settings: Settings) -> Apply:
        """End the connections that would not be let in any more: authentication comes before, in the list of parts."""
        return self._recheck

    def _recheck(self) -> None:
        for listener in self._listeners:
            listener.recheck()

    # -- inspection ---------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        open_to_all = not self._draining and not self.handover.draining
        return open_to_all and all(listener.accepting for listener in self._listeners)

    def counters(self) -> Mapping[str, int]:
        """Of all listeners together."""
        found: Counter[str] = Counter()
        for listener in self._listeners:
            found.update(listener.counters())
        return found

    def views(self) -> Mapping[str, PartView]:
        return {path: view for protocol, _ in self._protocols for path, view in protocol.views().items()}

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        own = {path: act for protocol, _ in self._protocols for path, act in protocol.actions().items()}
        return {"handover": lambda: self.handover, **own}

    def metrics(self) -> list[MetricSource]:
        """What a protocol counts for itself, and what is counted for each protocol and port."""
        own = [
            MetricSource(protocol.counters_help, protocol.counters, reasons=protocol.reasons)
            for protocol, _ in self._protocols
        ]
        return [MetricSource({}, families=lambda: families_of(self._listeners)), *own]


class LateUpgrade:
    """What `make` makes, from the first connection on: wsproto takes a tenth of the start, and 20 ms when it comes."""

    def __init__(self, make: Callable[[], Upgrade]) -> None:
        self._make = cache(make)

    def entrance(self, handshake: Handshake, connection: Callable[[], Connection]) -> asyncio.Protocol:
        return self._make().entrance(handshake, connection)


def proxies_of(
    settings: Settings, protocols: Sequence[type[ProtocolPart]]
) -> tuple[frozenset[str], Proxies | None]:
    """The names of listeners that are behind proxies, and those proxies. Raises PartError."""
    names = {each.strip() for each in (settings.proxy_protocol or "").split(",")} - {""}
    if not names:
        if settings.proxy_protocol_from:
            raise PartError("proxy_protocol_from: say with proxy_protocol which listeners are behind these proxies")
        return frozenset(), None
    known = {port.name for each in protocols for port in each.settings.ports if port.wanted(settings)}
    if unknown := sorted(names - known - {"all"}):
        text = f"{unknown[0]!r} is not a listener of this broker; there are: {', '.join(sorted(known))}, or all"
        raise PartError(f"proxy_protocol: {text}")
    try:
        networks = networks_of(settings.proxy_protocol_from or "")
    except ValueError as error:
        raise PartError(f"proxy_protocol_from: {error}") from None
    if not networks:
        raise PartError("proxy_protocol: say with proxy_protocol_from which addresses the proxies have")
    return frozenset(known if "all" in names else names), Proxies(networks)


def new_poller(tcp: Tcp, flusher: Flusher) -> Poller | None:
    """The poller, if the settings want it and the system has epoll. Raises PartError if it must be and is not."""
    if Poller is None and tcp is Tcp.EPOLL:
        raise PartError("tcp: epoll, which only Linux has; set tcp to auto or uvloop")
    if Poller is None or tcp is Tcp.UVLOOP:
        return None
    return Poller(asyncio.get_running_loop(), flusher)
