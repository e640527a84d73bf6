"""The source `fanlight`, read at once: options, columns, partitions, and what is pushed down to the archive."""

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, SCHEMA, Writer
from tests.archive.messages import batch
from tests.pipeline.conftest import fill


def read(spark: Any, folder: Path, **options: object) -> Any:
    return spark.read.format("fanlight").options(**options).load(str(folder))


def offsets(frame: Any) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def planned(frame: Any) -> str:
    """What Spark is going to do, as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_every_message_is_read_once_with_all_its_columns(spark: Any, folder: Path) -> None:
    rows = {row.offset: row for row in read(spark, folder).collect()}
    assert sorted(rows) == list(range(1000))
    assert list(rows[7].asDict()) == SCHEMA.names
    row = rows[7]
    assert (row.topic, bytes(row.value), row.client, row.protocol, row.syntax) == (
        "stock.AAPL.1", b"%020d" % 7, "publisher", "native", "amqp",
    )  # fmt: skip
    assert (row.qos, row.retain, row.content_type, row.correlation) == (0, False, None, None)
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("n", b"7")]
    assert rows[8].headers is None


def test_times_are_those_that_the_broker_wrote(spark: Any, folder: Path) -> None:
    found = read(spark, folder).selectExpr("offset", "unix_micros(timestamp) AS at").collect()
    assert all(row.at == row.offset * 1_000_000 for row in found)


def test_the_columns_have_the_types_that_docs_pipeline_names(spark: Any, folder: Path) -> None:
    assert read(spark, folder).dtypes == [
        ("offset", "bigint"), ("timestamp", "timestamp"), ("topic", "string"), ("value", "binary"),
        ("headers", "array<struct<key:string,value:binary>>"), ("client", "string"), ("protocol", "string"),
        ("syntax", "string"), ("qos", "tinyint"), ("retain", "boolean"), ("content_type", "string"),
        ("reply_topic", "string"), ("correlation", "binary"),
    ]  # fmt: skip


def test_a_narrower_schema_reads_only_its_columns(spark: Any, folder: Path) -> None:
    frame = spark.read.format("fanlight").schema("topic STRING, offset BIGINT").load(str(folder))
    assert frame.columns == ["topic", "offset"]
    assert offsets(frame) == list(range(1000))


def test_a_column_that_no_archive_has_is_refused(spark: Any, folder: Path) -> None:
    frame = spark.read.format("fanlight").schema("topics STRING").load(str(folder))
    with pytest.raises(Exception, match="topics is no column of an archive"):
        frame.collect()


def test_work_is_divided_between_batches(spark: Any, folder: Path) -> None:
    frame = read(spark, folder, maxRecordsPerPartition=250)
    parts = frame.selectExpr("spark_partition_id() AS part", "offset").groupBy("part").count().collect()
    assert sorted(row["count"] for row in parts) == [100, 300, 300, 300]
    assert offsets(frame) == list(range(1000))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": 250}, range(250, 1000)),
        ({"startingOffsets": 250, "endingOffsets": 251}, range(250, 251)),
        ({"endingOffsets": '{"epoch": 1, "offset": 90}'}, range(90)),
        ({"startingOffsets": "latest"}, range(0)),
        ({"startingTimestamp": "1970-01-01T00:16:00+00:00"}, range(960, 1000)),
        ({"startingTimestamp": 990_000}, range(990, 1000)),
        ({"startingTimestamp": 890_000, "endingTimestamp": "1970-01-01T00:15:00Z"}, range(890, 900)),
    ],
    ids=str,
)
def test_options_say_where_to_begin_and_to_end(
    spark: Any, folder: Path, options: dict[str, object], expected: range
) -> None:
    assert offsets(read(spark, folder, **options)) == list(expected)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"startingOffset": 1}, "no option of the source fanlight: startingoffset"),
        ({"startingOffsets": "yesterday"}, "give earliest, latest, an offset or a position"),
        ({"startingTimestamp": "2026-11-21T20:00:00"}, "has no time zone"),
        ({"startingTimestamp": 5, "startingOffsets": 5}, "two beginnings"),
        ({"startingOffsets": "true"}, "give earliest, latest, an offset"),
        ({"startingOffsets": 999_999_999}, "startingOffsets=999999999: the archive has offsets from 0 to before 1000"),
        ({"endingOffsets": 1_001}, "endingOffsets=1001: the archive has offsets from 0 to before 1000"),
        ({"startingTimestamp": 20260101}, "that is 1970-01-01T05:37:40Z, and looks like a date"),
        ({"endingTimestamp": 1_767_225_600}, "looks like seconds"),
        ({"user": "ann"}, "user: of a broker"),
        ({"filter": "a.#.", "syntax": "mqtt", "maxRecordsPerPartition": 0}, "'#' must"),
        ({"maxRecordsPerPartition": 0}, "1 or more"),
        ({"maxOffsetsPerTrigger": 5}, "for streams"),
        ({"failOnDataLoss": "maybe"}, "give true or false"),
        ({"startingOffsets": 5000}, "the archive has offsets from 0 to before 1000"),
    ],
    ids=str,
)
def test_an_option_that_makes_no_sense_is_refused(
    spark: Any, folder: Path, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(Exception, match=complaint):
        read(spark, folder, **options).collect()


def test_a_filter_selects_topics_as_a_subscription_does_in_either_syntax(spark: Any, tmp_path: Path) -> None:
    """docs/topics.md: a filter of one spelling matches topics of the other, and reserved names hide from wildcards."""
    rows = batch(0, 6).to_pydict()
    rows["topic"] = ["a.b", "a/b", "a/b", "$SYS/a", "$inbox.7", "c"]
    rows["syntax"] = ["amqp", "mqtt", "amqp", "mqtt", "amqp", "amqp"]
    writer = Writer(tmp_path / "archive")
    writer.append(pa.RecordBatch.from_pydict(rows, schema=MESSAGE))
    writer.close()
    expected = {"a.#": [0, 1], "#": [0, 1, 2, 5], "$SYS.#": [3], "$inbox.*": [4], "*": [2, 5]}
    for text, found in expected.items():
        assert offsets(read(spark, tmp_path / "archive", filter=text)) == found, text
    assert offsets(read(spark, tmp_path / "archive", filter="a/+", syntax="mqtt")) == [0, 1]


TEN_PAST = "TIMESTAMP '1970-01-01 00:10:00'"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("topic = 'stock.AAPL.1'", range(1, 1000, 3)),
        ("topic IN ('stock.AAPL.1', 'x')", range(1, 1000, 3)),
        ("topic LIKE 'stock.%' AND topic LIKE '%.2'", range(2, 1000, 3)),
        ("topic LIKE '%AAPL.0%'", range(0, 1000, 3)),
        (f"timestamp >= {TEN_PAST} AND timestamp < {TEN_PAST} + INTERVAL 5 SECONDS", range(600, 605)),
        (f"timestamp > {TEN_PAST} AND timestamp <= {TEN_PAST} + INTERVAL 5 SECONDS", range(601, 606)),
        (f"timestamp = {TEN_PAST}", range(600, 601)),
        ("offset > 500 AND offset <= 503", range(501, 504)),
        ("offset = 500", range(500, 501)),
    ],
    ids=str,
)
def test_conditions_on_topic_time_and_offset_go_to_the_archive(
    spark: Any, folder: Path, condition: str, expected: range
) -> None:
    """Spark does not check them again: its plan has no filter left."""
    frame = read(spark, folder, pushdown="true").where(condition)
    assert "Filter " not in planned(frame)
    assert offsets(frame) == list(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("topic != 'stock.AAPL.1' AND offset < 4", [0, 2, 3]),
        ("length(topic) > 3 AND client = 'publisher' AND offset < 2", [0, 1]),
        ("(offset = 3 OR offset = 5)", [3, 5]),
        ("topic <=> 'stock.AAPL.1' AND offset < 3", [1]),
    ],
)
def test_what_the_archive_cannot_say_exactly_stays_with_spark(
    spark: Any, folder: Path, condition: str, expected: list[int]
) -> None:
    frame = read(spark, folder, pushdown="true").where(condition)
    assert "Filter " in planned(frame)
    assert offsets(frame) == expected


def test_segments_of_another_time_are_not_opened(spark: Any, folder: Path) -> None:
    """The second segment has messages 400 to 799; with its last batch spoilt, only who needs that fails."""
    path = folder / "00000000000000000400.arrows"
    path.write_bytes(path.read_bytes()[:-100])

    def pushing(condition: str) -> Any:
        return read(spark, folder, pushdown="true").where(condition)

    assert offsets(pushing("timestamp < TIMESTAMP '1970-01-01 00:00:10'")) == list(range(10))
    assert offsets(pushing("offset >= 800")) == list(range(800, 1000))
    assert offsets(read(spark, folder, endingTimestamp=10_000)) == list(range(10))
    assert offsets(pushing("offset < 500")) == list(range(500))
    with pytest.raises(Exception, match="messages 700 to 799 are damaged"):
        pushing("offset < 800").collect()


def test_queries_of_one_data_frame_do_not_see_each_others_conditions(spark: Any, folder: Path) -> None:
    """Spark would show the second what it has planned for the first, if conditions were taken over unasked."""
    frame = read(spark, folder)
    assert frame.where("offset < 500").count() == 500
    assert frame.count() == 1000
    assert frame.where("offset < 10").union(frame.where("offset < 100")).count() == 110
    assert frame.where("offset < 10").join(frame.where("topic LIKE '%.2'").select("offset"), "offset").count() == 3


def test_what_retention_removes_is_an_error_unless_loss_is_allowed(spark: Any, folder: Path) -> None:
    writer = Writer(folder)
    writer.remove_old(since=400 * 1_000_000)
    writer.close()
    assert offsets(read(spark, folder)) == list(range(400, 1000))
    with pytest.raises(Exception, match="messages 100 to 399 are gone: retention"):
        read(spark, folder, startingOffsets=100).collect()
    assert offsets(read(spark, folder, startingOffsets=100, failOnDataLoss="false")) == list(range(400, 1000))


def test_a_read_sees_what_a_writer_has_written_when_it_is_planned(spark: Any, folder: Path) -> None:
    frame = read(spark, folder)
    fill(folder, 1000, 50)
    assert frame.count() == 1050
