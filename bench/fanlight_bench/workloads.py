"""The workloads W1 to W4, made anew from a fixed seed: filters, distinct, and a stream of topics.

W1 to W3 are those of bench/fanlight_bench/micro/workloads.py:

    W1    five random 19-digit words, no wildcard; half of the topics match
    W1v   five words from a vocabulary of 20, each `*` with probability 0.1
    W2    finance, AMQP: stock.EXCHANGE.TICKER.FIELD; 45 % exact, `*`, `#` at the end, front and middle
    W3    IoT, MQTT: site/S/floor/F/dev/D/METRIC; three quarters with several wildcards

W4 is what an adversary would choose, all AMQP:

    W4a   all 6,561 filters over {a, b, *}^8
    W4b   50,000 filters of 8 words from 16, each `*` with probability one half
    W4c   5,000 filters of 3 to 7 words from 26, up to three `#`
    W4d   20,000 filters of 12 words from 2, any mask of wildcards; W4e the same from 1,000 words
    W4f   120 filters `#.a.#.b.#.a ... #.zN`; topics of 12 words from {a, b}, half of them ending in `zN`

W5, the mixes of matches and changes, is W2 and W3 under `mix`.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fanlight_bench.micro import workloads as micro

SEED = micro.SEED
TOPICS = 20_000  # distinct ones of a pass: more than the processor's caches remember of a large index


@dataclass(frozen=True, slots=True)
class Workload:
    """Filters, their ids being their places, and topics, all in one syntax."""

    name: str
    syntax: str
    filters: list[bytes]
    topics: list[bytes]


def make(name: str, filters: int | None = None) -> Workload:
    """The workload of that name; W1 to W3 with so many filters (1,000, or 10,000 of W2 and W3)."""
    dice = random.Random(SEED)
    if name in REALISTIC:
        generator, count = REALISTIC[name]
        made = generator(dice, filters or count)
        return _encoded(name_of(name, filters or count), made.syntax, made.filters, made.topics)
    made_filters, made_topics = ADVERSARIAL[name](dice)
    return _encoded(name, "amqp", made_filters[:filters], made_topics)


REALISTIC: dict[str, tuple[Callable[[random.Random, int], micro.Workload], int]] = {
    "W1": (micro.w1, 1_000), "W1v": (micro.w1v, 1_000), "W2": (micro.w2, 10_000), "W3": (micro.w3, 10_000),
}  # fmt: skip

Texts = tuple[list[str], list[str]]


def _words(size: int) -> list[str]:
    return [f"{chr(ord('a') + i)}" if size <= 26 else f"w{i}" for i in range(size)]


def _masked(dice: random.Random, count: int, length: int, vocabulary: list[str]) -> Texts:
    """Filters of one length, each word a wildcard with probability one half."""

    def filter() -> str:
        return ".".join("*" if dice.random() < 0.5 else dice.choice(vocabulary) for _ in range(length))

    topics = [".".join(dice.choices(vocabulary, k=length)) for _ in range(TOPICS)]
    return distinct(count, filter), topics


def w4a(dice: random.Random) -> Texts:
    filters = [""]
    for _ in range(8):
        filters = [f"{start}.{word}" if start else word for start in filters for word in "ab*"]
    return filters, [".".join(dice.choices("ab", k=8)) for _ in range(TOPICS)]


def w4b(dice: random.Random) -> Texts:
    return _masked(dice, 50_000, 8, _words(16))


def w4c(dice: random.Random) -> Texts:
    letters = _words(26)

    def filter() -> str:
        words = dice.choices(letters, k=dice.randint(3, 7))
        for place in dice.sample(range(len(words)), k=dice.randint(0, 3)):
            words[place] = "#"
        return ".".join(words)

    return distinct(5_000, filter), [".".join(dice.choices(letters, k=dice.randint(3, 9))) for _ in range(TOPICS)]


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

    return filters, [topic(i) for i in range(TOPICS)]


ADVERSARIAL: dict[str, Callable[[random.Random], Texts]] = {
    "W4a": w4a, "W4b": w4b, "W4c": w4c, "W4d": w4d, "W4e": w4e, "W4f": w4f,
}  # fmt: skip


def distinct(count: int, make: Callable[[], str]) -> list[str]:
    """So many different ones, in the order they were made."""
    made: dict[str, None] = {}
    while len(made) < count:
        made[make()] = None
    return list(made)


def _encoded(name: str, syntax: str, filters: list[str], topics: list[str]) -> Workload:
    return Workload(name, syntax, [text.encode() for text in filters], [text.encode() for text in topics])


def name_of(name: str, count: int | None) -> str:
    """ "W3 10k"; those of W4 have one size."""
    return f"{name} {_short(count)}" if count is not None and name in REALISTIC else name


def _short(count: int) -> str:
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{letter}"
    return str(count)
