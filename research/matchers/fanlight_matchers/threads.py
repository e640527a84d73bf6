"""Several threads at one contender: mixes of matches and changes, and readers beside a writer.

`shared` is matchbox's experiment: each thread matches topics of all and changes filters of its own. `apart` is Treat's
(`benchmark5050` of his utils_test.go): a thread either matches or changes. Both run in C, without the GIL, matchbox as
it is and the others behind a lock of many readers or one writer; what a match has to write (a topic not yet known, a
result to be cached), it writes as a writer. Ours is done as matchcore is meant to be used: each match and each change
is atomic because it holds the GIL, so its threads take turns.

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
    """Each thread changes filters of its own and matches topics of all; `operations` of each."""
    return _timed(contender, work, reads, [Part(reads, operations, part, threads) for part in range(threads)])


def apart(contender: ContenderEntry, work: EncodedWorkload, threads: int, reads: int, operations: int) -> Shared:
    """Of `operations` in all the matches are divided among the readers, the changes among the writers.

    There are as many writers as changes in proportion, but one at least: at 90/10 one of 2 to 12 threads, two of 16.
    """
    writers = max(1, round(threads * (1_000 - reads) / 1_000))
    readers, matches = threads - writers, operations * reads // 1_000
    parts = [Part(1_000, matches // readers, part, readers) for part in range(readers)]
    parts += [Part(0, (operations - matches) // writers, part, writers) for part in range(writers)]
    return _timed(contender, work, reads, parts)


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What one thread does; it changes the filters of one part of `parts`."""

    reads: int
    operations: int
    part: int
    parts: int


def _timed(contender: ContenderEntry, work: EncodedWorkload, reads: int, parts: list[Part]) -> Shared:
    """A thread for each part, all at once."""
    matcher = contender.make(work.syntax)
    for id, text in enumerate(work.filters):
        matcher.insert(text, id)
    if not isinstance(matcher, Mixing):
        raise TypeError(f"{contender.name} has no loop for threads")
    ids, topics = range(len(work.filters)), work.topics[:HOT_TOPICS]
    for topic in topics:
        matcher.match(topic)  # what learns topics has learnt them
    matcher.share()
    ready = threading.Barrier(len(parts) + 1)

    def one(at: int, part: Part) -> None:
        ready.wait()
        matcher.mix(topics, work.filters, ids, part.reads, part.operations, at + 1, part.part, part.parts)

    with ThreadPoolExecutor(len(parts)) as pool:
        running = [pool.submit(one, at, part) for at, part in enumerate(parts)]
        ready.wait()
        start = perf_counter_ns()
        for thread in running:
            thread.result()
        spent = perf_counter_ns() - start
    done = sum(part.operations for part in parts)
    return Shared(matcher, contender.name, len(parts), reads, done / spent * 1e9)


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
        while changes == 0 or not done.is_set():  # one at least, if the readers are done before it began
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
