"""What is measured of a contender, and how: thread CPU time, the quickest of several passes.

On a shared machine one figure alone says little. Contenders that are compared are therefore built first and then
measured in turns, a pass each, so that what else the machine does falls on all of them alike; ratios are taken
between figures of one run only.
"""

import dataclasses
import random
import threading
from collections.abc import Callable, Iterable
from time import perf_counter_ns, thread_time_ns

from bench.matchers.protocol import Compiled, Matcher, Mixing
from bench.matchers.registry import Contender
from bench.matchers.workloads import SEED, Workload

HOT_TOPICS = 1_000


@dataclasses.dataclass(slots=True)
class Figures:
    """One contender and one workload; ns, bytes; None: not measured."""

    contender: str
    workload: str
    held: int = 0  # filters it holds
    skipped: int = 0  # filters it cannot hold
    reason: str = ""  # why it was not measured at all
    found: float = 0  # ids a topic
    cold: float | None = None  # ns a match in C, of distinct topics
    hot: float | None = None  # the same thousand again and again
    call: float | None = None  # ns a match as called from Python, distinct topics
    insert: float | None = None  # ns a call, from Python, beginning with none
    again: float | None = None  # ns to insert what was just removed, all the others being there
    remove: float | None = None  # ns a call, all the others being there
    bytes: float | None = None  # a filter
    mix_90_10: float | None = None  # ns an operation of 90 % matches, as called from Python
    mix_50_50: float | None = None
    to_trie_i: float | None = None  # how many times as fast as it, cold, in C
    to_trie_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How long a measurement may take: topics of a pass, passes, operations of a mix."""

    topics: int = 20_000
    passes: int = 5
    calls: int = 2_000
    operations: int = 4_000
    seconds: float = 20.0  # of one contender's inserts; beyond it the rest of its filters is left out


QUICK = Effort(topics=200, passes=1, calls=50, operations=200, seconds=2.0)


def compare(work: Workload, contenders: Iterable[Contender], effort: Effort) -> list[Figures]:
    """The figures of each, in that order, of one workload."""
    built: list[tuple[Figures, Matcher, Workload]] = []
    results = []
    changing = {}
    for contender in contenders:
        figures = Figures(contender.name, work.name)
        results.append(figures)
        changing[contender.name] = contender.changes
        given = work if work.syntax in contender.syntaxes else translated(work)
        if len(given.filters) > contender.filters_max:
            figures.reason = f"over {contender.filters_max:,} filters"
            continue
        matcher = contender.make(given.syntax)
        _fill(matcher, given, figures, effort.seconds)
        figures.skipped += len(work.filters) - len(given.filters)
        if not figures.reason:
            built.append((figures, matcher, given))
    for turn in range(effort.passes):
        for figures, matcher, given in built:
            _match(matcher, given, figures, effort, first=turn == 0)
    for figures, matcher, given in built:
        if changing[figures.contender] and not figures.skipped:
            figures.mix_90_10 = _mix(matcher, given, 900, effort.operations)
            figures.mix_50_50 = _mix(matcher, given, 500, effort.operations)
    _ratios(results)
    return results


def _fill(matcher: Matcher, given: Workload, figures: Figures, seconds: float) -> None:
    held: list[tuple[bytes, int]] = []
    start = thread_time_ns()
    deadline = start + int(seconds * 1e9)
    for id, text in enumerate(given.filters):
        try:
            matcher.insert(text, id)
        except NotImplementedError:
            figures.skipped += 1
            continue
        held.append((text, id))
        if id % 1_000 == 0 and thread_time_ns() > deadline:
            figures.reason = f"{len(held):,} filters took over {seconds:g} s to insert"
            return
    figures.insert = (thread_time_ns() - start) / max(len(held), 1)
    figures.held = len(held)
    if not held:
        figures.reason = "cannot hold one of these filters"
        return
    if isinstance(matcher, Compiled):
        figures.bytes = matcher.nbytes / len(held)
    # A few removed and put back: of the cost of a removal when all the others are there.
    sample = random.Random(SEED).sample(held, min(len(held), 1_000))
    start = thread_time_ns()
    for text, id in sample:
        matcher.remove(text, id)
    figures.remove = (thread_time_ns() - start) / len(sample)
    start = thread_time_ns()
    for text, id in sample:
        matcher.insert(text, id)
    figures.again = (thread_time_ns() - start) / len(sample)


def _match(matcher: Matcher, given: Workload, figures: Figures, effort: Effort, first: bool) -> None:
    topics = given.topics[: effort.topics]
    if first:
        matcher.match(topics[0])  # what is compiled at the first match is
    if isinstance(matcher, Compiled):
        if hasattr(matcher, "forget"):
            matcher.forget()
        passes = 1 if len(topics) > HOT_TOPICS else 2
        ns, found = matcher.bench(topics, passes)
        figures.cold = least(figures.cold, ns)
        figures.found = found / len(topics)
        figures.hot = least(figures.hot, matcher.bench(topics[:HOT_TOPICS], 5)[0])
        if hasattr(matcher, "forget"):
            matcher.forget()
    called = topics[: effort.calls]
    start = thread_time_ns()
    for topic in called:
        matcher.match(topic)
    figures.call = least(figures.call, (thread_time_ns() - start) / len(called))


def least(known: float | None, new: float) -> float:
    return new if known is None else min(known, new)


def _mix(matcher: Matcher, given: Workload, reads: int, operations: int) -> float:
    """ns an operation: matches of hot topics, removals, and inserts of what was removed some time before."""
    dice = random.Random(SEED)
    held = list(enumerate(given.filters))
    out = dice.sample(held, min(64, len(held) // 2))
    for id, text in out:
        matcher.remove(text, id)
    inside = sorted(set(held) - set(out))
    dice.shuffle(inside)
    topics = given.topics[:HOT_TOPICS]
    steps: list[tuple[Callable[..., object], tuple[object, ...]]] = []
    for step in range(operations):
        if dice.randrange(1_000) < reads or not out:
            steps.append((matcher.match, (dice.choice(topics),)))
        elif step % 2:
            id, text = out.pop(0)
            steps.append((matcher.insert, (text, id)))
            inside.append((id, text))
        else:
            at = dice.randrange(len(inside))
            inside[at], inside[-1] = inside[-1], inside[at]
            id, text = inside.pop()
            steps.append((matcher.remove, (text, id)))
            out.append((id, text))
    start = thread_time_ns()
    for call, arguments in steps:
        call(*arguments)
    spent = thread_time_ns() - start
    for id, text in out:
        matcher.insert(text, id)
    return spent / operations


def _ratios(results: list[Figures]) -> None:
    cold = {figures.contender: figures.cold for figures in results}
    trie_i, trie_s = cold.get("trie-I"), cold.get("trie-S")
    for figures in results:
        mine = figures.cold if figures.cold is not None else figures.call
        if mine:
            figures.to_trie_i = trie_i / mine if trie_i else None
            figures.to_trie_s = trie_s / mine if trie_s else None


def translated(work: Workload) -> Workload:
    """The workload in MQTT, for who has nothing else; `#` in the middle has no translation."""

    def mqtt(text: bytes) -> bytes:
        return text.replace(b".", b"/").replace(b"*", b"+")

    filters = [mqtt(text) for text in work.filters if b"#" not in text[:-1]]
    return Workload(work.name, "mqtt", filters, [mqtt(text) for text in work.topics])


@dataclasses.dataclass(slots=True)
class Shared:
    """Operations a second, by the wall clock, of so many threads at once on one contender."""

    matcher: Matcher
    contender: str
    threads: int
    reads: int  # of 1,000 operations
    per_second: float


def shared(contender: Contender, work: Workload, threads: int, reads: int, operations: int) -> Shared:
    """Each thread changes filters of its own and matches topics of all; the GIL is not held."""
    matcher = contender.make(work.syntax)
    for id, text in enumerate(work.filters):
        matcher.insert(text, id)
    if not isinstance(matcher, Mixing):
        raise TypeError(f"{contender.name} has no loop without the GIL")
    ids, topics = range(len(work.filters)), work.topics[:HOT_TOPICS]
    ready = threading.Barrier(threads + 1)
    failures: list[BaseException] = []

    def one(part: int) -> None:
        ready.wait()
        try:
            matcher.mix(topics, work.filters, ids, reads, operations, part + 1, part, threads)
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=one, args=(part,)) for part in range(threads)]
    for thread in running:
        thread.start()
    ready.wait()
    start = perf_counter_ns()
    for thread in running:
        thread.join()
    spent = perf_counter_ns() - start
    if failures:
        raise failures[0]
    return Shared(matcher, contender.name, threads, reads, threads * operations / spent * 1e9)
