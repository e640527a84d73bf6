"""A message as a record of Kafka, and a record as a message.

    message                        record
    topic                          key, as UTF-8: messages of a topic stay in one partition, in their order
    value                          value
    timestamp (microseconds)       timestamp (milliseconds)
    headers                        headers, as they are: Kafka's, too, may have a name twice
    content_type, correlation      headers content-type, correlation-id: the protocol's own names
    reply_topic                    header reply-topic
    syntax, if it is mqtt          header fanlight-syntax
    epoch and offset               header fanlight-offset, as 1/4096: what a consumer can leave out repetitions by

The way back is the same, and a header kafka-offset says where a message came from (TOPIC/PARTITION/OFFSET). A message
that has one is not sent to Kafka again: so two bridges make no circle.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import matchcore
from fanlight_archive.arrow import pa
from fanlight_spark.message import CONTENT_TYPE, CORRELATION, SYNTAXES, Outgoing, headers_of

REPLY, SYNTAX, OFFSET, CAME_FROM = "reply-topic", "fanlight-syntax", "fanlight-offset", "kafka-offset"
TOPIC_BYTES: Final = 249  # of a topic's name in Kafka, which are ASCII letters, digits, `.`, `_` and `-`
#: The columns of an archive that a record has.
COLUMNS: Final = ("topic", "value", "headers", "syntax", "content_type", "reply_topic", "correlation")
_SEPARATORS: Final = {"amqp": ".", "mqtt": "/"}


class Unpublishable(Exception):
    """A record cannot be a message; why."""


class Record(NamedTuple):
    """What is produced; `offset` of the archive is None for a message that came from Kafka."""

    topic: str
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes | None]]
    timestamp: int


@dataclass(frozen=True, slots=True)
class Naming:
    """Which topic of Kafka a message goes to: one name for all, or with {root}, the first word of its topic."""

    template: str

    def __post_init__(self) -> None:
        if re.fullmatch(r"[A-Za-z0-9._-]+", self.template.replace("{root}", "r")) is None:
            raise ValueError(f"--topic {self.template}: a topic of Kafka has letters, digits, . _ - and here {{root}}")

    def __call__(self, topic: str, syntax: str) -> str:
        if "{root}" not in self.template:
            return self.template
        root = re.sub(r"[^A-Za-z0-9._-]", "_", topic.partition(_SEPARATORS[syntax])[0]) or "_"
        return self.template.replace("{root}", root)[:TOPIC_BYTES]


def records(batch: Any, epoch: int, naming: Naming) -> Iterator[Record | None]:
    """Those of a batch of an archive; None for a message that came from Kafka."""
    columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in COLUMNS]
    offsets = batch.column(batch.schema.get_field_index("offset")).to_pylist()
    times = batch.column(batch.schema.get_field_index("timestamp")).cast(pa.int64()).to_pylist()
    for offset, time, topic, value, headers, syntax, kind, reply, correlation in zip(
        offsets, times, *columns, strict=True
    ):
        made: list[tuple[str, bytes | None]] = [(one["key"], one["value"]) for one in headers or ()]
        if any(name == CAME_FROM for name, _ in made):
            yield None
            continue
        made = [one for one in made if one[0] != OFFSET]  # of another archive, that it has been through
        for name, text in ((CONTENT_TYPE, kind), (REPLY, reply), (SYNTAX, "mqtt" if syntax == "mqtt" else None)):
            if text:
                made.append((name, text.encode()))
        if correlation is not None:
            made.append((CORRELATION, correlation))
        made.append((OFFSET, b"%d/%d" % (epoch, offset)))
        yield Record(naming(topic, syntax), topic.encode(), value, made, time // 1000)


@dataclass(frozen=True, slots=True)
class Addressing:
    """Which topic a record is published to: `{key}`, or with {topic} of Kafka as well, in a syntax.

    syntax: None for that which the record's header names, or else amqp
    """

    template: str = "{key}"
    syntax: str | None = None

    def __post_init__(self) -> None:
        names = set(re.findall(r"\{([^}]*)\}", self.template))
        if unknown := sorted(names - {"key", "topic"}):
            raise ValueError(f"--to {self.template}: {{key}} and {{topic}} are known, not {{{unknown[0]}}}")

    def message(self, record: Any) -> Outgoing:
        """Of a record of confluent-kafka. Raises Unpublishable."""
        value = record.value()
        if value is None:
            raise Unpublishable("it has no value: a tombstone, and there are none among messages")
        headers = list(record.headers() or ())
        syntax = self.syntax or _text_of(headers, SYNTAX) or "amqp"
        if syntax not in SYNTAXES:
            raise Unpublishable(f"its header {SYNTAX} is {syntax!r}: amqp or mqtt is known")
        topic = self._topic(record)
        try:
            matchcore.split_topic(topic, syntax)
        except (matchcore.InvalidTopic, ValueError) as error:
            raise Unpublishable(f"{topic!r} is no topic: {error}") from error
        reply = _text_of(headers, REPLY)
        kept = headers_of([one for one in headers if one[0] not in (REPLY, SYNTAX, CAME_FROM)])
        kept[CAME_FROM] = f"{record.topic()}/{record.partition()}/{record.offset()}"
        return Outgoing(topic, value, kept, SYNTAXES[syntax], reply or None)

    def _topic(self, record: Any) -> str:
        topic = self.template.replace("{topic}", record.topic())
        if "{key}" not in topic:
            return topic
        if not record.key():
            raise Unpublishable("it has no key, which would be the topic (option --to)")
        try:
            return topic.replace("{key}", record.key().decode())
        except UnicodeDecodeError:
            raise Unpublishable("its key is no UTF-8, and it would be the topic (option --to)") from None


def _text_of(headers: list[tuple[str, bytes | None]], wanted: str) -> str | None:
    """The first value of a name. Raises Unpublishable if it is no text."""
    for name, value in headers:
        if name == wanted and value is not None:
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise Unpublishable(f"its header {wanted} is no UTF-8") from None
    return None
