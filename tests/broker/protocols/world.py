"""A broker without sockets: connections whose other ends are in the test's hand, and a clock that it moves.

Each protocol's tests have a World and a Peer of their own, made of these (native/world.py, mqtt/world.py).

`World` does what net/ does, and no more: bytes come through the one receive buffer, outboxes are flushed at the end of
a turn, a publisher that was held back goes on in a turn of its own, credentials are checked after HELLO was handled.
Nothing is faked below that: broker, protocol and compiled floor are the real ones.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.ports import LoginExchange
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.outbox import Outbox
from tests.broker.core.parts import at_once

KIB = 1024


class World:
    """One broker and its connections. Keywords are limits.

    in_turns: what the broker puts off is done in the next turn, and not at once
    """

    def __init__(self, *, receive_bytes: int = 64 * KIB, in_turns: bool = False, **limits: Any) -> None:
        self.now = 1_000.0
        self.soon: deque[Callable[[], Any]] = deque()
        # Unless a test is about them: full outboxes act at once, and clients may choose any policy.
        limits = {"burst_seconds_max": 0, "pause_allowed": True, **limits}
        next_turn = self.soon.append if in_turns else at_once
        self.broker = Broker(Limits(**limits), schedule=lambda: None, next_turn=next_turn)
        self.shared = ReceiveBuffer(receive_bytes)
        self.peers: list[Peer] = []

    def turn(self) -> None:
        """Run until nothing moves any more by itself."""
        moved = True
        while moved:
            moved = False
            for outbox in self.broker.ledger.pop_dirty():
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
    """The other end of a connection; to its protocol, the transport (`ports.Transport`)."""

    protocol: ProtocolConnection

    def __init__(self, world: World) -> None:
        self.world = world
        world.peers.append(self)
        self.address, self.port, self.certified, self.listener = "192.0.2.1", 40_000, "", ""
        self.received = b""  # octets, not yet taken by the test
        self.reads = True  # does this end read what it gets?
        self.gone = False
        self.close_reason: str | None = None
        self.credentials: list[tuple[str | None, str | None]] = []
        self.log_in = True  # is everybody let in?
        self.at_once = False  # without a check, so that `authenticated` is not called
        self._reading = True  # does the broker read?
        self._turn_over = False  # it reads on when the others have had their turn
        self._sent: deque[bytes] = deque()
        self._closing = False

    # -- as the test sees it ----------------------------------------------------------------------------------------

    def send(self, *pieces: bytes) -> None:
        """Send pieces, each of which the broker gets in a read of its own (or in several, if it is large)."""
        self._sent.extend(pieces)
        self.world.turn()

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

    def wrong_protocol(self, first: bytes) -> bytes | None:
        return None

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        self.credentials.append((user, password))
        if self.log_in and self.at_once:
            return Identity(label=user or "")
        if self.log_in:
            self.world.soon.append(lambda: self.protocol.authenticated(Identity(user or ""), self.world.now))
        return None

    def offers(self) -> frozenset[str]:
        return frozenset({"ANONYMOUS"})

    def exchange(self, mechanism: str, user: str | None) -> LoginExchange | None:
        return None

    def step(self, exchange: LoginExchange, data: bytes | None) -> None:
        raise AssertionError("there are no exchanges")

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
            self.received += outbox.read()
        if (outbox.pausing and outbox.drained()) or (outbox.refill and not outbox.size):
            for client in self.world.broker.flow.drained(outbox, self.world.now):
                self.world.soon.append(client.connection.unblocked)
        if self._closing and not outbox.size:
            self._lose("closed")
        return len(self.received) > before

    def _lose(self, reason: str) -> None:
        if not self.gone:
            self.gone = True
            for client in self.protocol.lost(reason):
                self.world.soon.append(client.connection.unblocked)
