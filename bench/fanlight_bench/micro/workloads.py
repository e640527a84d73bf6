"""Filters to be held and topics to be asked for, made anew from a fixed seed.

    W1    1,000 filters of five 19-digit words, no wildcard; half of the topics match
    W1v   1,000 filters of five words from a vocabulary of 20, each `*` with probability 0.1
    W2    finance, AMQP: stock.EXCHANGE.TICKER.FIELD; 45 % exact, `*`, `#` at the end, front and middle
    W3    IoT, MQTT: site/S/floor/F/dev/D/METRIC; three quarters with several wildcards
    W4a-f what an adversary would choose: see bench/fanlight_bench/workloads.py
    W6    three words from a vocabulary of 50, each `*` with probability 0.3; W6L the same and one filter of 100 words,
          which should make nothing dearer

A number behind a colon is that of the filters: W3:100000.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

SEED = 20_171
TOPICS = 80_000  # distinct, a pass; more than the processor's caches remember


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


def workload(name: str) -> Workload:
    """By its name ("W4b"), with the number of its filters where that may be chosen ("W3:100000")."""
    kind, _, count = name.partition(":")
    if kind in MADE:
        made = MADE[kind](random.Random(SEED), int(count or 1_000))
        return Workload(name, made.syntax, made.filters, made.topics)
    from fanlight_bench import workloads  # it has the others, and builds on those above

    hostile = workloads.make(kind)
    topics = [topic.decode() for topic in hostile.topics]
    return Workload(name, hostile.syntax, [text.decode() for text in hostile.filters], topics)


MADE = {"W1": w1, "W1v": w1v, "W2": w2, "W3": w3, "W6": w6, "W6L": w6_long}
