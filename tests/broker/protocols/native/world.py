"""A broker without sockets: connections whose other ends are in the test's hand, and a clock that it moves.

`World` does what net/ does, and no more: bytes come through the one receive buffer, outboxes are flushed at the end of
a turn, a publisher that was held back goes on in a turn of its own, credentials are checked after HELLO was handled.
Nothing is faked below that: broker, protocol and compiled floor are the real ones.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgpack  # type: ignore[import-untyped]

from broker.core.broker import Broker
from broker.core.errors import FanlightError
from broker.core.limits import Limits
from broker.protocols.native.connection import NativeConnection
from broker.wire.inbox import ReceiveBuffer
from broker.wire.outbox import Outbox

KIB = 1024
Fields = list[Any]


class World:
    """One broker and its connections. Keywords are limits."""

    def __init__(self, *, receive_bytes: int = 64 * KIB, plain: bool = False, **limits: Any) -> None:
        self.now = 1_000.0
        self.broker = Broker(Limits(**limits), schedule=lambda: None)
        self.shared = ReceiveBuffer(receive_bytes)
        self.plain = plain
        self.peers: list[Peer] = []
        self.soon: deque[Callable[[], Any]] = deque()

    def open(self) -> "Peer":
        """A connection that has sent nothing yet."""
        peer = Peer(self)
        self.peers.append(peer)
        return peer

    def connect(self, **options: Any) -> "Peer":
        """A connection that is through its handshake."""
        peer = self.open()
        peer.send(frame(1, 1, options))
        welcome = peer.next()
        assert welcome[0] == 2, welcome
        peer.info = welcome[2]
        return peer

    def turn(self) -> None:
        """Run until nothing moves any more by itself."""
        moved = True
        while moved:
            moved = False
            for outbox in self.broker.ledger.take_dirty():
                outbox.clean()
                moved |= self.peer_of(outbox).flush()
            while self.soon:
                self.soon.popleft()()
                moved = True
            for peer in self.peers:
                moved |= peer.deliver()

    def pass_time(self, seconds: float) -> None:
        """What the listener's tick does, once, after so long."""
        self.now += seconds
        for peer in self.peers:
            if not peer.gone:
                peer.protocol.idle(self.now)
        self.broker.sweep(self.now)
        self.turn()

    def peer_of(self, outbox: Outbox) -> "Peer":
        return next(peer for peer in self.peers if peer.protocol.outbox is outbox)


class Peer:
    """The other end of a connection; to its protocol, the transport (`ports.WireConnection`)."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.address = "192.0.2.1"
        self.info: dict[str, Any] = {}
        self.received = b""  # octets, not yet taken by `frames`
        self.reads = True  # does this end read what it gets?
        self.gone = False
        self.close_reason: str | None = None
        self.credentials: list[tuple[str | None, str | None]] = []
        self.log_in = True  # is everybody let in?
        self._reading = True  # does the broker read?
        self._turn_over = False  # it reads on when the others have had their turn
        self._sent: deque[bytes] = deque()
        self._closing = False
        self.protocol = NativeConnection(world.broker, self, world.shared, world.now)
        self.protocol.lane.plain = world.plain

    # -- as the test sees it ----------------------------------------------------------------------------------------

    def send(self, *pieces: bytes) -> None:
        """Send pieces, each of which the broker gets in a read of its own (or in several, if it is large)."""
        self._sent.extend(pieces)
        self.world.turn()

    def say(self, *fields: Any) -> None:
        self.send(frame(*fields))

    def frames(self) -> list[Fields]:
        """What came since the last call, frame by frame; half a frame is an error."""
        found = list(split(self.received))
        self.received = b""
        return found

    def next(self) -> Fields:
        """The one frame that came since the last call."""
        (only,) = self.frames()
        return only

    def read_all(self) -> None:
        """Read what waits, and go on reading."""
        self.reads = True
        self.flush()
        self.world.turn()

    def vanish(self) -> None:
        """The connection breaks."""
        self._lose("gone")
        self.world.turn()

    @property
    def held_back(self) -> bool:
        """Does the broker not read from this end?"""
        return not self._reading

    # -- as the broker sees it --------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.world.now

    def authenticate(self, user: str | None, password: str | None) -> None:
        self.credentials.append((user, password))
        if self.log_in:
            self.world.soon.append(lambda: self.protocol.authenticated(user or "", self.world.now))

    def refuse(self, error: FanlightError) -> None:
        self.protocol.refuse(error)
        self.world.turn()

    def close(self, reason: str = "") -> None:
        self.close_reason = reason
        self._closing = True
        self.protocol.outbox.close()
        self._reading = True
        self.world.soon.append(self.flush)

    def abort(self, reason: str) -> None:
        self.close_reason = reason
        self.world.soon.append(lambda: self._lose(reason))

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True

    def next_turn(self, go_on: Callable[[], None]) -> None:
        self._turn_over = True
        self.world.soon.append(lambda: self._new_turn(go_on))

    def _new_turn(self, go_on: Callable[[], None]) -> None:
        self._turn_over = False
        go_on()

    # -- between the two --------------------------------------------------------------------------------------------

    def deliver(self) -> bool:
        """Hand one read to the broker. Returns whether there was one."""
        if not self._sent or not self._reading or self._turn_over or self.gone:
            return False
        octets = self._sent.popleft()
        inbox = self.protocol.inbox
        with memoryview(inbox.next_buffer()) as buffer:
            size = min(len(buffer), len(octets))
            buffer[:size] = octets[:size]
        if size < len(octets):
            self._sent.appendleft(octets[size:])
        inbox.received(size)
        self.protocol.receive(self.world.now)
        return True

    def flush(self) -> bool:
        """What a sink does: send, let the publishers go on, close. Returns whether anything happened."""
        outbox, before = self.protocol.outbox, len(self.received)
        while self.reads and not self.gone and outbox.size:
            self.received += outbox.take()
        if outbox.pausing and outbox.drained():
            for client in self.world.broker.flow.drained(outbox):
                self.world.soon.append(client.speaker.unblocked)
        if self._closing and not outbox.size:
            self._lose("closed")
        return len(self.received) > before

    def _lose(self, reason: str) -> None:
        if not self.gone:
            self.gone = True
            for client in self.protocol.lost(reason):
                self.world.soon.append(client.speaker.unblocked)


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
