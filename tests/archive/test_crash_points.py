"""The order of syncs, proven: a machine that goes down at any moment leaves a sound archive (docs/archive-format.md).

A writer works on a disk that remembers. Then the machine goes down behind each thing that the disk did, in each
of the ways that POSIX allows, and the archive is opened again. What was synced must be there, nothing but what was
written may be, and an offset with its epoch must mean what it meant to whoever was shown it. The marks of producers and
their messages must agree: a mark says that all messages up to it were taken, and no others.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive, ArchiveError, Gone, Writer
from tests.archive.crashes import WORLDS, Careless, Data, Names, Recorder, after, left
from tests.archive.messages import SECOND, batch


@dataclass
class Story:
    """What was done, and what others know of it, each with how many deeds there were by then."""

    disk: Recorder
    shown: list[tuple[int, int, int, int]] = field(default_factory=list)  # deeds, epoch, offset, number in the payload
    durable: list[tuple[int, int]] = field(default_factory=list)  # deeds, offset up to which all was synced
    removing: list[tuple[int, int]] = field(default_factory=list)  # deeds, offset below which all may be gone
    marked: list[tuple[int, int]] = field(default_factory=list)  # deeds, sequence that a mark alone is durable at
    number: int = 0

    def append(self, writer: Writer, rows: int = 5) -> None:
        # Message n has the sequence 2 n of the one producer; those between are of messages that are not archived.
        marks = [("", "p", 0, 2 * (self.number + rows - 1))]
        first = writer.append(batch(self.number, rows, payload=100), marks)
        for row in range(rows):
            self.shown.append((len(self.disk.deeds), writer.epoch, first + row, self.number + row))
        self.number += rows

    def sync(self, writer: Writer) -> None:
        self.durable.append((-1, writer.sync()))
        self.durable[-1] = (len(self.disk.deeds), self.durable[-1][1])

    def mark(self, writer: Writer) -> None:
        mark = ("", "p", 0, 2 * self.number - 1)
        writer.append_marks([mark])
        self.marked.append((len(self.disk.deeds), mark[-1]))

    def retain(self, writer: Writer, before: int) -> None:
        spans = [span for span in writer.manifest.spans.values() if span.latest < before * SECOND]
        self.removing.append((len(self.disk.deeds), max((span.end for span in spans), default=0)))
        writer.remove_old(since=before * SECOND)


def written(folder: Path, deaf: str = "", writer_of: type[Writer] = Writer) -> Story:
    """Two lives of an archive: with batches that are synced and not, segments that are closed, retention, marks."""
    folder.mkdir()
    story = Story(Recorder(folder, deaf))
    writer = writer_of(folder, files=story.disk, boot="one", segment_bytes=5_000)
    story.append(writer)
    story.sync(writer)
    story.append(writer)
    story.append(writer)
    story.sync(writer)
    story.mark(writer)
    story.append(writer)  # in a second segment
    story.append(writer)
    story.sync(writer)
    writer.roll()
    story.append(writer)
    story.sync(writer)
    story.retain(writer, 15)
    story.append(writer)
    story.mark(writer)
    story.append(writer)
    writer.abandon()  # killed
    writer = writer_of(folder, files=story.disk, boot="one", segment_bytes=5_000)
    story.append(writer)
    story.sync(writer)
    writer.close()
    story.durable.append((len(story.disk.deeds), writer.end))
    return story


def check(story: Story, deeds: int, folder: Path) -> None:
    """What must hold of the archive in `folder`, left by a crash after so many deeds."""
    writer = Writer(folder, files=Careless(folder), boot="two")
    marks = writer.marks
    writer.append(batch(1_000_000, 3, payload=100))  # others than any that were there
    with Archive(folder) as archive:
        found = {
            offset: int(value)
            for one in archive.read()
            for offset, value in zip(one.column("offset").to_pylist(), one.column("value").to_pylist(), strict=True)
        }
        removable = max((offset for done, offset in story.removing if done <= deeds), default=0)
        durable = max((offset for done, offset in story.durable if done <= deeds), default=0)
        assert sorted(found) == list(range(archive.start, archive.end))
        assert archive.start <= removable
        assert durable <= archive.end - 3
        check_marks(marks, {number for number in found.values() if number < 1_000_000}, archive.start)
        marked = max((sequence for done, sequence in story.marked if done <= deeds), default=-1)
        assert marked < 0 or marks[0][3] >= marked
        for done, epoch, offset, number in story.shown:
            if done > deeds:
                continue
            try:
                archive.check(epoch, offset + 1)
            except Gone:
                assert offset >= durable
                continue
            except ArchiveError:
                pytest.fail(f"epoch {epoch} was shown and is not known any more")
            if offset >= archive.start:
                assert found.get(offset) == number, f"offset {offset} of epoch {epoch} was shown as another message"
    writer.abandon()


def check_marks(marks: list[Any], numbers: set[int], start: int) -> None:
    """What was taken by the marks is what is there, or was removed: here a message's offset is its number."""
    sequence = marks[0][3] if marks else -1
    assert all(number in numbers or number < start for number in range(sequence // 2 + 1)), "lost if published again"
    assert all(2 * number <= sequence for number in numbers), "there twice if published again"


def crashes(story: Story, folder: Path) -> Iterator[tuple[int, Data, Names, Callable[[], None]]]:
    for deeds in range(len(story.disk.deeds) + 1):
        world = after(story.disk.deeds[:deeds])
        for data, names in WORLDS:
            where = folder / "left"
            left(world, data, names, where)
            yield deeds, data, names, lambda deeds=deeds, where=where: check(story, deeds, where)
            shutil.rmtree(where)


def test_a_machine_that_goes_down_at_any_moment_leaves_a_sound_archive(tmp_path: Path) -> None:
    story = written(tmp_path / "archive")
    assert {deed.what for deed in story.disk.deeds} >= {"write", "sync", "rename", "remove", "sync_names", "truncate"}
    for deeds, data, names, holds in crashes(story, tmp_path):
        try:
            holds()
        except Exception as error:
            last = story.disk.deeds[deeds - 1] if deeds else None
            raise AssertionError(f"after {deeds} deeds, the last {last}; data {data}, names {names}") from error


@pytest.mark.parametrize("deaf", ["sync", "sync_names"])
def test_a_sync_that_is_left_out_would_be_noticed(tmp_path: Path, deaf: str) -> None:
    story = written(tmp_path / "archive", deaf)

    def fails(holds: Callable[[], None]) -> bool:
        try:
            holds()
        except (AssertionError, ArchiveError):
            return True
        return False

    assert any(fails(holds) for _, _, _, holds in crashes(story, tmp_path))


class Hasty(Writer):
    """Keeps marks before what was appended is on the disk."""

    def append_marks(self, marks: Any) -> None:
        self._say({"marks": marks})


def test_a_mark_that_is_kept_before_its_messages_would_be_noticed(tmp_path: Path) -> None:
    story = written(tmp_path / "archive", writer_of=Hasty)

    def check_all() -> None:
        for _, _, _, holds in crashes(story, tmp_path):
            holds()

    with pytest.raises(AssertionError, match="lost if published again"):
        check_all()
