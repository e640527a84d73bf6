"""The sink `fanlight`: publishes the rows of a DataFrame, at once or as a stream.

    df.select("topic", "value").write.format("fanlight").option("url", "fanlight://...").mode("append").save()
    df.writeStream.format("fanlight").option("url", ...).option("checkpointLocation", ...).start()

Each task publishes its partition in order, and ends when the broker has given a receipt for every row. A task that
fails is run again by Spark, from its first row: at least once. With marks (docs/native-protocol.md, 3.8) the broker
passes over what it has taken from an earlier attempt, so that the same rows in the same order are taken once:

    producer    the query's id, or the option `producer`; and the partition      batch       the query's batch, or 0
    sequence    the row's number in its partition

Rows are outgoing.py, receipts publishing.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fanlight_spark import broker, workers
from fanlight_spark.broker import Address, Connection
from fanlight_spark.options import known, one_of, positive
from fanlight_spark.outgoing import Rows
from fanlight_spark.publishing import WINDOW, Marking, Publisher

OPTIONS: Final = (*broker.OPTIONS, "topic", "syntax", "maxUnacknowledged", "marks", "producer")
PRODUCER_BYTES: Final = 240  # of 255, for the partition is added
#: What Spark itself hands on with a stream's options.
SPARKS: Final = frozenset(["checkpointlocation", "queryname"])


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """The options, read, for rows of a schema. Raises ValueError, ImportError."""

    address: Address
    rows: Rows
    window: int
    marks: bool
    producer: str | None  # of a batch

    @classmethod
    def of(
        cls, given: Mapping[str, str], schema: StructType, overwrite: bool, *, stream: bool = False
    ) -> "SinkSettings":
        ours = {name: value for name, value in given.items() if name.lower() not in SPARKS}
        options = known(ours, OPTIONS, "sink")
        if "url" not in options:
            raise ValueError("the sink fanlight needs the option url: the broker, as in fanlight://127.0.0.1:7420")
        if overwrite:
            raise ValueError("what is published cannot be overwritten: use the mode append")
        syntax = one_of(options, "syntax", ("amqp", "mqtt")) if "syntax" in options else None
        return cls(
            Address.of(options),
            Rows(schema, topic=options.get("topic"), syntax=syntax),
            positive(options, "maxUnacknowledged") or WINDOW,
            *_marks(options, stream),
        )


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """A task's rows have their receipts."""

    rows: int
    repeated: int  # of them, that the broker had taken before


def publish(settings: SinkSettings, batches: Iterator[Any], name: str, marking: Marking | None = None) -> Published:
    """Publish the rows of a partition. Raises what makes the task fail: publishing.py has them."""
    workers.settle()
    with Connection(settings.address, name) as connection:
        publisher = Publisher(connection, window=settings.window, marking=marking)
        rows = 0
        for batch in batches:
            connection.run(publisher.publish(settings.rows.messages(batch, rows)))
            rows += batch.num_rows
        connection.run(publisher.settle())
    return Published(rows, publisher.repeated)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, settings: SinkSettings) -> None:
        self.settings = settings

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        marking = None
        if self.settings.marks:
            marking = Marking(f"{self.settings.producer}/{_task().partitionId()}", 0)
        return publish(self.settings, iterator, "spark write", marking)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, settings: SinkSettings) -> None:
        self.settings = settings

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        marking = None
        if self.settings.marks:
            task = _task()
            query, batch = (task.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
            if query is None or batch is None:
                raise RuntimeError("Spark does not say which query and batch this is; with marks=false it need not")
            marking = Marking(f"{query}/{task.partitionId()}", int(batch))
        return publish(self.settings, iterator, "spark stream", marking)


def _task() -> Any:
    task = TaskContext.get()
    assert task is not None, "the sink writes in tasks"
    return task


def _marks(options: Mapping[str, str], stream: bool) -> tuple[bool, str | None]:
    """Whether rows are marked, and the producer's name of a batch. Raises ValueError."""
    producer = options.get("producer")
    if stream and producer is not None:
        raise ValueError("producer is for batches: a stream's is its query's id, which its checkpoint keeps")
    if producer is not None and not 1 <= len(producer.encode()) <= PRODUCER_BYTES:
        raise ValueError(f"producer={producer!r}: give a name of 1 to {PRODUCER_BYTES} bytes")
    wanted = one_of(options, "marks", ("true", "false")) == "true"
    if wanted and "marks" in options and not stream and producer is None:
        raise ValueError("marks of a batch need the option producer: a name that a repetition of this write has, too")
    if not wanted and producer is not None:
        raise ValueError("producer is the name that marks are kept under: leave it out, or leave out marks=false")
    return wanted and (stream or producer is not None), producer
