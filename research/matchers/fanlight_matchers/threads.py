"""Several threads at one contender: mixes of matches and changes, and readers beside a writer.

`shared` is matchbox's and Treat's experiment: each thread matches topics of all and changes filters of its own, in
C where the contender is for several threads (the mutex trie, matchbox). Ours is done as matchcore is meant to be
used: each match and each change is atomic because it holds the GIL, so its threads take turns.

`beside` is how matchcore lets threads work at once: readers ask match_many, which searches without the GIL, while
a thread changes the index as fast as it is let. Asked is the index itself, and then a change waits for the batches
that run; or a frozen copy, and then neither waits, and readers get a new copy every PUBLISHED changes.
"""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns

from fanlight_bench.workloads import EncodedWorkload
from fanlight_matchers.measure import HOT_TOPICS
from fanlight_matchers.protocol import Matcher, Mixing
from fanlight_matchers.registry import ContenderEntry
from matchcore import FilterIndex, freeze

BATCH = 1_000  # topics of a match_many
PUBLISHED = 10_000  # changes after which readers are handed a new copy


@dataclasses.dataclass(slots=True)
class Shared:
    """Operations a second, by the wall clock, of several threads at once on one contender."""

    matcher: Matcher
    contender: str
    threads: int
    reads: int  # of 1,000 operations
    per_second: float


def shared(contender: ContenderEntry, work: EncodedWorkload, threads: int, reads: int, operations: int) -> Shared:
    """Each thread changes filters of its own and matches topics of all."""
    matcher = contender.make(work.syntax)
    for id, text in enumerate(work.filters):
        matcher.insert(text, id)
    if not isinstance(matcher, Mixing):
        raise TypeError(f"{contender.name} has no loop for threads")
    ids, topics = range(len(work.filters)), work.topics[:HOT_TOPICS]
    ready = threading.Barrier(threads + 1)

    def one(part: int) -> None:
        ready.wait()
        matcher.mix(topics, work.filters, ids, reads, operations, part + 1, part, threads)

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(one, part) for part in range(threads)]
        ready.wait()
        start = perf_counter_ns()
        for thread in running:
            thread.result()
        spent = perf_counter_ns() - start
    return Shared(matcher, contender.name, threads, reads, threads * operations / spent * 1e9)


@dataclasses.dataclass(frozen=True, slots=True)
class Beside:
    """What readers of match_many and one writer did at the same time, by the wall clock."""

    asked: str  # "FilterIndex" or "FrozenIndex"
    readers: int
    topics_per_second: float  # of all readers
    changes_per_second: float


def beside(work: EncodedWorkload, readers: int, batches: int, frozen: bool = False) -> Beside:
    """Each reader matches `batches` batches; the writer takes filters out and puts them in until all are done."""
    index = FilterIndex()
    for id, text in enumerate(work.filters):
        index.insert(text, id, syntax=work.syntax)
    asked = work.topics[:BATCH]
    current = [freeze(index) if frozen else index]  # what readers ask: replaced in one step
    ready = threading.Barrier(readers + 2)
    done = threading.Event()

    def read() -> None:
        ready.wait()
        for _ in range(batches):
            current[0].match_many(asked, syntax=work.syntax)

    def write() -> int:
        ready.wait()
        changes = 0
        while not done.is_set():
            id = changes // 2 % len(work.filters)
            change = index.insert if changes % 2 else index.remove
            change(work.filters[id], id, syntax=work.syntax)
            changes += 1
            if frozen and changes % PUBLISHED == 0:
                current[0] = freeze(index)
        if changes % 2:
            index.insert(work.filters[id], id, syntax=work.syntax)
        return changes

    with ThreadPoolExecutor(readers + 1) as pool:
        writer = pool.submit(write)
        running = [pool.submit(read) for _ in range(readers)]
        ready.wait()
        start = perf_counter_ns()
        try:
            for thread in running:
                thread.result()
        finally:
            done.set()
        spent = (perf_counter_ns() - start) / 1e9
        return Beside(
            type(current[0]).__name__, readers, readers * batches * len(asked) / spent, writer.result() / spent
        )
