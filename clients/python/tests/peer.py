"""A scripted peer: a real server on a loopback socket that speaks bytes, and nothing of the SDK's.

It reads whole frames and writes what the test tells it to, in the bytes of the protocol's test vectors or of
frame_bytes' little builder. A test is then a conversation.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import fanlight

from .frame_bytes import array, fixint, frame, num, octets, options, text, uint32

INBOX = "$inbox.0a"


def welcome(frame_bytes: int = 1048576, inbox: str = INBOX, features: tuple[str, ...] = ()) -> bytes:
    return frame(
        fixint(2),
        fixint(1),
        options(
            server=text("peer"),
            connection=num(1),
            client=text("me"),
            inbox=text(inbox),
            features=array(*(text(feature) for feature in features)),
            slow_policy=text("pause"),
            idle_seconds=num(60),
            limits=options(frame_bytes=num(frame_bytes)),
        ),
    )


def ok(request: int) -> bytes:
    return frame(fixint(7), num(request))


def receipt(request: int, routed: int) -> bytes:
    return frame(fixint(5), num(request), num(routed))


def message(subscription: int, topic: str, payload: bytes) -> bytes:
    return frame(fixint(4), uint32(subscription), text(topic), octets(payload))


def error(request: int | None, code: str, said: str = "no") -> bytes:
    return frame(fixint(13), b"\xc0" if request is None else num(request), text(code), text(said))


def goodbye(reason: str) -> bytes:
    return frame(fixint(14), text(reason))


def pong(token: int) -> bytes:
    return frame(fixint(12), num(token))


class Connection:
    """One accepted connection, from the peer's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def frame(self) -> bytes:
        """The next frame's body. Raises asyncio.IncompleteReadError at the end."""
        async with asyncio.timeout(60):
            (size,) = struct.unpack(">I", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def expect(self, data: bytes) -> None:
        """The next frame must be these bytes."""
        got = await self.frame()
        assert got == data[4:], f"expected {data[4:].hex()}, got {got.hex()}"

    async def say(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))
        await self.writer.drain()

    async def greet(
        self, frame_bytes: int = 1048576, inbox: str = INBOX, features: tuple[str, ...] = ()
    ) -> bytes:
        """Take HELLO, answer WELCOME; returns HELLO's body."""
        hello = await self.frame()
        assert hello[1] == 1
        await self.say(welcome(frame_bytes, inbox, features))
        return hello

    async def at_end(self) -> None:
        """The client must have closed, without a further frame."""
        async with asyncio.timeout(60):
            assert await self.reader.read() == b""

    def hang_up(self) -> None:
        """Close at once, as a killed broker does."""
        self.writer.transport.abort()


class Peer:
    """The connections in the order they came; `url` is where it listens."""

    def __init__(self) -> None:
        self.url = ""
        self.connections: asyncio.Queue[Connection] = asyncio.Queue()

    async def connection(self) -> Connection:
        async with asyncio.timeout(60):
            return await self.connections.get()

    async def greeted(self) -> Connection:
        connection = await self.connection()
        await connection.greet()
        return connection


@contextlib.asynccontextmanager
async def listening(port: int = 0) -> AsyncIterator[Peer]:
    peer = Peer()
    writers: list[asyncio.StreamWriter] = []

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        peer.connections.put_nowait(Connection(reader, writer))

    server = await asyncio.start_server(accepted, "127.0.0.1", port)
    peer.url = f"fanlight://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield peer
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await server.wait_closed()


@contextlib.asynccontextmanager
async def conversing(peer: Peer, script: Callable[[Peer], Awaitable[None]]) -> AsyncIterator[None]:
    """Run the peer's half beside the block; its assertions fail the test."""
    task = asyncio.ensure_future(script(peer))
    try:
        yield
        async with asyncio.timeout(60):
            await task
    finally:
        task.cancel()


def connect(url: str, **options: Any) -> fanlight.Connecting:
    """A client that does not wait long for a peer whose script is over."""
    return fanlight.connect(url, **{"close_timeout": 0.1, "timeout": 5.0, "connect_timeout": 5.0, **options})
