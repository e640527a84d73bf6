"""Indexes beside closed segments: a replay gives the same with them as without, whatever has become of them."""

import os
import queue
import shutil
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_archive import MESSAGE, Archive, Writer
from fanlight_archive.files import Disk
from fanlight_archive.manifest import Span
from fanlight_archive.segment import Segment
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.replay import ReplayPart, ReplayRequest
from fanlight_broker.storage.archive_index import SegmentIndexer, SegmentRows, fields_named
from fanlight_broker.storage.replays import ArchiveReplays
from matchcore import FrozenRecordIndex
from matchcore.row_screener import RowScreener
from tests.archive.crashes import WORLDS, Careless, Recorder, after, left
from tests.archive.disks import FailingDisk
from tests.archive.messages import batch
from tests.captured_logs import capture_logs

FIELDS = "n, payload.price, $bytes"
TOPICS = ["stock.A", "stock.B", "stock.B.x", "forex.A", "stock", "a/b", "$inbox.x", "stock.é", ""]
FILTERS = [("stock.*", "amqp"), ("stock.A", "amqp"), ("#", "amqp"), ("*.A", "amqp"), ("stock.B.#", "amqp"),
           ("stock/+", "mqtt"), ("stock/#", "mqtt"), ("a.b", "amqp"), ("nothing.at.all", "amqp"),
           ("$inbox.x", "amqp")]  # fmt: skip
WHERES = [None, "n > 3", "n <= 3 AND payload.price = 2.5", "NOT n = 1", "n IS NULL", "payload.price >= 100 OR n = 0",
          "$bytes < 8", "$client = 'publisher'", "n = 'x'", "NOT (n > 2 AND payload.price > 2)"]  # fmt: skip
HEADERS = [None, b"1", b"3", b"4.5", b"x", b"nan", b"\xff", b"true"]
BODIES = [(b'{"price": 2.5}', "application/json"), (b'{"price": 120, "n": 1}', "application/json; charset=utf-8"),
          (b'{"price": ', "application/json"), (b'{"price": "2.5"}', "application/json"), (b"{}", None),
          (b'{"price": true}', "application/json"), (b"12", "application/json")]  # fmt: skip

Row = tuple[str, str, bytes | None, tuple[bytes, str | None], int]
ROWS = st.tuples(
    st.sampled_from(TOPICS), st.sampled_from(["amqp", "amqp", "mqtt"]), st.sampled_from(HEADERS),
    st.sampled_from(BODIES), st.integers(0, 50),
).map(lambda row: ("a/b", *row[1:]) if row[0] == "" and row[1] == "mqtt" else row)  # fmt: skip


def batch_of(rows: list[Row]) -> Any:
    return pa.record_batch(
        {
            "timestamp": pa.array([row[4] for row in rows], pa.timestamp("us", tz="UTC")),
            "topic": [row[0].replace(".", "/") if row[1] == "mqtt" else row[0] for row in rows],
            "value": [row[3][0] for row in rows],
            "headers": pa.array(
                [None if row[2] is None else [{"key": "n", "value": row[2]}] for row in rows],
                MESSAGE.field("headers").type,
            ),
            "client": ["publisher"] * len(rows),
            "protocol": ["native"] * len(rows),
            "syntax": [row[1] for row in rows],
            "qos": pa.array([0] * len(rows), pa.int8()),
            "retain": [False] * len(rows),
            "content_type": pa.array([row[3][1] for row in rows], pa.string()),
            "reply_topic": pa.nulls(len(rows), pa.string()),
            "correlation": pa.nulls(len(rows), pa.binary()),
        },
        schema=MESSAGE,
    )


def indexer() -> SegmentIndexer:
    return SegmentIndexer(fields_named(FIELDS), topics_share=0)


def written(folder: Path, segments: list[list[list[Row]]], **options: Any) -> Path:
    """An archive of closed segments of batches, and an open one of the last."""
    writer = Writer(folder, indexer=indexer, segment_bytes=1 << 40, **options)
    for number, batches in enumerate(segments):
        for rows in batches:
            if rows:
                writer.append(batch_of(rows))
        if number < len(segments) - 1:
            writer.roll()
    writer.sync()
    writer.abandon()
    return folder


class NowLoop:
    """What is called in the loop is kept until it is asked for."""

    def __init__(self) -> None:
        self.parts: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.SimpleQueue()

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any) -> None:
        self.parts.put((callback, args))


def replayed(folder: Path, *, indexed: bool, body_formats: str = "", **wanted: Any) -> list[Any]:
    """(offset, topic, payload) of a replay, or its error at the end."""
    loop, found = NowLoop(), list[Any]()
    replays = ArchiveReplays(
        folder, loop, lambda condition: RowScreener(condition.selector), indexed=indexed, body_formats=body_formats
    )
    request = ReplayRequest(**wanted)
    reading = replays.read(
        request, lambda offset, time, topic, number, value, content: (offset, topic, value), lambda frame: 5_000
    )
    parts: list[ReplayPart] = []
    while not parts or not (parts[-1].at_end or parts[-1].error):
        reading.ask(None, parts.append)
        callback, arguments = loop.parts.get()
        callback(*arguments)
        found += parts[-1].messages
    reading.close()
    replays.stop()
    return [*found, parts[0].kept, *([repr(parts[-1].error)] if parts[-1].error else [parts[-1].offset])]


def same(folder: Path, filter: str, syntax: str, where: str | None, **options: Any) -> list[Any]:
    condition = None if where is None else condition_of(where)
    wanted = {"filter": filter.encode(), "syntax": syntax, "condition": condition, **options}
    found = replayed(folder, indexed=True, **wanted)
    assert found == replayed(folder, indexed=False, **wanted)
    return found[:-2]


def spans_of(folder: Path) -> list[Span]:
    with Archive(folder) as archive:
        return archive.spans


@given(
    st.lists(st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from(FILTERS), st.sampled_from(WHERES), st.one_of(st.none(), st.integers(0, 60)),
)  # fmt: skip
@settings(max_examples=100)
def test_a_replay_gives_the_same_with_indexes_and_without(
    tmp_path_factory: pytest.TempPathFactory, segments: list[list[list[Row]]], filter: tuple[str, str],
    where: str | None, since: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    written(folder, segments)
    assert all((folder / f"{span.name}.index").exists() for span in spans_of(folder))
    same(folder, *filter, where, since=since)
    shutil.rmtree(folder)


def rare(folder: Path, **options: Any) -> Path:
    """Four segments; one message of 200 is of the topic `rare`, in the third."""
    segments = [
        [[("rare" if (number, row) == (2, 20) else f"stock.{row % 3}", "amqp", b"%d" % row, BODIES[0], 10 * number)
          for row in range(50)]]
        for number in range(5)
    ]  # fmt: skip
    return written(folder, segments, **options)


def test_only_what_can_match_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = rare(tmp_path / "archive")
    read: list[str] = []
    whole = Archive._segment

    def counted(self: Archive, span: Span) -> Any:
        read.append(span.name)
        return whole(self, span)

    monkeypatch.setattr(Archive, "_segment", counted)
    found = replayed(folder, indexed=True, filter=b"rare", syntax="amqp")
    assert [offset for offset, *_ in found[:-2]] == [120]
    assert read == [spans_of(folder)[2].name]
    read.clear()
    condition = condition_of("n = 7")
    assert len(replayed(folder, indexed=True, filter=b"stock.1", syntax="amqp", condition=condition)) == 7
    assert len(read) == 4
    read.clear()
    assert len(replayed(folder, indexed=True, filter=b"none.such", syntax="amqp")) == 2
    assert read == []


def test_a_time_is_found_without_reading_what_is_earlier(tmp_path: Path) -> None:
    rows: list[Row] = [("stock.A", "amqp", None, BODIES[4], time) for time in [*range(3_000), *range(2_000, 5_000)]]
    folder = written(tmp_path, [[rows[at : at + 100] for at in range(0, len(rows), 100)], []])
    (span,) = spans_of(folder)
    with Archive(folder) as archive:
        rows_of = SegmentRows(folder, archive.id, b"#", "amqp", lambda topic, syntax: True, None)
        for time in (0, 1_023, 2_500, 2_999, 3_000, 4_999, 5_000):
            first = rows_of.first_since(span, time)
            assert all(row[4] < time for row in rows[:first])
            assert archive.offset_at(time, rows_of.first_since) == archive.offset_at(time)
        assert rows_of.first_since(span, 4_900) > 4_000


def test_damage_of_any_byte_gives_no_other_answer(tmp_path: Path) -> None:
    folder = rare(tmp_path)
    place = folder / f"{spans_of(folder)[2].name}.index"
    data = place.read_bytes()
    FrozenRecordIndex(data)
    with capture_logs() as lines:
        for at in range(0, len(data), 7):
            place.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
            assert len(same(folder, "rare", "amqp", None)) == 1, at
            assert len(same(folder, "stock.#", "amqp", "n = 20 AND payload.price = 2.5")) == 4, at
        for size in (0, 7, 40, len(data) // 2, len(data) - 1):
            place.write_bytes(data[:size])
            assert len(same(folder, "rare", "amqp", None)) == 1, size
        place.write_bytes(data + b"\0")
        assert len(same(folder, "rare", "amqp", None)) == 1
        place.write_bytes(data[:8] + b"\x02\0\0\0" + data[12:])
        assert len(same(folder, "rare", "amqp", None)) == 1
    reasons = {line["reason"].split(": ", 1)[-1] for line in lines if line["event"] == "archive_index_ignored"}
    assert {"it has version 2; this is version 1", "its head is damaged"} <= reasons
    assert any("section" in reason and "damaged" in reason for reason in reasons)


def test_numbers_of_an_index_that_knew_other_formats_of_bodies_are_not_asked(tmp_path: Path) -> None:
    body = b'{"price": 5}', None
    segment: list[list[Row]] = [[("stock.A", "amqp", None, body, 0), ("other", "amqp", None, body, 0)] * 10]
    for number, (before, now, expected) in enumerate([
        ("", "stock.#=json", 10), ("stock.#=json", "", 0), ("stock.#=json", "#=json", 20),
        ("stock.#=json", "stock.#=json", 10), ("#=msgpack", "other=json", 10),
    ]):  # fmt: skip
        folder = tmp_path / str(number)
        make = partial(SegmentIndexer, fields_named(FIELDS), topics_share=0, body_formats=before)
        writer = Writer(folder, indexer=make)
        for rows in segment:
            writer.append(batch_of(rows))
        writer.close()
        assert len(list(folder.glob("*.index"))) == 1
        for indexed in (True, False):
            found = replayed(
                folder, indexed=indexed, body_formats=now, filter=b"#", syntax="amqp",
                condition=condition_of("payload.price = 5"),
            )  # fmt: skip
            assert len(found[:-2]) == expected, (before, now, indexed)


def test_damage_is_reported_where_something_can_match_and_only_there(tmp_path: Path) -> None:
    batches: list[list[Row]] = [[(f"t.{number}", "amqp", None, BODIES[4], number)] * 9 for number in range(4)]
    folder = written(tmp_path, [batches, []])
    (span,) = spans_of(folder)
    whole = (folder / span.name).read_bytes()
    with closing(Segment(folder / span.name, 0)) as segment:
        segment.extend(check=True)
        places = segment.places
    for damaged, place in enumerate(places):
        at = place.at + place.size - 20
        (folder / span.name).write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        for asked in range(4):
            found = replayed(folder, indexed=True, filter=b"t.%d" % asked, syntax="amqp")
            if asked == damaged:
                assert "is not what was written there" in str(found[-1])
            else:
                assert len(found[:-2]) == 9
        found = replayed(folder, indexed=True, filter=b"#", syntax="amqp")
        assert "is not what was written there" in str(found[-1])


def test_the_index_of_another_segment_is_not_asked(tmp_path: Path) -> None:
    folder = rare(tmp_path)
    first, _, third, _ = (folder / f"{span.name}.index" for span in spans_of(folder))
    shutil.copy(first, third)
    with capture_logs() as lines:
        assert len(same(folder, "rare", "amqp", None)) == 1
    reasons = [line["reason"] for line in lines if line["event"] == "archive_index_ignored"]
    assert reasons == ["it is of another segment"]


def test_an_index_goes_with_its_segment_and_what_is_left_over_goes_when_the_archive_is_opened(tmp_path: Path) -> None:
    folder = rare(tmp_path)
    names = [span.name for span in spans_of(folder)]
    writer = Writer(folder, indexer=indexer)
    writer.remove_old(since=15)
    assert not any((folder / f"{name}.index").exists() for name in names[:2])
    assert (folder / f"{names[2]}.index").exists()
    writer.close()
    shutil.copy(folder / f"{names[2]}.index", folder / f"{names[0]}.index")  # a crash between the two removals
    (folder / f"{names[3]}.index.new").write_bytes(b"half")  # and one while it was written
    Writer(folder, indexer=indexer).close()
    assert not [name for name in os.listdir(folder) if name.endswith(".new") or name == f"{names[0]}.index"]
    assert len(same(folder, "rare", "amqp", None)) == 1


def test_indexes_count_as_part_of_the_archive_s_size(tmp_path: Path) -> None:
    folder = rare(tmp_path)

    def on_disk() -> int:
        return sum((folder / name).stat().st_size for name in os.listdir(folder) if ".arrows" in name)

    writer = Writer(folder, indexer=indexer)
    assert writer.indexes.size > 0
    assert writer.size == on_disk()
    while writer.catch_up():  # that of the segment that recovery has closed
        pass
    before = on_disk()
    assert writer.size == before
    first = spans_of(folder)[0]
    # Without the index of the first segment, what is left is a byte too much: so it has to count.
    assert writer.remove_old(size=before) == []
    assert [span.first for span in writer.remove_old(size=before - first.size - 1)] == [first.first]
    after = on_disk()
    assert writer.size == after < before - first.size
    writer.append(batch(1_000_000, 3))
    writer.roll()
    assert writer.size == on_disk() > after
    writer.remove_old(size=0)
    assert (writer.size, writer.indexes.size) == (0, 0)
    writer.close()
    assert on_disk() == 0


def test_segments_without_an_index_get_one_step_by_step(tmp_path: Path) -> None:
    folder = rare(tmp_path)
    spans = spans_of(folder)
    made = [(folder / f"{span.name}.index").read_bytes() for span in spans]
    for span in spans:
        (folder / f"{span.name}.index").unlink()
    whole = (folder / spans[1].name).read_bytes()
    (folder / spans[1].name).write_bytes(whole[:-40] + bytes([whole[-40] ^ 0xFF]) + whole[-39:])  # in the last batch
    writer = Writer(folder, indexer=indexer)
    steps = 0
    while writer.catch_up():
        steps += 1
    assert steps >= 8
    again = [folder / f"{span.name}.index" for span in spans]
    assert [path.exists() for path in again] == [True, False, True, True]
    assert [again[at].read_bytes() == made[at] for at in (0, 2, 3)] == [True, True, True]
    assert (writer.indexes.written, writer.indexes.failed) == (4, 1)  # recovery has closed the fifth
    assert "is not what was written there" in str(writer.indexes.error)
    writer.close()
    (folder / spans[1].name).write_bytes(whole)
    assert len(same(folder, "rare", "amqp", None)) == 1


def test_an_index_that_cannot_be_written_is_no_fault_of_the_archive(tmp_path: Path) -> None:
    class NoIndexes(FailingDisk):
        def create(self, name: str) -> Any:
            if name.endswith(".index.new"):
                raise OSError(28, "No space left on device")
            return super().create(name)

    folder = rare(tmp_path, files=NoIndexes(tmp_path))
    assert not [name for name in os.listdir(folder) if ".index" in name]
    assert len(same(folder, "rare", "amqp", None)) == 1


def test_a_machine_that_goes_down_at_any_moment_leaves_no_index_that_is_wrong(tmp_path: Path) -> None:
    disk = Recorder(tmp_path / "archive")
    (tmp_path / "archive").mkdir()
    writer = Writer(tmp_path / "archive", files=disk, boot="one", segment_bytes=5_000, indexer=indexer)
    for number in range(6):
        writer.append(batch(10 * number, 5, payload=100))
        writer.append(batch(10 * number + 5, 5, topic="forex", payload=100))
        if number % 2:
            writer.roll()
    writer.remove_old(since=15_000_000)
    writer.abandon()
    renamed = [number for number, deed in enumerate(disk.deeds) if deed.other.endswith(".index")]
    for deeds in range(renamed[-2] - 8, len(disk.deeds) + 1):
        world = after(disk.deeds[:deeds])
        for data, names in WORLDS:
            where = tmp_path / "left"
            left(world, data, names, where)
            opened = Writer(where, files=Careless(where), boot="two", indexer=indexer)
            opened.append(batch(1_000_000, 3, topic="forex"))
            while opened.catch_up():
                pass
            opened.roll()
            opened.abandon()
            found = same(where, "forex.#", "amqp", "n > 9")
            assert {value for _, topic, value in found if topic == b"forex.0"}, (deeds, data, names)
            same(where, "stock.AAPL.1", "amqp", None)
            shutil.rmtree(where)


def test_a_segment_of_many_topics_has_no_topics_in_its_index(tmp_path: Path) -> None:
    rows: list[Row] = [(f"t.{number}", "amqp", None, BODIES[4], number) for number in range(2_000)]
    writer = Writer(tmp_path, indexer=SegmentIndexer, compression="lz4", files=Disk(tmp_path))
    writer.append(batch_of(rows))
    writer.close()
    (span,) = spans_of(tmp_path)
    place = tmp_path / f"{span.name}.index"
    assert place.stat().st_size * 10 < span.size
    assert FrozenRecordIndex(place.read_bytes()).attributes == ()
    assert len(same(tmp_path, "t.77", "amqp", None)) == 1
