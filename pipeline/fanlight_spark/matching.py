"""Which subscriptions get which messages: topic filters joined with a DataFrame, by the broker's own matcher.

    match_topics(messages, subscriptions)          a row for each message and each subscription that matches its topic
    topic_matches(messages, subscriptions)         a row for each topic, with the ids of all that match it

    messages --distinct topics--> mapInArrow: FrozenIndex over the Arrow buffers --> (topic, ids) --join--> messages

The index is built once, where the query is made, and sent (shared.py): workers map its bytes and build nothing.
Each topic is matched once, however many messages it has, and payloads never leave the JVM. A stream cannot be joined
with itself: there each batch is matched as it passes, its distinct topics once, and its columns do go through Python.
Subscriptions may have selectors (docs/selectors.md), and `fields` says what they look at. Then each message is matched,
not each topic: its topic and its fields go through Python, in Arrow, and still not its payload.

An invalid topic and a null match nothing. Queue groups are not considered: each of their members matches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

import matchcore
from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.shared import SharedIndex
from fanlight_spark.topics import index_of, match_rows

SUBSCRIPTION: Final = "subscription"  # the column of ids
ROWS_AT_ONCE: Final = 1_024  # a million filters that match all of them are 8 GB
_TOPIC, _SYNTAX, _IDS = "__topic", "__syntax", "__ids"

#: (filter, id, syntax), and a selector if it has one.
Subscription: TypeAlias = tuple[str | bytes, int, str] | tuple[str | bytes, int, str, str | None]
#: A frozen index; the file of one; a DataFrame with the columns filter, id and perhaps syntax and where; or tuples.
Subscriptions: TypeAlias = matchcore.FrozenIndex | Path | DataFrame | Iterable[Subscription]
#: Columns that selectors look at, under their own names, or by the names that selectors have for them.
FieldColumns: TypeAlias = Sequence[str] | Mapping[str, str | Column]
#: Types of columns that selectors compare.
COMPARED: Final = (BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, StringType, NullType)


def match_topics(
    df: DataFrame,
    subscriptions: Subscriptions,
    topic_col: str = "topic",
    syntax: str = "amqp",
    syntax_col: str | None = None,
    id_col: str = SUBSCRIPTION,
    few_topics: bool = True,
    fields: FieldColumns = (),
) -> DataFrame:
    """The rows of `df` with the id of a subscription (BIGINT), once for each that matches; without one, not at all.

    syntax      of the topics, and of filters that do not say theirs
    syntax_col  a column with the syntax of each row's topic instead: `syntax` of an archive
    few_topics  whether the distinct topics and their ids fit into each worker, which then looks them up; if not, the
                messages are sorted by topic, which is several times slower and has no such limit
    fields      the columns that selectors look at: their names, or {name in selectors: column}; a null is absent
    Raises matchcore.InvalidFilter and matchcore.InvalidSelector, with the subscription and the byte; ValueError for ids
    that are not 0 to 2**32 - 1; TypeError for columns of a type that selectors do not compare.
    """
    if id_col in df.columns:
        raise ValueError(f"the column {id_col} is there already: name another with id_col")
    index = _index(subscriptions, syntax)
    compared = _fields(df, fields)
    if len(index.selectors()) != 0:
        of = F.lit(syntax) if syntax_col is None else df[syntax_col]
        return _by_row(df, index, df[topic_col], of, id_col, compared)
    if df.isStreaming:
        return _as_it_passes(df, index, topic_col, syntax, syntax_col, id_col)
    found = topic_matches(df, index, topic_col, syntax, syntax_col)
    # Under names of our own: the columns of `df` may be called the same.
    right = found.select(F.col("topic").alias(_TOPIC), F.col("syntax").alias(_SYNTAX), F.col("ids").alias(_IDS))
    right = right.where(F.size(_IDS) > 0)
    pairs = [(df[topic_col], right[_TOPIC])]
    if syntax_col is not None:
        pairs.append((df[syntax_col], right[_SYNTAX]))
    joined = df.join(F.broadcast(right) if few_topics else right, _same(pairs))
    return joined.select(*(df[name] for name in df.columns), F.explode(right[_IDS]).alias(id_col))


def _same(pairs: list[tuple[Column, Column]]) -> Column:
    """Whether two rows have the same texts, as a condition of a join.

    The key is a number, which Spark looks up in a third of the time that a text takes. Numbers may collide, so the
    texts are compared as well; not by `==`, of which Spark would make a second part of the key.
    """
    key = F.xxhash64(*(one for one, _ in pairs)) == F.xxhash64(*(other for _, other in pairs))
    return reduce(and_, (one.startswith(other) & other.startswith(one) for one, other in pairs), key)


def topic_matches(
    df: DataFrame,
    subscriptions: Subscriptions,
    topic_col: str = "topic",
    syntax: str = "amqp",
    syntax_col: str | None = None,
) -> DataFrame:
    """(topic, syntax, ids): the distinct topics of `df`, each with the ids that match it, ascending, or none.

    Raises ValueError of subscriptions with selectors, of which a topic alone does not say what they match.
    """
    taken = _index(subscriptions, syntax)
    if len(taken.selectors()) != 0:
        raise ValueError("these subscriptions have selectors: match messages with match_topics(..., fields=[...])")
    shared = SharedIndex(df.sparkSession, taken)
    topic = F.col(topic_col).alias("topic")
    if syntax_col is None:  # a constant does not distinguish rows
        topics = df.select(topic).distinct().withColumn("syntax", F.lit(syntax))
    else:
        topics = df.select(topic, F.col(syntax_col).alias("syntax")).distinct()

    def match(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        for batch in batches:
            for part in _slices(batch):
                offsets, found = match_rows(shared.index, part.column(0), part.column(1))
                ids = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(found.astype(np.int64)))
                yield pa.RecordBatch.from_arrays([*part.columns, ids], names=["topic", "syntax", "ids"])

    schema = StructType(
        [
            StructField("topic", StringType()),
            StructField("syntax", StringType()),
            StructField("ids", ArrayType(LongType(), containsNull=False)),
        ]
    )
    return topics.mapInArrow(match, schema)


def _as_it_passes(
    df: DataFrame, index: matchcore.FrozenIndex, topic_col: str, syntax: str, syntax_col: str | None, id_col: str
) -> DataFrame:
    shared = SharedIndex(df.sparkSession, index)

    def match(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        for batch in batches:
            for part in _slices(batch):
                of = part.column(syntax_col) if syntax_col else pa.array([syntax] * part.num_rows, pa.string())
                offsets, ids = match_rows(shared.index, part.column(topic_col), of)
                rows = np.repeat(np.arange(part.num_rows), np.diff(offsets))
                columns = [*part.take(pa.array(rows)).columns, pa.array(ids.astype(np.int64))]
                yield pa.RecordBatch.from_arrays(columns, names=[*part.schema.names, id_col])

    return df.mapInArrow(match, StructType([*df.schema.fields, StructField(id_col, LongType())]))


def _fields(df: DataFrame, fields: FieldColumns) -> dict[str, Column]:
    """The columns by the names that selectors have for them, checked before anything runs."""
    if isinstance(fields, str):
        raise TypeError(f"fields are several names, or a dict; for one write [{fields!r}]")
    given: Mapping[str, str | Column] = fields if isinstance(fields, Mapping) else {name: name for name in fields}
    found = {name: df[column] if isinstance(column, str) else column for name, column in given.items()}
    for name, place in zip(found, df.select(*found.values()).schema.fields if found else (), strict=True):
        if not isinstance(place.dataType, COMPARED):
            raise TypeError(
                f"the field {name!r} is {place.dataType.simpleString()}, which no selector compares: cast it to a "
                "number, a string or a boolean"
            )
    return found


def _by_row(
    df: DataFrame, index: matchcore.FrozenIndex, topic: Column, syntax: Column, id_col: str, fields: dict[str, Column]
) -> DataFrame:
    """With selectors: the topic and the fields of each message go to Python, and the ids come back."""
    shared = SharedIndex(df.sparkSession, index)
    names = list(fields)

    def match(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        workers.settle()
        for columns in batches:
            for at in range(0, len(columns[0]), ROWS_AT_ONCE):
                topics, syntaxes, *values = [column.slice(at, ROWS_AT_ONCE) for column in columns]
                offsets, ids = match_rows(shared.index, topics, syntaxes, dict(zip(names, values, strict=True)))
                yield pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids.astype(np.int64)))

    matched = F.arrow_udf(match, ArrayType(LongType()))
    ids = matched(topic, syntax, *fields.values())
    return df.select(*(df[name] for name in df.columns), F.explode(ids).alias(id_col))


def _slices(batch: Any) -> Iterator[Any]:
    """A batch in parts, so that the ids of one are not too many even where every filter matches."""
    return (batch.slice(at, ROWS_AT_ONCE) for at in range(0, batch.num_rows, ROWS_AT_ONCE))


def _index(subscriptions: Subscriptions, syntax: str) -> matchcore.FrozenIndex:
    if isinstance(subscriptions, matchcore.FrozenIndex):
        return subscriptions
    if isinstance(subscriptions, Path):
        return matchcore.FrozenIndex.open(subscriptions)
    if isinstance(subscriptions, DataFrame):
        names = [name for name in ("filter", "id", "syntax", "where") if name in subscriptions.columns]
        if names[:2] != ["filter", "id"]:
            there = ", ".join(subscriptions.columns)
            raise ValueError(f"subscriptions need the columns filter and id; there are {there}")
        table = subscriptions.select(*names).toArrow()
        of = table.column("syntax").to_pylist() if "syntax" in names else [syntax] * table.num_rows
        wheres = table.column("where").to_pylist() if "where" in names else [None] * table.num_rows
        filters, ids = table.column("filter").to_pylist(), table.column("id").to_pylist()
        return index_of(zip(filters, ids, of, wheres, strict=True))
    return index_of(subscriptions)
