"""Marks in segments and in the manifest (docs/archive-format.md, Marks)."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import Archive, Corrupt, Writer, frames
from fanlight_archive.manifest import NAME, parse
from fanlight_archive.marks import advance, rows_of, trim
from fanlight_archive.segment import name_of
from tests.archive.crashes import Careless
from tests.archive.messages import batch, numbers_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()]


def test_a_batch_brings_its_marks_and_any_arrow_library_reads_both(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 3), [("anna", "q.0", 2, 2**64 - 1), ("", "börse", 0, 7)])
    writer.append(batch(3, 2))
    writer.close()
    with pa.ipc.open_stream(folder / name_of(0)) as stream:
        first, said = stream.read_next_batch_with_custom_metadata()
        _, nothing = stream.read_next_batch_with_custom_metadata()
    assert first.num_rows == 3
    assert json.loads(said[b"marks"]) == [["anna", "q.0", 2, 2**64 - 1], ["", "börse", 0, 7]]
    assert b"marks" not in nothing
    with Archive(folder) as archive:
        assert numbers_of(archive.read()) == [0, 1, 2, 3, 4]


def test_the_checksum_covers_the_marks() -> None:
    data = b"".join(bytes(piece) for piece in frames.encode(batch(0, 1), None, b'[["","producer",0,7]]'))
    size = frames.metadata_size(data[: frames.PREFIX]) or 0
    head = data[: frames.PREFIX + size]
    found = frames.frame(head)
    assert found is not None
    assert frames.marks(head) == b'[["","producer",0,7]]'
    assert frames.whole(found, data)
    assert not frames.whole(found, data.replace(b"0,7]]", b"0,8]]"))


def test_the_line_of_a_closed_segment_has_the_marks_that_it_brought(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 3), [("", "p", 0, 1), ("", "q", 0, 5)])
    writer.append(batch(3, 3), [("", "p", 0, 4)])
    assert writer.marks == [["", "q", 0, 5], ["", "p", 0, 4]]
    writer.roll()
    writer.append(batch(6, 3))
    writer.close()
    first, second = [line for line in lines_of(folder) if "segment" in line]
    assert first["marks"] == [["", "q", 0, 5], ["", "p", 0, 4]]
    assert "marks" not in second
    assert Writer(folder).marks == first["marks"]


def test_marks_alone_are_a_line_and_never_go_down(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 3), [("", "p", 1, 0)])
    writer.append_marks([("", "p", 0, 9), ("", "q", 0, 1)])
    assert writer.durable == 3, "what was appended is on the disk before the line is"
    assert lines_of(folder)[-1] == {"marks": [["", "p", 0, 9], ["", "q", 0, 1]]}
    writer.abandon()
    assert sorted(Writer(folder).marks) == [["", "p", 1, 0], ["", "q", 0, 1]]


@pytest.mark.parametrize("gone", ["the manifest", "its last line"])
def test_what_the_manifest_does_not_say_is_read_from_the_batches(folder: Path, gone: str) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 3), [("", "p", 0, 1)])
    writer.append(batch(3, 3), [("", "p", 0, 2), ("", "q", 0, 0)])
    writer.roll()
    writer.abandon()
    text = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(text[:-9])
    if gone == "the manifest":
        (folder / NAME).unlink()
    assert sorted(Writer(folder).marks) == [["", "p", 0, 2], ["", "q", 0, 0]]


def test_marks_outlive_the_segments_that_brought_them(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 3), [("", "p", 0, 1)])
    writer.roll()
    assert len(writer.remove_old(size=0)) == 1
    writer.close()
    assert Writer(folder).marks == [["", "p", 0, 1]]


def test_the_manifest_is_written_anew_when_most_of_its_marks_are_old(folder: Path) -> None:
    writer = Writer(folder, files=Careless(folder))
    for sequence in range(500):
        writer.append_marks([("", f"p{number}", 0, sequence) for number in range(10)])
    assert len(lines_of(folder)) < 150
    assert [mark[2:] for mark in writer.marks] == [[0, 499]] * 10
    assert parse((folder / NAME).read_bytes()).marks == {("", f"p{number}"): (0, 499) for number in range(10)}


def test_the_producers_that_are_kept_are_bounded(folder: Path) -> None:
    writer = Writer(folder, marks_max=3)
    writer.append(batch(0, 3), [("", f"p{number}", 0, 0) for number in range(5)])
    writer.append_marks([("", "p2", 0, 1)])
    assert [mark[1] for mark in rows_of(writer.manifest.marks)] == ["p2"]
    writer.close()
    assert {mark[1] for mark in Writer(folder, marks_max=3).marks} == {"p2", "p3", "p4"}


@pytest.mark.parametrize(
    ("counts", "most", "kept"),
    [((5,), 3, (3,)), ((1, 9), 5, (1, 4)), ((3, 3, 3), 7, (2, 2, 3)), ((2, 2), 1, (0, 1)), ((4, 1), 9, (4, 1))],
)
def test_a_user_with_many_producers_pushes_out_none_of_another(
    counts: tuple[int, ...], most: int, kept: tuple[int, ...]
) -> None:
    marks = {(f"u{user}", f"p{number}"): (0, 0) for user, count in enumerate(counts) for number in range(count)}
    trim(marks, most)
    assert tuple(sum(key[0] == f"u{user}" for key in marks) for user in range(len(counts))) == kept
    for user, count in enumerate(kept):  # the latest of each
        assert all((f"u{user}", f"p{counts[user] - 1 - number}") in marks for number in range(count))


def test_a_batch_whose_marks_are_none_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(folder)
    with monkeypatch.context() as patch:
        patch.setattr("fanlight_archive.writer.encode", lambda marks: b"no json")
        writer.append(batch(0, 3))
    writer.abandon()
    with pytest.raises(Corrupt, match="the marks of the batch at"):
        Writer(folder)


def test_marks_move_up_and_the_last_that_did_is_forgotten_last() -> None:
    marks = {("", "a"): (0, 1), ("", "b"): (0, 1), ("", "c"): (0, 1)}
    advance(marks, [("", "a", 0, 2), ("", "b", 0, 0)])
    trim(marks, 2)
    assert rows_of(marks) == [["", "c", 0, 1], ["", "a", 0, 2]]
