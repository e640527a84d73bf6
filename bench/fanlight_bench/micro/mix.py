"""Matches with changes among them (W5): ns an operation, as called from Python.

    matches    of a thousand hot topics, without a change
    90 %, 50 % the share of matches; the rest are removals and inserts, with at most a hundred filters removed

Beside matches: the mixes. The filters are the same before and after.
"""

import random
from collections.abc import Iterator
from functools import partial
from time import thread_time_ns

from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_bench.micro.match import HOT_TOPICS, filled
from fanlight_bench.workloads import SEED, Workload, workload
from matchcore import FilterIndex

WORKLOADS = ("W2:10000", "W3:10000", "W3:100000")
CALLS = 40_000
OUT = 100


def mixed(index: FilterIndex, work: Workload, reads: int, calls: int) -> int:
    """ns of these calls, of which `reads` per cent are matches."""
    dice = random.Random(SEED)
    hot = [dice.choice(work.topics[:HOT_TOPICS]) for _ in range(calls)]
    changed = [dice.randrange(len(work.filters)) for _ in range(calls)]
    is_read = [dice.randrange(100) < reads for _ in range(calls)]
    syntax, filters = work.syntax, work.filters
    gone: list[int] = []
    held = [True] * len(filters)
    start = thread_time_ns()
    for i in range(calls):
        if is_read[i]:
            index.match(hot[i], syntax=syntax)
        elif len(gone) < OUT and held[changed[i]]:
            index.remove(filters[changed[i]], changed[i], syntax=syntax)
            held[changed[i]] = False
            gone.append(changed[i])
        elif gone:
            id = gone.pop(0)
            index.insert(filters[id], id, syntax=syntax)
            held[id] = True
    spent = thread_time_ns() - start
    for id in gone:
        index.insert(filters[id], id, syntax=syntax)
    return spent


def groups(effort: Effort) -> Iterator[Group]:
    calls = CALLS // 20 if effort.quick else CALLS
    for name in effort.chosen(WORKLOADS, "W2"):
        work = workload(name)
        index = filled(work)
        mixes = [
            Case(f"{reads} %", calls, partial(mixed, index, work, reads, calls), ("matches",)) for reads in (90, 50)
        ]
        matches = Case("matches", calls, partial(mixed, index, work, 100, calls))
        yield Group(name, [matches, *mixes], {"filters": len(work.filters)})
