"""The sink `fanlight`: what a row becomes, what is refused, and that every row has its receipt before a task ends."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

import fanlight.sync
from fanlight_archive import Archive
from tests import require
from tests.conftest import StartBroker, TestBroker

HEADERS = "array<struct<key:string,value:binary>>"


def settings(options: dict[str, Any], columns: str = "topic string, value binary", *, overwrite: bool = False) -> Any:
    """The sink's options, read for columns such as `topic string`, without a JVM."""
    require.spark()
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructField, StructType, TimestampType

    from fanlight_spark.sink import SinkSettings

    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    kinds = {
        "string": StringType(), "binary": BinaryType(), "timestamp": TimestampType(), HEADERS: ArrayType(header),
        "map<string,string>": MapType(StringType(), StringType()),
    }  # fmt: skip
    named = [column.strip().split(" ") for column in columns.split(", ")]
    schema = StructType([StructField(name, kinds[kind]) for name, kind in named])
    given = {"url": "fanlight://127.0.0.1:1", **{name: str(value) for name, value in options.items()}}
    return SinkSettings.of(given, schema, overwrite)


def publish(options: dict[str, Any], batches: Iterator[Any], *, producer: str | None = None) -> tuple[int, int]:
    """What a task does with its partition: rows, and those that the broker had taken before."""
    from fanlight_spark.publishing import Marking
    from fanlight_spark.sink import publish

    done = publish(settings(options), batches, "test", None if producer is None else Marking(producer, 0))
    return done.rows, done.repeated


def numbered(first: int, rows: int) -> Any:
    """A batch of rows whose values are numbers."""
    return pa.record_batch(
        {"topic": ["sink.test"] * rows, "value": [b"%d" % number for number in range(first, first + rows)]}
    )


def values(folder: Path) -> list[int]:
    with Archive(folder) as archive:
        return [int(value) for batch in archive.read() for value in batch.column("value").to_pylist()]


def test_rows_arrive_with_all_that_they_say_and_in_the_order_of_their_partition(spark: Any, broker: TestBroker) -> None:
    with fanlight.sync.connect(broker.url) as client, client.subscribe("#") as messages:
        frame = spark.range(0, 20, 1, 2).selectExpr(
            "concat('stock/', if(id < 10, 'A', 'B')) AS topic", "string(id) AS value", "'mqtt' AS syntax",
            "if(id % 2 = 0, map('n', string(id), 'text', 'yes'), null) AS headers",
            "'text/plain' AS content_type", "'answers/here' AS reply_topic", "X'ff00' AS correlation",
        )  # fmt: skip
        frame.write.format("fanlight").option("url", broker.url).mode("append").save()
        found = [messages.next(timeout=60) for _ in range(20)]
        for name, expected in (("stock/A", range(10)), ("stock/B", range(10, 20))):
            assert [int(message.payload) for message in found if message.topic == name] == list(expected)
        always = {"content-type": "text/plain", "correlation-id": b"\xff\x00"}
        for message in found:
            number = int(message.payload)
            own = {"n": str(number), "text": "yes"} if number % 2 == 0 else {}
            assert (message.syntax, message.reply, message.headers) == ("mqtt", "answers/here", {**own, **always})


def test_headers_of_the_archive_s_form_keep_several_of_a_name() -> None:
    given = [{"key": "a", "value": b"1"}, {"key": "b", "value": b"\xff"}, {"key": "a", "value": None}]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch({"topic": ["t"], "value": ["v"], "headers": pa.array([given], kind)})
    rows = settings({}, f"topic string, value string, headers {HEADERS}").rows
    assert [message.headers for message in rows.messages(batch)] == [{"a": ["1", None], "b": b"\xff"}]


def test_the_option_topic_is_for_all_rows() -> None:
    rows = settings({"topic": "one/for/all", "syntax": "mqtt"}, "value string").rows
    (message,) = rows.messages(pa.record_batch({"value": ["v"]}))
    assert message == ("one/for/all", b"v", None, 1, None)


@pytest.mark.parametrize(
    ("options", "columns", "text"),
    [
        ({}, "topic string", "column value is missing"),
        ({}, "value binary", "Give a column topic, or the option topic"),
        ({}, "topic string, value timestamp", "column value is timestamp, and is to be binary or string: cast it"),
        ({}, "topic string, value binary, timestamp timestamp", "no timestamp for a publisher to say: select from"),
        ({}, "topic string, value binary, headers string", r"is to be array<struct"),
        ({"topics": "t"}, "value binary", "no option of the sink fanlight: topics; it has"),
        ({"syntax": "nats"}, "topic string, value binary", "syntax='nats': give amqp or mqtt"),
        ({"timeout": "soon"}, "topic string, value binary", "timeout='soon': give seconds"),
        ({"marks": "true"}, "topic string, value binary", "marks of a batch need the option producer"),
        ({"marks": "false", "producer": "p"}, "topic string, value binary", "leave it out, or leave out marks=false"),
        ({"producer": "p" * 241}, "topic string, value binary", "give a name of 1 to 240 bytes"),
        ({"maxUnacknowledged": 0}, "topic string, value binary", "maxUnacknowledged='0': give a number"),
        ({"url": "mqtt://127.0.0.1"}, "topic string, value binary", "this client speaks the native protocol, as in fanlight://"),
    ],
)
def test_what_cannot_be_published_is_said_before_anything_is(options: dict[str, Any], columns: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        settings(options, columns)


def test_what_is_published_cannot_be_overwritten() -> None:
    with pytest.raises(ValueError, match="use the mode append"):
        settings({}, overwrite=True)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"topic": ["t", "t"], "value": [b"", None]}, "row 11 of the partition: value is null; leave such rows out"),
        ({"topic": ["t", None], "value": [b"", b""]}, "row 11 of the partition: topic is null"),
        ({"topic": ["t", "t"], "value": [b"", b""], "syntax": ["mqtt", "nats"]}, "row 11 .* syntax is 'nats'"),
    ],
)
def test_a_row_that_is_no_message_is_an_error_that_names_it(row: dict[str, Any], text: str) -> None:
    rows = settings({}, "topic string, value binary, syntax string").rows
    with pytest.raises(ValueError, match=text):
        list(rows.messages(pa.record_batch(row), 10))


def test_what_the_broker_refuses_fails_the_task_and_names_the_row(broker: TestBroker) -> None:
    batch = pa.record_batch({"topic": ["a", "b", "$SYS.c", "d"], "value": [b""] * 4})
    with pytest.raises(Exception, match=r"row 2 of the partition, to '\$SYS.c', was refused"):
        publish({"url": broker.url}, iter([batch]))


def test_a_broker_that_is_not_there_fails_the_task_in_bounded_time(broker: TestBroker) -> None:
    broker.terminate()
    with pytest.raises(fanlight.RequestTimeout, match=r"no connection to .* within 0.3 s \(option timeout\)"):
        publish({"url": broker.url, "timeout": 0.3}, iter([]))


@pytest.mark.parametrize(("killed_at", "marked"), [(3_000, True), (20_000, False)])
def test_a_broker_that_is_killed_and_starts_again_has_every_row(
    start_broker: StartBroker, tmp_path: Path, killed_at: int, marked: bool
) -> None:
    """kill -9 with a window of receipts outstanding, which wait for the archive. With marks: every row once."""
    brokers = [start_broker(archive=tmp_path, archive_receipts=True)]
    port = brokers[0].port

    def batches() -> Iterator[Any]:
        for first in range(0, 20_000, 1_000):
            yield numbered(first, 1_000)
            if first + 1_000 == killed_at:
                brokers[0].process.send_signal(signal.SIGKILL)
                brokers[0].wait()
                brokers.append(start_broker(archive=tmp_path, archive_receipts=True, native_port=port))

    options = {"url": brokers[0].url, "maxUnacknowledged": 5_000}
    rows, _ = publish(options, batches(), producer="test" if marked else None)
    assert (rows, len(brokers)) == (20_000, 2)
    found = values(tmp_path)
    assert found == list(range(20_000)) if marked else set(found) == set(range(20_000))


def test_a_write_that_is_repeated_with_its_producer_s_name_publishes_the_rest(broker: TestBroker) -> None:
    with fanlight.sync.connect(broker.url) as client, client.subscribe("#") as messages:
        found: list[int] = []

        def read(count: int) -> None:
            found.extend(int(messages.next(timeout=60).payload) for _ in range(count))

        def fails() -> Iterator[Any]:
            yield numbered(0, 700)
            read(700)  # the broker has taken them all: a connection that closes earlier may lose those on their way
            raise OSError("upstream")

        with pytest.raises(OSError, match="upstream"):
            publish({"url": broker.url}, fails(), producer="nightly")
        assert publish({"url": broker.url}, iter([numbered(0, 1_000)]), producer="nightly") == (1_000, 700)
        assert publish({"url": broker.url}, iter([numbered(0, 1_000)]), producer="nightly") == (1_000, 1_000)
        read(300)
        assert found == list(range(1_000))
        assert messages.pending == (0, 0)


def test_a_row_that_was_refused_is_published_when_its_cause_is_gone(broker: TestBroker) -> None:
    """What was on its way behind it has not been taken: the producer's mark is below the row."""
    topics = ["a", "b", "$SYS.c", *["d"] * 500]
    batch = pa.record_batch({"topic": topics, "value": [b"%d" % number for number in range(503)]})
    with fanlight.sync.connect(broker.url) as client, client.subscribe("#") as messages:
        with pytest.raises(Exception, match="row 2 of the partition"):
            publish({"url": broker.url}, iter([batch]), producer="p")
        batch = batch.set_column(0, "topic", pa.array(["a", "b", "c", *["d"] * 500]))
        assert publish({"url": broker.url}, iter([batch]), producer="p") == (503, 2)
        assert [int(messages.next(timeout=60).payload) for _ in range(503)] == list(range(503))


def test_two_attempts_at_a_time_publish_each_row_once(broker: TestBroker) -> None:
    """As a speculative task does, or one that Spark has given up and that goes on."""
    with fanlight.sync.connect(broker.url) as client, client.subscribe("#") as messages, ThreadPoolExecutor(2) as both:
        batches = [numbered(first, 100) for first in range(0, 5_000, 100)]
        running = [both.submit(publish, {"url": broker.url}, iter(batches), producer="twice") for _ in range(2)]
        assert sum(attempt.result()[1] for attempt in running) == 5_000
        assert [int(messages.next(timeout=60).payload) for _ in range(5_000)] == list(range(5_000))
