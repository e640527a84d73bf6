"""Holds: what a reader still needs stays, up to a number of bytes, and as long as the reader comes back."""

import os
from pathlib import Path

import pytest

from fanlight_archive import Archive, Writer
from fanlight_archive.holds import HOLDS_MAX, Keeping, holds_in, keep, lowest, release
from tests.archive.messages import batch


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    """Nine closed segments of ten messages, and an open one."""
    made = Writer(tmp_path / "archive", segment_bytes=1)
    for number in range(10):
        made.append(batch(10 * number, 10))
    return made


def hold(writer: Writer, name: str, offset: int) -> None:
    keep(writer.folder, name, writer.manifest.archive, writer.epoch, offset, "a test")


def keeping(writer: Writer, segments: int, since: float | None = None) -> Keeping:
    """With room for so many of its segments."""
    sizes = [span.size for span in writer.manifest.spans.values()]
    return Keeping(lowest(holds_in(writer.folder, writer.manifest.archive, since)), max(sizes) * segments)


def test_retention_keeps_what_the_slowest_reader_needs(writer: Writer) -> None:
    hold(writer, "quick", 70)
    hold(writer, "slow", 25)
    found = keeping(writer, 100)
    assert [span.first for span in writer.remove_old(size=0, keeping=found)] == [0, 10]
    assert [span.first for span in found.held.spans] == [20, 30, 40, 50, 60, 70, 80]
    assert found.held.bytes == sum(span.size for span in found.held.spans)
    hold(writer, "slow", 90)
    assert [span.first for span in writer.remove_old(size=0, keeping=keeping(writer, 100))] == [20, 30, 40, 50, 60]
    release(writer.folder, "quick")
    release(writer.folder, "quick")
    assert [span.first for span in writer.remove_old(size=0, keeping=keeping(writer, 100))] == [70, 80]
    writer.close()


def test_past_the_bound_the_oldest_go_and_what_stays_has_no_gap(writer: Writer) -> None:
    hold(writer, "slow", 25)
    found = keeping(writer, 3)
    assert [span.first for span in writer.remove_old(size=0, keeping=found)] == [0, 10, 20, 30, 40, 50]
    assert [span.first for span in found.held.overruled] == [20, 30, 40, 50]
    assert [span.first for span in found.held.spans] == [60, 70, 80]
    with Archive(writer.folder) as archive:
        assert archive.missing(archive.start, archive.end) == []
    writer.close()


def test_what_is_not_due_needs_no_room(writer: Writer) -> None:
    hold(writer, "slow", 0)
    found = keeping(writer, 2)
    assert writer.remove_old(since=20_000_000, keeping=found) == []
    assert [span.first for span in found.held.spans] == [0, 10]
    writer.close()


def test_a_hold_that_is_stale_or_of_another_archive_or_unreadable_counts_for_nothing(writer: Writer) -> None:
    hold(writer, "good", 50)
    hold(writer, "old", 20)
    os.utime(writer.folder / "holds/old.json", (1_000, 1_000))
    keep(writer.folder, "other", "another", 1, 10, "")
    (writer.folder / "holds/torn.json").write_text('{"format": 1, "arch')
    (writer.folder / "holds/new.json").write_text('{"format": 2, "archive": "", "epoch": 1, "offset": 3, "by": ""}')
    (writer.folder / "holds/half.new").write_text("")  # what a killed reader left
    found = holds_in(writer.folder, writer.manifest.archive, 2_000)
    assert [(one.name, (one.problem or "")[:17]) for one in found] == [
        ("good", ""), ("new", "it is in format 2"), ("old", "stale"), ("other", "it is of another "),
        ("torn", "it cannot be read"),
    ]  # fmt: skip
    assert lowest(found) == 50
    assert lowest(holds_in(writer.folder, writer.manifest.archive, None)) == 20
    writer.close()


def test_readers_and_recovery_do_not_mind_the_folder_of_holds(writer: Writer) -> None:
    hold(writer, "one", 0)
    writer.abandon()
    again = Writer(writer.folder)
    again.close()
    with Archive(writer.folder) as archive:
        assert archive.end == 100
    assert [one.name for one in holds_in(writer.folder, archive.id, None)] == ["one"]


def test_names_are_bounded_and_so_is_their_number(writer: Writer) -> None:
    for name in ("", "../x", ".hidden", "a" * 65, "a/b"):
        with pytest.raises(ValueError, match="no name of a hold"):
            hold(writer, name, 0)
    for number in range(HOLDS_MAX + 1):
        hold(writer, f"h{number:03}", number)
    assert len(holds_in(writer.folder, writer.manifest.archive, None)) == HOLDS_MAX
    writer.close()
