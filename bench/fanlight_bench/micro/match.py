"""The matcher asked for a topic, among filters with wildcards: ns a match.

    in C           bench/fanlight_bench/micro/engine.pyx: slots into a buffer, distinct topics
    in C, hot      the same thousand topics again and again
    in C, any      the first match only
    match, hot     as called from Python, the result tuple included
    any, many      match_any; match_many, ns a topic
    call           a call from Python that does nothing: the floor of those three
    dict           a dict that has the topics, asked: the floor of any look-up of a whole topic
    oracle         matchcore/matchcore/reference.py, plain Python, of few topics; the answers must be equal

Beside dict: matches; beside match: the oracle. `tiers` says what is where in the index, `workloads.py` what is asked.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.workloads import SEED, Workload, workload
from matchcore import FilterIndex
from matchcore.reference import ReferenceFilterIndex

try:
    from fanlight_bench.micro.engine import match_ns, nothing
except ImportError:  # it is optional: it needs thread CPU time in C
    match_ns = nothing = None  # type: ignore[assignment]

WORKLOADS = ("W1", "W1v", "W2:10000", "W3:1000", "W3:10000", "W3:100000", "W6", "W6L")
HOT_TOPICS = 1_000
ORACLE_TOPICS = 3
ORACLE_FILTERS = 10_000  # larger sets are not given to it
QUICK_TOPICS = 2_000


def drain(call: Callable[..., object], items: Iterable[Any]) -> None:
    """Call it with each, the loop being in C."""
    deque(map(call, items), maxlen=0)


def filled(work: Workload) -> FilterIndex:
    """Its filters, each with its place as its id."""
    index = FilterIndex()
    for id, text in enumerate(work.filters):
        index.insert(text, id, syntax=work.syntax)
    return index


def oracle(work: Workload, index: FilterIndex, topics: list[str]) -> ReferenceFilterIndex:
    """The same in plain Python. AssertionError: the two disagree."""
    plain = ReferenceFilterIndex()
    for id, text in enumerate(work.filters):
        plain.insert(text, id, syntax=work.syntax)
    for topic in topics:
        if index.match(topic, syntax=work.syntax) != plain.match(topic, syntax=work.syntax):
            raise AssertionError(f"{work.name}: the index and the oracle disagree about {topic}")
    return plain


def measure(work: Workload, topics: list[str]) -> Group:
    index = filled(work)
    hot = topics[:HOT_TOPICS] * (len(topics) // HOT_TOPICS or 1)
    offsets, ids = index.match_many(topics, syntax=work.syntax)
    match, any = partial(index.match, syntax=work.syntax), partial(index.match_any, syntax=work.syntax)
    cases = [
        Case("dict", len(topics), partial(timed, drain, dict.fromkeys(topics).get, topics)),
        Case("match", len(topics), partial(timed, drain, match, topics), ("dict",)),
        Case("hot", len(hot), partial(timed, drain, match, hot), ("dict",)),
        Case("any", len(topics), partial(timed, drain, any, topics), ("dict",)),
        Case("many", len(topics), partial(timed, partial(index.match_many, syntax=work.syntax), topics), ("dict",)),
    ]
    if match_ns is not None:

        def in_c(given: list[str], any: bool = False) -> float:
            return match_ns(index, given, syntax=work.syntax, passes=1, any=any)[0] * len(given)

        cases += [
            Case("call", len(topics), partial(timed, drain, partial(nothing, syntax=work.syntax), topics)),
            Case("in C", len(topics), partial(in_c, topics), ("dict",)),
            Case("in C, hot", len(hot), partial(in_c, hot), ("dict",)),
            Case("in C, any", len(topics), partial(in_c, topics, True), ("dict",)),
        ]
    if len(work.filters) <= ORACLE_FILTERS:
        few = random.Random(SEED).sample(topics, ORACLE_TOPICS)
        plain = partial(oracle(work, index, few).match, syntax=work.syntax)
        cases.append(Case("oracle", len(few), partial(timed, drain, plain, few), ("match",)))
    facts = {
        "filters": len(work.filters),
        "matches_per_topic": round(len(ids) / (len(offsets) - 1), 2),
        "tiers": index._tiers(),
    }
    return Group(work.name, cases, facts)


def groups(effort: Effort) -> Iterator[Group]:
    for name in effort.chosen(WORKLOADS, "W2"):
        work = workload(name)
        yield measure(work, work.topics[:QUICK_TOPICS] if effort.quick else work.topics)
