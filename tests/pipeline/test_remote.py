"""The source over `url`: what a broker replays is what its archive's folder has (docs/native-protocol.md, 3.7)."""

import signal
from pathlib import Path
from typing import Any

import pytest

import fanlight.sync
from fanlight_archive import Archive, ArchiveError, Gone
from tests import require
from tests.conftest import StartBroker
from tests.pipeline.conftest import fill
from tests.pipeline.test_stream import Query

TOLD = [
    "offset", "timestamp", "topic", "value", "headers", "syntax", "content_type", "reply_topic", "correlation",
]  # fmt: skip


def remote(url: str, filter: str = "#", rows: int = 100, timeout: str = "60") -> Any:
    """What a task or a driver reads with."""
    require.spark()
    from fanlight_spark.broker import Address
    from fanlight_spark.remote import Remote

    return Remote(Address.of({"url": url, "timeout": timeout}), filter, "amqp", rows)


def offsets(batches: Any) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_what_a_broker_replays_is_what_its_folder_has(spark: Any, start_broker: StartBroker, folder: Path) -> None:
    broker = start_broker(archive=folder)
    with fanlight.sync.connect(broker.url) as client:
        headers = {"content-type": "text/plain", "correlation-id": b"\xff", "a": ["1", "2"], "b": b"\xff"}
        client.publish("rich", b"", headers=headers, reply="answers")
        client.publish("rich", b"", headers={"content-type": b"\xff"})  # no text, so no field of its own
        client.publish("rich/one", b"text", syntax="mqtt", headers={"nothing": None}, receipt=True)
        assert len(offsets(remote(broker.url).read(1000, 1003))) == 3  # all that was published is written
    here = spark.read.format("fanlight").load(str(folder)).select(*TOLD).collect()
    there = spark.read.format("fanlight").options(url=broker.url, maxRecordsPerPartition=300).load()
    assert there.columns == TOLD
    assert there.rdd.getNumPartitions() == 4
    assert sorted(there.collect()) == sorted(here)
    assert len(here) == 1003


def test_conditions_and_the_filter_leave_out_rows(spark: Any, start_broker: StartBroker, folder: Path) -> None:
    broker = start_broker(archive=folder)
    frame = spark.read.format("fanlight").options(url=broker.url, filter="stock.*.2", endingOffsets=900, pushdown=True)
    frame = frame.load()
    frame = frame.where("offset >= 100 AND timestamp >= timestamp_seconds(200) AND timestamp < timestamp_seconds(300)")
    assert sorted(row.offset for row in frame.where("topic LIKE 'stock.%'").collect()) == list(range(200, 300, 3))


def test_the_broker_asks_a_selector(spark: Any, start_broker: StartBroker, folder: Path) -> None:
    broker = start_broker(archive=folder)
    for options in ({"url": broker.url}, {"path": str(folder)}):
        frame = spark.read.format("fanlight").options(**options, filter="stock.*.2", where="n < 20 OR n > 990").load()
        expected = [*range(5, 20, 6), *range(995, 1000, 6)]
        assert sorted(row.offset for row in frame.select("offset").collect()) == expected
    with pytest.raises(Exception, match="n >"):
        spark.read.format("fanlight").options(url=broker.url, where="n >").load().collect()


def test_more_tasks_than_may_read_at_once_wait_for_their_turn(
    spark: Any, start_broker: StartBroker, folder: Path
) -> None:
    broker = start_broker(archive=folder, archive_replays_max=1)
    frame = spark.read.format("fanlight").options(url=broker.url, maxRecordsPerPartition=250).load()
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(1000))


def test_a_query_goes_on_over_url_where_it_was_in_the_folder(
    spark: Any, start_broker: StartBroker, folder: Path, tmp_path: Path
) -> None:
    """A checkpoint is the archive's, whichever way that is read."""
    query = Query(spark, folder, tmp_path)
    assert query.run() == [(0, 1000)]
    fill(folder, 1000, 500)
    broker = start_broker(archive=folder)
    query.options.update(url=broker.url, maxOffsetsPerTrigger=300)
    assert query.run() == [(1000, 1300), (1300, 1500)]
    assert query.offsets() == list(range(1500))
    with Archive(folder) as here:
        whole = here.size_between(0, 1500)
    assert query.lags == [(200, round(whole * 200 / 1500)), (0, 0)]
    with remote(broker.url) as there:
        assert (there.oldest_end, there.size_between(0, 1500)) == (400, whole)
        assert there.offset_after(100, 1500, whole // 3) == 100 + whole // 3 * 1400 // there.size_between(100, 1500)


@pytest.mark.parametrize(
    ("options", "schema", "text"),
    [
        ({}, "offset BIGINT", "needs one of the options path and url"),
        ({"url": "fanlight://localhost", "path": "/tmp"}, "offset BIGINT", "needs one of the options path and url"),
        ({"url": "fanlight://localhost"}, "client STRING", "a broker does not send client"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, str], schema: str, text: str) -> None:
    require.spark()
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from fanlight_spark.source import SourceSettings

    name, kind = schema.split(" ")
    field = StructField(name, LongType() if kind == "BIGINT" else StringType())
    with pytest.raises(ValueError, match=text):
        SourceSettings.of(options, StructType([field]))


def test_positions_that_are_gone_are_told_from_those_that_are_there(start_broker: StartBroker, folder: Path) -> None:
    broker = start_broker(archive=folder)
    with remote(broker.url) as archive:
        assert (archive.start, archive.end, archive.epoch) == (0, 1000, 1)
        archive.check(1, 1000)
        with pytest.raises(Gone, match="messages 1000 to 1000 are gone"):
            archive.check(1, 1001)
        with pytest.raises(ArchiveError, match="epoch 7"):
            archive.check(7, 3)
        assert [archive.offset_at(time) for time in (-1, 500_000_000, 499_999_999, 2**62, 2**64)] == [
            0, 500, 500, 1000, 1000,
        ]  # fmt: skip


def test_a_reader_goes_on_where_it_was_when_the_broker_is_killed_and_starts_again(
    start_broker: StartBroker, folder: Path
) -> None:
    fill(folder, 1000, 40_000, size=1000)
    broker = start_broker(archive=folder)
    with remote(broker.url) as archive:
        batches = archive.read(0, archive.end)
        found = offsets([next(batches)])
        assert len(found) < 20_000  # the broker has not sent all of it: the SDK takes a part at a time
        broker.process.send_signal(signal.SIGKILL)
        broker.wait()
        start_broker(archive=folder, native_port=broker.port)
        assert found + offsets(batches) == list(range(41_000))


def test_a_broker_without_an_archive_says_so(start_broker: StartBroker) -> None:
    broker = start_broker()
    with pytest.raises(fanlight.Unsupported, match="keeps no archive"):
        remote(broker.url)
