"""librdkafka's mock cluster, and Kafka's side of what the bridges do: records as an independent client has them."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka

from tests.pipeline.killed import environment

SECONDS = 60.0


class MockKafka:
    """`address` is for any client of this machine, in other processes, too."""

    def __init__(self) -> None:
        # Whoever is asked for a mock cluster has it inside, for as long as this client is there.
        self._host = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x", "log_level": 0})
        brokers = self._host.list_topics(timeout=SECONDS).brokers.values()
        self.address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host.flush(0)

    def topic(self, name: str) -> str:
        """A topic, made by asking for it. Its name."""
        assert self._host.list_topics(name, timeout=SECONDS).topics[name].partitions
        return name

    def produce(self, topic: str, records: list[dict[str, Any]]) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.address, "log_level": 0})
        for record in records:
            producer.produce(topic, **record)
        assert producer.flush(SECONDS) == 0

    def records(self, topic: str) -> list[Any]:
        """All there are, by partition and offset."""
        with Reader(self.address, topic) as reader:
            return sorted(reader.rest(), key=lambda record: (record.partition(), record.offset()))


class Reader:
    """A topic from its beginning, as consumers that ask for committed records have it."""

    def __init__(self, address: str, topic: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False, "log_level": 0,
                "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            }
        )  # fmt: skip
        partitions = self._consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        self._ends = len(partitions)
        self._consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def wait(self, count: int) -> None:
        """Until so many more have come."""
        while count:
            record = self._consumer.poll(SECONDS)
            assert record is not None
            count -= record.error() is None

    def rest(self) -> list[Any]:
        found: list[Any] = []
        ends: set[int | None] = set()
        while len(ends) < self._ends:
            record = self._consumer.poll(SECONDS)
            assert record is not None
            error = record.error()
            if error is None:
                found.append(record)
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                ends.add(record.partition())
        return found


class Bridge:
    """`python -m fanlight_spark.kafka` as a process, to be killed."""

    def __init__(self, *arguments: object, log: Path) -> None:
        self._log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fanlight_spark.kafka", *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment(),
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL, wherever it is."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Wait until it has ended by itself, well."""
        assert self.process.wait(SECONDS * 4) == 0, self._log.read_text(errors="replace")[-4000:]
