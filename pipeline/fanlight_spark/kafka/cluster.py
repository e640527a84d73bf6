"""Kafka's clients (confluent-kafka, which is librdkafka), made with what a bridge needs of them.

What else they can be told, such as TLS and a login, is in a file of librdkafka's own names: `read_config`.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

log: Final = logging.getLogger("fanlight_spark.kafka")

SECONDS: Final = 60.0  # for a request: Kafka may be choosing another leader
#: What a bridge decides itself: exactly-once rests on it.
OURS: Final = frozenset(
    [
        "auto.offset.reset", "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store",
        "enable.idempotence", "enable.partition.eof", "group.id", "isolation.level", "transactional.id",
    ]
)  # fmt: skip


class KafkaFailed(Exception):
    """Kafka cannot be asked, or refuses. The text says what to do."""


def library() -> Any:
    """confluent-kafka, which is an extra. Raises ImportError that says so."""
    try:
        import confluent_kafka
    except ImportError as error:
        advice = "pip install 'confluent-kafka>=2.6', in a checkout make spark"
        raise ImportError(f"the bridge to Kafka needs confluent-kafka: {advice}") from error
    return confluent_kafka


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where Kafka is, and what its clients are told besides."""

    bootstrap: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)  # may have a password
    seconds: float = SECONDS

    def producer(self, transactional_id: str) -> Any:
        """A transactional producer, not begun yet."""
        return self._made(
            library().Producer, {"linger.ms": "20", "compression.type": "lz4"},
            {"transactional.id": transactional_id, "enable.idempotence": True, "delivery.report.only.error": True},
        )  # fmt: skip

    def consumer(self, group: str) -> Any:
        """A consumer of what is committed, which says where a partition ends, and fails where records are gone."""
        return self._made(
            library().Consumer, {},
            {
                "group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False,
                "enable.auto.offset.store": False, "enable.partition.eof": True, "auto.offset.reset": "error",
            },
        )  # fmt: skip

    def partitions(self, client: Any, topic: str) -> list[int]:
        """Of a topic; none if there is no such topic. Raises KafkaFailed."""
        with explained(self, f"what partitions {topic} has"):
            found = client.list_topics(topic, timeout=self.seconds).topics[topic]
        return sorted(found.partitions)

    def _made(self, kind: Any, defaults: dict[str, Any], ours: dict[str, Any]) -> Any:
        try:
            return kind({**defaults, **self.config, "bootstrap.servers": self.bootstrap, **ours}, logger=log)
        except library().KafkaException as error:
            raise KafkaFailed(f"the configuration of Kafka's client: {reason_of(error)}") from error


@contextmanager
def explained(cluster: Cluster, what: str) -> Iterator[None]:
    """Kafka's errors as KafkaFailed, which says what was asked for."""
    try:
        yield
    except library().KafkaException as error:
        raise KafkaFailed(f"Kafka at {cluster.bootstrap}: {what}: {reason_of(error)}; is it running there?") from error


def reason_of(error: Any) -> str:
    """The text of a KafkaException."""
    first = error.args[0] if error.args else error
    return str(first.str() if hasattr(first, "str") else first)


def read_config(path: Path) -> dict[str, str]:
    """A file of `name=value` lines, as librdkafka's and Kafka's own tools have it. Raises ValueError, OSError."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ValueError(f"{path}:{number}: give name=value, as in security.protocol=SASL_SSL")
        if name in OURS:
            raise ValueError(f"{path}:{number}: {name} is the bridge's own choice (--kafka, --name): leave it out")
        found[name] = value.strip()
    return found
