"""`python -m bench.micro.memory`: what an index holds, beside what the process grew by, as JSON on standard output.

The filters of a workload (bench/micro/match.py) are made first and stay; then each is inserted with one id, and all are
removed in random order, and that again. "nbytes" is what the index says it holds, texts and all; "resident" what the
process holds more than before the first insert, by /proc, when malloc has given back what it can. Both per filter
while all are held, and in bytes when none is: there "nbytes" is to be that of a new index, and "resident" a few
megabytes of malloc's own at most. Off Linux "resident" is null.

The bar of the design: a million filters of W3 with one id each in 160 bytes a filter, by either count.
"""

import ctypes
import gc
import os
import random
import sys
from typing import Any

from bench.micro import reporting
from bench.micro.match import SEED, workload
from bench.procfs import resident_bytes
from matchcore import FilterIndex

DEFAULT = ["W3:1000000"]
ROUNDS = 2


def _resident() -> int | None:
    """Bytes, after what is free was given back to the system."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; musl has none and keeps little
        if trim is not None:
            trim(0)
    return resident_bytes(os.getpid())


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Each round of a workload; its last line is what counts for a process that has run for long."""
    work = workload(name)
    filters = [text.encode() for text in work.filters]
    shuffled = list(range(len(filters)))
    random.Random(SEED).shuffle(shuffled)
    syntax = work.syntax
    del work
    index = FilterIndex()
    empty, before = index.nbytes, _resident()
    lines = []
    for _ in range(rounds):
        held = 0
        for id, text in enumerate(filters):
            held += index.insert(text, id, syntax=syntax)
        nbytes, resident = index.nbytes - empty, _resident()
        line: dict[str, Any] = {
            "nbytes_per_filter": round(nbytes / held, 1),
            "resident_per_filter": _less(resident, before, held),
        }
        for at in shuffled:
            index.remove(filters[at], at, syntax=syntax)
        lines.append(line | {"nbytes_left": index.nbytes - empty, "resident_left": _less(_resident(), before, 1)})
    return {"filters": len(filters), "rounds": lines}


def _less(resident: int | None, before: int | None, count: int) -> float | None:
    return None if resident is None or before is None else round((resident - before) / count, 1)


def main(arguments: list[str] | None = None) -> int:
    parser = reporting.parser("memory", __doc__)
    parser.add_argument("workloads", nargs="*", help=f"W1, W3:100000, W4b ...; by default {' '.join(DEFAULT)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of inserting and removing all (default {ROUNDS})")
    options = parser.parse_args(arguments)
    results = {name: measure(name, options.rounds) for name in options.workloads or DEFAULT}
    return reporting.report("workloads", results)


if __name__ == "__main__":
    sys.exit(main())
