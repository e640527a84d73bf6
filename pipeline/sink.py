"""The sink `fanlight`: publishes the rows of a DataFrame, at once or as a stream.

    df.select("topic", "value").write.format("fanlight").option("url", "fanlight://...").mode("append").save()
    df.writeStream.format("fanlight").option("url", ...).option("checkpointLocation", ...).start()

Each task publishes its partition in order, and ends when the broker has given a receipt for every row. A task that
fails is run again by Spark, from its first row: at least once. Rows are outgoing.py, receipts publishing.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pipeline import broker
from pipeline.broker import Address, Connection
from pipeline.options import known, one_of, positive
from pipeline.outgoing import Rows
from pipeline.publishing import WINDOW, Publisher

OPTIONS: Final = (*broker.OPTIONS, "topic", "syntax", "maxUnacknowledged")
#: What Spark itself hands on with a stream's options.
SPARKS: Final = frozenset(["checkpointlocation", "queryname"])


@dataclass(frozen=True, slots=True)
class Settings:
    """The options, read, for rows of a schema. Raises ValueError, ImportError."""

    address: Address
    rows: Rows
    window: int

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType, overwrite: bool) -> "Settings":
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
        )


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """A task's rows have their receipts."""

    rows: int


def publish(settings: Settings, batches: Iterator[Any], name: str) -> Published:
    """Publish the rows of a partition. Raises what makes the task fail: publishing.py has them."""
    with Connection(settings.address, name) as connection:
        publisher = Publisher(connection, window=settings.window)
        rows = 0
        for batch in batches:
            connection.run(publisher.publish(settings.rows.messages(batch, rows)))
            rows += batch.num_rows
        connection.run(publisher.settle())
    return Published(rows)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return publish(self.settings, iterator, "spark write")


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return publish(self.settings, iterator, "spark stream")
