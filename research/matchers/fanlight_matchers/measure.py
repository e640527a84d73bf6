"""What is measured of a contender, and how: thread CPU time, the quickest of several passes.

On a shared machine one figure alone says little. Contenders that are compared are therefore built first and then
measured in turns, a pass each, so that what else the machine does falls on all of them alike; ratios are taken
between figures of one run only.
"""

import dataclasses
import random
from collections.abc import Callable, Iterable
from time import thread_time_ns

from fanlight_bench.workloads import SEED, EncodedWorkload
from fanlight_matchers.ours import Ours
from fanlight_matchers.protocol import Compiled, Matcher, Mixing
from fanlight_matchers.registry import ContenderEntry

HOT_TOPICS = 1_000
CHANGED = 20_000  # filters that take part in a mix's changes
LEAST_MIXED = 200  # filters that a mix in C needs


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
    any: float | None = None  # ns in C to know whether any filter matches
    call: float | None = None  # ns a match as called from Python, distinct topics
    half: float | None = None  # ns of the topic that half of the topics are quicker than, in C; p50
    slow: float | None = None  # p99
    slowest: float | None = None
    insert: float | None = None  # ns a call, from Python, beginning with none
    again: float | None = None  # ns to insert what was just removed, all the others being there
    remove: float | None = None  # ns a call, all the others being there
    bytes: float | None = None  # a filter
    beside: float | None = None  # of them neither its text nor its id; contenders that keep both
    mix_90_10: float | None = None  # ns an operation of 90 % matches, as called from Python
    mix_50_50: float | None = None
    c_mix_90_10: float | None = None  # the same in C
    c_mix_50_50: float | None = None
    to_trie_i: float | None = None  # how many times as fast as it, cold, in C
    to_trie_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How long a measurement may take: topics of a pass, passes, operations of a mix."""

    topics: int = 60_000  # fewer than the static table can know
    seconds_of_a_pass: float = 0.2  # slower contenders are asked about fewer topics
    passes: int = 5
    calls: int = 2_000
    operations: int = 4_000
    spread: int = 4_000  # topics of the distribution
    seconds: float = 20.0  # of one contender's inserts; beyond it the rest of its filters is left out


QUICK = Effort(topics=200, passes=1, calls=50, operations=200, spread=100, seconds=2.0)


def compare(work: EncodedWorkload, contenders: Iterable[ContenderEntry], effort: Effort) -> list[Figures]:
    """The figures of each, in that order, of one workload."""
    built: list[Built] = []
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
            built.append(Built(figures, matcher, given, _topics(matcher, given, effort)))
    for _ in range(effort.passes):
        for one in built:
            _match(one, effort)
    for one in built:
        figures, matcher, given = one.figures, one.matcher, one.given
        if isinstance(matcher, Compiled):
            _spread(matcher, one.topics[: effort.spread], figures, effort.passes)
        if changing[figures.contender] and not figures.skipped:
            figures.mix_90_10 = _mix(matcher, given, 900, effort.operations)
            figures.mix_50_50 = _mix(matcher, given, 500, effort.operations)
            if isinstance(matcher, Mixing) and len(given.filters) > LEAST_MIXED:
                for _ in range(min(effort.passes, 3)):
                    figures.c_mix_90_10 = least(figures.c_mix_90_10, _mix_in_c(matcher, one, 900, effort))
                    figures.c_mix_50_50 = least(figures.c_mix_50_50, _mix_in_c(matcher, one, 500, effort))
    _ratios(results)
    return results


@dataclasses.dataclass(frozen=True, slots=True)
class Built:
    """A contender that holds the filters it was given, and what it is asked."""

    figures: Figures
    matcher: Matcher
    given: EncodedWorkload
    topics: list[bytes]


def _topics(matcher: Matcher, given: EncodedWorkload, effort: Effort) -> list[bytes]:
    """As many as it can be asked about in the time of a pass, a thousand at least."""
    matcher.match(given.topics[0])  # what is compiled at the first match is
    if not isinstance(matcher, Compiled):
        return given.topics[: effort.calls]
    few = given.topics[:200]
    each = matcher.bench(few, 2)[0]  # the second time: what learns topics has learnt them
    most = max(HOT_TOPICS, int(effort.seconds_of_a_pass * 1e9 / max(each, 1)))
    return given.topics[: min(effort.topics, most)]


def _fill(matcher: Matcher, given: EncodedWorkload, figures: Figures, seconds: float) -> None:
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
        if isinstance(matcher, Ours):
            figures.beside = figures.bytes - given_bytes(given)
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


def _match(built: Built, effort: Effort) -> None:
    matcher, topics, figures = built.matcher, built.topics, built.figures
    if isinstance(matcher, Compiled):
        if hasattr(matcher, "forget"):
            matcher.forget()
        passes = 1 if len(topics) > HOT_TOPICS else 2
        ns, found = matcher.bench(topics, passes)
        figures.cold = least(figures.cold, ns)
        figures.found = found / len(topics)
        again = 5 if ns * 5 * HOT_TOPICS < effort.seconds_of_a_pass * 1e9 else 1
        figures.hot = least(figures.hot, matcher.bench(topics[:HOT_TOPICS], again)[0])
        if hasattr(matcher, "forget"):
            matcher.forget()
    if isinstance(matcher, Ours):
        figures.any = least(figures.any, matcher.bench_any(topics, 1))
    called = topics[: effort.calls]
    figures.call = least(figures.call, called_ns(matcher, called) / len(called))


def called_ns(matcher: Matcher, topics: list[bytes]) -> int:
    """ns of a match of each, called from Python."""
    if isinstance(matcher, Ours):
        return matcher.called_ns(topics)
    start = thread_time_ns()
    for topic in topics:
        matcher.match(topic)
    return thread_time_ns() - start


def _spread(matcher: Compiled, topics: list[bytes], figures: Figures, passes: int) -> None:
    each = sorted(matcher.spread(topics, passes))
    figures.half = each[len(each) // 2]
    figures.slow = each[len(each) * 99 // 100]
    figures.slowest = each[-1]


def given_bytes(work: EncodedWorkload) -> float:
    """Of a filter's text and its 32-bit id, the mean."""
    return sum(map(len, work.filters)) / len(work.filters) + 4


def least(known: float | None, new: float) -> float:
    return new if known is None else min(known, new)


def _mix(matcher: Matcher, given: EncodedWorkload, reads: int, operations: int) -> float:
    """ns an operation: matches of hot topics, removals, and inserts of what was removed some time before."""
    dice = random.Random(SEED)
    inside = dice.sample(list(enumerate(given.filters)), min(len(given.filters), CHANGED))
    out = [inside.pop() for _ in range(min(64, len(inside) // 2))]
    for id, text in out:
        matcher.remove(text, id)
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


def _mix_in_c(matcher: Mixing, built: Built, reads: int, effort: Effort) -> float:
    """The same without Python; as many operations as there is time for."""
    each = built.figures.mix_50_50 or 1.0
    operations = min(5 * effort.operations, max(500, int(effort.seconds_of_a_pass * 1e9 / each)))
    given = built.given
    return matcher.mix(given.topics[:HOT_TOPICS], given.filters, range(len(given.filters)), reads, operations)


def _ratios(results: list[Figures]) -> None:
    cold = {figures.contender: figures.cold for figures in results}
    trie_i, trie_s = cold.get("trie-I"), cold.get("trie-S")
    for figures in results:
        mine = figures.cold if figures.cold is not None else figures.call
        if mine:
            figures.to_trie_i = trie_i / mine if trie_i else None
            figures.to_trie_s = trie_s / mine if trie_s else None


def translated(work: EncodedWorkload) -> EncodedWorkload:
    """The workload in MQTT, for who has nothing else; `#` in the middle has no translation."""

    def mqtt(text: bytes) -> bytes:
        return text.replace(b".", b"/").replace(b"*", b"+")

    filters = [mqtt(text) for text in work.filters if b"#" not in text[:-1]]
    return EncodedWorkload(work.name, "mqtt", filters, [mqtt(text) for text in work.topics])
