"""Two files of permissions over what was archived: what is decided about each message, before and after.

    kinds(messages)                          a row for each client, topic and way of publishing, with its messages
    decided(kinds, judging)                  who that is, and both decisions; `content`: it depends on the message
    decided_by_content(messages, ...)        these, message by message
    differing(decided, levels)               what is decided differently, by user, action, topic and rule
    deliveries(kinds, subscriptions, ...)    the same of what subscriptions that are not decided alike would get

Messages of one topic are decided together, so that each class of publishers is asked once (judging.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from fanlight_archive import MESSAGE
from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.askers import Askers
from fanlight_spark.deliveries import utf8_text
from fanlight_spark.judging import Asked, Decided, Judge, Judged, RowFields, RuleFile, delivered
from fanlight_spark.matching import ROWS_AT_ONCE
from fanlight_spark.topics import SEPARATORS, index_of, match_rows
from matchcore.message_rows import MessageRows

COLUMNS: Final = ("client", "protocol", "topic", "syntax", "retain", "reply_topic")  # of messages
BY: Final = ("user", "action", "topic", "syntax", "before", "rule_before", "after", "rule_after")  # of `differing`
KIND: Final = ("client", "protocol", "topic", "syntax", "retain", "replies")


def _schema(texts: Iterable[str], switches: Iterable[str]) -> StructType:
    return StructType(
        [
            *(StructField(name, StringType(), nullable=False) for name in texts),
            *(StructField(name, BooleanType(), nullable=False) for name in switches),
            StructField("messages", LongType(), nullable=False),
        ]
    )


#: action: of the decision that denies, or that both allow. rule_*: that decided; "" if none did.
DECIDED: Final = _schema(
    ["client", "protocol", "topic", "syntax", "user", "action", "rule_before", "rule_after"],
    ["retain", "replies", "known", "content", "before", "after"],
)
DELIVERED: Final = _schema(
    ["client", "user", "filter", "topic", "syntax", "action", "rule_before", "rule_after"], ["before", "after"]
)


@dataclass(frozen=True, slots=True)
class Judging:
    """What workers are sent. before: None where everything was allowed."""

    before: RuleFile | None
    after: RuleFile
    askers: Askers

    def judge(self) -> Judge:
        return Judge(self.before, self.after, self.askers)


def kinds(messages: DataFrame) -> DataFrame:
    """(KIND, messages) of messages with COLUMNS. The broker's own have no client."""
    return _with_replies(messages).groupBy(*KIND).agg(F.count("*").alias("messages"))


def _with_replies(messages: DataFrame) -> DataFrame:
    return messages.withColumn("replies", F.col("reply_topic").isNotNull())


def decided(kinds: DataFrame, judging: Judging) -> DataFrame:
    """DECIDED of each kind but the broker's own."""
    shared = kinds.sparkSession.sparkContext.broadcast(judging)

    def decide(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        judge = shared.value.judge()
        try:
            for batch in batches:
                yield _batch(DECIDED, (_decided(judge, *row) for row in _rows(batch)))
        finally:
            judge.close()

    theirs = kinds.where("client IS NOT NULL").select(*KIND, "messages")
    return theirs.repartition("topic", "syntax").sortWithinPartitions("topic", "syntax").mapInArrow(decide, DECIDED)


def _rows(batch: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _decided(
    judge: Judge, client: str, protocol: str, topic: str, syntax: str, retain: bool, replies: bool, messages: int
) -> tuple[Any, ...]:
    asked = judge.publish(client, protocol, topic, syntax, retain=retain, replies=replies)
    return _row(asked, client, protocol, topic, syntax, retain, replies, messages)


UNDECIDED: Final = Decided(False, "", "")


def _row(
    asked: Asked, client: str, protocol: str, topic: str, syntax: str, retain: bool, replies: bool, messages: int
) -> tuple[Any, ...]:
    before, after = asked.before or UNDECIDED, asked.after or UNDECIDED
    content = asked.before is None or asked.after is None
    return (
        client, protocol, topic, syntax, utf8_text(asked.asker.user), _action(before, after), before.rule, after.rule,
        retain, replies, asked.known, content, before.allowed, after.allowed, messages,
    )  # fmt: skip


def _action(before: Decided, after: Decided) -> str:
    """That which is denied: of both the one of the new rules."""
    return before.action if after.allowed and not before.allowed else after.action


def decided_by_content(messages: DataFrame, decided: DataFrame, judging: Judging) -> DataFrame:
    """DECIDED of the messages whose kind is undecided, some messages a row. messages: with all columns."""
    shared = messages.sparkSession.sparkContext.broadcast(judging)
    wanted = decided.where("content").select(*KIND)

    def decide(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        judge = shared.value.judge()
        fields = RowFields(judge.tables)
        try:
            for batch in batches:
                yield _batch(DECIDED, _by_content(judge, fields, batch))
        finally:
            judge.close()

    undecided = _with_replies(messages).join(wanted, list(KIND), "left_semi")
    return undecided.select(*MESSAGE.names, "replies").mapInArrow(decide, DECIDED)


def _by_content(judge: Judge, fields: RowFields, batch: Any) -> Iterator[tuple[Any, ...]]:
    columns = [batch.column(place).cast(field.type) for place, field in enumerate(MESSAGE)]
    named = pa.RecordBatch.from_arrays(columns, names=MESSAGE.names)
    messages = MessageRows(named)
    asked = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in KIND]
    found: Counter[tuple[Any, ...]] = Counter()
    for row, (client, protocol, topic, syntax, retain, replies) in enumerate(zip(*asked, strict=True)):
        said = judge.publish(
            client, protocol, topic, syntax, retain=retain, replies=replies, fields=fields.of(messages, row)
        )
        found[_row(said, client, protocol, topic, syntax, retain, replies, 0)[:-1]] += 1
    for made, count in found.items():
        yield *made, count


def differing(decided: DataFrame, levels: int = 0) -> DataFrame:
    """What is decided differently, with the numbers of clients and messages: see BY.

    levels: words of a topic that are kept; 0: all
    """
    cut = decided.where("before <> after").withColumn("topic", beginning(levels))
    return cut.groupBy(*BY).agg(F.count_distinct("client").alias("clients"), F.sum("messages").alias("messages"))


def beginning(levels: int) -> Column:
    """The first words of a topic, and # for the others; 0: all of it."""
    topic = F.col("topic")
    if not levels:
        return topic
    cut = topic
    for syntax, separator in SEPARATORS.items():
        first = F.substring_index(topic, separator, levels)
        shorter = F.when(first == topic, topic).otherwise(F.concat(first, F.lit(f"{separator}#")))
        cut = F.when(F.col("syntax") == syntax, shorter).otherwise(cut)
    return cut


def deliveries(kinds: DataFrame, subscriptions: list[Judged], judging: Judging) -> DataFrame:
    """DELIVERED of each topic and each of these subscriptions that matches it and is decided differently about it.

    A member of a queue group counts as if it got all; selectors of subscriptions are not asked.
    """
    index = index_of(
        (each.subscription.filter.encode("utf-8", "surrogateescape"), number, each.subscription.syntax)
        for number, each in enumerate(subscriptions)
    )
    shared = kinds.sparkSession.sparkContext.broadcast((index, subscriptions, judging))
    topics = kinds.groupBy("topic", "syntax").agg(F.sum("messages").alias("messages"))

    def decide(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        index, given, judging = shared.value
        judge = judging.judge()
        grants = [judge.grants(each.asker) for each in given]
        try:
            for batch in batches:
                for at in range(0, batch.num_rows, ROWS_AT_ONCE):
                    part = batch.slice(at, ROWS_AT_ONCE)
                    offsets, ids = match_rows(index, part.column(0), part.column(1))
                    rows = np.repeat(np.arange(part.num_rows), np.diff(offsets)).tolist()
                    pairs = zip(rows, ids.tolist(), strict=True)
                    yield _batch(DELIVERED, _delivered(given, grants, part, pairs))
        finally:
            for each in grants:
                judge.release(each)

    return topics.mapInArrow(decide, DELIVERED)


def _delivered(
    given: list[Judged], grants: list[Any], part: Any, pairs: Iterable[tuple[int, int]]
) -> Iterator[tuple[Any, ...]]:
    topics, syntaxes, messages = (column.to_pylist() for column in part.columns)
    for row, number in pairs:
        each, topic, syntax = given[number], topics[row], syntaxes[row]
        before, after = (
            delivered(grant, verdict, topic.encode(), syntax)
            for grant, verdict in zip(grants[number], (each.before, each.after), strict=True)
        )
        if before.allowed != after.allowed:
            yield (
                utf8_text(each.subscription.client), utf8_text(each.asker.user), each.subscription.shown, topic, syntax,
                _action(before, after), before.rule, after.rule, before.allowed, after.allowed, messages[row],
            )  # fmt: skip


def _batch(schema: StructType, rows: Iterable[tuple[Any, ...]]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    fields = to_arrow_schema(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)], schema=fields
    )
