"""The HTTP listener: health, metrics, and views of the broker as JSON.

Who may see what is in gatekeeper.py. Errors are JSON too: {"error": "what to do"}. The paths are in inspection.py
(what is long: snapshot.py), what bounds the connections in listener.py.
"""

import asyncio
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from aiohttp import web

from fanlight_broker.admin.gatekeeper import Gatekeeper, MetricsAccess
from fanlight_broker.admin.inspection import METRICS, PATHS, BadQuery, InspectionApi, place_asked
from fanlight_broker.admin.listener import SERVER, BoundedServer, Pace
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.metrics import Exposition
from fanlight_broker.admin.snapshot import Snapshots
from fanlight_broker.core.errors import AuthenticationFailed, NotPermitted
from fanlight_broker.core.ports import Authenticator, Inspection, ProtocolCheck

COUNTERS: Final = {
    "http_requests": "HTTP requests answered",
    "http_requests_malformed": "HTTP connections ended because their client did not speak HTTP",
    "http_tokens_refused": "HTTP requests with a wrong token for /metrics (metrics_token_file)",
    "http_connections_refused": "HTTP connections refused because there were too many (http_connections_max)",
    "http_connections_retired": "HTTP connections ended by http_connection_seconds_max",
    "http_tls_handshakes_failed": "HTTPS connections whose TLS handshake failed",
    "http_tls_handshakes_refused": "HTTPS connections refused because too many were in their handshake",
}
READY: Final = "/readyz"
OPEN: Final = frozenset({"/healthz", READY})
STOP_SECONDS: Final = 2.0
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": SERVER}
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="fanlight", charset="UTF-8"'}

_log = structlog.stdlib.get_logger("http")


class HttpsServer(Protocol):
    """TLS, as the HTTP listener needs it (broker/fanlight_broker/net has it)."""

    async def start(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> tuple[str, int]: ...
    def certified(self, transport: asyncio.BaseTransport | None) -> str: ...
    def counters(self) -> Mapping[str, int]: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Https:
    """Where HTTPS is."""

    server: HttpsServer
    host: str
    port: int


class AdminServer:
    """The HTTP listener of one broker.

    `sources` are what /stats and /metrics show beside the listener's own; the core's are among them. With `https` it
    listens there as well; a connection there that its certificate names needs no password.
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
        metrics: MetricsAccess | None = None,
        protocol_check: ProtocolCheck | None = None,
    ) -> None:
        sources = (*sources, MetricSource(COUNTERS, counters=self._counters))
        self._https = https
        self._protocol_check = protocol_check
        self.gatekeeper = Gatekeeper(authenticator, metrics or MetricsAccess(), self._certified)
        self._api = InspectionApi(inspection, sources, version)
        self._snapshots = Snapshots(inspection, version)
        self._exposition = Exposition(sources, version)
        self._host, self._asked_port = host, port
        self._connections_max = connections_max
        self._connection_seconds_max = connection_seconds_max
        self._pace = Pace(requests_per_second_max)
        # Separate, so that a flood of other requests cannot make a supervisor think the broker dead.
        self._health_pace = Pace(requests_per_second_max)
        self._requests = 0
        self._http: BoundedServer | None = None
        self._server: asyncio.Server | None = None
        self._tls_port = 0
        self._local = self._tls_local = False

    async def start(self) -> None:
        """Listen. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._http = BoundedServer(
            self._handle,
            connections_max=self._connections_max,
            connection_seconds_max=self._connection_seconds_max,
            protocol_check=self._protocol_check,
        )
        self._server = await loop.create_server(self._http, self._host, self._asked_port, backlog=64)
        addresses = [ipaddress.ip_address(each.getsockname()[0]) for each in self._server.sockets]
        self._local = all(address.is_loopback for address in addresses)
        if self._https is not None:
            host, self._tls_port = await self._https.server.start(self._http, self._https.host, self._https.port)
            self._tls_local = ipaddress.ip_address(host).is_loopback

    @property
    def port(self) -> int:
        """The port that it listens on, which is not 0. Only between `start` and `stop`."""
        if self._server is None:
            raise RuntimeError("the HTTP listener is not started")
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def tls_port(self) -> int:
        """The same for HTTPS."""
        if not self._tls_port:
            raise RuntimeError("HTTPS is not started")
        return self._tls_port

    async def stop(self) -> None:
        """Stop listening, and end all connections within STOP_SECONDS."""
        if self._server is None or self._http is None:
            return
        self._server.close()
        if self._https is not None:
            self._https.server.stop()
        await self._http.end(STOP_SECONDS)
        self._server = None

    def _counters(self) -> dict[str, int]:
        return {
            "http_tls_handshakes_failed": 0,
            "http_tls_handshakes_refused": 0,
            **(self._https.server.counters() if self._https else {}),
            "http_requests": self._requests,
            "http_requests_malformed": self._http.malformed if self._http else 0,
            "http_tokens_refused": self.gatekeeper.tokens_refused,
            "http_connections_refused": self._http.refused if self._http else 0,
            "http_connections_retired": self._http.retired if self._http else 0,
        }

    # A request, from its pace to its answer.

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._requests += 1
        pace = self._health_pace if request.path in OPEN else self._pace
        if (seconds := pace.wait(asyncio.get_running_loop().time())) > 0:
            await asyncio.sleep(seconds)
        try:
            return await self._answer(request)
        except AuthenticationFailed as error:
            return _json(401, {"error": str(error)}, _CHALLENGE)
        except NotPermitted as error:
            return _json(403, {"error": str(error)})
        except BadQuery as error:
            return _json(400, {"error": str(error)})
        except Exception:
            _log.exception("request_failed", path=request.path)
            return _json(500, {"error": "an error in the broker; its log has the traceback"})

    async def _admit(self, request: web.BaseRequest) -> bool:
        """Whether the answer may have details. Raises AuthenticationFailed, NotPermitted."""
        local = self._tls_local if request.secure else self._local
        if request.path == METRICS:
            await self.gatekeeper.check_metrics(request, local=local)
        elif request.path not in OPEN:
            await self.gatekeeper.check(request, local=local)
        elif request.path == READY:
            try:
                await self.gatekeeper.check(request, local=local)
            except (AuthenticationFailed, NotPermitted):
                return False
        return True

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        details = await self._admit(request)
        path = PATHS.get(request.path)
        if path is None:
            return _json(404, {"error": f"no such path; there are: {', '.join(PATHS)}"})
        if request.method not in ("GET", "HEAD"):
            text = f"{request.path} can be read only: GET"
            return _json(405, {"error": text}, {"Allow": "GET, HEAD"})
        query = request.query
        if unknown := sorted(set(query) - set(path.parameters)):
            known = ", ".join(path.parameters) or "none"
            raise BadQuery(f"unknown parameter {unknown[0][:40]!r}; {request.path} takes: {known}")
        if request.path == METRICS:
            body, content_type = self._exposition.render(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={**_HEADERS, "Content-Type": content_type})
        if path.streams and (place := place_asked(query)) is not None:
            return await self._snapshots.answer(request, place, _HEADERS)
        if request.path == READY:
            return _json(*self._api.readyz(query, details=details))
        return _json(*path.answer(self._api, query))

    def _certified(self, request: web.BaseRequest) -> str:
        return self._https.server.certified(request.transport) if self._https else ""


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    # ASCII only: topics may hold what no UTF-8 can (lone surrogates).
    text = json.dumps(value, default=str) + "\n"
    return web.Response(
        text=text, status=status, content_type="application/json", headers={**_HEADERS, **(headers or {})}
    )
