"""Archive -> Kafka: each step a transaction, of the records of a range of offsets and the position behind them.

A step is all or nothing to consumers that read what is committed (isolation.level=read_committed). Whatever goes wrong,
the bridge begins anew: the producer of its name is initialised, by which Kafka ends what was open and refuses an
older bridge of that name, and then the position is read. So there is one way to begin: after a start, a fault, a kill.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_archive import Archive
from fanlight_spark.kafka.cluster import Cluster, KafkaFailed, explained, library, reason_of
from fanlight_spark.kafka.position_topic import PositionTopic
from fanlight_spark.kafka.records import Naming, records
from fanlight_spark.positions import Bounds, Log, Position, offset_option, position_at
from fanlight_spark.selection import Selection

log: Final = logging.getLogger("fanlight_spark.kafka")

ROWS: Final = 10_000  # of a transaction, which costs Kafka some ms
BYTES: Final = 16 * 1024 * 1024
ATTEMPTS: Final = 10  # in a row, 1 s apart at first and 30 s at most: some three minutes
POSITIONS: Final = "fanlight-positions"


@dataclass(frozen=True, slots=True)
class OutwardSettings:
    """name: of the bridge, its transactions and its position. start: earliest, latest, an offset or a position."""

    name: str
    naming: Naming
    start: str = "earliest"
    positions: str = POSITIONS
    rows: int = ROWS
    once: bool = False  # end with what is there
    poll: float = 0.2  # seconds between two looks at an archive with nothing new
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(slots=True)
class Sent:
    """What a bridge has done since its start. behind: messages that it has still to look at."""

    records: int = 0
    looped: int = 0
    transactions: int = 0
    behind: int = 0


class Outward:
    """For one thread. `run` raises KafkaFailed, ArchiveError, ValueError."""

    def __init__(self, archive: Log, selection: Selection, cluster: Cluster, settings: OutwardSettings) -> None:
        self.archive, self.selection, self.cluster, self.settings = archive, selection, cluster, settings
        self.sent = Sent()
        self._positions = PositionTopic(cluster, settings.positions)
        self._target: int | None = None  # of `once`

    def run(self, stop: threading.Event) -> Sent:
        """Until `stop`, or with `once` the end of what is there now."""
        failures = 0
        while not stop.is_set():
            done = self.sent.transactions
            try:
                self._session(stop)
                break
            except library().KafkaException as error:
                failures = 1 if self.sent.transactions > done else failures + 1
                self._again(error, failures, stop)
        return self.sent

    def _again(self, error: Any, failures: int, stop: threading.Event) -> None:
        """Wait before the next attempt. Raises KafkaFailed if there is to be none."""
        kinds, first = library().KafkaError, error.args[0]
        if first.code() in (kinds._FENCED, kinds.INVALID_PRODUCER_EPOCH, kinds.PRODUCER_FENCED):
            raise KafkaFailed(
                f"another bridge with the name {self.settings.name} has begun, and this one ends: one of them is to "
                "run; give the other one a name of its own"
            ) from error
        if failures >= ATTEMPTS:
            raise KafkaFailed(f"{failures} attempts in a row have failed: {reason_of(error)}") from error
        delay = min(2.0 ** (failures - 1), 30.0)
        log.warning("%s; beginning anew in %g s from the position that Kafka has", reason_of(error), delay)
        stop.wait(delay)

    def _session(self, stop: threading.Event) -> None:
        producer = self.cluster.producer(f"fanlight-{self.settings.name}")
        with explained(self.cluster, "transactions"):
            producer.init_transactions(self.cluster.seconds)
        with closing(_Steps(self, producer)) as steps:
            while not stop.is_set():
                if not steps.step():
                    if self.settings.once:
                        return
                    stop.wait(self.settings.poll)


class _Steps:
    """Those of one producer, from the position that Kafka has."""

    def __init__(self, bridge: Outward, producer: Any) -> None:
        self.bridge, self.archive, self.producer = bridge, bridge.archive, producer
        self.settings = bridge.settings
        self._refused: str | None = None
        self.archive.refresh()
        kept = bridge._positions.last(self.settings.name)
        self.position = offset_option(self.archive, "--from", self.settings.start) if kept is None else kept
        if bridge._target is None:
            bridge._target = self.archive.end
        log.info("bridge %s begins at offset %d", self.settings.name, self.position.offset)

    def step(self) -> bool:
        """A transaction, if there is anything new."""
        archive, bounds, bridge = self.archive, self.settings.bounds, self.bridge
        archive.refresh()
        first = bounds.offset_of(archive, self.position)
        end = archive.end
        if self.settings.once and bridge._target is not None:
            end = min(end, bridge._target)
        bridge.sent.behind = max(end - first, 0)
        if end <= first:
            return False
        end = min(first + self.settings.rows, archive.offset_after(first, end, BYTES))
        end = max(end, first + 1)
        self._transaction(position_at(archive, end))
        bridge.sent.behind = max(archive.end - end, 0)
        return True

    def _transaction(self, end: Position) -> None:
        sent, producer, settings = self.bridge.sent, self.producer, self.settings
        count = looped = 0
        first, last = settings.bounds.range_of(self.archive, self.position, end)
        producer.begin_transaction()
        for batch in self._batches(first, last):
            if not batch.num_rows:  # it stands for a segment that was passed over
                continue
            epoch = self.archive.epoch_at(batch.column(batch.schema.get_field_index("offset"))[0].as_py())
            for record in records(batch, epoch, settings.naming):
                if record is None:
                    looped += 1
                    continue
                self._produce(record)
                count += 1
            producer.poll(0)
        self.bridge._positions.write(producer, settings.name, end)
        try:
            producer.commit_transaction(self.bridge.cluster.seconds)
        except library().KafkaException as error:
            if self._refused is not None:
                raise KafkaFailed(self._refused) from error
            raise
        self.position = end
        sent.records, sent.looped, sent.transactions = sent.records + count, sent.looped + looped, sent.transactions + 1

    def _batches(self, first: int, last: int) -> Iterator[Any]:
        archive, selection, lost = self.archive, self.bridge.selection, self.settings.bounds.lost
        where = None if selection.is_everything else selection.mask
        if isinstance(archive, Archive):
            indexes = selection.indexes(archive)
            select = None if indexes is None else indexes.select
            return archive.read(first, last, where=where, lost=lost, select=select)
        return archive.read(first, last, since=None, until=None, where=where, lost=lost)  # its broker has asked

    def _produce(self, record: Any) -> None:
        deadline = time.monotonic() + self.bridge.cluster.seconds
        while True:
            try:
                self.producer.produce(
                    record.topic, record.value, record.key, headers=record.headers, timestamp=record.timestamp,
                    on_delivery=self._report,
                )  # fmt: skip
                return
            except BufferError:  # librdkafka's queue is full: wait until some of it has left
                if time.monotonic() > deadline:
                    raise KafkaFailed(f"Kafka took nothing within {self.bridge.cluster.seconds:g} s") from None
                self.producer.poll(0.1)
            except library().KafkaException as error:
                if error.args[0].code() != library().KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                raise KafkaFailed(_too_large(record.key, reason_of(error))) from error

    def _report(self, error: Any, record: Any) -> None:
        """Of a record that was not taken: called from `poll` and `commit_transaction`."""
        refusals = (library().KafkaError.MSG_SIZE_TOO_LARGE, library().KafkaError.INVALID_RECORD)
        if self._refused is None and error is not None and error.code() in refusals:
            self._refused = _too_large(record.key(), error.str())

    def close(self) -> None:
        """Give up what is open, so that consumers need not wait until Kafka does."""
        with suppress(library().KafkaException):
            self.producer.abort_transaction(5.0)


def _too_large(key: bytes, reason: str) -> str:
    return (
        f"a message of {key.decode()!r} was refused ({reason}): allow it (message.max.bytes in --kafka-config, "
        "max.message.bytes of the topic), or leave it out (--filter, --where)"
    )
