"""Kafka -> broker: records are published with receipts, and with their place in Kafka as a mark.

    mark    producer  kafka/NAME/TOPIC/PARTITION      batch  the generation      sequence  the record's offset

The broker takes a mark once (docs/native-protocol.md, 3.8), and keeps it with its archive. The bridge commits its
offsets to Kafka after the receipts. What lies between a commit and a kill is published again, and passed over by the
broker.

One process reads all partitions of its topics. A second one with the same name does no harm, and no good.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_spark.broker import Address, Connection
from fanlight_spark.kafka.cluster import Cluster, KafkaFailed, explained, library
from fanlight_spark.kafka.records import Addressing, Unpublishable
from fanlight_spark.message import Outgoing
from fanlight_spark.publishing import WINDOW, Mark, Publisher, Refused

log: Final = logging.getLogger("fanlight_spark.kafka")

READ: Final = 2_000  # records at once
COMMIT_SECONDS: Final = 1.0
COMMIT_RECORDS: Final = 10_000  # or after so many: what is published again after a kill, at most
LOOK_SECONDS: Final = 60.0  # between two looks for new partitions

Place = tuple[str, int]  # topic, partition


@dataclass(frozen=True, slots=True)
class InwardSettings:
    """name: of the bridge, its consumer group and its marks. start: earliest or latest, of a partition without offset.

    generation: raised by whoever makes a topic anew under its old name, where offsets begin anew
    skip: leave out what cannot be a message, and count it; else it is an error
    """

    name: str
    topics: tuple[str, ...]
    addressing: Addressing = field(default_factory=Addressing)
    start: str = "earliest"
    generation: int = 0
    once: bool = False
    skip: bool = False


@dataclass(slots=True)
class Taken:
    """What a bridge has done since its start. repeated: records that the broker had taken before."""

    messages: int = 0
    repeated: int = 0
    skipped: int = 0


@dataclass(slots=True)
class _Progress:
    """Of the partitions: what was published and not committed, and where those end that `once` waits for."""

    behind: dict[Place, int] = field(default_factory=dict)  # the next offset to read, of those with something new
    records: int = 0
    since: float = 0.0
    ends: dict[Place, int] = field(default_factory=dict)


class Inward:
    """For one thread. `run` raises KafkaFailed, the SDK's errors."""

    def __init__(self, cluster: Cluster, address: Address, settings: InwardSettings) -> None:
        self.cluster, self.address, self.settings = cluster, address, settings
        self.taken = Taken()
        self._progress = _Progress()
        self._known: set[Place] = set()

    def run(self, stop: threading.Event) -> Taken:
        """Until `stop`, or with `once` the ends of the partitions as they are now."""
        consumer = self.cluster.consumer(f"fanlight-{self.settings.name}")
        with closing(consumer), Connection(self.address, f"kafka bridge {self.settings.name}") as connection:
            publisher = Publisher(connection, window=WINDOW, marked=True)
            looked = self._assign(consumer, starting=True)
            while not stop.is_set() and not (self.settings.once and not self._progress.ends):
                if time.monotonic() - looked > LOOK_SECONDS:
                    looked = self._assign(consumer, starting=False)
                self._pass_on(connection, publisher, consumer.consume(READ, timeout=0.2))
                if self._is_due():
                    self._commit(connection, publisher, consumer)
            self._commit(connection, publisher, consumer)
        return self.taken

    def _assign(self, consumer: Any, *, starting: bool) -> float:
        """Read those partitions that are new. Returns when."""
        kafka, seconds = library(), self.cluster.seconds
        found = [(topic, number) for topic in self.settings.topics for number in self._partitions(consumer, topic)]
        new = [kafka.TopicPartition(*place) for place in found if place not in self._known]
        if new:
            with explained(self.cluster, f"the offsets of the group fanlight-{self.settings.name}"):
                places = consumer.committed(new, timeout=seconds)
                for place in places:
                    low, high = consumer.get_watermark_offsets(place, timeout=seconds)
                    if place.offset < 0:
                        # A partition that is made while the bridge runs is read from its beginning.
                        place.offset = low if self.settings.start == "earliest" or not starting else high
                    elif not low <= place.offset <= high:
                        raise KafkaFailed(_out_of_range(self.settings.name, place, low, high))
                    if self.settings.once and place.offset < high:
                        self._progress.ends[place.topic, place.partition] = high
            consumer.incremental_assign(places)
            self._known.update((place.topic, place.partition) for place in places)
            log.info("bridge %s reads %s", self.settings.name, ", ".join(f"{p.topic}/{p.partition}" for p in places))
        return time.monotonic()

    def _partitions(self, consumer: Any, topic: str) -> list[int]:
        found = self.cluster.partitions(consumer, topic)
        if not found:
            raise KafkaFailed(f"Kafka at {self.cluster.bootstrap} has no topic {topic}: make it, or name another one")
        return found

    def _pass_on(self, connection: Connection, publisher: Publisher, records: Iterable[Any]) -> None:
        """Publish what was read. Raises KafkaFailed."""
        messages: list[Outgoing] = []
        marks: list[Mark] = []
        progress, settings = self._progress, self.settings
        for record in records:
            place = record.topic(), record.partition()
            if record.error() is not None:
                self._event(record, place)
                continue
            try:
                messages.append(settings.addressing.message(record))
                marks.append((f"kafka/{settings.name}/{place[0]}/{place[1]}", settings.generation, record.offset()))
            except Unpublishable as reason:
                where = f"{place[0]}/{place[1]}/{record.offset()}"
                if not settings.skip:
                    raise KafkaFailed(f"the record {where}: {reason}; with --skip it is left out") from reason
                self.taken.skipped += 1
                log.warning("left out the record %s: %s", where, reason)
            progress.behind[place] = record.offset() + 1
            progress.records += 1
            if progress.ends.get(place, record.offset() + 2) <= record.offset() + 1:
                del progress.ends[place]
        if messages:
            with _refusals():
                connection.run(publisher.publish(messages, marks))

    def _event(self, record: Any, place: Place) -> None:
        """What is no record: the end of a partition, or an error."""
        kinds, error = library().KafkaError, record.error()
        if error.code() == kinds._PARTITION_EOF:
            if record.offset() >= self._progress.ends.get(place, record.offset() + 1):
                del self._progress.ends[place]
        elif error.code() == kinds._AUTO_OFFSET_RESET:
            raise KafkaFailed(
                f"{place[0]}/{place[1]}: {error.str()}: retention has removed records before they were read. Set the "
                f"group fanlight-{self.settings.name} to where to go on (kafka-consumer-groups --reset-offsets)"
            )
        elif error.fatal() or error.code() in (kinds.UNKNOWN_TOPIC_OR_PART, kinds.TOPIC_AUTHORIZATION_FAILED):
            raise KafkaFailed(f"{place[0]}/{place[1]}: {error.str()}")
        else:
            log.warning("%s", error.str())  # librdkafka tries again by itself

    def _is_due(self) -> bool:
        progress, now = self._progress, time.monotonic()
        if not progress.behind:
            progress.since = now
            return False
        return progress.records >= COMMIT_RECORDS or now - progress.since >= COMMIT_SECONDS

    def _commit(self, connection: Connection, publisher: Publisher, consumer: Any) -> None:
        """Wait for the receipts of all that was published, then say to Kafka how far that is."""
        before = publisher.acknowledged - publisher.repeated, publisher.repeated
        with _refusals():
            connection.run(publisher.settle())
        self.taken.messages = publisher.acknowledged - publisher.repeated
        self.taken.repeated = publisher.repeated
        progress = self._progress
        if progress.behind:
            places = [library().TopicPartition(*place, offset) for place, offset in progress.behind.items()]
            with explained(self.cluster, "committing offsets"):
                consumer.commit(offsets=places, asynchronous=False)
        self._progress = _Progress(since=time.monotonic(), ends=progress.ends)
        if publisher.repeated > COMMIT_RECORDS + READ + WINDOW and before[1] <= COMMIT_RECORDS + READ + WINDOW:
            log.warning(
                "the broker has passed over %d records, which it says it has taken from a bridge of this name: after a "
                "reset of the group's offsets that is right; for a topic that was made anew, raise --generation",
                publisher.repeated,
            )


def _out_of_range(name: str, place: Any, low: int, high: int) -> str:
    where = f"{place.topic}/{place.partition}"
    group = f"set the group fanlight-{name} to where to go on (kafka-consumer-groups --reset-offsets)"
    if place.offset < low:
        return f"{where}: records {place.offset} to {low - 1} were removed by retention before they were read; {group}"
    return (
        f"{where} ends at {high}, and this bridge has read up to {place.offset}: the topic was made anew; {group}, and "
        "raise --generation, or the broker takes the new records for the old ones"
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """The broker's refusals as KafkaFailed, with the record's place."""
    try:
        yield
    except Refused as refused:
        producer, _, offset = refused.mark or ("", 0, -1)
        place = producer.split("/", 2)[-1]
        raise KafkaFailed(
            f"the broker refuses the record {place}/{offset}, to {refused.topic!r}: {refused.reason}"
        ) from refused
