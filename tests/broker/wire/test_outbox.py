"""The outbox against a plain list of frames: what goes in leaves in order and whole, but for what the policy dropped.

Messages get in as they do in the broker, through a lane and a target. They leave by `take`, or through a sink and a
real pair of sockets that takes as many bytes as it likes.
"""

import socket
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanlight_broker.net.flush import SocketSink
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import POLICIES, Outbox
from tests.broker.wire.publisher import Publisher, message, native_target, publish

SMALL_OUTBOX = 64 * 1024  # exempt from the common limit
SHARED = 16 * 1024  # larger bodies are not copied


def new_ledger(limit: int = 1 << 30) -> Ledger:
    return Ledger(limit, lambda: None)


@dataclass
class Frame:
    octets: bytes
    number: int | None  # None: an answer
    pinned: bool = False


class OutboxMachine(RuleBasedStateMachine):
    """One outbox and its model."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        limit=st.sampled_from([200, 1_000, 40_000, 150_000]),
        common=st.sampled_from([80_000, 1 << 30]),
    )
    def begin(self, policy: str, limit: int, common: int) -> None:
        self.start(policy, limit, common)

    def start(self, policy: str, limit: int, common: int) -> None:
        self.ledger = new_ledger(common)
        self.outbox = Outbox(self.ledger, limit, policy)
        self.other = Outbox(self.ledger, 1 << 30, "drop_newest")
        self.publisher = Publisher(self.ledger)
        self.publisher.routes.batcher.room_least = 0
        for number in (1, 2, 0xFFFF_FFFF):
            self.publisher.route(b"%d" % number, [native_target(self.outbox, number)])
        self.publisher.route(b"many", [native_target(self.outbox, number) for number in range(10, 30)])
        self.frames: list[Frame] = []
        self.other_size = 0
        self.pausing = False
        self.let_in = 0
        self.resume_at = 0
        self.sent = self.dropped = 0
        self.evicted: dict[int, int] = {}
        self.count = 0

    @property
    def size(self) -> int:
        return sum(len(frame.octets) for frame in self.frames)

    @property
    def control(self) -> int:
        return sum(len(frame.octets) for frame in self.frames if frame.number is None)

    def admits(self, size: int) -> bool:
        after = self.size + size
        if after > self.outbox.limit:
            return False
        return self.used + size <= self.ledger.limit or after <= self.small

    @property
    def used(self) -> int:
        return self.size + self.other_size

    def pause(self) -> None:
        if not self.pausing:
            self.pausing = True
            self.let_in = 0
            self.resume_at = min(self.outbox.limit, self.size) // 2

    @property
    def small(self) -> int:
        return SMALL_OUTBOX // 2 if self.outbox.policy == "pause" else SMALL_OUTBOX

    def lets_in(self, size: int) -> bool:
        if self.used + size <= self.ledger.limit or self.size + size <= self.small:
            return True
        if self.let_in + size > SMALL_OUTBOX // 2:
            return False
        self.let_in += size
        return True

    def blocks(self) -> bool:
        if self.outbox.policy != "pause":
            return False
        if not self.pausing and self.used > self.ledger.limit and self.size and not self.admits(0):
            self.pause()
        return self.pausing

    def put(self, octets: bytes, number: int) -> None:
        size, fits = len(octets), True
        if not self.admits(size):
            fits = False
            if self.outbox.policy == "pause":
                self.pause()
                fits = self.size + size <= max(2 * self.outbox.limit, 16 * size) and self.lets_in(size)
            elif self.outbox.policy == "drop_oldest" and self.control + size <= self.outbox.limit:
                for frame in [frame for frame in self.frames if frame.number is not None and not frame.pinned]:
                    self.frames.remove(frame)
                    self.dropped += 1
                    assert frame.number is not None
                    self.evicted[frame.number] = self.evicted.get(frame.number, 0) + 1
                    fits = self.admits(size)
                    if fits:
                        break
        if fits:
            self.frames.append(Frame(octets, number))
        else:
            self.dropped += 1

    def publish_to(self, topic: bytes, numbers: list[int], payload: bytes) -> None:
        held_back = self.blocks()
        assert self.publisher.publish(topic, payload) is not held_back
        for number in [] if held_back else numbers:
            self.put(message(number, topic, payload), number)

    @rule(
        numbers=st.lists(st.sampled_from([1, 2, 0xFFFF_FFFF]), min_size=1, max_size=6),
        sizes=st.lists(st.sampled_from([0, 90, 90, 700, SHARED, SHARED, 50_000]), min_size=6, max_size=6),
    )
    def publish(self, numbers: list[int], sizes: list[int]) -> None:
        for number, size in zip(numbers, sizes, strict=False):
            self.count += 1
            self.publish_to(b"%d" % number, [number], bytes([self.count % 251]) * size)

    @rule(size=st.sampled_from([0, 30, SHARED]))
    def publish_many_copies(self, size: int) -> None:
        self.publish_to(b"many", list(range(10, 30)), b"m" * size)

    @rule(number=st.sampled_from([1, 2]), times=st.integers(8, 60), size=st.sampled_from([0, 30, 90, 700]))
    def publish_in_a_row(self, number: int, times: int, size: int) -> None:
        topic, payload = b"%d" % number, b"r" * size
        octets = publish(topic, payload) * times
        held_back = False
        for _ in range(times):
            held_back = held_back or self.blocks()
            if not held_back:
                self.put(message(number, topic, payload), number)
        assert self.publisher.send(octets) is not held_back

    @rule(octets=st.binary(min_size=1, max_size=300))
    def answer(self, octets: bytes) -> None:
        self.outbox.write(octets)
        self.frames.append(Frame(octets, None))

    @rule(size=st.integers(1, 90_000))
    def others_take_memory(self, size: int) -> None:
        self.other.write(bytes(size))
        self.other_size += size

    @rule()
    def others_give_it_back(self) -> None:
        while self.other.read():
            pass
        self.other_size = 0

    @rule()
    def pin(self) -> None:
        self.outbox.pin()
        for frame in self.frames:
            frame.pinned = True

    @rule()
    def rest(self) -> None:
        self.outbox.rest()

    def leave(self) -> Frame:
        frame = self.frames.pop(0)
        self.sent += frame.number is not None
        return frame

    @rule(at_most=st.sampled_from([1, 100, 1_000, 20_000, 1 << 20]))
    def take(self, at_most: int) -> None:
        octets = self.outbox.read(at_most)
        expected = b""
        while self.frames and (not expected or len(expected) + len(self.frames[0].octets) <= at_most):
            expected += self.leave().octets
        assert octets == expected
        self.check_drained()

    def check_drained(self) -> None:
        may_go_on = self.pausing and self.size <= self.resume_at
        assert bool(self.outbox.drained()) is may_go_on
        if may_go_on:
            self.pausing = False

    @invariant()
    def it_adds_up(self) -> None:
        outbox = self.outbox
        assert outbox.size == self.size
        assert outbox.control_size == self.control
        assert outbox.messages == sum(frame.number is not None for frame in self.frames)
        assert self.ledger.used == self.size + outbox.dead + self.other_size
        assert outbox.dead <= outbox.size + 16 * len(self.frames)  # what is kept takes at least as much
        assert outbox.pausing is self.pausing
        assert self.ledger.pausing == self.pausing
        assert (outbox.sent, outbox.dropped) == (self.sent, self.dropped)
        assert self.ledger.messages_out == self.sent
        counted = self.ledger.dropped_newest + self.ledger.dropped_oldest + self.ledger.dropped_disconnect
        assert counted == self.dropped
        assert outbox.evicted == self.evicted
        assert outbox.dirty is (outbox in self.ledger.dirty)

    def teardown(self) -> None:
        if not hasattr(self, "outbox"):
            return
        if self.sent % 2:
            messages = sum(frame.number is not None for frame in self.frames)
            assert self.outbox.discard() == messages
            self.outbox.write(b"too late")
            assert self.publisher.publish(b"1", b"too late")
            assert self.outbox.size == 0
        else:
            while self.frames:
                self.take(1 << 20)
        self.others_give_it_back()
        self.outbox.drained()
        assert self.ledger.used == self.ledger.pausing == 0


class OldestMachine(OutboxMachine):
    """Drop-oldest has the most to go wrong: frames leave from the middle, with bodies and without; pinned ones stay."""

    @initialize(limit=st.sampled_from([400, 3_000, 40_000, 100_000]))
    def begin(self, limit: int) -> None:  # type: ignore[override]
        self.start("drop_oldest", limit, 1 << 30)


class Pipe:
    """A transport over a socket that does not block: what the socket does not take waits here, as asyncio's does."""

    def __init__(self, plain: socket.socket) -> None:
        self.socket = plain
        self.waiting = b""
        self.sink: SocketSink | None = None

    def write(self, octets: bytes) -> None:
        assert not self.waiting, "written to before it was through with the last"
        try:
            sent = self.socket.send(octets)
        except BlockingIOError:
            sent = 0
        self.waiting = octets[sent:]

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def is_closing(self) -> bool:
        return False

    def go_on(self) -> None:
        """The socket may take some more."""
        if self.waiting:
            octets, self.waiting = self.waiting, b""
            self.write(octets)
            if not self.waiting:
                assert self.sink is not None
                self.sink.resumed()


class SinkMachine(RuleBasedStateMachine):
    """An outbox emptied into a real socket. Nothing is dropped, so what arrives is what was put in."""

    @initialize(direct=st.booleans())
    def begin(self, direct: bool) -> None:
        self.ledger = new_ledger()
        self.outbox = Outbox(self.ledger, 1 << 30, "drop_newest")
        self.publisher = Publisher(self.ledger)
        self.publisher.route(b"t", [native_target(self.outbox, 7)])
        near, self.far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        near.setblocking(False)
        self.far.setblocking(False)
        self.pipe = Pipe(near)
        fd = near.fileno() if direct else -1
        self.sink = SocketSink(self.outbox, self.pipe, lambda outbox: None, fd)  # type: ignore[arg-type]
        self.pipe.sink = self.sink
        self.put = bytearray()
        self.got = bytearray()

    @rule(sizes=st.lists(st.sampled_from([0, 1, 50, 1_000, SHARED - 1, SHARED, 40_000]), min_size=1, max_size=8))
    def publish(self, sizes: list[int]) -> None:
        for size in sizes:
            body = bytes([len(self.put) % 251]) * size
            assert self.publisher.publish(b"t", body)
            self.put += message(7, b"t", body)

    @rule(size=st.sampled_from([0, 50, 1_000]), times=st.integers(8, 100))
    def publish_in_a_row(self, size: int, times: int) -> None:
        body = bytes([len(self.put) % 251]) * size
        assert self.publisher.send(publish(b"t", body) * times)
        self.put += message(7, b"t", body) * times

    @rule(count=st.integers(65, 200))
    def publish_more_runs_than_one_write_takes(self, count: int) -> None:
        for _ in range(count):
            self.publish([SHARED, 1])

    @rule(octets=st.binary(min_size=1, max_size=100))
    def answer(self, octets: bytes) -> None:
        self.outbox.write(octets)
        self.put += octets

    @rule()
    def flush(self) -> None:
        self.sink.flush_now()

    @rule(most=st.sampled_from([1, 100, 5_000, 1 << 20]))
    def read(self, most: int) -> None:
        try:
            self.got += self.far.recv(most)
        except BlockingIOError:
            return
        self.pipe.go_on()

    @invariant()
    def nothing_is_lost_or_out_of_order(self) -> None:
        if not hasattr(self, "got"):
            return
        assert self.put.startswith(self.got)
        assert self.outbox.size + len(self.pipe.waiting) <= len(self.put) - len(self.got)
        assert self.ledger.used == self.outbox.size

    def teardown(self) -> None:
        if not hasattr(self, "got"):
            return
        self.flush()
        while len(self.got) < len(self.put):
            self.read(1 << 20)
        assert self.got == self.put
        assert self.ledger.used == 0
        assert self.ledger.bytes_out == len(self.put)
        self.pipe.socket.close()
        self.far.close()


OutboxMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
OldestMachine.TestCase.settings = OutboxMachine.TestCase.settings
SinkMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestOutboxAgainstAModel = OutboxMachine.TestCase
TestDropOldestAgainstAModel = OldestMachine.TestCase
TestSinkIntoASocket = SinkMachine.TestCase


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_is_one_of_four(policy: str) -> None:
    outbox = Outbox(new_ledger(), 100, "pause")
    outbox.policy = policy
    assert outbox.policy == policy
    for wrong in ("", "Pause", policy + " "):
        with pytest.raises(ValueError, match="it is one of drop_newest, drop_oldest, disconnect, pause"):
            outbox.policy = wrong
    assert outbox.policy == policy


def test_an_outbox_is_on_the_dirty_list_once_and_asks_for_one_flush() -> None:
    asked: list[Any] = []
    ledger = Ledger(1 << 20, lambda: asked.append(1))
    first, second = Outbox(ledger, 100, "pause"), Outbox(ledger, 100, "pause")
    for outbox in (first, second, first):
        outbox.write(b"x")
    assert ledger.pop_dirty() == [first, second]
    assert len(asked) == 1
    first.clean()
    first.write(b"x")
    assert ledger.pop_dirty() == [first]
    assert len(asked) == 2


def test_the_core_hears_of_a_slow_outbox_once() -> None:
    ledger = new_ledger()
    outbox = Outbox(ledger, 100, "drop_newest")
    publisher = Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1)])
    for _ in range(5):
        publisher.publish(b"t", bytes(60))
    assert ledger.pop_attention() == [outbox]
    publisher.publish(b"t", bytes(60))
    assert ledger.pop_attention() == []
    assert outbox.overflows == 5


def test_a_last_word_takes_the_place_of_what_is_discarded() -> None:
    ledger = new_ledger()
    outbox = Outbox(ledger, 1 << 20, "pause")
    publisher = Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1)])
    for size in (10, SHARED, 10):
        publisher.publish(b"t", bytes(size))
    outbox.write(b"answer")
    assert outbox.discard(b"goodbye") == 3
    assert ledger.used == outbox.size == outbox.control_size == 7
    assert outbox.read() == b"goodbye"
    assert outbox.read() == b""
    assert ledger.used == outbox.control_size == 0


def test_a_sleeping_socket_keeps_frames_where_the_policy_reaches_them() -> None:
    """Only the frame that is on its way is beyond the reach of drop-oldest."""
    ledger = new_ledger()
    outbox = Outbox(ledger, 50_000, "drop_oldest")
    publisher = Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1)])
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    near.setblocking(False)
    pipe = Pipe(near)
    pipe.sink = outbox.sink = SocketSink(outbox, pipe, lambda outbox: None, near.fileno())  # type: ignore[arg-type]
    for n in range(500):
        publisher.publish(b"t", n.to_bytes(2, "big") + bytes(998))
    pipe.sink.flush_now()
    size = len(message(1, b"t", bytes(1_000)))
    far.setblocking(False)
    got = b""
    while len(got) < (500 - outbox.dropped) * size:
        got += far.recv(1 << 20)
        pipe.go_on()
    kept = [int.from_bytes(got[at + size - 1_000 : at + size - 998], "big") for at in range(0, len(got), size)]
    assert kept == sorted(set(kept))
    assert kept[-49:] == list(range(451, 500))
    near.close()
    far.close()


def test_outboxes_that_get_the_same_frames_do_not_grow_their_records_for_the_same_one() -> None:
    ledger = new_ledger()
    outboxes = [Outbox(ledger, 1 << 20, "drop_newest") for _ in range(400)]
    for outbox in outboxes:
        outbox.write(b"x")
    before, largest = [outbox.frames_capacity for outbox in outboxes], 0
    for _ in range(700):
        for outbox in outboxes:
            outbox.write(b"x")
        now = [outbox.frames_capacity for outbox in outboxes]
        grown = sum(new != old for new, old in zip(now, before, strict=True))
        largest = max(largest, grown if max(now) > 64 else 0)
        before = now
    assert min(before) == 1024
    assert 0 < largest <= 400 / 4  # all 400, if they grew for the same frame
    for outbox in outboxes:
        assert outbox.read(1 << 20) == b"x" * 701
        outbox.discard()
    assert ledger.used == 0
