"""The listeners: one for each protocol, with the ports that the settings open: plain, TLS, WebSocket.

No protocol is named here. assembly.py lists them; core/protocol_part.py is what each brings.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import PartView
from fanlight_broker.authentication import Authentication
from fanlight_broker.config import Settings
from fanlight_broker.config.checks import REMEDY, checks_credentials
from fanlight_broker.config.settings import ClientCertificates, Tcp
from fanlight_broker.core.listening_port import ListeningPort
from fanlight_broker.core.ports import View
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
from fanlight_broker.net.listener_metrics import BY_LISTENER, families_of
from fanlight_broker.net.proxies import Proxies, networks_of
from fanlight_broker.net.strangers import StrangersNow
from fanlight_broker.net.tls import Tls, TlsError
from fanlight_broker.parts import Apply, Part, PartError
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wrong_port import PortGuide

if TYPE_CHECKING:
    from fanlight_broker.listener_file import OwnListener

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
        self._own: list[tuple[OwnListener, ProtocolPart, Listener]] = []
        self._own_tls: dict[str, Tls] = {}  # of those with a certificate of their own
        self._prepared: list[Apply] = []
        self._open_ports: list[View] = []
        self._poller: Poller | None = None
        self._draining = False
        self._admission = Admission()
        self.strangers = StrangersNow(self._admission.strangers, lambda: core.broker.limits, monotonic)
        self._proxied: frozenset[str] = frozenset()  # names of listeners that are behind a proxy
        self._proxies: Proxies | None = None
        self.handover = Handover(core.broker, self._admission, monotonic)

    def proxies_before(self, listener: str) -> Proxies | None:
        """Those of a listener by its name; None: clients connect to it themselves."""
        return self._proxies if listener in self._proxied else None

    @property
    def _listeners(self) -> list[Listener]:
        return [*(listener for _, listener in self._protocols), *(listener for _, _, listener in self._own)]

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
            self._protocols.append((protocol, self._listener(protocol, shared, admission)))
        by_name = {protocol.name: protocol for protocol in made}
        for one in own_listeners(self.settings, self._classes):
            bounded = admission.within(one.connections_max, f"connections_max of the listener {one.name}")
            protocol = by_name[one.protocol]
            self._own.append((one, protocol, self._listener(protocol, shared, bounded)))
            self.port_guide.add(one.name, one.protocol, tls=one.secure, websocket=one.websocket)
            if one.files is not None:
                self._own_tls[one.name] = own_tls(one)

    def _listener(self, protocol: ProtocolPart, shared: ReceiveBuffer, admission: Admission) -> Listener:
        return Listener(
            protocol.name, self._core.broker, protocol.connection, self._access.authenticator, clock=monotonic,
            shared=shared, admission=admission, poller=self._poller, protocol_check=self.port_guide.check,
            handshake_turns=self.handshake_turns, durability=protocol.durability,
        )

    async def start(self) -> None:
        for protocol, _ in self._protocols:
            protocol.begin(self._core.broker)
        for protocol, listener in self._protocols:
            for port in protocol.settings.ports:
                if port.wanted(self.settings):
                    await self._listen(protocol, listener, port)
        for one, protocol, listener in self._own:
            await self._listen_own(one, protocol, listener)

    async def _listen(self, protocol: ProtocolPart, listener: Listener, port: ListeningPort) -> None:
        host, number = port.host(self.settings), port.number(self.settings)
        tls = self._encryption.tls if port.tls else None
        upgrade = self._websocket(protocol) if port.websocket else None
        proxies = self._proxies if port.name in self._proxied else None
        with opening(port.setting, host, number):
            host, number = await listener.start(host, number, tls=tls, upgrade=upgrade, proxies=proxies)
        self.port_guide.opened(port.name, number)
        self._opened(port.name, protocol, port, host, number, proxied=proxies is not None)

    async def _listen_own(self, one: "OwnListener", protocol: ProtocolPart, listener: Listener) -> None:
        port = ListeningPort(protocol.name, tls=one.secure, websocket=one.websocket)
        tls = self._own_tls.get(one.name, self._encryption.tls) if one.secure else None
        upgrade = self._websocket(protocol, one.websocket_origins) if one.websocket else None
        proxies = Proxies(one.proxy_protocol_from) if one.proxy_protocol_from else None
        with opening(f"listener {one.name}", one.host, one.port):
            host, number = await listener.start(
                one.host, one.port, tls=tls, upgrade=upgrade, proxies=proxies, name=one.name
            )
        self._opened(one.name, protocol, port, host, number, proxied=proxies is not None, most=one.connections_max)

    def _opened(
        self, name: str, protocol: ProtocolPart, port: ListeningPort, host: str, number: int, *, proxied: bool,
        most: int | None = None,
    ) -> None:
        example = protocol.example(port, reachable(host), number, credentials=self._access.required)
        log_listening(name, host, number, example)
        self._open_ports.append({
            "listener": name, "protocol": protocol.name, "host": host, "port": number, "tls": port.tls,
            "websocket": port.websocket, "proxied": proxied, "connections_max": most,
        })

    def ports(self) -> list[View]:
        """The ports that are open, and what came there."""
        traffic = {each.name: each for listener in self._listeners for each in listener.traffic}
        return [
            {
                **each, "connections": traffic[each["listener"]].connections,
                **{name: getattr(traffic[each["listener"]].meter, name) for name in BY_LISTENER},
            } for each in self._open_ports
        ]

    def _websocket(self, protocol: ProtocolPart, own_origins: str | None = None) -> Upgrade:
        def make() -> Upgrade:
            from fanlight_broker.net.websocket import WebSocket

            return WebSocket(
                subprotocols=protocol.subprotocols, origins=origins, advice=advice, pages=self.port_guide.pages
            )

        origins = tuple(each.strip() for each in (own_origins or protocol.origins or "").split(",") if each.strip())
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

    async def prepare(self, settings: Settings) -> None:
        """Certificates of their own are read again; all else of these listeners is of the start."""
        self._prepared = [
            await asyncio.to_thread(prepared_tls, self._own_tls[one.name], one)
            for one, _, _ in self._own if one.name in self._own_tls
        ]

    def _recheck(self) -> None:
        prepared, self._prepared = self._prepared, []
        for apply in prepared:
            apply()
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
        found["connections_refused_strangers"] = self._admission.strangers.refused
        return found

    def views(self) -> Mapping[str, PartView]:
        return {path: view for protocol, _ in self._protocols for path, view in protocol.views().items()}

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        own = {path: act for protocol, _ in self._protocols for path, act in protocol.actions().items()}
        return {"handover": lambda: self.handover, "listeners": self.ports, **own}

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
    web = {each for each in ("http", "https") if settings.http and (each == "http" or settings.tls_certificate)}
    if unknown := sorted(names - known - web - {"all"}):
        text = f"{unknown[0]!r} is not a listener of this broker; there are: {', '.join(sorted(known | web))}, or all"
        raise PartError(f"proxy_protocol: {text}")
    try:
        networks = networks_of(settings.proxy_protocol_from or "")
    except ValueError as error:
        raise PartError(f"proxy_protocol_from: {error}") from None
    if not networks:
        raise PartError("proxy_protocol: say with proxy_protocol_from which addresses the proxies have")
    return frozenset(names | known if "all" in names else names), Proxies(networks)


def own_listeners(settings: Settings, protocols: Sequence[type[ProtocolPart]]) -> "tuple[OwnListener, ...]":
    """Those of the file that the settings name. Raises PartError."""
    if settings.listeners is None:
        return ()
    from fanlight_broker.listener_file import ListenerFileError, load  # for those who have some

    on = [each for each in protocols if any(port.wanted(settings) for port in each.settings.ports)]
    taken = {port.name for each in protocols for port in each.settings.ports}
    try:
        found = load(settings.listeners, [each.name for each in on], taken)
    except ListenerFileError as error:
        raise PartError("; ".join(error.problems)) from error
    for one in found:
        if one.tls and settings.tls_certificate is None:
            raise PartError(f"listener {one.name}: tls = true is the broker's certificate; see tls_certificate")
        certified = one.tls and settings.tls_client_certificates is ClientCertificates.REQUIRED
        if one.exposed and not certified and not (checks_credentials(settings) or settings.allow_anonymous):
            text = f"{one.host} can be reached from other machines, and fanlightd {REMEDY}"
            raise PartError(f"listener {one.name}: {text}")
    return found


def own_tls(one: "OwnListener") -> Tls:
    """Raises PartError."""
    assert one.files is not None
    try:
        return Tls(one.files)
    except TlsError as error:
        raise PartError(f"listener {one.name}: {error}") from error


def prepared_tls(tls: Tls, one: "OwnListener") -> Apply:
    """Raises PartError."""
    assert one.files is not None
    try:
        return tls.prepare(one.files)
    except TlsError as error:
        raise PartError(f"listener {one.name}: {error}") from error


def new_poller(tcp: Tcp, flusher: Flusher) -> Poller | None:
    """The poller, if the settings want it and the system has epoll. Raises PartError if it must be and is not."""
    if Poller is None and tcp is Tcp.EPOLL:
        raise PartError("tcp: epoll, which only Linux has; set tcp to auto or uvloop")
    if Poller is None or tcp is Tcp.UVLOOP:
        return None
    return Poller(asyncio.get_running_loop(), flusher)
