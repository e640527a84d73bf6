"""The HTTP listener as a part: health, metrics and inspection, plain and by TLS."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fanlight_broker import __version__, logs
from fanlight_broker.admin.bounded import bounded
from fanlight_broker.admin.event_feed import EventFeed
from fanlight_broker.admin.gatekeeper import MetricsAccess
from fanlight_broker.admin.history import History
from fanlight_broker.admin.http import AdminServer, Https
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import Answer, PartView, Query
from fanlight_broker.authentication import Authentication
from fanlight_broker.config import Settings
from fanlight_broker.config.secret_file import SecretFileError, secret_in
from fanlight_broker.converting import Converting
from fanlight_broker.core.protocol_part import ProtocolPart
from fanlight_broker.core_part import Core
from fanlight_broker.encryption import Encryption
from fanlight_broker.inspecting import Inspecting
from fanlight_broker.listeners import Listeners
from fanlight_broker.listening import log_listening, opening, reachable
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.https import TlsServer
from fanlight_broker.net.proxies import Proxies, networks_of
from fanlight_broker.parts import Apply, Part, PartError
from fanlight_broker.process_usage import process_usage

if TYPE_CHECKING:
    from fanlight_broker.admin.api.operated import Operated
    from fanlight_broker.admin.slices import Slices


class Administration(Part):
    """sources  the metrics of all parts, asked for once, when it is opened; actions: what they can be asked to do;
    views: what they show; of_pages: the protocol of the dashboard, in whose format messages by HTTP are kept
    """

    name = "http"
    server: AdminServer  # once it is open
    history: History  # the same

    def __init__(
        self, settings: Settings, core: Core, access: Authentication, encryption: Encryption, listeners: Listeners,
        inspecting: Inspecting, sources: Callable[[], Sequence[MetricSource]],
        actions: Callable[[], Mapping[str, Callable[..., Any]]] = dict,
        views: Callable[[], Mapping[str, PartView]] = dict, *, of_pages: type[ProtocolPart],
    ) -> None:
        self.settings = settings
        self._core, self._access, self._encryption = core, access, encryption
        self._listeners, self._inspecting, self._sources, self._actions = listeners, inspecting, sources, actions
        self._views, self._of_pages = views, of_pages

    async def open(self) -> None:
        settings = self.settings
        self._level: str = settings.log_level
        inspection, broker = self._inspecting.inspection, self._core.broker
        self.feed = EventFeed(lambda: bounded(inspection.gauges(), broker.limits), self._dead_letters)
        self.history = History(self._sources(), process_usage)
        self.server = AdminServer(
            self._inspecting.inspection, self._access.authenticator, self._sources(),
            version=__version__, host=settings.http_host, port=settings.http_port,
            connections_max=settings.http_connections_max,
            connection_seconds_max=settings.http_connection_seconds_max,
            requests_per_second_max=settings.http_requests_per_second_max,
            https=self._https(), proxied=self._proxied(), metrics=metrics_access_of(settings),
            protocol_check=self._listeners.port_guide.check,
            enforcement=self._core.broker.enforcement, actions=self._actions(),
            views=self._views(), dashboard=settings.dashboard, operate=self._operate,
            login_required=lambda: self._access.required,
            believes=forwarding_proxies(settings), strangers=self._listeners.strangers,
            sockets=partial(self._listeners.port_guide.sockets, self._of_pages.name),
        )

    def _operate(self, slices: "Slices", sources: Sequence[MetricSource]) -> "Operated":
        """What the API works on, once the first client of HTTP has come. sources: with those of the listener itself"""
        from fanlight_broker.admin.api.operated import Operated
        from fanlight_broker.admin.listener import lengthen

        data = self.settings.data
        return Operated(
            self._core.broker, self._inspecting.inspection, monotonic, __version__, self._of_pages.formats[0], slices,
            sources, self._actions(), self._views(), self.feed,
            None if data is None else data.absolute().parent, lengthen, lambda: self._listeners.handover.draining,
        )

    def _dead_letters(self) -> dict[str, int]:
        """So far, by namespace."""
        return {home.name: home.queues.burial.dead for home in self._core.broker.everywhere()}

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {"log_level": self._log_level, "convert_mosquitto": Converting().mosquitto}

    def _log_level(self, wanted: str | None) -> str:
        if wanted is not None:
            logs.reconfigure(level=wanted, burst_max=self.settings.log_burst_max)
            self._level = wanted
        return self._level

    def views(self) -> Mapping[str, PartView]:
        return {"/history": self.history.view, "/settings": self._settings_view}

    def _settings_view(self, _: Query) -> Awaitable[Answer]:
        from fanlight_broker.settings_view import settings_view  # here: few ask

        return settings_view(self.settings)

    def _https(self) -> Https | None:
        if self._encryption.tls is None:
            return None
        settings = self.settings
        server = TlsServer(
            self._encryption.tls, "https", self._listeners.handshake_turns,
            handshakes_max=settings.http_connections_max, limits=lambda: self._core.broker.limits,
            strangers=self._listeners.strangers, protocol_check=self._listeners.port_guide.check,
            proxies=self._listeners.proxies_before("https"),
        )
        return Https(server, settings.http_tls_host or settings.http_host, settings.http_tls_port)

    def _proxied(self) -> TlsServer | None:
        """What accepts for the plain port, if that is behind a proxy."""
        proxies = self._listeners.proxies_before("http")
        if proxies is None:
            return None
        return TlsServer(
            None, "http", self._listeners.handshake_turns, handshakes_max=self.settings.http_connections_max,
            limits=lambda: self._core.broker.limits, strangers=self._listeners.strangers, proxies=proxies,
        )

    async def start(self) -> None:
        settings = self.settings
        if not settings.http:
            return
        with opening("http_port", settings.http_host, settings.http_port):
            await self.server.start()
        self.history.start()
        self.feed.start()
        self._listening("http", settings.http_host, self.server.port, "")
        if self._encryption.tls is not None:
            host = settings.http_tls_host or settings.http_host
            self._listening("https", host, self.server.tls_port, "--cacert CA.pem ")

    def _listening(self, scheme: str, host: str, port: int, options: str) -> None:
        self._listeners.port_guide.opened(scheme, port)
        user = "USER:PASSWORD@" if self._access.required else ""
        log_listening(scheme, host, port, f"curl {options}{scheme}://{user}{reachable(host)}:{port}/stats")

    async def stop(self) -> None:
        self.history.stop()
        self.feed.stop()
        await self.server.stop()

    def reload(self, settings: Settings) -> Apply:
        return partial(self._use, settings, metrics_access_of(settings))

    def _use(self, settings: Settings, metrics: MetricsAccess) -> None:
        self.settings = settings
        self._level = settings.log_level
        self.server.gatekeeper.use(metrics)


def forwarding_proxies(settings: Settings) -> Callable[[str], bool] | None:
    """Whether an address is that of a proxy before the HTTP listener; None: there are none. Raises PartError."""
    if not settings.http_forwarded_from:
        return None
    try:
        return Proxies(networks_of(settings.http_forwarded_from)).believes
    except ValueError as error:
        raise PartError(f"http_forwarded_from: {error}") from None


def metrics_access_of(settings: Settings) -> MetricsAccess:
    """Who may read /metrics. Raises PartError."""
    file = settings.metrics_token_file
    try:
        return MetricsAccess(secret_in(file) if file is not None else None, settings.metrics_open)
    except SecretFileError as error:
        raise PartError(f"metrics_token_file: {error}") from error
