"""A native client in bytes, for tests that must be able to misbehave: nothing is read until a test asks for it.

    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "stock.#")
        await peer.send(publish("stock.AAPL", b"187"))
        assert (await peer.message()).payload == b"187"

docs/native-protocol.md and the msgpack package; no line of the broker or the SDK. Every wait is bounded.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgpack  # type: ignore[import-untyped, unused-ignore]

WAIT_SECONDS = 60.0  # for anything that should come at once; two slow cores may be busy with something else
READ_BYTES = 256 * 1024
SMALL_BUFFER = 4 * 1024  # of a socket: the kernel makes it a few times as much, and then it is full


class Type(IntEnum):
    HELLO = 1
    WELCOME = 2
    PUBLISH = 3
    MESSAGE = 4
    RECEIPT = 5
    SUBSCRIBE = 6
    OK = 7
    UNSUBSCRIBE = 8
    ENDED = 9
    CREDIT = 10
    PING = 11
    PONG = 12
    ERROR = 13
    GOODBYE = 14
    HELD = 15


class Message(NamedTuple):
    subscription: int
    topic: str | bytes
    payload: bytes


class Closed(Exception):
    """The broker closed the connection."""


def frame(*fields: object) -> bytes:
    body: bytes = msgpack.packb(fields)
    return struct.pack(">I", len(body)) + body


def hello(**options: object) -> bytes:
    return frame(Type.HELLO, 1, options)


def publish(topic: str | bytes, payload: bytes = b"", request: int | None = None, *more: object) -> bytes:
    return frame(Type.PUBLISH, request, topic, payload, *more)


def subscribe(request: int | None, number: int, pattern: str, **options: object) -> bytes:
    return frame(Type.SUBSCRIBE, request, number, pattern, options)


def unsubscribe(request: int | None, number: int, after: int | None = None) -> bytes:
    return frame(Type.UNSUBSCRIBE, request, number, after)


def ping(token: int) -> bytes:
    return frame(Type.PING, token)


class Peer:
    """One connection. It reads when a test asks for a frame, and never otherwise; it closes when the broker does."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.welcome: dict[str, Any] = {}
        self.was_reset = False
        self.notices: list[list[Any]] = []  # HELD, which may come at any time and is apart from the other frames
        self._bytes = bytearray()
        self._at = 0
        self._frames: deque[list[Any]] = deque()
        self._requests = 0

    @classmethod
    async def open(
        cls, port: int, *, host: str = "127.0.0.1", receive_buffer: int | None = None, source: str | None = None
    ) -> Self:
        """A connection without a handshake. `receive_buffer`: bytes, so that a peer that does not read is soon full."""
        connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            if receive_buffer is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if source is not None:
                connection.bind((source, 0))
            connection.setblocking(False)
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.get_running_loop().sock_connect(connection, (host, port))
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    @classmethod
    async def connect(
        cls, port: int, *, host: str = "127.0.0.1", receive_buffer: int | None = None, **options: object
    ) -> Self:
        """A connection that is through its handshake. options: those of HELLO."""
        peer = await cls.open(port, host=host, receive_buffer=receive_buffer)
        try:
            await peer.send(hello(**options))
            peer.welcome = (await peer.expect(Type.WELCOME))[2]
        except BaseException:
            peer.close()
            raise
        return peer

    # -- out --------------------------------------------------------------------------------------------------------

    async def send(self, *octets: bytes) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            await self._transmit(b"".join(octets))

    async def _transmit(self, octets: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, octets)

    async def _receive(self) -> bytes:
        """What has come, b"" at the end."""
        return await asyncio.get_running_loop().sock_recv(self.socket, READ_BYTES)

    def next_request(self) -> int:
        self._requests += 1
        return self._requests

    async def subscribe(self, number: int, pattern: str, **options: object) -> None:
        """Subscribe, and wait until it is in force."""
        request = self.next_request()
        await self.send(subscribe(request, number, pattern, **options))
        await self.expect(Type.OK, request)

    async def publish(self, topic: str | bytes, payload: bytes = b"", *more: object) -> int:
        """Publish with a receipt: to how many it was routed."""
        request = self.next_request()
        await self.send(publish(topic, payload, request, *more))
        return int((await self.expect(Type.RECEIPT, request))[2])

    async def settle(self) -> None:
        """Return once the broker has processed all that was sent. For a peer that expects nothing else."""
        token = self.next_request()
        await self.send(ping(token))
        await self.expect(Type.PONG, token)

    # -- in ---------------------------------------------------------------------------------------------------------

    async def frame(self, seconds: float = WAIT_SECONDS) -> list[Any]:
        """The next frame, type and fields. Raises Closed, TimeoutError."""
        async with asyncio.timeout(seconds):
            while not self._frames:
                await self._read()
        return self._frames.popleft()

    async def expect(self, kind: Type, first: object = ...) -> list[Any]:
        """The next frame, which must be of this type, and its first field this one."""
        got = await self.frame()
        assert got[0] == kind, f"expected {kind.name}, got {got!r:.300}"
        assert first is ... or got[1] == first, f"expected {kind.name} {first}, got {got!r:.300}"
        return got

    async def message(self) -> Message:
        got = await self.expect(Type.MESSAGE)
        return Message(got[1], got[2], got[3])

    async def payloads(self, count: int) -> list[bytes]:
        """The payloads of the next `count` frames, all of which must be messages."""
        return [(await self.message()).payload for _ in range(count)]

    async def until(self, kind: Type, first: object = ...) -> list[list[Any]]:
        """All frames up to the first of this type, that one the last."""
        got = [await self.frame()]
        while got[-1][0] != kind or (first is not ... and got[-1][1] != first):
            got.append(await self.frame())
        return got

    async def rest(self) -> list[list[Any]]:
        """All frames until the broker closes, orderly: a reset could lose what was sent last."""
        got = []
        with suppress(Closed):
            while True:
                got.append(await self.frame())
        assert not self.was_reset, f"reset by the broker, after {got[-3:]!r:.300}"
        assert not self._bytes, "the broker closed in the middle of a frame"
        return got

    async def remains(self) -> list[list[Any]]:
        """What can still be read of a connection that may have been reset."""
        got = []
        with suppress(Closed):
            while True:
                got.append(await self.frame())
        return got

    async def ended(self) -> None:
        """Return once the connection is closed, however, and whatever comes before that."""
        await self.remains()

    async def _read(self) -> None:
        if self.socket.fileno() < 0:
            raise Closed
        try:
            octets = await self._receive()
            await asyncio.sleep(0)  # sock_recv does not wait when there is something, and the others are to have a turn
        except ConnectionError as error:
            self.was_reset = True
            self.close()
            raise Closed(str(error)) from error
        if not octets:
            self.close()
            raise Closed
        self._bytes += octets
        while len(self._bytes) - self._at >= 4:
            end = self._at + 4 + int.from_bytes(self._bytes[self._at : self._at + 4], "big")
            if len(self._bytes) < end:
                break
            fields = msgpack.unpackb(self._bytes[self._at + 4 : end])
            (self.notices if fields[0] == Type.HELD else self._frames).append(fields)
            self._at = end
        del self._bytes[: self._at]
        self._at = 0

    # -- its end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close with a RST, as a crashed machine's kernel would."""
        if self.socket.fileno() >= 0:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Peers(list[Peer]):
    """Several at once, closed together."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for peer in self:
            peer.close()


def numbered(numbers: Iterable[int], size: int = 8) -> list[bytes]:
    """Payloads that say which they are: the number in 8 bytes, and zeros up to `size`."""
    return [number.to_bytes(8, "big").ljust(size, b"\0") for number in numbers]


def number_of(payload: bytes) -> int:
    return int.from_bytes(payload[:8], "big")
