"""What the bars ask besides the tables: the call itself, the longest single change, the growth of the process.

python -m fanlight_matchers.aside W3 1000000     the growth of a process that inserts them: a process of its own
"""

import json
import os
import subprocess
import sys
from time import thread_time_ns

from fanlight_bench import workloads
from fanlight_bench.micro import engine, names
from fanlight_bench.procfs import resident_bytes
from fanlight_matchers.measure import Effort, given_bytes
from fanlight_matchers.ours import Ours
from matchcore import FilterIndex, freeze

NAMES_ASKED = {
    "ten": ("scattered", "device at a floor"),
    "thousand": ("crowded", "device"),
    "none": ("scattered", "unknown word"),
}


def boundary(effort: Effort) -> dict[str, float]:
    """ns of a call whose answer is (): of `match`, of a compiled function that does nothing, and of the match in C."""
    work = workloads.make("W1")
    ours = Ours("amqp")
    for id, text in enumerate(work.filters):
        ours.insert(text, id)
    topics = work.topics[:40_000:2]  # every second one matches
    found = sum(bool(ours.match(topic)) for topic in topics)
    if found:
        raise AssertionError(f"{found} of {len(topics)} topics match")
    few = topics[: max(200, effort.topics // 8)]
    match, nothing = ours.index.match, engine.nothing

    def call() -> int:
        start = thread_time_ns()
        for topic in few:
            match(topic)
        return thread_time_ns() - start

    def floor() -> int:
        start = thread_time_ns()
        for topic in few:
            nothing(topic)
        return thread_time_ns() - start

    rounds = 2 * effort.passes
    return {
        "call": min(call() for _ in range(rounds)) / len(few),
        "floor": min(floor() for _ in range(rounds)) / len(few),
        "c": ours.bench(few, rounds)[0],
    }


def pauses(work: workloads.EncodedWorkload) -> dict[str, float]:
    """ns of the longest single insert and removal, while the index grows to all filters and shrinks to none."""
    index = FilterIndex()
    longest = {"insert": 0, "remove": 0}
    for name, change in (("insert", index.insert), ("remove", index.remove)):
        for id, text in enumerate(work.filters):
            start = thread_time_ns()
            change(text, id, syntax=work.syntax)
            longest[name] = max(longest[name], thread_time_ns() - start)
    return {"filters": len(work.filters), **longest}


def frozen(work: workloads.EncodedWorkload, effort: Effort) -> dict[str, float]:
    """ns of a freeze; of a match in C by the index, and by its frozen copy, in turns."""
    index = FilterIndex()
    for id, text in enumerate(work.filters):
        index.insert(text, id, syntax=work.syntax)
    copy = freeze(index)
    spent = []
    for _ in range(effort.passes):
        start = thread_time_ns()
        freeze(index)
        spent.append(thread_time_ns() - start)
    topics = work.topics[: effort.topics]
    asked: dict[str, list[float]] = {"index": [], "copy": []}
    for _ in range(effort.passes):
        for name, one in (("index", index), ("copy", copy)):
            asked[name].append(engine.match_ns(one, topics, syntax=work.syntax, passes=1)[0])
    return {"filters": len(work.filters), "freeze": min(spent), **{name: min(ns) for name, ns in asked.items()}}


def process(name: str, filters: int) -> dict[str, float]:
    """Bytes a filter, by `nbytes` and by the growth of a process that does nothing else; `given`: its text and id."""
    command = [sys.executable, "-m", "fanlight_matchers.aside", name, str(filters)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def named(count: int, passes: int) -> dict[str, dict[str, float]]:
    """µs of three questions to a NameIndex of this size, and the number of ids found."""
    kinds = {kind: names.measure(kind, count, passes) for kind in ("scattered", "crowded")}
    return {
        question: {
            "us": round(kinds[kind][shape]["least_ns"] / 1e3, 2), "ids": kinds[kind][shape]["ids"], "names": count,
        }
        for question, (kind, shape) in NAMES_ASKED.items()
    }  # fmt: skip


def _grow(name: str, filters: int) -> dict[str, float]:
    work = workloads.make(name, filters)
    index = FilterIndex()
    empty, before = index.nbytes, resident_bytes(os.getpid())
    for id, text in enumerate(work.filters):
        index.insert(text, id, syntax=work.syntax)
    after = resident_bytes(os.getpid())
    if before is None or after is None:
        raise OSError("this system does not say how large a process is")
    return {
        "filters": filters, "nbytes": (index.nbytes - empty) / filters, "process": (after - before) / filters,
        "given": given_bytes(work),
    }  # fmt: skip


if __name__ == "__main__":
    json.dump(_grow(sys.argv[1], int(sys.argv[2])), sys.stdout)
