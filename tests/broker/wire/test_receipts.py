"""Acknowledgements that wait for a store: in order, bounded, and forgotten with their connection."""

import gc
from functools import partial
from weakref import ref

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.lane import NEED_MORE, PUBLISH
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.receipts import Receipts, Receiver
from tests.broker.wire.publisher import Publisher, publish

ACTIONS = st.sampled_from(["call", "call", "call", "nobody", "release", "sync", "forget"])
STEPS = st.lists(st.tuples(ACTIONS, st.integers(0, 3), st.integers(0, 9)), max_size=200)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_a_ring_is_a_list_of_what_waits(steps: list[tuple[str, int, int]]) -> None:
    done: list[int] = []
    begun: list[int] = []
    receipts = Receipts(1_000, lambda: begun.append(1))
    position = receipts.position
    receivers = [Receiver() for _ in range(4)]
    waiting: list[tuple[int, int, int, int | None]] = []  # recorded, synced, number, receiver
    expected: list[int] = []
    taken = released = starts = newest = 0

    def release() -> None:
        while waiting and waiting[0][0] <= released and waiting[0][1] <= position.synced:
            expected.append(waiting.pop(0)[2])

    for number, (what, who, nth) in enumerate(steps):
        if what in ("call", "nobody"):
            taken += nth % 3
            position.appended += nth % 2
            synced = position.appended if nth > 4 else 0
            receiver = receivers[who] if what == "call" else None
            receipts.call(partial(done.append, number), taken, receiver, synced)
            alone = not waiting or (receiver is not None and all(entry[3] != who for entry in waiting))
            if alone and taken <= released and synced <= position.synced:
                expected.append(number)
            else:
                starts += not waiting
                newest = max(newest, synced)
                waiting.append((taken, newest, number, who if receiver is not None else None))
        elif what == "release":
            released = max(released, taken - nth)
            release()
            receipts.release(max(taken - nth, 0))
        elif what == "sync":
            position.synced = max(position.synced, position.appended - nth)
            release()
            receipts.release()
        else:
            waiting = [entry for entry in waiting if entry[3] != who]
            receipts.forget(receivers[who])
        assert done == expected
        assert len(receipts) == receipts.count == len(waiting)
        assert len(begun) == starts
        for who, receiver in enumerate(receivers):
            assert receiver.pending_acks == sum(entry[3] == who for entry in waiting)
    position.synced = position.appended
    receipts.release(taken)
    assert done == expected + [entry[2] for entry in waiting]


def test_one_that_raises_does_not_take_those_behind_it_along() -> None:
    done: list[int] = []
    receipts = Receipts(10, lambda: None)

    def fail() -> None:
        raise OSError("no")

    receipts.call(partial(done.append, 1), 1)
    receipts.call(fail, 1)
    receipts.call(partial(done.append, 2), 1)
    with pytest.raises(OSError, match="no"):
        receipts.release(1)
    assert (done, receipts.count) == ([1], 1)
    receipts.release(1)
    assert (done, receipts.count) == ([1, 2], 0)


def test_an_acknowledgement_may_ask_for_another_while_it_is_released() -> None:
    """And the ring may grow by that."""
    done: list[int] = []
    receipts = Receipts(1_000, lambda: None)
    for _ in range(64):
        receipts.call(lambda: [receipts.call(partial(done.append, n), 2) for n in range(10)], 1)
    receipts.release(1)
    assert (done, receipts.count) == ([], 640)
    receipts.release(2)
    assert done == 64 * list(range(10))


def test_what_waits_when_the_ring_ends_is_freed() -> None:
    class Call:
        def __call__(self) -> None:
            raise AssertionError("it was not released")

    receipts, receiver, call = Receipts(10, lambda: None), Receiver(), Call()
    gone = ref(call)
    receipts.call(call, 1, receiver)
    receipts.call(call, 1)
    del call
    assert gone() is not None
    del receipts
    gc.collect()
    assert gone() is None


def test_it_is_full_at_its_bound_and_takes_on() -> None:
    receipts = Receipts(2, lambda: None)
    for number in range(3):
        assert receipts.full == (number == 2)
        receipts.call(lambda: None, 1)
    assert receipts.count == 3


def test_receipts_of_a_recorded_route_wait_in_the_compiled_lane() -> None:
    """`Publisher.send` fails if the lane leaves a PUBLISH to Python."""
    ledger = Ledger(1 << 30, lambda: None)
    begun: list[int] = []
    publisher = Publisher(ledger)
    tap = ArchiveTap(
        rows_max=1_000, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None, full=lambda columns: None
    )
    receipts = publisher.lane.receipts = Receipts(1_000, lambda: begun.append(1))
    receipts.recording = True
    publisher.route(b"a", []).tap = tap
    publisher.route(b"b", [])

    def received() -> list[int]:
        octets, found = publisher.outbox.read(1 << 20), []
        while octets:
            found.append(msgpack.unpackb(octets[4:16])[1])
            octets = octets[16:]
        return found

    for request in (1, 2):
        assert publisher.publish(b"a", b"x", request)
    assert publisher.publish(b"a", b"no receipt")
    assert publisher.publish(b"b", b"x", 3)
    assert received() == [3]  # it is not recorded: receipts say what they are for, and keep no order
    assert (receipts.count, publisher.lane.pending_acks, len(begun), ledger.receipts) == (2, 2, 1, 1)
    receipts.release(1)
    assert received() == [1]
    receipts.release(tap.taken)
    assert received() == [2]
    assert (receipts.count, publisher.lane.pending_acks, ledger.receipts) == (0, 0, 3)


def test_receipts_of_what_the_journal_got_wait_in_the_compiled_lane() -> None:
    """`Publisher.send` fails if the lane leaves a PUBLISH to Python."""
    publisher, reports = Publisher(Ledger(1 << 30, lambda: None)), [False]
    receipts = publisher.lane.receipts = Receipts(1_000)
    receipts.journaling = True
    position = receipts.position

    def report() -> None:
        position.appended += reports[0]

    # What is called in the middle of a fan-out: here something in it is reported to the journal.
    tap = ArchiveTap(rows_max=1, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=report, full=lambda columns: None)
    publisher.route(b"a", []).tap = tap

    def received() -> list[int]:
        octets = publisher.outbox.read(1 << 20)
        return [msgpack.unpackb(octets[at + 4 : at + 16])[1] for at in range(0, len(octets), 16)]

    position.appended = 5  # somebody else's
    assert publisher.publish(b"a", b"x", 1)
    assert received() == [1]
    reports[0] = True
    assert publisher.publish(b"a", b"x", 2)
    assert publisher.publish(b"a", b"x")
    assert publisher.publish(b"a", b"x", 3)
    assert (received(), position.appended, receipts.count) == ([], 8, 2)
    for synced, expected in ((5, []), (6, [2]), (7, []), (8, [3])):
        position.synced = synced
        receipts.release()
        assert received() == expected


def test_a_lane_asks_python_while_the_store_is_full_or_refuses() -> None:
    publisher = Publisher(Ledger(1 << 30, lambda: None))
    receipts = publisher.lane.receipts = Receipts(1_000)
    receipts.journaling = True
    publisher.route(b"a", [])

    def event(request: int | None) -> int:
        publisher.inbox.feed(publish(b"a", b"x", request))
        found = publisher.lane.advance()
        publisher.inbox.clear()
        return found

    for flag in ("full", "refusing"):
        setattr(receipts.position, flag, True)
        assert event(1) == PUBLISH
        assert event(None) == NEED_MORE
        setattr(receipts.position, flag, False)
        assert event(2) == NEED_MORE


def test_a_lane_asks_python_where_receipts_have_no_room() -> None:
    publisher = Publisher(Ledger(1 << 30, lambda: None))
    receipts = publisher.lane.receipts = Receipts(1, lambda: None)
    receipts.recording = True
    tap = ArchiveTap(
        rows_max=1_000, bytes_max=60, batch_bytes_max=1 << 20, begun=lambda: None, full=lambda columns: None
    )
    publisher.route(b"a", []).tap = tap

    def event(request: int | None) -> int:
        publisher.inbox.feed(publish(b"a", b"x", request))
        found = publisher.lane.advance()
        publisher.inbox.clear()
        return found

    assert event(1) == NEED_MORE
    assert event(2) == PUBLISH  # one waits already
    assert event(None) == NEED_MORE
    receipts.release(1)
    assert event(3) == NEED_MORE
    receipts.release(tap.taken)
    receipts.closed = True
    assert event(4) == PUBLISH
    receipts.closed = False
    while not tap.crowded:
        assert event(None) == NEED_MORE
    assert event(5) == PUBLISH
