"""Which subscriptions get which messages: `match_topics` from Parquet, beside the obvious ways to do it in Spark.

    scan            the topics of all messages, from Parquet: no matching is quicker
    match_topics    ours
    rlike           a join whose condition is `topic RLIKE pattern`, the filters as regular expressions
    rlike, topics   the same for the distinct topics only, joined back to the messages: what one does next
    paho            a Python UDF with paho-mqtt's MQTTMatcher, explode of what it gives
    paho, topics    the same for the distinct topics only, joined back to the messages

Both indexes are built outside the clock: ours by `index_of`, paho's once in each worker, before the turns that count.
With `topics of their own` each message has a topic that no other has: then matching distinct topics saves nothing.

All give a row for each message and each filter that matches it, and are found to give equally many before they are
measured. `rlike` and `paho` are given fewer messages: their rates are what counts. `rlike, topics` and `paho, topics`
are given all, for their work is the same for few and for many.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from fanlight_bench.pipeline import messages
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup, noop
from fanlight_spark.matching import match_topics
from fanlight_spark.topics import index_of

SIZES = (1_000, 100_000, 1_000_000)
QUICK_SIZES = (100,)
RLIKE_UP_TO = 1_000  # filters: with more it takes minutes
RLIKE, PAHO = 1_000, 200_000  # messages that each is given
DISTINCT, DISTINCT_FILTERS = 1_000_000, 100_000  # messages with topics of their own, and filters for them
_MATCHERS: dict[int, Any] = {}  # in a Python worker: paho's index of the filters in use, by how many they are


def expression(filter: str) -> str:
    """A filter of MQTT as a regular expression for all of a topic."""
    words = filter.split("/")
    below = words[-1] == "#"
    kept = words[:-1] if below else words
    text = "/".join("[^/]*" if word == "+" else re.escape(word) for word in kept)
    return f"^{text}{'(/.*)?' if below else ''}$"


def by_paho(session: Any, filters: Sequence[str]) -> Any:
    """A UDF from a topic to the numbers of the filters that match it."""
    shared = session.sparkContext.broadcast(list(filters))

    def match(topic: str) -> list[int]:
        # By the module's name: what a function refers to is sent with it, and would be new in each task.
        found: Any = import_module("fanlight_bench.pipeline.matching")
        return list(found.paho_index(shared).iter_match(topic))

    # Not deterministic: else Spark asks it twice, to leave out topics that nothing matches.
    return F.udf(match, "array<bigint>", useArrow=False).asNondeterministic()


def paho_index(shared: Any) -> Any:
    """The MQTTMatcher of the filters in a broadcast, built once in a worker."""
    size = len(shared.value)
    if size not in _MATCHERS:
        matcher: Any = import_module("paho.mqtt.matcher").MQTTMatcher()
        for number, filter in enumerate(shared.value):
            matcher[filter] = number
        _MATCHERS.clear()
        _MATCHERS[size] = matcher
    return _MATCHERS[size]


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    session, names = bench.session, messages.topics()
    all_topics = messages.drawn(names, bench.rows)
    sets = {
        rows: session.read.parquet(str(messages.write_topics(bench.folder / f"topics-{rows}", all_topics[:rows])))
        for rows in {bench.rows, *map(bench.some, (RLIKE, PAHO))}
    }
    for size in QUICK_SIZES if bench.quick else SIZES:
        yield _group(bench, names, all_topics, sets, messages.filters(names, size))
    yield _distinct(bench, names, bench.some(DISTINCT), QUICK_SIZES[0] if bench.quick else DISTINCT_FILTERS)


def _distinct(bench: Bench, names: Sequence[str], rows: int, size: int) -> PipelineGroup:
    """Messages with topics of their own, each below one that filters are for."""
    session, filters = bench.session, messages.filters(names, size)
    below = [f"{name}/{number}" for number, name in enumerate(messages.drawn(names, rows))]
    whole = session.read.parquet(str(messages.write_topics(bench.folder / "distinct", below)))
    index = index_of((text, number, "mqtt") for number, text in enumerate(filters))
    expected = int(index.match_many(below, syntax="mqtt")[0][-1])
    frames = {
        "match_topics": match_topics(whole, index, syntax="mqtt"),
        "few_topics=False": match_topics(whole, index, syntax="mqtt", few_topics=False),
    }
    if find_spec("paho") is not None:
        match = by_paho(session, filters)
        frames["paho"] = whole.select("topic", F.explode(match("topic")).alias("subscription"))
    for name, frame in frames.items():
        if (counted := frame.count()) != expected:
            raise AssertionError(f"distinct topics: {name} finds {counted:,} matches, and not {expected:,}")
    beside = tuple(name for name in frames if name != "match_topics")
    cases = [
        PipelineCase(name, rows, partial(noop, frame), beside if name == "match_topics" else ())
        for name, frame in frames.items()
    ]
    facts = {"filters": size, "topics": rows, "matches_per_message": round(expected / rows, 2)}
    return PipelineGroup(f"{size:,} filters, topics of their own", cases, facts)


def _group(
    bench: Bench, names: Sequence[str], all_topics: Sequence[str], sets: dict[int, Any], filters: Sequence[str]
) -> PipelineGroup:
    session, whole = bench.session, sets[bench.rows]
    index = index_of((text, number, "mqtt") for number, text in enumerate(filters))
    found = dict(zip(names, np.diff(index.match_many(list(names), syntax="mqtt")[0]).tolist(), strict=True))
    ours = match_topics(whole, index, syntax="mqtt")
    frames: dict[str, tuple[int, Any]] = {"match_topics": (bench.rows, ours)}
    if len(filters) <= RLIKE_UP_TO:
        patterns = session.createDataFrame(
            [(expression(text), number) for number, text in enumerate(filters)], "pattern STRING, subscription BIGINT"
        )
        few = bench.some(RLIKE)
        frames["rlike"] = few, _rlike(sets[few], patterns)
        matched = _rlike(whole.distinct(), patterns)
        frames["rlike, topics"] = bench.rows, whole.join(F.broadcast(matched), "topic")
    if find_spec("paho") is not None:
        few = bench.some(PAHO)
        match = by_paho(session, filters)
        frames["paho"] = few, sets[few].select("topic", F.explode(match("topic")).alias("subscription"))
        matched = whole.distinct().select("topic", F.explode(match("topic")).alias("subscription"))
        frames["paho, topics"] = bench.rows, whole.join(F.broadcast(matched), "topic")
    for name, (rows, frame) in frames.items():
        expected = sum(found[topic] for topic in all_topics[:rows])
        if (counted := frame.count()) != expected:
            raise AssertionError(f"{len(filters):,} filters: {name} finds {counted:,} matches, and not {expected:,}")
    others = tuple(name for name in frames if name != "match_topics")
    cases = [PipelineCase("scan", bench.rows, lambda: noop(whole))]
    cases += [
        PipelineCase(
            name, rows, partial(noop, frame), ("scan", *others) if name == "match_topics" else (), "rlike" in name
        )
        for name, (rows, frame) in frames.items()
    ]
    facts = {
        "filters": len(filters),
        "topics": len(names),
        "matches_per_message": round(sum(found[topic] for topic in all_topics) / len(all_topics), 2),
        "index_bytes": len(index.to_bytes()),
    }
    return PipelineGroup(f"{len(filters):,} filters", cases, facts)


def _rlike(topics: Any, patterns: Any) -> Any:
    return topics.join(F.broadcast(patterns), F.expr("topic RLIKE pattern")).select("topic", "subscription")
