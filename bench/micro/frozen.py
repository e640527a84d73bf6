"""`python -m bench.micro.frozen`: what a frozen copy costs and how it is asked, as JSON on standard output.

Times are thread CPU time, the least of several passes, but for those of several threads, which are wall clock.

    held_ms            for which freeze holds the index: copying (bench/micro/engine.pyx)
    freeze_ms          all of a freeze; the rest runs beside changes of the index
    open_us            from_buffer without verification; verify_ms is what verification takes
    bytes_per_filter   of the copy, everything counted; live_bytes_per_filter is the index it was made of
    c_ns, match_ns     a match in C and from Python, each beside the live index's
    many_ns            a topic of match_many (bytes and offsets, as Arrow has them) by one thread, and two_threads how
                       many times as many topics two get through in the same time

"per_100k" has held_ms and freeze_ms per 100,000 filters: the bars are 5 and 20.
"""

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from itertools import accumulate
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy

from bench.micro import reporting
from bench.micro.match import Workload, workload
from matchcore import FilterIndex, FrozenIndex

try:
    from bench.micro.engine import held_ns, match_ns
except ImportError:  # it is optional: it needs thread CPU time in C
    held_ns = match_ns = None  # type: ignore[assignment]

PASSES = 7
DEFAULT = ["W1", "W2:10000", "W3:10000", "W3:100000"]


def least(passes: int, call: Callable[[], object], clock: Callable[[], int] = thread_time_ns) -> int:
    """ns of the quickest call."""
    best = None
    for _ in range(passes):
        start = clock()
        call()
        spent = clock() - start
        best = spent if best is None else min(best, spent)
    assert best is not None
    return best


def together(calls: list[Callable[[], object]]) -> None:
    """All at once, each in a thread of its own."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(work: Workload, passes: int = PASSES) -> dict[str, Any]:
    """The figures of one workload."""
    index = FilterIndex()
    empty = index.nbytes
    for id, text in enumerate(work.filters):
        index.insert(text, id, syntax=work.syntax)
    count = len(work.filters)
    syntax = work.syntax
    frozen = index.freeze()
    data, offsets = "".join(work.topics).encode(), [0, *accumulate(len(topic.encode()) for topic in work.topics)]
    arrow = numpy.array(offsets, dtype=numpy.int32)

    def many() -> None:
        frozen.match_many(data, offsets=arrow, syntax=syntax)

    freeze = least(passes, index.freeze) / 1e6
    opening = least(passes, lambda: FrozenIndex.from_buffer(frozen, verify=False))
    figures: dict[str, Any] = {
        "filters": count,
        "freeze_ms": round(freeze, 3),
        "per_100k": {"freeze_ms": round(freeze * 100_000 / count, 1)},
        "open_us": round(opening / 1e3, 1),
        "verify_ms": round((least(passes, lambda: FrozenIndex.from_buffer(frozen)) - opening) / 1e6, 3),
        "bytes_per_filter": round(len(memoryview(frozen)) / count),
        "live_bytes_per_filter": round((index.nbytes - empty) / count),
    }
    if held_ns is not None:
        held = held_ns(index, passes=passes) / 1e6
        figures["held_ms"] = round(held, 3)
        figures["per_100k"]["held_ms"] = round(held * 100_000 / count, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "filters.frozen")
        frozen.save(path)
        mapped = FrozenIndex.open(path)
    for name, one in (("", frozen), ("live_", index), ("mapped_", mapped)):
        if match_ns is not None:
            figures[f"{name}c_ns"] = round(match_ns(one, work.topics, syntax=syntax, passes=passes)[0])
        figures[f"{name}match_ns"] = round(
            least(passes, lambda one=one: [one.match(topic, syntax=syntax) for topic in work.topics])  # type: ignore[misc]
            / len(work.topics)
        )
    alone = least(passes, lambda: together([many]), perf_counter_ns)
    both = least(passes, lambda: together([many, many]), perf_counter_ns)
    figures["many_ns"] = round(alone / len(work.topics))
    figures["two_threads"] = round(2 * alone / both, 2)
    return figures


def main(arguments: list[str] | None = None) -> int:
    parser = reporting.parser("frozen", __doc__)
    parser.add_argument("workloads", nargs="*", help=f"W1, W3:100000, W4b ...; by default {' '.join(DEFAULT)}")
    parser.add_argument("--passes", type=int, default=PASSES, help=f"of which the least counts (default {PASSES})")
    options = parser.parse_args(arguments)
    results = {name: measure(workload(name), options.passes) for name in options.workloads or DEFAULT}
    return reporting.report("workloads", results)


if __name__ == "__main__":
    sys.exit(main())
