"""`filter` and `where` of the source: the indexes of an archive change what is read, and not what is found."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive, Writer
from fanlight_archive.manifest import Span
from fanlight_archive.segment import Place, Segment
from fanlight_broker.storage.archive_index import SegmentIndexer, fields_named
from matchcore.kleene import Untyped, holds
from matchcore.where import parse_where
from tests.broker.storage.test_archive_index import BODIES, Row, batch_of

ROOT = Path(__file__).parents[2]
SIZE, SEGMENTS = 50, 4
WHERES = [
    "n > 145", "payload.price = 120", "n = 7 OR payload.price >= 100", "n IS NULL", "NOT n < 150",
    "n = 3 AND $bytes > 10", "$word[1] = 'rare'", "payload.price > 1000", "$time >= 0.00015", "n = 'x'",
]  # fmt: skip
FILTERS: list[dict[str, Any]] = [
    {}, {"filter": "rare"}, {"filter": "stock.1"}, {"filter": "#"}, {"filter": "stock/+", "syntax": "mqtt"},
    {"filter": "none.such"}, {"filter": "$inbox.x"},
]  # fmt: skip


def rows_of(number: int) -> list[Row]:
    """Of one segment: numbers that rise, one message of each of some rare kinds in the third segment."""
    rows: list[Row] = []
    for row in range(SIZE):
        at = number * SIZE + row
        topic = "rare" if at == 120 else "$inbox.x" if at == 121 else f"stock.{row % 3}"
        header = None if at == 122 else b"\xff" if at == 123 else b"%d" % at
        body = BODIES[1] if at == 140 else BODIES[row % len(BODIES)] if row % 5 else BODIES[0]
        rows.append((topic, "mqtt" if row % 7 == 1 else "amqp", header, body, at))
    return rows


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """An archive of closed segments with indexes, and an open one."""
    folder = tmp_path / "archive"
    writer = Writer(folder, indexer=lambda: SegmentIndexer(fields_named("n, payload.price"), topics_share=0))
    for number in range(SEGMENTS + 1):
        rows = rows_of(number)
        for first, end in pairwise(range(0, SIZE + 1, 10)):
            writer.append(batch_of(rows[first:end]))
        if number < SEGMENTS:
            writer.roll()
    writer.sync()
    writer.abandon()
    assert len(list(folder.glob("*.index"))) == SEGMENTS
    return folder


def without(folder: Path) -> Path:
    for path in folder.glob("*.index"):
        path.unlink()
    return folder


Settings = Callable[..., Any]


@pytest.fixture
def settings() -> Settings:
    """The source's own objects, without a Spark: what its tasks do."""
    from tests import require

    require.spark()
    from fanlight_spark.source import COLUMNS, SourceSettings

    return lambda folder, **options: SourceSettings.of({"path": str(folder), **options}, COLUMNS)


def found(settings: Any) -> list[int]:
    """The offsets that a batch query finds, through its partitions."""
    from fanlight_spark.source import BatchReader

    reader = BatchReader(settings)
    return [
        offset
        for part in reader.partitions()
        for batch in reader.read(part)
        for offset in batch.column(0).to_pylist()
    ]


def expected(where: str) -> set[int]:
    """By the definition of selectors, of what lies in headers: the oracle of a few."""
    tree = parse_where(where)
    return {
        number * SIZE + row
        for number in range(SEGMENTS + 1)
        for row, (_, _, header, _, _) in enumerate(rows_of(number))
        if holds(tree, {"n": _value(header)} if header is not None else {}) is True
    }


def _value(header: bytes) -> object:
    return header if header == b"\xff" else Untyped(header.decode())


@pytest.mark.parametrize("where", [None, *WHERES])
@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_the_same_is_found_with_indexes_and_without(
    indexed: Path, settings: Settings, filter: dict[str, str], where: str | None
) -> None:
    options = filter | ({} if where is None else {"where": where})
    with_indexes = [found(settings(indexed, **options, maxRecordsPerPartition=size)) for size in ("10", "120", "9999")]
    plain = found(settings(without(indexed), **options))
    assert with_indexes == [plain] * 3
    if filter == {} and where in ("n > 145", "n IS NULL", "NOT n < 150", "n = 'x'"):
        assert set(plain) == expected(where)
    if (filter, where) == ({"filter": "rare"}, None):
        assert plain == [120]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first offsets of the batches that were read."""
    places: list[int] = []
    whole = Segment.batch

    def counted(self: Segment, place: Place) -> Any:
        places.append(place.first)
        return whole(self, place)

    monkeypatch.setattr(Segment, "batch", counted)
    return places


def test_only_batches_in_which_something_can_match_are_read(
    indexed: Path, settings: Settings, read: list[int]
) -> None:
    open_segment = list(range(SEGMENTS * SIZE, (SEGMENTS + 1) * SIZE, 10))  # has no index yet
    assert found(settings(indexed, filter="rare")) == [120]
    assert read == [120, *open_segment]
    read.clear()
    assert found(settings(indexed, where="payload.price = 120 AND n = 140", filter="stock.#")) == [140]
    assert read == [140, *open_segment]
    read.clear()
    assert found(settings(indexed, where="n BETWEEN 12 AND 13")) == [12, 13]
    assert read == [10, *open_segment]
    read.clear()
    assert found(settings(indexed, filter="#")) == sorted({*range((SEGMENTS + 1) * SIZE)} - {121})
    assert len(read) == (SEGMENTS + 1) * SIZE // 10


def test_a_filter_holds_beside_conditions_that_are_pushed_down(indexed: Path, settings: Settings) -> None:
    from pyspark.sql.datasource import StringStartsWith

    from fanlight_spark.source import PushingReader

    reader = PushingReader(settings(indexed, pushdown="true", filter="*.1", where="n < 10"))
    assert list(reader.pushFilters([StringStartsWith(("topic",), "stock.")])) == []
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [offset for batch in batches for offset in batch.column(0).to_pylist()] == [4, 7]


def test_no_task_is_planned_for_what_cannot_match(indexed: Path, settings: Settings) -> None:
    from fanlight_spark.source import BatchReader, Part

    def planned(**options: str) -> list[tuple[int, int]]:
        parts = BatchReader(settings(indexed, maxRecordsPerPartition="10", **options)).partitions()
        return [(part.start.offset, part.end.offset) for part in parts if isinstance(part, Part)]

    tail = [(first, first + 10) for first in range(SEGMENTS * SIZE, (SEGMENTS + 1) * SIZE, 10)]
    assert planned(filter="rare") == [(120, 130), *tail]
    assert planned(where="n = 41 OR n = 99") == [(40, 50), (90, 100), *tail]
    assert len(planned()) == (SEGMENTS + 1) * SIZE // 10


def test_an_index_that_is_damaged_or_of_another_segment_is_not_asked(
    indexed: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    spans: list[Span] = Archive(indexed).spans
    places = [indexed / f"{span.name}.index" for span in spans]
    data = places[2].read_bytes()
    for bad in (places[0].read_bytes(), data[:-1] + bytes([data[-1] ^ 1]), data[: len(data) // 2], b""):
        places[2].write_bytes(bad)
        caplog.clear()
        assert found(settings(indexed, filter="rare")) == [120]
        assert f"the index of {spans[2].name} is not asked" in caplog.text
    places[2].unlink()
    caplog.clear()
    assert found(settings(indexed, filter="rare")) == [120]
    assert caplog.text == ""


def test_a_selector_that_cannot_be_read_is_refused(indexed: Path, settings: Settings) -> None:
    with pytest.raises(ValueError, match="n >"):
        settings(indexed, where="n >")


# ---- with Spark ------------------------------------------------------------------------------------------------------


def offsets(frame: Any) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def test_a_batch_query_finds_what_the_rows_say(spark: Any, indexed: Path) -> None:
    reader = spark.read.format("fanlight")
    assert offsets(reader.option("filter", "stock.#").option("where", "n > 145 AND n < 155").load(str(indexed))) == [
        *range(146, 155)
    ]
    assert offsets(spark.read.format("fanlight").option("where", "payload.price = 120").load(str(indexed))) == sorted(
        found_by_hand()
    )


def found_by_hand() -> Iterator[int]:
    for number in range(SEGMENTS + 1):
        for row, (_, _, _, body, _) in enumerate(rows_of(number)):
            if body == BODIES[1]:
                yield number * SIZE + row


def test_the_example_of_the_docs(spark: Any, indexed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    part = page[page.index("**Read only what can match.**") :]
    code = part[part.index("```python\n") + 10 :]
    code = code[: code.index("```")].replace("/var/lib/fanlight/archive", str(indexed))
    code = code.replace("close > 500 AND volume > 1000000", "n > 145 AND n < 149")
    exec(compile(code, "docs/pipeline.md", "exec"), {})
    # local_session gives the session that there is.
    lines = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if "stock" in line]
    assert sorted((topic.strip(), int(count)) for topic, count in lines) == [
        ("stock.0", 1), ("stock.1", 1), ("stock.2", 1),
    ]  # fmt: skip


def test_conditions_that_spark_has_pushed_down_ask_the_indexes_too(
    spark: Any, indexed: Path, settings: Settings, read: list[int]
) -> None:
    from pyspark.sql.datasource import EqualTo

    from fanlight_spark.source import PushingReader

    frame = spark.read.format("fanlight").option("pushdown", True).load(str(indexed))
    assert offsets(frame.where("topic = 'rare'")) == [120]
    reader = PushingReader(settings(indexed, pushdown="true"))
    assert list(reader.pushFilters([EqualTo(("topic",), "rare")])) == []
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [batch.column(0).to_pylist() for batch in batches] == [[120]]
    assert read == [120, *range(SEGMENTS * SIZE, (SEGMENTS + 1) * SIZE, 10)]


@pytest.mark.parametrize("options", [{"filter": "rare"}, {"where": "n > 95 AND n < 125"}], ids=str)
def test_a_stream_finds_the_same(spark: Any, indexed: Path, tmp_path: Path, options: dict[str, str]) -> None:
    stream = (
        spark.readStream.format("fanlight").options(startingOffsets="earliest", maxOffsetsPerTrigger=90, **options)
        .load(str(indexed))
    )  # fmt: skip
    out = tmp_path / "out"
    query = (
        stream.select("offset").writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "at"))
        .trigger(availableNow=True).start(str(out))
    )  # fmt: skip
    query.awaitTermination()
    plain = offsets(spark.read.format("fanlight").options(**options).load(str(without(indexed))))
    assert offsets(spark.read.parquet(str(out))) == plain
    assert plain
