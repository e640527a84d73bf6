"""The HTTP listener: health, metrics, and views of the broker as JSON.

Who may see what is in gatekeeper.py. Errors are JSON too: {"error": "what to do"}. A request is answered in
requests.py, the paths are in inspection.py (what is long: snapshot.py), what bounds the connections is in listener.py.
These and aiohttp are imported when the first client comes (entrance.py).
"""

import asyncio
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from fanlight_broker.admin.entrance import Arrivals, Entrance, HttpServer
from fanlight_broker.admin.gatekeeper import Gatekeeper, MetricsAccess
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import PartView
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.ports import Authenticator, Inspection, ProtocolCheck

if TYPE_CHECKING:
    from aiohttp import web

    from fanlight_broker.admin.requests import Operate, Requests

COUNTERS: Final = {
    "http_requests": "HTTP requests answered",
    "http_requests_malformed": "HTTP connections ended because their client did not speak HTTP",
    "http_tokens_refused": "HTTP requests with a wrong token for /metrics (metrics_token_file)",
    "http_connections_refused": "HTTP connections refused because there were too many (http_connections_max)",
    "http_connections_retired": "HTTP connections ended by http_connection_seconds_max",
    "http_proxy_headers_failed": "HTTP connections closed because they were from no proxy, or without its header",
    "http_tls_handshakes_failed": "HTTPS connections whose TLS handshake failed",
    "http_tls_handshakes_refused": "HTTPS connections refused because too many were in their handshake",
}
GAUGES: Final = {
    "http_slice_cpu_max_seconds": "CPU seconds of the longest piece of an HTTP answer that is made in pieces",
}
STOP_SECONDS: Final = 2.0


class HttpsServer(Protocol):
    """TLS, as the HTTP listener needs it (broker/fanlight_broker/net has it)."""

    async def start(self, factory: Callable[[str], asyncio.BaseProtocol], host: str, port: int) -> tuple[str, int]: ...
    @property
    def without_proxy(self) -> int: ...
    def certified(self, transport: asyncio.BaseTransport | None) -> str: ...
    def counters(self) -> Mapping[str, int]: ...
    def stop(self) -> None: ...


class Https(NamedTuple):
    """Where HTTPS is."""

    server: HttpsServer
    host: str
    port: int


class AdminServer:
    """The HTTP listener of one broker.

    `sources` are what /stats and /metrics show beside the listener's own; the core's are among them. With `https` it
    listens there as well; a connection there that its certificate names needs no password. `proxied` listens in its
    place where all connections come through a proxy.
    """

    def __init__(
        self,
        inspection: Inspection,
        authenticator: Authenticator,
        sources: Sequence[MetricSource],
        *,
        version: str,
        host: str = "127.0.0.1",
        port: int = 7421,
        connections_max: int = 64,
        connection_seconds_max: float = 60.0,
        requests_per_second_max: float = 50.0,
        https: Https | None = None,
        proxied: HttpsServer | None = None,
        metrics: MetricsAccess | None = None,
        protocol_check: ProtocolCheck | None = None,
        enforcement: Enforcement | None = None,
        actions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        views: Mapping[str, PartView] = MappingProxyType({}),
        dashboard: bool = False,
        sockets: Callable[[], Mapping[str, int]] = dict,
        operate: "Operate | None" = None,
        login_required: Callable[[], bool] = lambda: False,
        believes: Callable[[str], bool] | None = None,
        strangers: Arrivals | None = None,
    ) -> None:
        sources = (*sources, MetricSource({**COUNTERS, **GAUGES}, self._counters, self._gauges))
        self._https, self._proxied = https, proxied
        self._protocol_check = protocol_check
        self.gatekeeper = Gatekeeper(authenticator, metrics or MetricsAccess(), self._certified, enforcement)
        self._actions, self._views, self._dashboard = actions, views, dashboard
        self._sockets = sockets
        self._operate, self._login_required, self._believes = operate, login_required, believes
        self._strangers = strangers
        self._inspection, self._sources, self._version = inspection, sources, version
        self._host, self._asked_port = host, port
        self._connections_max = connections_max
        self._connection_seconds_max = connection_seconds_max
        self._requests_per_second_max = requests_per_second_max
        self._requests: Requests | None = None  # once the first client has come
        self._http: Entrance | None = None
        self._server: asyncio.Server | None = None
        self._port = self._tls_port = 0
        self._local = self._tls_local = False

    async def start(self) -> None:
        """Listen. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._http = Entrance("fanlight_broker.admin.requests", self._make, self._connections_max, self._strangers)
        if self._proxied is not None:
            host, self._port = await self._proxied.start(self._http, self._host, self._asked_port)
            self._local = ipaddress.ip_address(host).is_loopback
        else:
            self._server = await loop.create_server(self._http, self._host, self._asked_port, backlog=64)
            self._port = int(self._server.sockets[0].getsockname()[1])
            addresses = [ipaddress.ip_address(each.getsockname()[0]) for each in self._server.sockets]
            self._local = all(address.is_loopback for address in addresses)
        if self._https is not None:
            host, self._tls_port = await self._https.server.start(self._http, self._https.host, self._https.port)
            self._tls_local = ipaddress.ip_address(host).is_loopback

    @property
    def port(self) -> int:
        """The port that it listens on, which is not 0. Only between `start` and `stop`."""
        if not self._port:
            raise RuntimeError("the HTTP listener is not started")
        return self._port

    @property
    def tls_port(self) -> int:
        """The same for HTTPS."""
        if not self._tls_port:
            raise RuntimeError("HTTPS is not started")
        return self._tls_port

    async def stop(self) -> None:
        """Stop listening, and end all connections within STOP_SECONDS."""
        if self._http is None:
            return
        if self._requests is not None:
            self._requests.stop()
        if self._server is not None:
            self._server.close()
        if self._proxied is not None:
            self._proxied.stop()
        if self._https is not None:
            self._https.server.stop()
        await self._http.end(STOP_SECONDS)
        self._server = self._http = None
        self._port = 0

    def _gauges(self) -> dict[str, float]:
        return {"http_slice_cpu_max_seconds": self._requests.longest_slice if self._requests else 0.0}

    def _counters(self) -> dict[str, int]:
        return {
            "http_proxy_headers_failed": sum(
                each.without_proxy for each in (self._proxied, self._https.server if self._https else None) if each
            ),
            "http_tls_handshakes_failed": 0,
            "http_tls_handshakes_refused": 0,
            **(self._https.server.counters() if self._https else {}),
            "http_requests": self._requests.count if self._requests else 0,
            "http_requests_malformed": self._http.malformed if self._http else 0,
            "http_tokens_refused": self.gatekeeper.tokens_refused,
            "http_connections_refused": self._http.refused if self._http else 0,
            "http_connections_retired": self._http.retired if self._http else 0,
        }

    def _make(self) -> HttpServer:
        from fanlight_broker.admin.dashboard_files import DashboardFiles
        from fanlight_broker.admin.listener import BoundedServer
        from fanlight_broker.admin.requests import Requests

        self._requests = Requests(
            self._inspection, self._sources, self.gatekeeper, version=self._version,
            per_second_max=self._requests_per_second_max,
            local=lambda secure: self._tls_local if secure else self._local, actions=self._actions,
            views=self._views, dashboard=DashboardFiles(self._sockets()) if self._dashboard else None,
            operate=self._operate, login_required=self._login_required,
            seconds=self._connection_seconds_max, believes=self._believes,
        )
        return BoundedServer(
            self._requests.handle, connection_seconds_max=self._connection_seconds_max,
            protocol_check=self._protocol_check,
        )

    def _certified(self, request: "web.BaseRequest") -> str:
        return self._https.server.certified(request.transport) if self._https else ""
