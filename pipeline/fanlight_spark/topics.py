"""Which filters match the topics of an Arrow column: the compiled matcher over the column's buffers.

The rules are the broker's: matchcore's grammar, and the names that only filters with that very first word see
(docs/topics.md). A topic that the grammar does not allow cannot have been published: nothing matches it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import matchcore
from fanlight_archive.arrow import pa, pc

RESERVED: Final = ("$SYS", "$audit", "$inbox", "$stream", "$namespace")  # the last one: of tenants, in an archive
SEPARATORS: Final = {"amqp": ".", "mqtt": "/"}
WORDS_MAX: Final = 1_024  # the most that a broker may be set to allow
DISTINCT_MOST: Final = 0.6  # of the rows: finding those that are takes a quarter of what matching does
SAMPLE: Final = 1_024  # rows, by which it is decided whether topics come again

Matches = tuple[NDArray[np.int64], NDArray[np.uint32]]  # row i has ids[offsets[i]:offsets[i + 1]]


Fields = Mapping[str, Any]  # Arrow columns by the names that selectors have for them


def index_of(
    filters: Iterable[tuple[str | bytes, int, str] | tuple[str | bytes, int, str, str | None]],
) -> matchcore.FrozenIndex:
    """An index of (filter, id, syntax), with a selector behind them where a subscription has one.

    Raises matchcore.InvalidFilter, matchcore.InvalidSelector, whose reasons name the subscription; ValueError.
    """
    index = matchcore.FilterIndex(max_words=WORDS_MAX)
    for text, number, syntax, *where in filters:
        try:
            index.insert(text, number, syntax=syntax, where=where[0] if where else None)
        except (matchcore.InvalidFilter, matchcore.InvalidSelector) as error:
            error.reason = f"{error.reason}, in the subscription {number} to {_spelt(text)!r}"
            raise
    return matchcore.freeze(index)


def match_column(index: matchcore.FilterIndex, topics: Any, syntax: str, fields: Fields | None = None) -> Matches:
    """The ids that match each topic of an Arrow string array without nulls, ascending; `fields`: a value a topic."""
    try:
        offsets, ids = _match(index, topics, syntax, fields)
    except matchcore.InvalidTopic:
        return _one_by_one(index, topics, syntax, fields)
    if pc.any(pc.starts_with(topics, "$")).as_py() and any(
        pc.any(pc.starts_with(topics, name)).as_py() for name in RESERVED
    ):
        return _one_by_one(index, topics, syntax, fields)
    return offsets, ids


def match_rows(index: matchcore.FilterIndex, topics: Any, syntaxes: Any, fields: Fields | None = None) -> Matches:
    """The same for each row, its topic in the syntax beside it. Null matches nothing.

    Each topic is asked once; with `fields`, each row is.
    """
    starts = np.zeros(len(topics), dtype=np.int64)  # of each row's ids among all that were found
    counts = np.zeros(len(topics), dtype=np.int64)
    found: list[NDArray[np.uint32]] = []
    base = 0
    for syntax in pc.unique(syntaxes).drop_null().to_pylist():
        rows = pc.and_(pc.fill_null(pc.equal(syntaxes, syntax), False), pc.is_valid(topics))
        if fields is None:
            encoded = topics.filter(rows).dictionary_encode()
            offsets, ids = match_column(index, encoded.dictionary, syntax)
            places = encoded.indices.to_numpy()
        else:
            of_rows = {name: column.filter(rows) for name, column in fields.items()}
            offsets, ids = match_column(index, topics.filter(rows), syntax, of_rows)
            places = np.arange(len(offsets) - 1)
        chosen = rows.to_numpy(zero_copy_only=False)
        starts[chosen] = base + offsets[:-1][places]
        counts[chosen] = np.diff(offsets)[places]
        found.append(ids)
        base += len(ids)
    ends = np.zeros(len(topics) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    gather = np.repeat(starts - ends[:-1], counts) + np.arange(ends[-1])
    return ends, np.concatenate([*found, np.empty(0, np.uint32)])[gather]


def matched(index: matchcore.FilterIndex, topics: Any, syntaxes: Any) -> Any:
    """A boolean Arrow array: which rows any filter matches."""
    for syntax in SEPARATORS:
        # Nearly always: no null, and one syntax. Each topic is asked once only where that is less work than asking all.
        if topics.null_count or syntaxes.null_count or not pc.all(pc.equal(syntaxes, syntax)).as_py():
            continue
        if not _come_again(topics):
            return pa.array(np.diff(match_column(index, topics, syntax)[0]) > 0)
        encoded = topics.dictionary_encode()
        return pa.array(np.diff(match_column(index, encoded.dictionary, syntax)[0]) > 0).take(encoded.indices)
    offsets, _ = match_rows(index, topics, syntaxes)
    return pa.array(np.diff(offsets) > 0)


def _come_again(topics: Any) -> bool:
    """Is it less work to ask each topic of a batch once? By its first rows: n of k topics have n²/2k repetitions."""
    rows = len(topics)
    sample = min(rows, SAMPLE)
    distinct = len(pc.unique(topics[:sample]))
    if distinct == sample:
        return False
    kinds = max(distinct, sample * sample / (2 * (sample - distinct)))
    return kinds * -math.expm1(-rows / kinds) < DISTINCT_MOST * rows


def words_of(topics: Any, syntaxes: Any, numbers: Sequence[int]) -> list[Any]:
    """A string array for each number of a word, from 1, or from the end below 0; null where a topic has no such."""
    if not numbers:
        return []
    parts, places = [], np.zeros(len(topics), dtype=np.int64)
    base = 0
    split: list[list[list[str]]] = []
    for syntax, separator in SEPARATORS.items():
        rows = pc.fill_null(pc.equal(syntaxes, syntax), False)
        encoded = topics.filter(rows).dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        split.append([topic.split(separator) for topic in distinct])
        indices = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        places[rows.to_numpy(zero_copy_only=False)] = np.where(indices < 0, -1, indices + base)
        base += len(distinct)
    known = pc.or_kleene(pc.equal(syntaxes, "amqp"), pc.equal(syntaxes, "mqtt"))
    places[~pc.fill_null(known, False).to_numpy(zero_copy_only=False)] = -1
    at = pa.array(places, mask=places < 0)
    for number in numbers:
        place = number - 1 if number > 0 else number
        found = [
            words[place] if -len(words) <= place < len(words) else None for topics in split for words in topics
        ]  # fmt: skip
        parts.append(pa.array(found, pa.string()).take(at))
    return parts


def wants(index: matchcore.FilterIndex, topic: str, syntax: str) -> bool:
    """Does any filter of an index without selectors match a topic?"""
    return bool(_ids(index, topic, syntax, {}))


def _match(index: matchcore.FilterIndex, topics: Any, syntax: str, fields: Fields | None) -> Matches:
    """By the buffers of the column, without an object for each topic."""
    width = np.int64 if pa.types.is_large_string(topics.type) else np.int32
    _, places, text = topics.buffers()
    if text is None or not len(topics):
        return index.match_many(topics.to_pylist(), syntax=syntax, fields=fields)
    offsets = np.frombuffer(places, dtype=width)[topics.offset : topics.offset + len(topics) + 1]
    return index.match_many(text, offsets=offsets, syntax=syntax, fields=fields)


def _one_by_one(index: matchcore.FilterIndex, topics: Any, syntax: str, fields: Fields | None) -> Matches:
    """The same where a topic is invalid or reserved."""
    found = [
        _ids(index, topic, syntax, row)
        for topic, row in zip(topics.to_pylist(), rows_of(fields or {}, len(topics)), strict=True)
    ]
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in found], out=offsets[1:])
    return offsets, np.array([id for row in found for id in row], dtype=np.uint32)


def rows_of(fields: Fields, count: int) -> Iterator[dict[str, Any]]:
    """The fields of each row, of columns of Arrow or lists."""
    columns = [column if isinstance(column, list) else column.to_pylist() for column in fields.values()]
    for row in zip(*columns, strict=True) if columns else [()] * count:
        yield dict(zip(fields, row, strict=True))


def _ids(index: matchcore.FilterIndex, topic: str, syntax: str, fields: dict[str, Any]) -> tuple[int, ...]:
    try:
        ids = index.match(topic, fields=fields, syntax=syntax)
    except matchcore.InvalidTopic:
        return ()
    if not ids or not topic.startswith(RESERVED):
        return ids
    name = topic.split(SEPARATORS[syntax], 1)[0]
    if name not in RESERVED:
        return ids
    found = index.matching(topic, syntax=syntax)
    found += [each[:3] for each in index.selected(topic, fields=fields, syntax=syntax)]
    return tuple(sorted({id for text, of, id in found if _first(text, of) == name}))


def _first(text: str | bytes, syntax: str) -> str:
    return _spelt(text).split(SEPARATORS[syntax], 1)[0]


def _spelt(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
