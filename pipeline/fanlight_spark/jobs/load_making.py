"""A load made by a model: lines of `at, topic, bytes, publisher`, as `fanlight bench load replay` plays them.

    when     gaps of a Gamma renewal process with the model's variation, as many a second as the rate says then
    what     a kind by its share; a topic of it by Zipf's law, its ranks dealt out over the tree at random
    bytes    by the kind's quantiles, straight between them
    who      one of the topic's publishers

At scale s there are s times the messages a second, topics and publishers, for the same time: the second level of a
topic has s times as many words, and what is below it stays as it was. Topics of one word are as many as they were. The
same model, scale and seed make the same load.
"""

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fanlight_spark.jobs.load_model import PROBABILITIES, Kind, Level, Model

BYTES_MAX: Final = 1 << 20  # of a payload, that a replay takes
AT_ONCE: Final = 65_536  # messages
_NUMBERED: Final = re.compile(r"l\d+-\d+")
_UNFIT: Final = set("+#*>./ \t\r\n\v\f\x00")


@dataclass(frozen=True, slots=True)
class Message:
    at: float  # seconds from the beginning
    topic: str
    bytes: int
    publisher: str


def make(model: Model, *, scale: float = 1.0, seed: int = 0, messages: int | None = None) -> Iterator[Message]:
    """The load, by time; at most `messages` of them. Raises ValueError."""
    if not 0 < scale < inf:
        raise ValueError(f"scale {scale}: more than 0 is wanted, and less than infinite")
    if not model.kinds or not any(model.rates):
        raise ValueError("a model without messages makes no load")
    random = np.random.default_rng(seed)
    makers = [_Maker(number, scaled(kind, scale), random) for number, kind in enumerate(model.kinds)]
    shares = np.array([kind.share for kind in model.kinds])
    shares /= shares.sum()
    left = messages
    for at in _times(model, scale, random):
        chosen = random.choice(len(makers), size=len(at), p=shares)
        found: list[list[tuple[str, int, str]]] = [[]] * len(makers)
        for number in np.unique(chosen):
            found[number] = makers[number].draw(int((chosen == number).sum()), random)[::-1]
        for time, number in zip(at[:left], chosen[:left], strict=True):
            yield Message(round(float(time), 6), *found[number].pop())
        if left is not None and (left := left - len(at)) <= 0:
            return


def scaled(kind: Kind, scale: float) -> Kind:
    """The kind with `scale` times its topics and publishers."""
    if scale == 1 or len(kind.levels) < 2:
        return replace(kind, publishers=_times_of(kind.publishers, scale) if len(kind.levels) > 1 else kind.publishers)
    nodes = [_times_of(level.nodes, scale) if at else level.nodes for at, level in enumerate(kind.levels)]
    levels = []
    for at, level in enumerate(kind.levels):
        # Below the second level as many words as there were, or as the children need to be distinct.
        words = _times_of(level.words, scale) if at == 1 else level.words
        children = -(-nodes[at] // nodes[at - 1]) if at else nodes[at]
        levels.append(Level(nodes[at], min(max(words, children), nodes[at]), level.names))
    return replace(kind, topics=nodes[-1], levels=tuple(levels), publishers=_times_of(kind.publishers, scale))


def topic(kind: Kind, number: int) -> str:
    """The topic with a number below `kind.topics`. Of all of them, the levels have just the nodes and words they say.

    From the last level up: the parent of node i of n is node i * m // n of the m above, so each level has its number of
    nodes; a node's word is its number modulo the words, and children of one node follow each other, so they differ.
    """
    words = []
    for at in range(len(kind.levels) - 1, -1, -1):
        level = kind.levels[at]
        place = number % level.words
        words.append(level.names[place] if place < len(level.names) else f"l{at + 1}-{place}")
        if at:
            number = number * kind.levels[at - 1].nodes // level.nodes
    return "/".join(reversed(words))


def names(words: Iterable[str]) -> tuple[str, ...]:
    """Words as a recording may have them, each different: without wildcards, separators and spaces, not empty.

    Those that look as words are called that have no name (l2-17) are left out: they would be there twice.
    """
    found: dict[str, None] = {}
    for word in words:
        if _NUMBERED.fullmatch(word):
            continue
        clean = "".join("-" if letter in _UNFIT or letter.isspace() else letter for letter in word) or "-"
        fit, number = clean, 2
        while fit in found:
            fit, number = f"{clean}-{number}", number + 1
        found[fit] = None
    return tuple(found)


def write(messages: Iterable[Message], path: Path) -> int:
    """JSON lines, packed if the name ends in .gz; whole or not at all. How many there are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".new-{path.name}")
    published = 0
    try:
        with gzip.open(aside, "wt", 3) if path.suffix == ".gz" else aside.open("w", encoding="utf-8") as file:
            for each in messages:
                line = {"at": each.at, "topic": each.topic, "bytes": each.bytes, "publisher": each.publisher}
                file.write(json.dumps(line) + "\n")
                published += 1
        os.replace(aside, path)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()
    return published


class _Maker:
    """Topics, sizes and publishers of one kind."""

    def __init__(self, number: int, kind: Kind, random: np.random.Generator) -> None:
        self._number = number
        self._kind = kind
        weights = np.arange(1, kind.topics + 1, dtype=np.float64) ** -kind.exponent
        self._up_to: NDArray[np.float64] = np.cumsum(weights)
        self._topic_of = random.permutation(kind.topics)  # of each rank
        self._spelled: dict[int, str] = {}

    def draw(self, count: int, random: np.random.Generator) -> list[tuple[str, int, str]]:
        kind = self._kind
        ranks = np.searchsorted(self._up_to, random.random(count) * self._up_to[-1], side="right")
        numbers = self._topic_of[np.minimum(ranks, kind.topics - 1)]
        sizes = np.interp(random.random(count), PROBABILITIES, kind.sizes)
        sizes = np.clip(np.round(sizes), 0, BYTES_MAX).astype(np.int64)
        each = max(1, min(kind.publishers, round(kind.publishers_per_topic)))
        who = (numbers * kind.publishers // kind.topics + random.integers(0, each, count)) % max(kind.publishers, 1)
        return [
            (self._topic(number), size, f"{self._number}-{publisher}")
            for number, size, publisher in zip(numbers.tolist(), sizes.tolist(), who.tolist(), strict=True)
        ]

    def _topic(self, number: int) -> str:
        found = self._spelled.get(number)
        if found is None:
            found = self._spelled[number] = topic(self._kind, number)
        return found


def _times(model: Model, scale: float, random: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """When messages come: a renewal process of mean gap 1, on a clock that runs as fast as the rate."""
    passed = np.concatenate([[0.0], np.cumsum(np.array(model.rates) * model.interval * scale)])
    edges = np.minimum(np.arange(len(passed)) * model.interval, model.seconds)
    regular = model.gap_variation < 1e-3
    shape = 1.0 if regular else model.gap_variation**-2  # of a Gamma distribution: by the method of moments
    at = 0.0
    while at < passed[-1]:
        gaps = np.ones(AT_ONCE) if regular else random.gamma(shape, 1 / shape, AT_ONCE)
        clock = at + np.cumsum(gaps)
        at = float(clock[-1])
        clock = clock[clock <= passed[-1]]
        if len(clock):
            yield np.interp(clock, passed, edges)


def _times_of(number: int, scale: float) -> int:
    return max(1, round(number * scale))


