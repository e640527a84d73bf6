"""Marks that are kept with the archive: neither above nor below the messages that are there (docs/decisions/0012)."""

import queue
import shutil
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive as Reader
from fanlight_archive import Writer
from fanlight_broker.core.limits import Durability
from fanlight_broker.core.marks import Mark
from fanlight_broker.storage.pending_marks import PendingMarks, merged, octets_of
from fanlight_broker.storage.writer_thread import WriteJob
from tests.archive.crashes import WORLDS, Careless, Recorder, after, left
from tests.broker.protocols.native.test_marks import marked
from tests.broker.protocols.native.world import World, publish


def marks_in(folder: Path) -> list[tuple[Any, ...]]:
    """Those that a broker finds that opens what a killed one has left."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    writer = Writer(copy)
    writer.abandon()
    shutil.rmtree(copy)
    return sorted(tuple(row) for row in writer.marks)


class Spy:
    """The writer thread's inbox, remembered."""

    def __init__(self, inner: "queue.SimpleQueue[WriteJob | None]") -> None:
        self.jobs: list[WriteJob] = []
        self.inner, self.get = inner, inner.get

    def put(self, job: WriteJob | None) -> None:
        if job is not None:
            self.jobs.append(job)
        self.inner.put(job)


def test_a_mark_is_in_the_batch_of_its_message_although_the_message_fills_it(build: Any) -> None:
    archived = build(world=World, archive_batch_messages_max=3, filters=((b"a", "amqp"),))
    spy = archived.archive.writer_thread.inbox = Spy(archived.archive.writer_thread.inbox)
    peer = archived.world.connect()
    taken: dict[int, int] = {}  # sequence -> messages of the tap with it
    for sequence in range(40):
        if sequence % 4 == 1:
            peer.send(publish("a", b"without a mark"))
        topic = "not.archived" if sequence % 5 == 4 else "a"
        peer.send(marked(topic, b"%d" % sequence, f"p{sequence % 2}", 0, sequence))
        taken[sequence] = archived.archive.tap.taken
    archived.settled()
    reached = {0: -1, 1: -1}
    for job in spy.jobs:
        for mark in job.marks:
            assert taken[mark.sequence] <= job.columns.end
            reached[mark.sequence % 2] = mark.sequence
        for sequence, end in taken.items():
            if end <= job.columns.end and sequence % 5 != 4:
                assert reached[sequence % 2] >= sequence, "its message is there, and would be taken again"
    assert len(spy.jobs) > 10


@pytest.mark.parametrize("durability", [Durability.NONE, Durability.BATCH])
def test_a_machine_that_goes_down_at_any_moment_leaves_marks_and_messages_that_agree(
    build: Any, tmp_path: Path, durability: Durability
) -> None:
    """As tests/archive/test_crash_points.py, with the broker before it: what it hands over when."""
    archived = build(
        world=World, disk=Recorder, durability=durability, filters=((b"a", "amqp"),), archive_batch_messages_max=3,
        archive_segment_bytes_max=64 * 1024,
    )  # fmt: skip
    peer = archived.world.connect()
    for sequence in range(36):
        topic, size = ("not.archived", 9) if sequence % 5 > 2 else ("a", 9_000)
        peer.send(marked(topic, b"%0*d" % (size, sequence), f"p{sequence % 2}", 0, sequence))
        if sequence % 7 == 6:
            archived.settled()
        if sequence % 10 == 3:
            archived.loop.time_passes()
    archived.archive.stop()
    deeds = archived.disk.deeds
    assert {deed.what for deed in deeds} >= {"create", "write", "sync", "rename"}
    reached = set()
    for count in range(len(deeds) + 1):
        world = after(deeds[:count])
        for data, names in WORLDS:
            where = tmp_path / "left"
            left(world, data, names, where)
            writer = Writer(where, files=Careless(where), boot="another")
            highest = {row[1]: row[3] for row in writer.marks}
            with Reader(where) as reader:
                found = [int(value[-9:]) for batch in reader.read() for value in batch.column("value").to_pylist()]
            writer.abandon()
            shutil.rmtree(where)
            # What would not be taken again is there, and what is there would not be taken again.
            known = [each for each in range(36) if each % 5 <= 2 and each <= highest.get(f"p{each % 2}", -1)]
            assert found == known, f"after {count} deeds, the last {deeds[count - 1]}; data {data}, names {names}"
            reached.add(len(found))
    assert len(reached) > 3


def test_a_broker_that_starts_again_knows_what_it_has_taken(build: Any) -> None:
    first = build(world=World)
    peer = first.world.connect(user="anna")
    peer.send(*(marked("a", b"%d" % number, "p", 1, number) for number in range(5)))
    first.settled()
    assert marks_in(first.folder) == [("anna", "p", 1, 4)]  # killed now
    first.archive.stop()
    second = build(world=World)
    assert list(second.world.broker.marks) == [Mark("anna", "p", 1, 4)]
    peer = second.world.connect(user="anna")
    peer.send(*(marked("a", b"%d" % number, "p", 1, number) for number in range(7)))
    second.settled()
    assert [row["value"] for row in second.rows()] == [b"%d" % number for number in range(7)]
    assert second.world.broker.marks.repeated == 5


def test_marks_of_topics_that_are_not_archived_follow_by_themselves(build: Any) -> None:
    archived = build(world=World, filters=((b"a", "amqp"),), durability=Durability.INTERVAL)
    peer = archived.world.connect()
    peer.send(marked("a", b"", "p", 0, 0), marked("b", b"", "p", 0, 1), marked("b", b"", "q", 0, 7))
    archived.settled()
    peer.send(marked("b", b"", "p", 0, 2))
    archived.loop.time_passes()
    archived.loop.run_until(lambda: archived.archive.tap.bytes == 0)
    assert marks_in(archived.folder) == [("", "p", 0, 2), ("", "q", 0, 7)]
    peer.send(marked("b", b"", "p", 0, 3))
    archived.archive.stop()
    assert marks_in(archived.folder) == [("", "p", 0, 3), ("", "q", 0, 7)]


def test_the_receipt_of_a_repetition_waits_for_what_was_taken_before(build: Any) -> None:
    archived = build(world=World, receipts=True, durability=Durability.BATCH)
    peer, other = archived.world.connect(), archived.world.connect()
    archived.disk.rotten = True
    peer.send(marked("a", b"", "p", 0, 0, request=1))
    other.send(marked("a", b"", "p", 0, 0, request=9), marked("a", b"", "p", 0, 0))
    archived.loop.run_until(lambda: archived.archive.trouble is not None)
    archived.world.turn()
    assert peer.frames() == other.frames() == []
    archived.disk.rotten = False
    archived.settled()
    assert (peer.frames(), other.frames()) == ([[5, 1, 0]], [[5, 9, 0, None, True]])
    assert len(archived.rows()) == 1


def test_a_sync_that_fails_takes_marks_back_with_their_messages_and_writes_both_again(build: Any) -> None:
    archived = build(world=World, durability=Durability.INTERVAL, filters=((b"a", "amqp"),))
    peer = archived.world.connect()
    peer.send(marked("a", b"0", "p", 0, 0))
    archived.settled()
    archived.disk.rotten = True
    peer.send(marked("a", b"1", "p", 0, 1), marked("b", b"", "p", 0, 2))
    archived.archive.tap.flush()
    archived.loop.time_passes()
    archived.loop.run_until(lambda: archived.archive.trouble is not None)
    archived.disk.rotten = False
    archived.settled()
    archived.loop.run_until(lambda: archived.archive.tap.bytes == 0)
    assert archived.archive.state.epoch == 2
    assert [row["value"] for row in archived.rows()] == [b"0", b"1"]
    assert marks_in(archived.folder) == [("", "p", 0, 2)]


def test_a_publisher_that_is_held_back_by_the_archive_does_not_move_its_mark(build: Any) -> None:
    archived = build(world=World, receipts=True, archive_buffer_bytes_max=1 << 20)
    peer = archived.world.connect()
    archived.disk.full = True
    peer.send(*(marked("a", bytes(32 * 1024), "p", 0, number, request=number + 1) for number in range(60)))
    assert peer.held_back
    (mark,) = archived.world.broker.marks
    assert mark.sequence == archived.archive.tap.taken - 1 < 59
    archived.disk.full = False
    archived.loop.run_until(lambda: not peer.held_back)
    while archived.archive.tap.taken != archived.archive.state.sequence or peer.held_back:
        archived.settled()
        archived.loop.run_all()
        archived.world.turn()
    assert [answer[1:] for answer in peer.frames()] == [[number + 1, 0] for number in range(60)]
    assert len(archived.rows()) == 60


def test_more_producers_than_the_metadata_of_a_batch_holds_make_several_batches(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fanlight_broker.storage.archive.MARKS_BYTES_MAX", 1_000)
    archived = build(world=World, filters=((b"a", "amqp"),))
    spy = archived.archive.writer_thread.inbox = Spy(archived.archive.writer_thread.inbox)
    peer = archived.world.connect()
    peer.send(*(marked("a" if number < 50 else "b", b"", f"p{number}", 0, 0) for number in range(100)))
    archived.archive.stop()
    assert [mark.producer for job in spy.jobs for mark in job.marks] == [f"p{number}" for number in range(100)]
    assert all(sum(octets_of(mark) for mark in job.marks) < 1_200 for job in spy.jobs)
    assert {job.columns is None for job in spy.jobs} == {True, False}
    assert len(marks_in(archived.folder)) == 100


def test_marks_that_wait_for_a_disk_are_bounded_by_their_producers(build: Any) -> None:
    archived = build(world=World, filters=((b"a", "amqp"),))
    peer = archived.world.connect()
    archived.disk.full = True
    for number in range(20):
        peer.send(marked("b", b"", f"p{number % 2}", 0, number))
        archived.loop.time_passes()
    thread = archived.archive.writer_thread
    archived.loop.run_until(lambda: not thread.inbox.qsize() and archived.archive.trouble is not None)
    archived.disk.full = False
    archived.loop.run_until(lambda: archived.archive.tap.bytes == 0)
    assert marks_in(archived.folder) == [("", "p0", 0, 18), ("", "p1", 0, 19)]


def test_a_mark_that_was_taken_back_goes_nowhere() -> None:
    pending = PendingMarks()
    pending.note(Mark("", "p", 0, 0), 1)
    pending.undo_note()
    assert pending.pop(1) == pending.pop_all() == ()


def test_a_mark_waits_for_the_batch_that_its_message_is_in() -> None:
    pending = PendingMarks()
    pending.note(Mark("", "p", 0, 0), 1)
    pending.note(Mark("", "p", 0, 1), 2)
    assert pending.pop(1) == (Mark("", "p", 0, 0),)
    assert pending.pop(2) == (Mark("", "p", 0, 1),)
    assert pending.octets == 0


def test_merged_marks_are_the_highest_and_those_that_moved_up_last() -> None:
    first = [Mark("", "a", 0, 5), Mark("", "b", 0, 1), Mark("", "c", 0, 1)]
    assert merged(first, [Mark("", "a", 0, 3)], 2) == (Mark("", "c", 0, 1), Mark("", "a", 0, 5))


def test_the_archive_forgets_the_idlest_producer_too(build: Any) -> None:
    archived = build(world=World, marks_max=2)
    archived.archive.writer_thread.writer.marks_max = 2
    peer = archived.world.connect()
    peer.send(*(marked("a", b"", name, 0, 0) for name in "pqr"))
    archived.archive.stop()
    assert [row[1] for row in marks_in(archived.folder)] == ["q", "r"]
