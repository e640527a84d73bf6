"""The workload model: what is kept of an archive so that a load like it can be made, at any scale. It needs no Spark.

    Model                                   when: rates over time, how bursty; JSON, docs/pipeline-jobs.md has each key
      Kind (root, number of words)          what: share of the messages, tree of topics, popularity, sizes, publishers
        Level                               words at one place of a topic, and topics' beginnings up to there

Popularity is Zipf's law: the topic of rank r gets messages in proportion to r to the power of -exponent. The exponent
is fitted by maximum likelihood on a bounded set of ranks, which holds for any exponent: Hanel, Corominas-Murtra, Liu
and Thurner, Fitting power-laws in empirical data with estimators that work for all exponents, PLoS ONE 12(2), 2017,
e0170920. Ranks are those of the sample itself, so that with few messages a topic it comes out too large: Pilgrim and
Hills, Bias in Zipf's law estimators, Scientific Reports 11, 2021, 17309.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

VERSION: Final = 1
METHOD: Final = "maximum likelihood, bounded ranks (doi:10.1371/journal.pone.0170920)"
EXPONENT_MAX: Final = 10.0
PROBABILITIES: Final = (0.0, 0.01, 0.05, *(n / 10 for n in range(1, 10)), 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True, slots=True)
class Level:
    """One place of the topics of a kind. nodes: distinct beginnings up to here; words: distinct words here."""

    nodes: int
    words: int
    names: tuple[str, ...] = ()  # the most frequent words; the others are called by their number


@dataclass(frozen=True, slots=True)
class Kind:
    """Topics with the same first word and the same number of words."""

    root: str
    share: float  # of all messages
    topics: int
    levels: tuple[Level, ...]
    exponent: float
    exponent_error: float  # standard error
    sizes: tuple[float, ...]  # bytes of a payload, at PROBABILITIES
    mean_bytes: float
    publishers: int
    publishers_per_topic: float


@dataclass(frozen=True, slots=True)
class Model:
    """All of it. rates: messages/s in intervals of `interval` seconds, from the first message on."""

    messages: int
    seconds: float
    interval: float
    rates: tuple[float, ...]
    gap_variation: float  # standard deviation of the gaps divided by their mean, within an interval; 1: at random
    kinds: tuple[Kind, ...]
    left_out: float = 0.0  # share of the messages whose kinds were too many to keep
    learned: dict[str, Any] = field(default_factory=dict)  # from what, for people

    @property
    def rate(self) -> float:
        return self.messages / self.seconds if self.seconds else 0.0

    def json(self) -> str:
        stored = {"workload": VERSION, "zipf": METHOD, "probabilities": PROBABILITIES, **asdict(self)}
        return json.dumps(stored, indent=1) + "\n"

    def save(self, path: Path) -> None:
        """Whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.new")
        aside.write_text(self.json(), encoding="utf-8")
        os.replace(aside, path)


def load(path: Path) -> Model:
    """A model from a file. Raises ValueError, OSError."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["workload"] != VERSION:
            raise ValueError(f"of version {stored['workload']}; this program reads version {VERSION}")
        if len(stored["probabilities"]) != len(PROBABILITIES):
            raise ValueError("sizes at other probabilities than those of this version")
        return parse(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: no workload model: {type(error).__name__}: {error}") from error


def parse(stored: dict[str, Any]) -> Model:
    kinds = []
    for kind in stored["kinds"]:
        levels = tuple(Level(int(each["nodes"]), int(each["words"]), tuple(each["names"])) for each in kind["levels"])
        if not levels or kind["topics"] != levels[-1].nodes or min(min(at.nodes, at.words) for at in levels) < 1:
            raise ValueError(f"the levels of {kind['root']!r} are no tree of {kind['topics']} topics")
        kinds.append(Kind(**{**kind, "levels": levels, "sizes": tuple(map(float, kind["sizes"]))}))
    names = [name for name in Model.__dataclass_fields__ if name not in ("kinds", "rates")]
    return Model(**{name: stored[name] for name in names}, rates=tuple(map(float, stored["rates"])), kinds=tuple(kinds))


def zipf(messages: int, log_ranks: float, topics: int) -> tuple[float, float]:
    """(exponent, its standard error) of `messages` on `topics` ranks, whose ranks' logarithms sum up to `log_ranks`.

    Where the likelihood is greatest, log_ranks / messages is the mean of log r under the law. That mean falls with the
    exponent, which is found by bisection.
    """
    if topics < 2 or not messages:
        return 0.0, 0.0
    logs = np.log(np.arange(1, topics + 1))
    wanted = log_ranks / messages
    low, high = 0.0, EXPONENT_MAX
    for _ in range(60):
        middle = (low + high) / 2
        if _moments(logs, middle)[0] > wanted:
            low = middle
        else:
            high = middle
    exponent = (low + high) / 2
    variance = _moments(logs, exponent)[1]
    return exponent, float(1 / np.sqrt(messages * variance)) if variance > 0 else 0.0


def _moments(logs: Any, exponent: float) -> tuple[float, float]:
    """Mean and variance of log r under Zipf's law."""
    weights = np.exp(-exponent * logs)
    weights /= weights.sum()
    mean = float(weights @ logs)
    return mean, float(weights @ (logs - mean) ** 2)
