"""Selectors of many rows, ns a row: match_many with columns, without the GIL, beside a match for each row.

    match       FilterIndex.match(topic, fields=row), a dict for each row, made before
    many        match_many(topics, offsets=, fields=): a record batch of Arrow, of lists where pyarrow is missing
    lists       match_many(topics, fields=): lists of Python's values

    open        a frozen copy with these selectors, ns a selector, verified; `frozen_bytes` it has for each
    build       the same, and then a topic of each filter: all selectors are read and compiled

The selectors are those of `screens`: two conditions each on 20 attributes, of which a row has 14.
"""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.screens import message, two_conditions
from matchcore import FilterIndex, FrozenIndex, freeze
from matchcore.kleene import key_of

FILTERS = 54
ROWS = 2_000
BUILT_AT_MOST = 10_000  # selectors: a turn takes a second


def as_arrow(columns: dict[str, list[Any]]) -> Any:
    """A record batch; columns of lists where pyarrow is missing."""
    try:
        import pyarrow  # type: ignore[import-untyped, unused-ignore]
    except ModuleNotFoundError:
        return columns
    return pyarrow.record_batch(columns)


def one_by_one(index: FilterIndex, topics: list[str], rows: list[dict[str, object]]) -> list[tuple[int, ...]]:
    return [index.match(topic, fields=row) for topic, row in zip(topics, rows, strict=True)]


def build(frozen: FrozenIndex) -> None:
    opened = FrozenIndex.from_buffer(frozen)
    for filter in range(FILTERS):
        opened.match(f"site.{filter}.x")


def measure(count: int, rows: int) -> Group:
    dice = random.Random(16)
    index = FilterIndex()
    for id in range(count):
        index.insert(f"site.{id % FILTERS}.*", id, where=two_conditions(dice))
    topics = [f"site.{dice.randrange(FILTERS)}.x" for _ in range(rows)]
    fields = [{str(key_of(attribute)): value for attribute, value in message(dice).items()} for _ in range(rows)]
    names = sorted({name for row in fields for name in row})
    columns = {name: [row.get(name) for row in fields] for name in names}
    batch = as_arrow(columns)
    text = "".join(topics).encode()
    ends = numpy.cumsum([0, *map(len, topics)])
    expected = one_by_one(index, topics, fields)
    offsets, ids = index.match_many(text, offsets=ends, fields=batch)
    if [tuple(ids[offsets[row] : offsets[row + 1]].tolist()) for row in range(rows)] != expected:
        raise ValueError("match_many finds other ids than match")
    frozen = freeze(index)
    many = partial(index.match_many, offsets=ends, fields=batch)
    lists = partial(index.match_many, fields=columns)
    cases = [
        Case("match", rows, partial(timed, one_by_one, index, topics, fields)),
        Case("many", rows, partial(timed, many, text), ("match",)),
        Case("lists", rows, partial(timed, lists, topics), ("match",)),
        Case("open", count, partial(timed, FrozenIndex.from_buffer, frozen)),
    ]
    if count <= BUILT_AT_MOST:
        cases.append(Case("build", count, partial(timed, build, frozen), ("open",)))
    facts = {
        "frozen_bytes": round(len(memoryview(frozen)) / count),
        "selectors": count,
        "rows": rows,
        "found": round(len(ids) / rows, 1),
        "columns": type(batch).__name__,
    }
    return Group(f"{count:,} selectors on {FILTERS} filters", cases, facts)


def groups(effort: Effort) -> Iterator[Group]:
    rows = effort.sized(ROWS, 100)
    for count in (54, 1_000) if effort.quick else (540, 10_000, 100_000):
        yield measure(count, rows)
