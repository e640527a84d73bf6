"""Writing and reading: docs/archive-format.md, "Reading"."""

import os
import struct
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest
from pyarrow import ipc

from fanlight_archive import SCHEMA, Archive, Corrupt, Gone, InUse, UnknownFormat, Writer, topics
from fanlight_archive.frames import END
from tests.archive.messages import SECOND, batch, numbers_of, offsets_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_was_appended_is_read_with_offsets_that_grow_by_one(folder: Path) -> None:
    writer = Writer(folder)
    assert writer.append(batch(0, 10)) == 0
    assert writer.append(batch(10, 5)) == 10
    with Archive(folder) as archive:  # beside the writer
        found = list(archive.read())
        assert (archive.start, archive.end, archive.epoch) == (0, 15, 1)
        assert offsets_of(found) == list(range(15)) == numbers_of(found)
        assert all(one.schema.equals(SCHEMA) for one in found)
        assert found[0].drop_columns(["offset"]).equals(batch(0, 10))
        writer.append(batch(15, 1))
        assert archive.end == 15
        archive.refresh()
        assert offsets_of(archive.read(14)) == [14, 15]
    writer.close()
    with Archive(folder) as archive:
        assert offsets_of(archive.read()) == list(range(16))


def test_segments_are_named_by_their_first_offset_and_rolled_by_size(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=20_000)
    for number in range(20):
        writer.append(batch(100 * number, 100))
    names = sorted(path.name for path in folder.glob("*.arrows*"))
    assert names[0] == "00000000000000000000.arrows"
    assert len(names) > 3
    assert [name for name in names if name.endswith(".open")] == names[-1:]
    assert all(20_000 <= path.stat().st_size < 40_000 for path in folder.glob("*.arrows"))
    with Archive(folder) as archive:
        assert numbers_of(archive.read()) == list(range(2000))
        for start, end in [(0, 1), (99, 101), (150, 1850), (1999, 2000), (2000, 2000), (5, 5)]:
            assert offsets_of(archive.read(start, end)) == list(range(start, end))
            places = archive.places(start, end)
            assert [at for first, last in places for at in range(first, last)] == list(range(start, end))
    assert writer.size == sum(path.stat().st_size for path in folder.glob("*.arrows*"))
    writer.close()


def test_segments_are_rolled_by_age_even_when_nothing_comes(folder: Path) -> None:
    clock = Clock()
    writer = Writer(folder, clock=clock)
    writer.append(batch(0, 1))
    clock.now = 59.9
    assert not writer.roll_if_due()
    clock.now = 60.0
    assert writer.roll_if_due()
    assert writer.durable == 1
    assert not writer.roll_if_due()
    writer.append(batch(1, 1))
    clock.now = 120.0
    writer.append(batch(2, 1))
    assert writer.segments == 3
    writer.close()


def test_a_segment_is_an_arrow_stream_that_any_library_reads(folder: Path) -> None:
    writer = Writer(folder)
    for number in range(3):
        writer.append(batch(10 * number, 10))
    writer.close()
    (path,) = folder.glob("*.arrows")
    with ipc.open_stream(str(path)) as stream:
        table = stream.read_all()
    assert table.num_rows == 30
    assert table.schema.metadata[b"fanlight.first"] == b"0"
    assert path.read_bytes().endswith(END)


def test_reading_by_time_skips_what_is_earlier_and_later(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=8_000)
    for number in range(10):
        writer.append(batch(50 * number, 50))
    with Archive(folder) as archive:
        assert numbers_of(archive.read(since=120 * SECOND, until=333 * SECOND)) == list(range(120, 333))
        for second in (0, 7, 120, 499):
            assert archive.offset_at(second * SECOND) == second
        assert archive.offset_at(120 * SECOND + 1) == 121
        assert archive.offset_at(500 * SECOND) == 500
        assert not list(archive.read(since=500 * SECOND))
    writer.close()


def test_a_filter_is_asked_once_for_each_topic_of_a_batch(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 300))
    asked: list[str] = []

    def second_only(topic: str) -> bool:
        asked.append(topic)
        return topic == "stock.AAPL.1"

    with Archive(folder) as archive:
        assert offsets_of(archive.read(10, where=topics(second_only))) == list(range(10, 300, 3))
        assert sorted(asked) == ["stock.AAPL.0", "stock.AAPL.1", "stock.AAPL.2"]
        assert not list(archive.read(where=topics(lambda topic: False)))
        assert offsets_of(archive.read(where=lambda one: None)) == list(range(300))
        chosen = list(archive.read(10, where=topics(second_only), columns=["value", "offset"]))
        assert [one.schema.names for one in chosen] == [["value", "offset"]]
        assert offsets_of(chosen) == list(range(10, 300, 3))
    writer.close()


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_archive_reads_the_same(folder: Path, compression: str) -> None:
    plain, pressed = Writer(folder / "plain"), Writer(folder / "pressed", compression=compression)
    for writer in (plain, pressed):
        writer.append(batch(0, 2000, payload=100))
    assert pressed.size < plain.size / 2
    with Archive(folder / "pressed") as archive:
        assert numbers_of(archive.read()) == list(range(2000))
    plain.close()
    pressed.close()


def test_there_is_one_writer_at_a_time(folder: Path) -> None:
    writer = Writer(folder)
    with pytest.raises(InUse, match="another process"):
        Writer(folder)
    writer.close()
    Writer(folder).close()


def test_retention_removes_the_oldest_segments_and_tells_those_who_come_late(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=1)  # one batch a segment
    for number in range(10):
        writer.append(batch(10 * number, 10))
    late = Archive(folder)
    assert [span.first for span in writer.remove_old(since=25 * SECOND)] == [0, 10]
    assert writer.start == 20
    kept = writer.size
    assert [span.first for span in writer.remove_old(size=kept - 1)] == [20]
    assert writer.remove_old(size=kept) == []
    with Archive(folder) as archive:
        assert (archive.start, archive.end) == (30, 100)
        assert offsets_of(archive.read()) == list(range(30, 100))
        with pytest.raises(Gone, match="10 to 29 are gone"):
            next(archive.read(10))
    with pytest.raises(Gone, match="0 to 9 are gone"):
        next(late.read())
    late.close()
    assert writer.remove_old(size=0)[-1].end == 90  # never the one that is being written
    writer.close()
    again = Writer(folder)
    assert (again.start, again.end) == (90, 100)
    assert again.remove_old(size=0)[-1].end == 100
    assert (again.start, again.end) == (100, 100)
    again.close()
    with Archive(folder) as archive:
        assert (archive.start, archive.end) == (100, 100)
        assert not list(archive.read())


def test_a_changed_byte_is_found_and_named(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 50))
    writer.close()
    (path,) = folder.glob("*.arrows")
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with Archive(folder) as archive, pytest.raises(Corrupt, match=path.name):
        list(archive.read())


def test_an_arrow_stream_of_others_is_not_taken_for_a_segment(folder: Path) -> None:
    Writer(folder).close()
    table = pa.table({"a": [1, 2]})
    with ipc.new_stream(str(folder / "00000000000000000000.arrows"), table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(UnknownFormat, match="not a segment"):
        Writer(folder)


def test_an_older_segment_gets_nulls_for_columns_that_it_lacks(folder: Path) -> None:
    from fanlight_archive import frames
    from fanlight_archive.schema import conform

    older = batch(0, 3).drop_columns(["correlation", "reply_topic"])
    offsets = pa.array([0, 1, 2], pa.int64())
    row = conform(older.add_column(0, pa.field("offset", pa.int64(), nullable=False), offsets))
    assert row.schema.equals(SCHEMA)
    assert row.column("correlation").null_count == 3
    encoded = b"".join(bytes(piece) for piece in frames.encode(row))
    assert frames.decode(encoded, row.schema).equals(row)


def test_every_prefix_and_every_changed_byte_of_a_batch_is_not_whole() -> None:
    from fanlight_archive import frames

    pieces = frames.encode(batch(0, 4))
    data = b"".join(bytes(piece) for piece in pieces)
    size = frames.metadata_size(data[:8])
    assert size is not None
    found = frames.frame(data[: 8 + size])
    assert found is not None
    assert frames.whole(found, data)
    assert (found.rows, found.size) == (4, len(data))
    assert not any(frames.whole(found, data[:length]) for length in range(len(data)))
    for at in range(len(data)):
        changed = data[:at] + bytes((data[at] ^ 0x20,)) + data[at + 1 :]
        told = frames.metadata_size(changed[:8])
        head = frames.frame(changed[: 8 + told]) if told else None
        assert head is None or not frames.whole(head, changed), f"byte {at}"


def test_a_head_of_any_bytes_is_refused_without_an_error() -> None:
    from fanlight_archive import frames

    data = b"".join(bytes(piece) for piece in frames.encode(batch(0, 1)))
    size = frames.metadata_size(data[:8])
    assert size is not None
    head = data[: 8 + size]
    for at in range(8, len(head) - 4):
        for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
            frames.frame(head[:at] + struct.pack("<I", value) + head[at + 4 :])  # returns, whatever it says
    assert frames.frame(b"") is None
    assert frames.frame(bytes(64)) is None


def test_a_reader_goes_on_when_the_segment_that_it_looked_at_was_empty_and_is_made_anew(folder: Path) -> None:
    """A writer that was killed before its first batch leaves one, and the next has the same name and the same epoch."""
    writer = Writer(folder, boot="one")
    writer._create()
    writer.abandon()
    with Archive(folder) as archive:
        assert archive.end == 0
        again = Writer(folder, boot="one")
        again.append(batch(0, 10))
        archive.refresh()
        assert (archive.epoch, archive.end) == (1, 10)
        again.close()


def test_a_segment_that_cannot_be_read_leaves_no_descriptor_open(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 50))
    writer.close()
    (path,) = folder.glob("*.arrows")
    data = path.read_bytes()
    changed = bytearray(data)
    changed[-100] ^= 1
    with Archive(folder) as archive:
        before = len(os.listdir("/dev/fd"))
        for content in (bytes(changed), data[:-40]):  # whole by its heads; and not
            path.write_bytes(content)
            assert archive.offset_at(0) == 0  # the message may be among those that are damaged
            with pytest.raises(Corrupt):
                list(archive.read())
    assert len(os.listdir("/dev/fd")) == before
