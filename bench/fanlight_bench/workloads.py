"""The workloads of the matcher's benches: filters and a stream of topics, made anew from a fixed seed.

    W1     five random 19-digit words, no wildcard; half of the topics match
    W1v    five words from a vocabulary of 20, each `*` with probability 0.1
    W2     finance, AMQP syntax: stock.EXCHANGE.TICKER.FIELD; 45 % exact, `*`, `#` at the end, front and middle
    W3     IoT, MQTT syntax: site/S/floor/F/dev/D/METRIC; three quarters with several wildcards
    W6     three words from a vocabulary of 50, each `*` with probability 0.3
    W6L    the same and one filter of 100 words, which should make nothing more expensive

W4 is what an adversary would choose, all in AMQP syntax:

    W4a    all 6,561 filters over {a, b, *}^8
    W4b    50,000 filters of 8 words from 16, each `*` with probability one half
    W4c    5,000 filters of 3 to 7 words from 26, up to three `#`
    W4d    20,000 filters of 12 words from 2, any mask of wildcards; W4e the same from 1,000 words
    W4f    120 filters `#.a.#.b.#.a ... #.zN`; topics of 12 words from {a, b}, half of them ending in `zN`

W5, the mixes of matches and changes, is W2 and W3 under `mix`.

`workload` makes texts for benches of the Python interface, and takes a number of filters behind a colon: W3:100000.
`make` makes octets for benches of compiled code.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

SEED = 20_171
# Distinct topics of a pass, more than the processor's caches remember.
TOPICS = 80_000
ADVERSARIAL_TOPICS = 20_000


@dataclass(frozen=True)
class Workload:
    """Filters, distinct but for W2's and W3's duplicates, and topics, all in one syntax."""

    name: str
    syntax: str
    filters: list[str]
    topics: list[str]


@dataclass(frozen=True, slots=True)
class EncodedWorkload:
    """The same in octets; the id of a filter is its index."""

    name: str
    syntax: str
    filters: list[bytes]
    topics: list[bytes]


def workload(name: str) -> Workload:
    """By its name ("W4b"), with the number of its filters where that may be chosen ("W3:100000")."""
    kind, _, count = name.partition(":")
    dice = random.Random(SEED)
    if kind in MADE:
        made = MADE[kind](dice, int(count or 1_000))
        return Workload(name, made.syntax, made.filters, made.topics)
    return Workload(name, "amqp", *ADVERSARIAL[kind](dice))


def make(name: str, filters: int | None = None) -> EncodedWorkload:
    """The workload of that name; W1 to W3 with `filters` of them (1,000, or 10,000 of W2 and W3)."""
    dice = random.Random(SEED)
    if name in REALISTIC:
        generator, count = REALISTIC[name]
        made = generator(dice, filters or count)
        return _encoded(name_of(name, filters or count), made)
    made_filters, made_topics = ADVERSARIAL[name](dice)
    return _encoded(name, Workload(name, "amqp", made_filters[:filters], made_topics))


def _encoded(name: str, made: Workload) -> EncodedWorkload:
    octets = [text.encode() for text in made.filters], [text.encode() for text in made.topics]
    return EncodedWorkload(name, made.syntax, *octets)


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

    return Workload("W1v", "amqp", distinct(count, lambda: text(0.1)), [text(0) for _ in range(TOPICS)])


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
    tickers = distinct(10_000, lambda: "".join(dice.choices(letters, k=dice.randint(3, 5))))
    listed = {ticker: dice.choice(exchanges) for ticker in tickers}
    shapes, weights = list(W2_SHAPES), list(accumulate(W2_SHAPES.values()))

    def text(shape: str) -> str:
        ticker = dice.choice(tickers)
        values = {"X": listed[ticker], "T": ticker, "F": dice.choice(fields)}
        return ".".join(values.get(word, word) for word in shape.split("."))

    filters = distinct(count, lambda: text(dice.choices(shapes, cum_weights=weights)[0]))
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

    filters = distinct(count, pattern)
    topics = [instances[dice.choice(filters)] if i % 2 else text(full, values()) for i in range(TOPICS)]
    return Workload("W3", "mqtt", filters, topics)


def w6(dice: random.Random, count: int) -> Workload:
    words = [f"word{i}" for i in range(50)]

    def text(wild: float) -> str:
        return ".".join("*" if dice.random() < wild else dice.choice(words) for _ in range(3))

    return Workload("W6", "amqp", distinct(count, lambda: text(0.3)), [text(0) for _ in range(TOPICS)])


def w6_long(dice: random.Random, count: int) -> Workload:
    made = w6(dice, count)
    long = ".".join("*" if i % 3 else f"word{i % 50}" for i in range(100))
    return Workload("W6L", made.syntax, [*made.filters, long], made.topics)


MADE: dict[str, Callable[[random.Random, int], Workload]] = {
    "W1": w1, "W1v": w1v, "W2": w2, "W3": w3, "W6": w6, "W6L": w6_long,
}  # fmt: skip
REALISTIC: dict[str, tuple[Callable[[random.Random, int], Workload], int]] = {
    "W1": (w1, 1_000), "W1v": (w1v, 1_000), "W2": (w2, 10_000), "W3": (w3, 10_000),
    "W6": (w6, 1_000), "W6L": (w6_long, 1_000),
}  # fmt: skip

Texts = tuple[list[str], list[str]]


def _words(size: int) -> list[str]:
    return [f"{chr(ord('a') + i)}" if size <= 26 else f"w{i}" for i in range(size)]


def _masked(dice: random.Random, count: int, length: int, vocabulary: list[str]) -> Texts:
    """Filters of one length, each word a wildcard with probability one half."""

    def filter() -> str:
        return ".".join("*" if dice.random() < 0.5 else dice.choice(vocabulary) for _ in range(length))

    topics = [".".join(dice.choices(vocabulary, k=length)) for _ in range(ADVERSARIAL_TOPICS)]
    return distinct(count, filter), topics


def w4a(dice: random.Random) -> Texts:
    filters = [""]
    for _ in range(8):
        filters = [f"{start}.{word}" if start else word for start in filters for word in "ab*"]
    return filters, [".".join(dice.choices("ab", k=8)) for _ in range(ADVERSARIAL_TOPICS)]


def w4b(dice: random.Random) -> Texts:
    return _masked(dice, 50_000, 8, _words(16))


def w4c(dice: random.Random) -> Texts:
    letters = _words(26)

    def filter() -> str:
        words = dice.choices(letters, k=dice.randint(3, 7))
        for place in dice.sample(range(len(words)), k=dice.randint(0, 3)):
            words[place] = "#"
        return ".".join(words)

    filters = distinct(5_000, filter)
    return filters, [".".join(dice.choices(letters, k=dice.randint(3, 9))) for _ in range(ADVERSARIAL_TOPICS)]


def w4d(dice: random.Random) -> Texts:
    return _masked(dice, 20_000, 12, _words(2))


def w4e(dice: random.Random) -> Texts:
    return _masked(dice, 20_000, 12, _words(1_000))


def w4f(dice: random.Random) -> Texts:
    filters = []
    for i in range(120):
        inner = [f"#.{'ab'[j % 2]}" for j in range(2 + i % 9)]
        filters.append(".".join([*inner, f"#.z{i}"]))

    def topic(i: int) -> str:
        words = dice.choices("ab", k=12)
        return ".".join([*words[:11], f"z{dice.randrange(120)}"] if i % 2 else words)

    return filters, [topic(i) for i in range(ADVERSARIAL_TOPICS)]


ADVERSARIAL: dict[str, Callable[[random.Random], Texts]] = {
    "W4a": w4a, "W4b": w4b, "W4c": w4c, "W4d": w4d, "W4e": w4e, "W4f": w4f,
}  # fmt: skip


def distinct(count: int, make: Callable[[], str]) -> list[str]:
    """`count` different texts, in the order in which they were made."""
    made: dict[str, None] = {}
    while len(made) < count:
        made[make()] = None
    return list(made)


def name_of(name: str, count: int | None) -> str:
    """ "W3 10k"; those of W4 have one size."""
    return f"{name} {_short(count)}" if count is not None and name in REALISTIC else name


def _short(count: int) -> str:
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{letter}"
    return str(count)
