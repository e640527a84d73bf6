"""A frozen copy of an index: what it costs to make, and what it costs to ask, beside the live index.

    freeze         all of it: ns a filter. `held` is the part for which the index is held, copying (in engine.pyx); the
                   rest runs beside changes of the index. The bars of the design: 50 ns held and 200 in all
    open, verify   from_buffer without and with verification: ns a filter
    match ...      from Python, a topic: of the copy, of one mapped from a file, of the live index
    in C ...       the same without Python
    many           match_many (bytes and offsets, as Arrow has them), a topic, by one thread

Beside the live index: the copies. `bytes_per_filter` of the copy, everything counted; `live_bytes_per_filter` is the
index it was made of. `two_threads` is how many times as many topics two get through in the same time, by the wall.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from time import perf_counter_ns

import numpy

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.match import QUICK_TOPICS, drain, filled
from fanlight_bench.workloads import Workload, workload
from matchcore import FilterIndex, FrozenIndex, freeze

try:
    from fanlight_bench.micro.engine import held_ns, match_ns
except ImportError:  # it is optional: it needs thread CPU time in C
    held_ns = match_ns = None  # type: ignore[assignment]

WORKLOADS = ("W1", "W2:10000", "W3:10000", "W3:100000")
THREAD_PASSES = 5


def measure(work: Workload, topics: list[str]) -> Group:
    index = filled(work)
    count = len(work.filters)
    frozen = freeze(index)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "filters.frozen")
        frozen.save(path)
        mapped = FrozenIndex.open(path)  # which outlives the name
    data = "".join(topics).encode()
    offsets = numpy.array([0, *accumulate(len(topic.encode()) for topic in topics)], dtype=numpy.int32)
    many = partial(frozen.match_many, data, offsets=offsets, syntax=work.syntax)
    cases = [
        Case("freeze", count, partial(timed, freeze, index)),
        Case("open", count, lambda: timed(partial(FrozenIndex.from_buffer, frozen, verify=False))),
        Case("verify", count, partial(timed, FrozenIndex.from_buffer, frozen)),
        Case("many", len(topics), partial(timed, many), ("match live",)),
    ]
    if held_ns is not None:
        cases.append(Case("held", count, partial(held_ns, index, passes=1), ("freeze",)))
    for name, one in (("live", index), ("copy", frozen), ("mapped", mapped)):
        beside = () if name == "live" else ("match live",)
        match = partial(one.match, syntax=work.syntax)
        cases.append(Case(f"match {name}", len(topics), partial(timed, drain, match, topics), beside))
        if match_ns is not None:
            beside = () if name == "live" else ("in C live",)
            cases.append(Case(f"in C {name}", len(topics), partial(in_c, one, topics, work.syntax), beside))
    facts = {
        "filters": count,
        "bytes_per_filter": round(len(memoryview(frozen)) / count),
        "live_bytes_per_filter": round((index.nbytes - FilterIndex().nbytes) / count),
        "two_threads": threads(many),
    }
    return Group(work.name, cases, facts)


def in_c(index: FilterIndex | FrozenIndex, topics: list[str], syntax: str) -> float:
    return match_ns(index, topics, syntax=syntax, passes=1)[0] * len(topics)


def threads(many: Callable[[], object]) -> float:
    """How many times as much two do as one."""
    alone = min(together([many]) for _ in range(THREAD_PASSES))
    both = min(together([many, many]) for _ in range(THREAD_PASSES))
    return round(2 * alone / both, 2)


def together(calls: list[Callable[[], object]]) -> int:
    """ns of the wall clock for all of them at once, each in a thread of its own."""
    started = [threading.Thread(target=call) for call in calls]
    start = perf_counter_ns()
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return perf_counter_ns() - start


def groups(effort: Effort) -> Iterator[Group]:
    for name in effort.chosen(WORKLOADS, "W2"):
        work = workload(name)
        yield measure(work, work.topics[:QUICK_TOPICS] if effort.quick else work.topics)
