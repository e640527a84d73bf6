"""Inboxes that share one receive buffer: frames come out whole, in order, however they were cut and interleaved."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.native import lane
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.lane import FRAME, NEED_MORE
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.routes import RouteCache

CAPACITY = 32 * 1024  # the smallest receive buffer
SIZES = st.sampled_from([0, 1, 7, 200, 3_000, 16_370, 16_384, 16_390, 33_000, 90_000])


class Reader:
    """An inbox, and the frames that a lane finds in it."""

    def __init__(self, shared: ReceiveBuffer, ledger: Ledger) -> None:
        self.inbox = Inbox(shared, ledger)
        outbox = Outbox(ledger, 1 << 30, "pause")
        self.lane = lane.NativeLane(self.inbox, outbox, RouteCache(1), ledger, frame_max=1 << 20, control_max=1 << 20)
        self.frames: list[bytes] = []
        self.wire: deque[bytes] = deque()

    def read(self, stop_after: int) -> None:
        """One read of what is on the wire; the parser stops after so many frames, as a held-back publisher does."""
        octets = self.wire.popleft()
        with memoryview(self.inbox.next_buffer()) as buffer:
            size = min(len(buffer), len(octets))
            assert size
            buffer[:size] = octets[:size]
        if size < len(octets):
            self.wire.appendleft(octets[size:])
        self.inbox.received(size)
        self.parse(stop_after)

    def parse(self, stop_after: int = 1 << 30) -> None:
        for _ in range(stop_after):
            event = self.lane.advance()
            if event == NEED_MORE:
                return
            assert event == FRAME, (event, self.lane.fault)
            self.frames.append(self.lane.frame())
        self.inbox.pause()

    def resume(self) -> None:
        self.inbox.resume()
        self.parse()


@dataclass(frozen=True)
class Stream:
    """What goes over one wire: frames of such payloads, cut at such places."""

    sizes: list[int]
    cuts: list[int]  # in thousandths of the whole
    every: int  # a cut after every so many octets, too

    def bodies(self) -> list[bytes]:
        return [msgpack.packb([11, bytes([n]) * size]) for n, size in enumerate(self.sizes)]

    def pieces(self) -> list[bytes]:
        octets = b"".join(len(body).to_bytes(4, "big") + body for body in self.bodies())
        cuts = {len(octets) * cut // 1_000 for cut in self.cuts} | set(range(0, len(octets), self.every))
        edges = sorted({0, *cuts, len(octets)})
        return [octets[a:b] for a, b in pairwise(edges)]


STREAMS = st.builds(
    Stream,
    sizes=st.lists(SIZES, min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 1_000), max_size=8),
    every=st.sampled_from([700, 16_384, 30_000, 1 << 30, 1 << 30]),
)


@settings(max_examples=100, deadline=None)
@given(
    streams=st.lists(STREAMS, min_size=1, max_size=3),
    order=st.lists(st.integers(0, 2), min_size=1, max_size=20),
    stops=st.lists(st.sampled_from([0, 1, 2, 1_000, 1_000]), min_size=1, max_size=10),
)
def test_frames_come_out_whole_whoever_else_reads(streams: list[Stream], order: list[int], stops: list[int]) -> None:
    ledger, shared = Ledger(1 << 30, lambda: None), ReceiveBuffer(CAPACITY)
    readers = [Reader(shared, ledger) for _ in streams]
    for reader, stream in zip(readers, streams, strict=True):
        reader.wire.extend(stream.pieces())
    turn = 0
    while waiting := [reader for reader in readers if reader.wire]:
        reader = waiting[order[turn % len(order)] % len(waiting)]
        reader.read(stops[turn % len(stops)])
        turn += 1
        if turn % 3 == 0:
            reader.resume()
        kept = sum(each.inbox.size for each in readers)
        assert kept <= ledger.inboxes.used <= 4 * kept + 64 * len(readers)
    for reader, stream in zip(readers, streams, strict=True):
        reader.resume()
        assert reader.frames == stream.bodies()
        assert reader.inbox.size == 0
    assert ledger.inboxes.used == 0


def test_memory_follows_what_came_and_not_what_was_announced() -> None:
    ledger, shared = Ledger(1 << 30, lambda: None), ReceiveBuffer(CAPACITY)
    reader = Reader(shared, ledger)
    reader.wire.append((1 << 20).to_bytes(4, "big") + bytes(10))
    reader.read(1 << 30)
    assert reader.inbox.wanted == 4 + (1 << 20)
    assert ledger.inboxes.used < 100
    reader.wire.extend([bytes(16_000)] * 4)
    while reader.wire:
        reader.read(1 << 30)
        assert ledger.inboxes.used <= 2 * reader.inbox.size + 32 * 1024
    reader.inbox.clear()
    assert ledger.inboxes.used == reader.inbox.size == 0


def test_an_inbox_that_goes_gives_its_memory_back() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    inbox = Inbox(ReceiveBuffer(), ledger)
    inbox.feed(bytes(1_000))
    assert ledger.inboxes.used >= 1_000
    del inbox
    assert ledger.inboxes.used == 0


def test_what_may_be_read_can_be_bounded() -> None:
    inbox = Inbox(ReceiveBuffer(), Ledger(1 << 30, lambda: None))
    inbox.read_max = 100
    assert len(inbox.next_buffer()) == 100
    inbox.received(60)
    inbox.pause()
    assert len(inbox.next_buffer()) == 40
    inbox.received(40)
    inbox.pause()
    assert len(inbox.next_buffer()) == 1  # never an empty buffer: it would look like the end of the stream
    inbox.read_max = 0
    assert len(inbox.next_buffer()) == 256 * 1024 - 100


def test_more_than_the_buffer_holds_cannot_have_been_read() -> None:
    inbox = Inbox(ReceiveBuffer(CAPACITY), Ledger(1 << 30, lambda: None))
    inbox.next_buffer()
    for wrong in (-1, CAPACITY + 1):
        with pytest.raises(ValueError, match="bytes read into a buffer of"):
            inbox.received(wrong)


def test_a_receive_buffer_has_room_for_a_rest_and_a_read() -> None:
    with pytest.raises(ValueError, match="at least 32768"):
        ReceiveBuffer(CAPACITY - 1)
    with memoryview(ReceiveBuffer(CAPACITY)) as view:
        assert not view.readonly
        assert len(view) == CAPACITY


def test_bytes_are_counted_as_they_come() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    inbox = Inbox(ReceiveBuffer(), ledger)
    inbox.next_buffer()
    inbox.received(10)
    inbox.feed(b"12345")
    assert ledger.bytes_in == 15
