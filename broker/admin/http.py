"""The HTTP listener: health, metrics, and views of the broker as JSON.

Whoever asks is authenticated as a client is, by Basic authentication; only /healthz needs none. Errors are
JSON too: {"error": what to do}. The paths are in views.py (what is long: snapshot.py), what bounds the connections
in listener.py.
"""

import asyncio
import base64
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from aiohttp import web

from broker.admin.figures import Figures
from broker.admin.listener import BoundedServer, Pace
from broker.admin.metrics import Exposition
from broker.admin.snapshot import Snapshots
from broker.admin.views import METRICS, PATHS, BadQuery, Views, place_asked
from broker.core.errors import AuthenticationFailed
from broker.core.identity import Identity
from broker.core.ports import Authenticator, Inspection

COUNTERS: Final = {
    "http_requests": "HTTP requests answered",
    "http_connections_refused": "HTTP connections refused because there were too many (http_connections_max)",
    "http_connections_retired": "HTTP connections ended because their time was over",
    "http_tls_handshakes_failed": "HTTPS connections that did not get through their TLS handshake",
    "http_tls_handshakes_refused": "HTTPS connections refused because too many were at their handshake",
}
HEALTH: Final = "/healthz"
STOP_SECONDS: Final = 2.0
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="fanlight", charset="UTF-8"'}

_log = structlog.stdlib.get_logger("http")


class Gate(Protocol):
    """TLS, as the HTTP listener needs it (broker/net has it)."""

    async def start(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> tuple[str, int]: ...
    def certified(self, transport: asyncio.BaseTransport | None) -> str: ...
    def counters(self) -> Mapping[str, int]: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Https:
    """Where HTTPS is."""

    gate: Gate
    host: str
    port: int


class AdminServer:
    """The HTTP listener of one broker.

    `figures` are what /stats and /metrics show beside the listener's own; the core's are among them. With `https` it
    listens there as well; a connection there that its certificate names needs no password.
    """

    def __init__(
        self,
        inspection: Inspection,
        authenticator: Authenticator,
        figures: Sequence[Figures],
        *,
        version: str,
        host: str = "127.0.0.1",
        port: int = 7421,
        connections_max: int = 64,
        connection_seconds_max: float = 60.0,
        requests_per_second_max: float = 50.0,
        https: Https | None = None,
    ) -> None:
        figures = (*figures, Figures(COUNTERS, counters=self._counters))
        self._https = https
        self._authenticator = authenticator
        self._views = Views(inspection, figures, version)
        self._snapshots = Snapshots(inspection, version)
        self._exposition = Exposition(figures, version)
        self._host, self._asked_port = host, port
        self._connections_max = connections_max
        self._connection_seconds_max = connection_seconds_max
        self._pace = Pace(requests_per_second_max)
        # Of its own, so that who asks too much cannot make a supervisor think the broker dead.
        self._health_pace = Pace(requests_per_second_max)
        self._requests = 0
        self._http: BoundedServer | None = None
        self._server: asyncio.Server | None = None
        self._tls_port = 0
        self._local = self._tls_local = False

    async def start(self) -> None:
        """Listen. Raises OSError if that cannot be."""
        loop = asyncio.get_running_loop()
        self._http = BoundedServer(
            self._handle,
            connections_max=self._connections_max,
            connection_seconds_max=self._connection_seconds_max,
        )
        self._server = await loop.create_server(self._http, self._host, self._asked_port, backlog=64)
        addresses = [ipaddress.ip_address(each.getsockname()[0]) for each in self._server.sockets]
        self._local = all(address.is_loopback for address in addresses)
        if self._https is not None:
            host, self._tls_port = await self._https.gate.start(self._http, self._https.host, self._https.port)
            self._tls_local = ipaddress.ip_address(host).is_loopback

    @property
    def port(self) -> int:
        """The port it listens on, also if 0 was asked for. Only between `start` and `stop`."""
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
        """Stop listening, and end what is open within STOP_SECONDS."""
        if self._server is None or self._http is None:
            return
        self._server.close()
        if self._https is not None:
            self._https.gate.stop()
        await self._http.end(STOP_SECONDS)
        self._server = None

    def _counters(self) -> dict[str, int]:
        return {
            "http_tls_handshakes_failed": 0,
            "http_tls_handshakes_refused": 0,
            **(self._https.gate.counters() if self._https else {}),
            "http_requests": self._requests,
            "http_connections_refused": self._http.refused if self._http else 0,
            "http_connections_retired": self._http.retired if self._http else 0,
        }

    # A request, from its pace to its answer.

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._requests += 1
        pace = self._health_pace if request.path == HEALTH else self._pace
        if (seconds := pace.wait(asyncio.get_running_loop().time())) > 0:
            await asyncio.sleep(seconds)
        try:
            return await self._answer(request)
        except AuthenticationFailed as error:
            return _json(401, {"error": str(error)}, _CHALLENGE)
        except BadQuery as error:
            return _json(400, {"error": str(error)})
        except Exception:
            _log.exception("request_failed", path=request.path)
            return _json(500, {"error": "an error in the broker; its log has the traceback"})

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != HEALTH:
            identity = await self._identity(request)
            local = self._tls_local if request.secure else self._local
            if identity.anonymous and local and not _is_local_name(request.host):
                # A page on the web can lead its own host name to 127.0.0.1, and read what is there.
                text = "without credentials, ask by address: http://127.0.0.1 or http://localhost"
                return _json(403, {"error": text})
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
        return _json(*path.answer(self._views, query))

    async def _identity(self, request: web.BaseRequest) -> Identity:
        header = request.headers.get("Authorization")
        user, password = _basic(header) if header is not None else (None, None)
        certified = self._https.gate.certified(request.transport) if self._https else ""
        return await self._authenticator.authenticate(
            user, password, request.remote or "", certified=certified, counted=False
        )


def _basic(header: str) -> tuple[str, str]:
    """User and password of an Authorization header (RFC 7617). Raises AuthenticationFailed."""
    scheme, _, encoded = header.strip().partition(" ")
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:  # binascii.Error and UnicodeDecodeError too
        colon = ""
    if scheme.lower() != "basic" or not colon:
        raise AuthenticationFailed("the Authorization header must be Basic: user:password, UTF-8, in base64")
    return user, password


def _is_local_name(host: str) -> bool:
    """Whether a Host header is `localhost` or a literal address, which no one can lead elsewhere."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    # ASCII only: topics may hold what no UTF-8 can (lone surrogates).
    text = json.dumps(value, default=str) + "\n"
    return web.Response(
        text=text, status=status, content_type="application/json", headers={**_HEADERS, **(headers or {})}
    )
