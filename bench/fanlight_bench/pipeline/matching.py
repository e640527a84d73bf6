"""Which subscriptions get which messages: `match_topics` from Parquet, beside the obvious ways to do it in Spark.

    scan            the topics of all messages, from Parquet: no matching is quicker
    match_topics    ours
    rlike           a join whose condition is `topic RLIKE pattern`, the filters as regular expressions
    rlike, topics   the same for the distinct topics only, joined back to the messages: what one does next
    join, topics    the distinct topics exploded into all filters that would match them (a topic of n words has
                    2^(n+1) and more), joined with the filters by equality, and back to the messages: no Python at all
    mapInPandas     paho-mqtt's MQTTMatcher over batches of messages, asked once for each topic of a batch
    paho            a Python UDF with the same matcher, called for each message, explode of what it gives
    paho, topics    the same for the distinct topics only, joined back to the messages

All indexes are built outside the clock: ours by `index_of`, paho's once in each worker, before the turns that count,
and the table of filters of the join is in memory; the hash table that Spark makes of it in each query is within.
With `topics of their own` each message has a topic that no other has: then matching distinct topics saves nothing.

All give a row for each message and each filter that matches it, and are found to give equally many before they are
measured. `rlike`, `mapInPandas` and `paho` are given fewer messages: their rates are what counts. `rlike, topics`,
`join, topics` and `paho, topics` are given all, for their work is the same for few and for many.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from fanlight_bench.pipeline import baselines, messages
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup, noop
from fanlight_spark.matching import match_topics
from fanlight_spark.topics import index_of

SIZES = (1_000, 100_000, 1_000_000)
QUICK_SIZES = (100,)
RLIKE_UP_TO = 1_000  # filters: with more it takes minutes
RLIKE, PAHO = 1_000, 200_000  # messages that each is given
DISTINCT, DISTINCT_FILTERS = 1_000_000, 100_000  # messages with topics of their own, and filters for them


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
    table = baselines.filter_table(session, bench.folder / "filters-distinct", filters)
    frames["join"] = baselines.by_join(whole, table)
    if find_spec("paho") is not None:
        shared = baselines.shared_filters(session, filters)
        frames["mapInPandas"] = baselines.by_pandas(whole, shared)
        frames["paho"] = baselines.by_paho(whole, shared)
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
        few = bench.some(RLIKE)
        frames["rlike"] = few, baselines.by_rlike(session, sets[few], filters)
        frames["rlike, topics"] = bench.rows, _joined(whole, baselines.by_rlike(session, whole.distinct(), filters))
    table = baselines.filter_table(session, bench.folder / f"filters-{len(filters)}", filters)
    frames["join, topics"] = bench.rows, _joined(whole, baselines.by_join(whole.distinct(), table))
    if find_spec("paho") is not None:
        few, shared = bench.some(PAHO), baselines.shared_filters(session, filters)
        frames["mapInPandas"] = few, baselines.by_pandas(sets[few], shared)
        frames["paho"] = few, baselines.by_paho(sets[few], shared)
        frames["paho, topics"] = bench.rows, _joined(whole, baselines.by_paho(whole.distinct(), shared))
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


def _joined(messages: Any, matched: Any) -> Any:
    """The messages with what their topics match."""
    return messages.join(F.broadcast(matched), "topic")
