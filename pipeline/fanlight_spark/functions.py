"""Functions of SQL: topic filters, words of topics and selectors in a query.

    topic_matches(filter, topic)           does the filter match the topic?
    topic_matches(filter, topic, syntax)   both in this syntax: 'amqp', the default, or 'mqtt'
    topic_word(topic, n)                   its word n, counted from 1; from the end, -1 is the last
    topic_word(topic, n, syntax)           of a topic in this syntax
    selector_matches(where, fields)        is the selector true of these fields: a map, or a struct

Nulls are SQL's: a null argument gives null, and so does a selector that is unknown (docs/selectors.md), as Spark's own
`price > 100` does where the price is null. A topic that the grammar does not allow is matched by nothing. A filter or a
selector that cannot be read fails the query, and the error has its text and the byte.

Texts of a map have no types, as a map has values of one type: '12' is 12 beside a number, as a User Property of MQTT
is. So is a map of binaries, as the headers of an archive are. A struct's fields have their own types.

Each function takes a batch at a time, as Arrow has it. A text is read once for as long as it is among the last
COMPILED_AT_MOST of its worker.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

import matchcore
from fanlight_archive.arrow import pa, pc
from fanlight_spark import workers
from fanlight_spark.topics import match_rows, rows_of, words_of
from matchcore.kleene import Untyped, holds, key_of
from matchcore.selector import Not, Selector, Source, leaves
from matchcore.where import parse_where

COMPILED_AT_MOST: Final = 256  # texts
SYNTAXES: Final = ("amqp", "mqtt")
_TRUE, _FALSE = 1, 2  # ids of a selector and of its opposite


def topic_matches(filters: pa.Array, topics: pa.Array, *syntax: pa.Array) -> pa.Array:
    """Of three string arrays, or two: a boolean array. Raises matchcore.InvalidFilter, ValueError of a syntax."""
    if not syntax:
        return _by_text(filters, topics, _asking("amqp"))
    _must_be_syntaxes(syntax[0])
    chosen = {one: pc.fill_null(pc.equal(syntax[0], one), False) for one in SYNTAXES}
    return pc.coalesce(
        *(
            _by_text(pc.if_else(rows, filters, None), pc.if_else(rows, topics, None), _asking(one))
            for one, rows in chosen.items()
        )
    )


def topic_word(topics: pa.Array, numbers: pa.Array, *syntax: pa.Array) -> pa.Array:
    """Of strings and whole numbers: a string array; null where a topic has no such word. Raises ValueError."""
    workers.settle()
    topics, numbers = _whole(topics), _whole(numbers)
    if syntax:
        _must_be_syntaxes(syntax[0])
    syntaxes = _whole(syntax[0]) if syntax else pa.array(["amqp"] * len(topics), pa.string())
    distinct = pc.unique(numbers).drop_null().to_pylist()
    if 0 in distinct:
        raise ValueError("the number of a word is 1 or more; or, from the end, -1 or less")
    found = pa.nulls(len(topics), pa.string())
    for number, words in zip(distinct, words_of(topics, syntaxes, distinct), strict=True):
        found = pc.if_else(pc.fill_null(pc.equal(numbers, number), False), words, found)
    return found


def _must_be_syntaxes(given: pa.Array) -> None:
    if wrong := set(pc.unique(given).to_pylist()) - {*SYNTAXES, None}:
        raise ValueError(f"the syntax is 'amqp' or 'mqtt', not {min(wrong)!r}")


def _asking(syntax: str) -> Callable[[str, Any], Any]:
    return lambda text, part: _matched(text, syntax, part)


def _matched(text: str, syntax: str, topics: Any) -> Any:
    offsets, _ = match_rows(_index(text, syntax), topics, pa.array([syntax] * len(topics), pa.string()))
    return pc.if_else(pc.is_valid(topics), pa.array(np.diff(offsets) > 0), None)


@lru_cache(COMPILED_AT_MOST)
def _index(text: str, syntax: str) -> matchcore.FilterIndex:
    index = matchcore.FilterIndex(max_words=1_024)
    index.insert(text, 0, syntax=syntax)
    return index


def selector_matches(wheres: pa.Array, fields: pa.Array) -> pa.Array:
    """Of a string array and one of maps or structs: a boolean array. Raises matchcore.InvalidSelector, TypeError."""
    return _by_text(wheres, fields, lambda text, part: _selector(text).true_of(part))


def _by_text(texts: Any, values: Any, ask: Callable[[str, Any], Any]) -> Any:
    """What `ask` says of the values beside each text, in their order; null beside a null."""
    workers.settle()
    texts, values = _whole(texts), _whole(values)
    distinct = pc.unique(texts).drop_null().to_pylist()
    if len(distinct) == 1 and texts.null_count == 0:
        return ask(distinct[0], values)
    found, places = [pa.nulls(1, pa.bool_())], np.zeros(len(texts), dtype=np.int64)
    count = 1
    for text in distinct:
        rows = np.flatnonzero(pc.fill_null(pc.equal(texts, text), False).to_numpy(zero_copy_only=False))
        found.append(ask(text, values.take(pa.array(rows))))
        places[rows] = count + np.arange(len(rows))
        count += len(rows)
    return pa.concat_arrays(found).take(pa.array(places))


def _whole(array: Any) -> Any:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


@lru_cache(COMPILED_AT_MOST)
def _selector(text: str) -> "_Asked":
    return _Asked(parse_where(text))


class _Asked:
    """A selector, compiled, with its opposite: what neither is true of is unknown."""

    def __init__(self, tree: Selector) -> None:
        self.tree = tree
        attributes = {leaf.attribute for leaf in leaves(tree)}
        self.keys = sorted(key for attribute in attributes if isinstance(key := key_of(attribute), str))
        self.index: matchcore.FilterIndex | None = matchcore.FilterIndex()
        try:
            self.index.insert("#", _TRUE, where=tree)
            self.index.insert("#", _FALSE, where=Not(tree))
        except matchcore.InvalidSelector:  # its opposite is beyond the limits of a text
            self.index = None
        if any(one.source is Source.MESSAGE and one.path[0] in ("word", "words") for one in attributes):
            self.index = None  # which would take them from a topic

    def true_of(self, fields: Any) -> Any:
        """Of an array of maps or structs."""
        columns = {key: column for key, column in self._columns(fields) if column is not None}
        if self.index is None:
            found = [holds(self.tree, row) for row in rows_of(columns, len(fields))]
            return pc.if_else(pc.is_valid(fields), pa.array(found, pa.bool_()), None)
        offsets, ids = self.index.match_many(b"", offsets=np.zeros(len(fields) + 1, dtype=np.int64), fields=columns)
        known = np.diff(offsets) > 0
        values = np.zeros(len(fields), dtype=bool)
        values[known] = ids == _TRUE  # never both of them
        return pc.if_else(pc.is_valid(fields), pa.array(values, mask=~known), None)

    def _columns(self, fields: Any) -> Any:
        if pa.types.is_struct(fields.type):
            names = [fields.type.field(place).name for place in range(fields.type.num_fields)]
            parts = fields.flatten()
            return [(key, parts[names.index(key)] if key in names else None) for key in self.keys]
        if not pa.types.is_map(fields.type):
            raise TypeError(f"selector_matches takes a map or a struct, not {fields.type}")
        if not pa.types.is_string(fields.type.key_type):
            raise TypeError(f"selector_matches takes a map whose keys are strings, not {fields.type.key_type}")
        return [(key, _untyped(pc.map_lookup(fields, pa.scalar(key), "first"))) for key in self.keys]


def _untyped(column: Any) -> Any:
    """Texts without a type, of text and of bytes; others as they are."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return [None if value is None else Untyped(value) for value in column.to_pylist()]
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return [None if value is None else _text_of(value) for value in column.to_pylist()]
    return column


def _text_of(octets: bytes) -> str | bytes:
    try:
        return Untyped(octets.decode())
    except UnicodeDecodeError:
        return octets
