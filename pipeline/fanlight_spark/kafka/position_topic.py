"""How far bridges out have come: a topic of Kafka, whose last record of a bridge's name is its position.

The record is written in the transaction that has the messages before it, so that both are there or neither is. It is a
topic and not the offset of a consumer group, because Kafka forgets the offsets of a group that nobody uses after a
week. It should be compacted (`cleanup.policy=compact`), and is made so if it is not there.
"""

import json
import time
from typing import Any, Final

from fanlight_spark.kafka.cluster import Cluster, KafkaFailed, explained, library, log, reason_of
from fanlight_spark.positions import Position

PARTITION: Final = 0  # the only one, and the only one that is read
COMPACTED: Final = {"cleanup.policy": "compact"}


class PositionTopic:
    """Raises KafkaFailed, ValueError for a record that is no position."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic

    def write(self, producer: Any, name: str, position: Position) -> None:
        """Into the producer's transaction."""
        value = json.dumps(position.json(), separators=(",", ":"))
        producer.produce(self.topic, value, name, PARTITION)

    def last(self, name: str) -> Position | None:
        """The position of a bridge, whose producer has to be initialised: what it had left open has ended by then."""
        library_ = library()
        consumer = self.cluster.consumer("fanlight-positions")
        try:
            if not self.cluster.partitions(consumer, self.topic):
                self._make()
                return None
            place = library_.TopicPartition(self.topic, PARTITION, library_.OFFSET_BEGINNING)
            with explained(self.cluster, f"where {self.topic} ends"):
                _, end = consumer.get_watermark_offsets(place, timeout=self.cluster.seconds)
            consumer.assign([place])
            return self._read(consumer, name, end) if end > 0 else None
        finally:
            consumer.close()

    def _read(self, consumer: Any, name: str, end: int) -> Position | None:
        """The last record of the name before `end`.

        Committed records end where the oldest open transaction begins, of any bridge. Ours may be behind it: so this
        waits until all that was there has been read.
        """
        found: Position | None = None
        deadline = time.monotonic() + self.cluster.seconds
        while time.monotonic() < deadline:
            record = consumer.poll(1.0)
            if record is None:
                continue
            if record.error() is None:
                deadline = time.monotonic() + self.cluster.seconds
                if record.key() == name.encode() and record.value() is not None:
                    found = Position.of(json.loads(record.value()))
                if record.offset() + 1 >= end:
                    return found
            elif record.error().code() == library().KafkaError._PARTITION_EOF:
                if record.offset() >= end:
                    return found
            elif not record.error().retriable():
                raise KafkaFailed(f"{self.topic}: {record.error().str()}")
        raise KafkaFailed(
            f"{self.topic} could not be read up to {end} within {self.cluster.seconds:g} s: a transaction of another "
            "bridge is open in it; it ends with that bridge, or after its transaction.timeout.ms"
        )

    def _make(self) -> None:
        from confluent_kafka import admin as administration

        config: dict[str, Any] = {**self.cluster.config, "bootstrap.servers": self.cluster.bootstrap}
        admin = administration.AdminClient(config, logger=log)
        new_topic: Any = administration.__dict__["NewTopic"]  # which its types do not name
        wanted = new_topic(self.topic, num_partitions=1, config=COMPACTED)
        try:
            for made in admin.create_topics([wanted], request_timeout=self.cluster.seconds).values():
                made.result()
        except library().KafkaException as error:
            if error.args[0].code() != library().KafkaError.TOPIC_ALREADY_EXISTS:
                raise KafkaFailed(
                    f"the topic of positions {self.topic} is not there, and cannot be made ({reason_of(error)}): "
                    "make it with one partition and cleanup.policy=compact"
                ) from error
