"""`python -m bench.micro.match`: what a match costs, in C and as called from Python, as JSON on standard output.

Each workload is a set of filters and a stream of topics, made anew from a fixed seed. Figures are ns of
thread CPU time, the least of several passes. In C (bench/micro/engine.pyx; slots into a buffer): "c_ns" over a
stream of distinct topics, "c_hot_ns" over the same thousand again and again, "c_any_ns" for the first match
only. From Python, the call, the loop and the result tuple included: "match_ns", "hot_ns", "any_ns" for
match_any, "many_ns" per topic of match_many; "insert_ns" and "remove_ns" per call, in random order; W5, "mix_90_ns" and
"mix_50_ns" per call when nine in ten, or half, are matches of the thousand hot topics and the rest removes and
inserts. "bytes_per_filter" counts everything, "tiers" says what is where. "per_reference" is how many times
longer the plain oracle (matchcore/reference.py) takes, measured on a few topics.

    W1    1,000 filters of five 19-digit words, no wildcard; half of the topics match
    W1v   1,000 filters of five words from a vocabulary of 20, each `*` with probability 0.1
    W2    finance, AMQP: stock.EXCHANGE.TICKER.FIELD; 45 % exact, `*`, `#` at the end, front and middle
    W3    IoT, MQTT: site/S/floor/F/dev/D/METRIC; three quarters with several wildcards
    W4a-f what an adversary would choose: see bench/matchers/workloads.py
    W6    three words from a vocabulary of 50, each `*` with probability 0.3; W6L the same and one filter of 100 words,
          which should make nothing dearer
"""

import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from time import thread_time_ns
from typing import Any

from bench.micro import reporting
from matchcore import FilterIndex
from matchcore.reference import ReferenceFilterIndex

try:
    from bench.micro.engine import match_ns
except ImportError:  # it is optional: it needs thread CPU time in C
    match_ns = None  # type: ignore[assignment]

SEED = 20_171
TOPICS = 80_000  # distinct, a pass; more than the processor's caches remember
HOT_TOPICS = 1_000
PASSES = 5
REFERENCE_TOPICS = 3
REFERENCE_FILTERS = 10_000  # larger sets are not given to the oracle
MIXED = 40_000  # calls of a mix

DEFAULT = ["W1", "W1v", "W2:10000", "W3:1000", "W3:10000", "W6", "W6L"]
ALL = ["W1", "W1v", "W2:10000", "W2:100000", "W3:1000", "W3:10000", "W3:100000", "W3:1000000"] + [
    f"W4{letter}" for letter in "abcdef"
] + ["W6:1000", "W6L:1000", "W6:10000", "W6L:10000"]


@dataclass(frozen=True)
class Workload:
    """Filters, distinct but for W2's and W3's doubles, and topics, all in one syntax."""

    name: str
    syntax: str
    filters: list[str]
    topics: list[str]


def w1(dice: random.Random, count: int) -> Workload:
    def text() -> str:
        return ".".join(str(dice.randrange(10**18, 10**19)) for _ in range(5))

    filters = [text() for _ in range(count)]
    topics = [dice.choice(filters) if i % 2 else text() for i in range(TOPICS)]
    return Workload("W1", "amqp", filters, topics)


def w1v(dice: random.Random, count: int) -> Workload:
    words = [f"word{i}" for i in range(20)]

    def text(wild: float) -> str:
        return ".".join("*" if dice.random() < wild else dice.choice(words) for _ in range(5))

    return Workload("W1v", "amqp", _distinct(count, lambda: text(0.1)), [text(0) for _ in range(TOPICS)])


# Per mille; X exchange, T ticker, F field.
W2_SHAPES = {
    "stock.X.T.F": 450, "stock.*.T.F": 180, "stock.X.T.*": 100, "stock.*.T.*": 70, "stock.X.T.#": 60,
    "stock.*.T.#": 30, "*.*.T.F": 30, "stock.#.T.F": 30, "#.T.F": 20, "#.T.#": 15, "stock.#.T.#": 7,
    "stock.X.*.F": 2, "stock.X.#": 2, "stock.#.F": 2, "*.X.*.F": 2,
}  # fmt: skip


def w2(dice: random.Random, count: int) -> Workload:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    exchanges = ["nyse", "nasdaq", "arca", "bats", "amex"]
    fields = ["bid", "ask", "last", "open", "high", "low", "close", "volume"]
    tickers = _distinct(10_000, lambda: "".join(dice.choices(letters, k=dice.randint(3, 5))))
    listed = {ticker: dice.choice(exchanges) for ticker in tickers}
    shapes, weights = list(W2_SHAPES), list(accumulate(W2_SHAPES.values()))

    def text(shape: str) -> str:
        ticker = dice.choice(tickers)
        values = {"X": listed[ticker], "T": ticker, "F": dice.choice(fields)}
        return ".".join(values.get(word, word) for word in shape.split("."))

    filters = _distinct(count, lambda: text(dice.choices(shapes, cum_weights=weights)[0]))
    return Workload("W2", "amqp", filters, [text("stock.X.T.F") for _ in range(TOPICS)])


W3_RARE = [
    "site/S/floor/F/#", "site/+/floor/F/dev/D/#", "site/S/floor/F/+/D/#", "+/S/+/+/+/D/#",
    "site/S/+/F/dev/D/#", "site/S/#",
]  # fmt: skip


def w3(dice: random.Random, count: int) -> Workload:
    def values() -> dict[str, str]:
        return {
            "S": str(dice.randrange(1_000)), "F": str(dice.randrange(20)), "D": str(dice.randrange(5_000)),
            "METRIC": f"metric{dice.randrange(12)}",
        }  # fmt: skip

    full = "site/S/floor/F/dev/D/METRIC"

    def shape() -> str:
        part = dice.random()
        if part < 0.30:
            return "site/S/+/+/dev/D/#"
        if part < 0.45:
            return "site/S/floor/F/dev/D/#"
        if part < 0.60:
            return "site/S/floor/+/dev/D/METRIC"
        if part < 0.70:
            return dice.choice(W3_RARE)
        kept = "D" if dice.random() < 0.9 else "S"
        return "/".join("+" if word != kept and dice.random() < 0.35 else word for word in full.split("/"))

    def text(shape: str, chosen: dict[str, str]) -> str:
        return "/".join(chosen.get(word, word) for word in shape.split("/"))

    instances: dict[str, str] = {}  # a filter, and a topic it matches

    def pattern() -> str:
        chosen = values()
        made = text(shape(), chosen)
        instances[made] = text(full, chosen)
        return made

    filters = _distinct(count, pattern)
    topics = [instances[dice.choice(filters)] if i % 2 else text(full, values()) for i in range(TOPICS)]
    return Workload("W3", "mqtt", filters, topics)


def w6(dice: random.Random, count: int) -> Workload:
    words = [f"word{i}" for i in range(50)]

    def text(wild: float) -> str:
        return ".".join("*" if dice.random() < wild else dice.choice(words) for _ in range(3))

    return Workload("W6", "amqp", _distinct(count, lambda: text(0.3)), [text(0) for _ in range(TOPICS)])


def w6_long(dice: random.Random, count: int) -> Workload:
    made = w6(dice, count)
    long = ".".join("*" if i % 3 else f"word{i % 50}" for i in range(100))
    return Workload("W6L", made.syntax, [*made.filters, long], made.topics)


def _distinct(count: int, make: Callable[[], str]) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < count:
        made[make()] = None
    return list(made)


def _least(passes: int, items: Iterable[Any], call: Callable[[list[Any]], object]) -> float:
    """ns per item of the quickest pass."""
    given = list(items)
    best = min(_timed(call, given) for _ in range(passes))
    return best / len(given)


def _timed(call: Callable[[list[Any]], object], given: list[Any]) -> int:
    start = thread_time_ns()
    call(given)
    return thread_time_ns() - start


def mixed_ns(index: FilterIndex, work: Workload, reads: int, calls: int = MIXED) -> float:
    """W5: ns a call, `reads` of a hundred being matches of hot topics; the filters are the same before and after."""
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
        elif len(gone) < 100 and held[changed[i]]:
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
    return spent / calls


def measure(work: Workload, passes: int = PASSES) -> dict[str, Any]:
    """The figures of one workload."""
    index = FilterIndex()
    empty = index.nbytes
    syntax = work.syntax
    pairs = list(zip(work.filters, range(len(work.filters)), strict=True))
    shuffled = random.Random(SEED).sample(pairs, len(pairs))

    def insert(given: list[tuple[str, int]]) -> None:
        for text, id in given:
            index.insert(text, id, syntax=syntax)

    def remove(given: list[tuple[str, int]]) -> None:
        for text, id in given:
            index.remove(text, id, syntax=syntax)

    def match(given: list[str]) -> None:
        for topic in given:
            index.match(topic, syntax=syntax)

    def match_any(given: list[str]) -> None:
        for topic in given:
            index.match_any(topic, syntax=syntax)

    rounds = passes if len(pairs) <= 100_000 else 1
    changes = [(_timed(insert, pairs), _timed(remove, shuffled)) for _ in range(rounds)]
    insert(pairs)
    offsets, ids = index.match_many(work.topics, syntax=syntax)
    hot = work.topics[:HOT_TOPICS] * 20
    figures: dict[str, Any] = {"filters": len(pairs), "matches_per_topic": round(len(ids) / (len(offsets) - 1), 2)}
    if match_ns is not None:
        figures |= {
            "c_ns": round(match_ns(index, work.topics, syntax=syntax, passes=passes)[0]),
            "c_hot_ns": round(match_ns(index, hot, syntax=syntax, passes=passes)[0]),
            "c_any_ns": round(match_ns(index, work.topics, syntax=syntax, passes=passes, any=True)[0]),
        }
    figures |= {
        "match_ns": round(_least(passes, work.topics, match)),
        "hot_ns": round(_least(passes, hot, match)),
        "any_ns": round(_least(passes, work.topics, match_any)),
        "many_ns": round(_least(passes, work.topics, lambda topics: index.match_many(topics, syntax=syntax))),
        "mix_90_ns": round(min(mixed_ns(index, work, 90) for _ in range(passes))),
        "mix_50_ns": round(min(mixed_ns(index, work, 50) for _ in range(passes))),
        "insert_ns": round(min(insert for insert, _ in changes) / len(pairs)),
        "remove_ns": round(min(remove for _, remove in changes) / len(pairs)),
        "bytes_per_filter": round((index.nbytes - empty) / len(pairs)),
        "tiers": index._tiers(),
    }
    if len(pairs) > REFERENCE_FILTERS:
        return figures
    oracle = ReferenceFilterIndex()
    for text, id in pairs:
        oracle.insert(text, id, syntax=syntax)
    sample = random.Random(SEED).sample(work.topics, REFERENCE_TOPICS)
    for topic in sample:
        if index.match(topic, syntax=syntax) != oracle.match(topic, syntax=syntax):
            raise AssertionError(f"{work.name}: the index and the oracle disagree about {topic}")
    plain = _least(1, sample, lambda topics: [oracle.match(topic, syntax=syntax) for topic in topics])
    figures["per_reference"] = round(plain / figures["match_ns"])
    return figures


def workload(name: str) -> Workload:
    """By its name ("W4b"), with the number of its filters where that may be chosen ("W3:100000")."""
    kind, _, count = name.partition(":")
    if kind in MADE:
        made = MADE[kind](random.Random(SEED), int(count or 1_000))
        return Workload(name, made.syntax, made.filters, made.topics)
    from bench.matchers import workloads  # it has the others, and builds on those above

    hostile = workloads.make(kind)
    topics = [topic.decode() for topic in hostile.topics]
    return Workload(name, hostile.syntax, [text.decode() for text in hostile.filters], topics)


MADE = {"W1": w1, "W1v": w1v, "W2": w2, "W3": w3, "W6": w6, "W6L": w6_long}


def main(arguments: list[str] | None = None) -> int:
    parser = reporting.parser("match", __doc__)
    parser.add_argument("workloads", nargs="*", help=f"W1, W3:100000, W4b ...; by default {' '.join(DEFAULT)}")
    parser.add_argument("--all", action="store_true", help="every workload, up to a million filters: ten minutes")
    parser.add_argument("--passes", type=int, help=f"of which the least counts (default {PASSES})", default=PASSES)
    options = parser.parse_args(arguments)
    names = ALL if options.all else options.workloads or DEFAULT
    results = {name: measure(workload(name), options.passes) for name in names}
    return reporting.report("workloads", results)


if __name__ == "__main__":
    sys.exit(main())
