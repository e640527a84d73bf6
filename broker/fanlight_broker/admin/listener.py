"""The HTTP listener's connections: how many, for how long, and how many requests a second.

The listener shares its loop with the routing of messages, and must not use much of it. aiohttp parses, answers and
bounds lines and headers. A connection above the limit is answered 503 immediately (entrance.py). Each connection is
ended after its time, gracefully if possible, so that a client that neither sends nor reads does not keep its place.
Requests are paced: one that comes too early waits, one at a time on each connection.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from aiohttp import web

from fanlight_broker import event_log
from fanlight_broker.core.ports import ProtocolCheck

SERVER: Final = "fanlight"  # the Server header: no version for unauthenticated clients
_log: Final = event_log.get("http")

_NO_ACCESS_LOG: Final = logging.getLogger("http.access")
_NO_ACCESS_LOG.disabled = True  # a scraper would fill the log
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

LINGER_SECONDS: Final = 1.0  # for a client of another protocol to read its answer; as aiohttp's lingering_time
NOT_LET_IN: Final = (401, 403)  # answers to somebody who shows no credentials, or wrong ones
FORCE_SECONDS: Final = 5.0  # for an answer that is being sent when its connection's time is over


class Pace:
    """At most `per_second` requests: `wait` returns how long each has to wait."""

    def __init__(self, per_second: float) -> None:
        self._step = 1 / per_second
        self._next = 0.0

    def wait(self, now: float) -> float:
        """Seconds to wait from `now`. Up to a second's worth of requests may come together."""
        self._next = max(self._next, now - 1) + self._step
        return max(0.0, self._next - now)


class BoundedServer(web.Server):
    """aiohttp's server, with a bound on the life of each connection; entrance.py bounds how many there are."""

    def __init__(
        self, handler: Handler, *, connection_seconds_max: float, protocol_check: ProtocolCheck | None = None
    ) -> None:
        super().__init__(self._busy)
        self.retired = 0
        self.malformed = 0
        self.connection_seconds_max = connection_seconds_max
        self.transports: set[asyncio.Transport] = set()
        self.protocol_check = protocol_check
        self._handler = handler

    def __call__(self, address: str = "", left: Callable[[], None] = lambda: None) -> Any:
        """address: of the client, if a proxy has named it; left: what is called of one in which nobody was let in"""
        return _Connection(self, address, left)

    async def _busy(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection)
        connection.busy = True
        try:
            response = await self._handler(connection.named(request))
            response.headers.setdefault("Server", SERVER)
            connection.let_in = connection.let_in or response.status not in NOT_LET_IN
            return response
        finally:
            connection.busy = False

    async def end(self, seconds: float) -> None:
        """Let requests finish within `seconds`, then end every connection."""
        self.pre_shutdown()
        await self.shutdown(seconds)
        for transport in list(self.transports):
            transport.abort()  # a peer that does not read would keep it open


def lengthen(request: web.BaseRequest, seconds: float) -> None:
    """Give the connection of a request so much time from now on."""
    connection = request.protocol
    assert isinstance(connection, _Connection)
    connection.lengthen(seconds)


class _Connection(web.RequestHandler):
    __slots__ = ("_address", "_end", "_left", "_met", "_server", "_socket", "_wrong", "busy", "let_in")

    def __init__(self, server: BoundedServer, address: str, left: Callable[[], None]) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=_NO_ACCESS_LOG,
            keepalive_timeout=server.connection_seconds_max,
            lingering_time=1.0,
        )
        self.busy = False
        self.let_in = False  # was a request answered, otherwise than that somebody may not ask?
        self._address, self._left = address, left
        self._met = False  # the first bytes have been checked
        self._wrong = False  # they are of another protocol
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Kept beside aiohttp's own, which is forgotten when it closes, before all is sent.
        self._socket = cast(asyncio.Transport, transport)  # uvloop's are none by isinstance
        self._server.transports.add(self._socket)
        self._end = self._loop.call_later(self._server.connection_seconds_max, self._retire)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._wrong:
            return  # read it, so that the close is not a reset, which could overtake the answer
        if not self._met:
            self._met = True
            wrong = self._server.protocol_check("http", data) if self._server.protocol_check is not None else None
            if wrong is not None:
                self._server.malformed += 1
                address, port, *_ = self._socket.get_extra_info("peername")
                _log.warning("wrong_protocol", listener="http", address=address, port=port, text=wrong.text)
                self._answer_and_close(wrong.answer)
                return
        super().data_received(data)

    def _answer_and_close(self, answer: bytes) -> None:
        self._wrong = True
        self._socket.write(answer)
        if self._socket.can_write_eof():
            self._socket.write_eof()  # the peer's own close ends it; or this timer
        self._end.cancel()
        self._end = self._loop.call_later(LINGER_SECONDS, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.transports.discard(self._socket)
        self._end.cancel()
        if not self.let_in:
            self._left()
        super().connection_lost(exc)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The request is not HTTP. Anybody can send one, so it is a debug line and not an error."""
        if status >= 500 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        self._server.malformed += 1
        reason = str(message or exc or "").partition("\n")[0]
        _log.debug("http_request_malformed", address=request.remote, reason=reason)
        response = web.json_response(
            {"error": f"not an HTTP request: {reason[:200]}"}, status=status, headers={"Server": SERVER}
        )
        response.force_close()
        return response

    def named(self, request: web.BaseRequest) -> web.BaseRequest:
        """The request, from the address that a proxy has named."""
        return request.clone(remote=self._address) if self._address else request

    def lengthen(self, seconds: float) -> None:
        """Give it so much time from now on, for an answer that takes long."""
        self._end.cancel()
        self._end = self._loop.call_later(seconds, self._retire)

    def _retire(self) -> None:
        self._server.retired += 1
        self._end = self._loop.call_later(FORCE_SECONDS, self._socket.abort)
        if self.busy:
            self.close()  # after the answer
        else:
            self.force_close()
