"""Native connections without sockets: see ../world.py."""

from collections.abc import Iterator
from typing import Any

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.protocols.native.connection import NativeConnection
from tests.broker.protocols import world
from tests.broker.protocols.world import KIB

__all__ = ["KIB", "Fields", "Peer", "World", "frame", "messages", "publish", "split"]

Fields = list[Any]
HELD = 15


class World(world.World):
    """One broker and its connections. Keywords are limits."""

    def __init__(self, *, receive_bytes: int = 64 * KIB, plain: bool = False, **limits: Any) -> None:
        super().__init__(receive_bytes=receive_bytes, **limits)
        self.plain = plain

    def open(self) -> "Peer":
        """A connection that has sent nothing yet."""
        return Peer(self)

    def connect(self, **options: Any) -> "Peer":
        """A connection that is through its handshake."""
        peer = self.open()
        peer.send(frame(1, 1, options))
        welcome = peer.next()
        assert welcome[0] == 2, welcome
        peer.info = welcome[2]
        return peer


class Peer(world.Peer):
    """The client's end of a native connection."""

    protocol: NativeConnection

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.info: dict[str, Any] = {}
        self.notices: list[Fields] = []
        self.protocol = NativeConnection(world.broker, self, world.shared, world.now)
        self.protocol.lane.badge = UNKNOWN if world.plain else None

    def say(self, *fields: Any) -> None:
        self.send(frame(*fields))

    def frames(self) -> list[Fields]:
        """What came since the last call, frame by frame, HELD apart in `notices`; half a frame is an error."""
        found = list(split(self.received))
        self.received = b""
        self.notices += [fields for fields in found if fields[0] == HELD]
        return [fields for fields in found if fields[0] != HELD]

    def next(self) -> Fields:
        """The one frame that came since the last call."""
        (only,) = self.frames()
        return only


def frame(*fields: Any) -> bytes:
    """A frame, encoded by msgpack's own encoder."""
    body: bytes = msgpack.packb(fields)
    return len(body).to_bytes(4, "big") + body


def split(octets: bytes) -> Iterator[Fields]:
    """Frames, decoded by msgpack's own decoder. Raises AssertionError for half a frame."""
    at = 0
    while at < len(octets):
        size = int.from_bytes(octets[at : at + 4], "big")
        assert 0 < size <= len(octets) - at - 4, "half a frame"
        yield msgpack.unpackb(octets[at + 4 : at + 4 + size])
        at += 4 + size


def publish(topic: str | bytes, payload: bytes = b"", *rest: Any, request: int | None = None) -> bytes:
    """PUBLISH; `rest` are headers, syntax, reply, ..."""
    return frame(3, request, topic, payload, *rest)


def messages(frames: list[Fields]) -> list[tuple[int, bytes]]:
    """Subscription and payload of each MESSAGE."""
    return [(fields[1], fields[3]) for fields in frames if fields[0] == 4]
