"""The HTTP listener's connections until aiohttp is there, which is imported when the first one comes.

aiohttp and what it needs are 14 MB and a quarter of a second of imports, as much as half of the broker. Most brokers
are asked something by HTTP, but none must wait for that before it listens. The import happens in a thread, so that
messages go on; what the first clients send meanwhile is kept, up to a bound, and then goes to aiohttp.

A connection without a request that was let in counts for its address, whichever protocol the others of it speak. Above
their number a new one is closed before there is anything of HTTP about it (net/strangers.py).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final, Protocol, cast

from fanlight_broker import event_log

_log: Final = event_log.get("http")

KEPT_BYTES: Final = 64 * 1024  # of one connection; then it is not read until aiohttp is there

_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
_REFUSAL_BODY: Final = b'{"error": "too many HTTP connections (http_connections_max); try again"}\n'


class Arrivals(Protocol):
    """Addresses whose connections end before anybody is let in, as the HTTP listener needs them."""

    def refusal(self, address: str) -> str | None: ...
    def note(self, address: str) -> None: ...


class HttpServer(Protocol):
    """What there is of the server once it is loaded (listener.BoundedServer)."""

    malformed: int
    retired: int
    transports: set[asyncio.Transport]

    def __call__(self, address: str, left: Callable[[], None]) -> asyncio.Protocol: ...
    async def end(self, seconds: float) -> None: ...


class Entrance:
    """Makes the protocol of each connection, for any number of ports.

    module     what is to be imported, in a thread, before `make` can make the server
    strangers  None: an address may open as many connections as it likes
    """

    def __init__(
        self, module: str, make: Callable[[], HttpServer], connections_max: int, strangers: Arrivals | None = None
    ) -> None:
        self.refused = 0
        self.server: HttpServer | None = None
        self.waiting: set[_Waiting] = set()
        self._module, self._make = module, make
        self._loading: asyncio.Task[None] | None = None
        self._connections_max = connections_max
        self._strangers = strangers

    def __call__(self, address: str = "") -> asyncio.Protocol:
        """address: of the client, if a proxy has named it"""
        return _Arrival(self, address)

    def refuses(self, peer: str) -> bool:
        """Is one more connection of this address closed at once?"""
        return self._strangers is not None and self._strangers.refusal(peer) is not None

    def left(self, peer: str) -> None:
        """A connection of this address has ended, and nobody was let in."""
        if self._strangers is not None:
            self._strangers.note(peer)

    def enter(self, address: str, peer: str) -> asyncio.Protocol:
        """What a connection speaks with. address: as above; peer: that it counts for"""
        left = partial(self.left, peer)
        if len(self.waiting) + (len(self.server.transports) if self.server is not None else 0) >= self._connections_max:
            self.refused += 1
            return _Refusal(left)
        if self.server is not None:
            return self.server(address, left)
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load())
        return _Waiting(self, address, left)

    @property
    def malformed(self) -> int:
        return self.server.malformed if self.server is not None else 0

    @property
    def retired(self) -> int:
        return self.server.retired if self.server is not None else 0

    async def end(self, seconds: float) -> None:
        """Let requests finish within `seconds`, then end every connection."""
        if self._loading is not None:
            self._loading.cancel()
        for waiting in list(self.waiting):
            waiting.transport.abort()
        if self.server is not None:
            await self.server.end(seconds)

    async def _load(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, import_module, self._module)
            self.server = self._make()
        except Exception:
            _log.exception("http_not_loaded")
            for waiting in list(self.waiting):
                waiting.transport.abort()
        else:
            for waiting in list(self.waiting):
                waiting.go_on(self.server(waiting.address, waiting.left))
        finally:
            self._loading = None


class _Arrival(asyncio.Protocol):
    """A connection that has just been accepted."""

    def __init__(self, entrance: Entrance, address: str) -> None:
        self._entrance, self._address = entrance, address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        found = transport.get_extra_info("peername")
        peer = self._address or (str(found[0]) if isinstance(found, tuple) else "")
        socket = cast(asyncio.Transport, transport)  # uvloop's are none by isinstance
        if self._entrance.refuses(peer):
            socket.abort()
            return
        protocol = self._entrance.enter(self._address, peer)
        socket.set_protocol(protocol)
        protocol.connection_made(socket)


class _Waiting(asyncio.Protocol):
    """A connection that came before the server was there."""

    transport: asyncio.Transport

    def __init__(self, entrance: Entrance, address: str, left: Callable[[], None]) -> None:
        self.address, self.left = address, left
        self._entrance = entrance
        self._kept = bytearray()
        self._ended = False  # the peer sends nothing more

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are none by isinstance
        self._entrance.waiting.add(self)

    def data_received(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) >= KEPT_BYTES:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self._ended = True
        return True  # the server decides what becomes of it

    def connection_lost(self, exc: BaseException | None) -> None:
        self._entrance.waiting.discard(self)
        self.left()

    def go_on(self, protocol: asyncio.Protocol) -> None:
        """Hand the connection to the server, with what has come so far."""
        self._entrance.waiting.discard(self)
        transport = self.transport
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._kept:
            protocol.data_received(bytes(self._kept))
        if self._ended and not protocol.eof_received():
            transport.close()
        if len(self._kept) >= KEPT_BYTES and not transport.is_closing():
            transport.resume_reading()


class _Refusal(asyncio.Protocol):
    """One too many. It takes as much as one that says nothing, and counts as that."""

    def __init__(self, left: Callable[[], None]) -> None:
        self._left = left

    def connection_lost(self, exc: BaseException | None) -> None:
        self._left()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        socket = cast(Any, transport)
        socket.write(_REFUSAL % (len(_REFUSAL_BODY), _REFUSAL_BODY))
        socket.close()
