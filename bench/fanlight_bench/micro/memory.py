"""An index's bytes, beside what the process grew by, and its longest single calls; no times to be compared.

The filters of a workload are made first and stay; then each is inserted with one id, and all are removed in random
order, and that again: the last round is what counts for a process that has run for long. "nbytes" is what the index
says it holds, texts and all; "resident" what the process holds more than before the first insert, by /proc, when malloc
has given back what it can. Both per filter while all are held, and in bytes when none is: there "nbytes" is to be that
of a new index, and "resident" a few megabytes of malloc's own at most. Off Linux "resident" is null. The process should
be new: after other benches malloc has free memory to use up first.

"worst_insert_ms" and "worst_remove_ms" are the longest single calls of a round, in ms of thread CPU time, with what
the kernel does for them: a new huge page, 2 MiB to be cleared, counts as ours. There tables grow and arenas are packed.

The bars of the design: a million filters of W3 with one id each in 160 bytes a filter, by either count; no call over
5 ms with 100,000 filters.
"""

import ctypes
import gc
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from time import thread_time_ns
from typing import Any

from fanlight_bench.micro.case import Effort, Group
from fanlight_bench.procfs import resident_bytes
from fanlight_bench.workloads import SEED, workload
from matchcore import FilterIndex

WORKLOADS = ("W3:1000000",)
ROUNDS = 2


def resident_now() -> int | None:
    """Bytes, after what is free was given back to the system."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; musl has none and keeps little
        if trim is not None:
            trim(0)
    return resident_bytes(os.getpid())


def measure(name: str, rounds: int) -> dict[str, Any]:
    """The figures of the last round, and those of all."""
    work = workload(name)
    filters = [text.encode() for text in work.filters]
    shuffled = list(range(len(filters)))
    random.Random(SEED).shuffle(shuffled)
    syntax = work.syntax
    del work
    index = FilterIndex()
    empty, before = index.nbytes, resident_now()
    lines = []
    for _ in range(rounds):
        pairs = ((text, id) for id, text in enumerate(filters))
        held, worst = _changed(index.insert, pairs, syntax)
        nbytes, resident = index.nbytes - empty, resident_now()
        line: dict[str, Any] = {
            "nbytes_per_filter": round(nbytes / held, 1),
            "resident_per_filter": _less(resident, before, held),
            "worst_insert_ms": worst,
        }
        _, line["worst_remove_ms"] = _changed(index.remove, ((filters[at], at) for at in shuffled), syntax)
        lines.append(line | {"nbytes_left": index.nbytes - empty, "resident_left": _less(resident_now(), before, 1)})
    return {"filters": len(filters), **lines[-1], "rounds": lines}


def _changed(call: Callable[..., bool], pairs: Iterable[tuple[bytes, int]], syntax: str) -> tuple[int, float]:
    """How many calls changed something, and the longest of them in ms."""
    changed = 0
    worst = 0
    for text, id in pairs:
        start = thread_time_ns()
        changed += call(text, id, syntax=syntax)
        worst = max(worst, thread_time_ns() - start)
    return changed, round(worst / 1e6, 1)


def _less(resident: int | None, before: int | None, count: int) -> float | None:
    return None if resident is None or before is None else round((resident - before) / count, 1)


def groups(effort: Effort) -> Iterator[Group]:
    for name in effort.chosen(WORKLOADS, "W3:10000"):
        yield Group(name, (), measure(name, ROUNDS))
