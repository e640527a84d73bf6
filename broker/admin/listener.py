"""The HTTP listener's connections: how many, for how long, and how many requests a second.

The listener shares its loop with the routing of messages, and must not be able to take much of it. aiohttp
parses, answers and bounds lines and headers. Beyond the limit a connection is answered 503 at once; each is
ended after its time, in order if it can be, so that a client which sends or reads nothing does not keep its
place; and requests are paced: what comes too fast waits for its turn, one at a time for each connection.
"""

import asyncio
import logging
from typing import Any, Final

from aiohttp import web

_NO_ACCESS_LOG: Final = logging.getLogger("http.access")
_NO_ACCESS_LOG.disabled = True  # so aiohttp makes no lines: a scraper would fill the log with them
FORCE_SECONDS: Final = 5.0  # for an answer that is being sent when its connection's time is over

_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
_REFUSAL_BODY: Final = b'{"error": "too many HTTP connections (http_connections_max); try again"}\n'


class Pace:
    """At most `per_second` requests: each is told how long to wait for its turn."""

    def __init__(self, per_second: float) -> None:
        self._step = 1 / per_second
        self._next = 0.0

    def wait(self, now: float) -> float:
        """Seconds to wait from `now`. Up to a second's worth of requests may come together."""
        self._next = max(self._next, now - 1) + self._step
        return max(0.0, self._next - now)


class BoundedServer(web.Server):
    """aiohttp's server, with a bound on connections and on the life of each."""

    def __init__(self, handler: Any, *, connections_max: int, connection_seconds_max: float) -> None:
        super().__init__(handler)
        self.open = 0
        self.refused = 0
        self.retired = 0
        self.connection_seconds_max = connection_seconds_max
        self._connections_max = connections_max

    def __call__(self) -> Any:
        if self.open >= self._connections_max:
            self.refused += 1
            return _Refusal()
        return _Connection(self)


class _Connection(web.RequestHandler):
    __slots__ = ("_end", "_server")

    def __init__(self, server: BoundedServer) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=_NO_ACCESS_LOG,
            keepalive_timeout=server.connection_seconds_max,
            lingering_time=1.0,
        )
        self._server = server
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._server.open += 1
        self._end = self._loop.call_later(self._server.connection_seconds_max, self._retire)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.open -= 1
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)

    def _retire(self) -> None:
        self._server.retired += 1
        self._end = self._loop.call_later(FORCE_SECONDS, self._abort)
        self.close()  # after the answer that is being made; at once if there is none

    def _abort(self) -> None:
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()


class _Refusal(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_REFUSAL % (len(_REFUSAL_BODY), _REFUSAL_BODY))
        transport.close()
