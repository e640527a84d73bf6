"""What metrics are made of when a number and a name are not enough: families with labels, counts with a bounded number
of labels, and histograms.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Final, Literal, NamedTuple

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # bounds of a Histogram

LABELS_MAX: Final = 100  # values of one label that clients may cause, with a count of their own
OTHER: Final = "other"  # in place of the others

Labels = Mapping[str, str]


class MetricFamily(NamedTuple):
    """Numbers of one kind that differ in their labels; or one histogram, without labels.

    replaces  the plain metrics that these are instead of
    """

    name: str
    help: str
    kind: Literal["counter", "gauge", "histogram"]
    samples: Sequence[tuple[Labels, float]] = ()
    buckets: Sequence[tuple[float, int]] = ()  # (upper bound, how many up to it); the last bound is infinite
    sum: float = 0.0
    replaces: frozenset[str] = frozenset()


class Histogram:
    """How many values were how large. One thread observes; what another one reads may be one value behind."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = (*bounds, inf)
        self.sum = 0.0
        self._counts = [0] * len(self.bounds)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def family(self, name: str, help: str) -> MetricFamily:
        return histogram(name, help, zip(self.bounds, self._counts, strict=True), self.sum)


class BoundedCounts:
    """Counts by a label, and by a second one of few values. The first `most` labels have counts of their own, and all
    that come later are summed as OTHER: so there are never more series, and none ever goes down.
    """

    __slots__ = ("_most", "_of")

    def __init__(self, most: int = LABELS_MAX) -> None:
        self._most = most
        self._of: dict[str, Counter[str]] = {}

    def add(self, label: str, second: str = "") -> None:
        counts = self._of.get(label)
        if counts is None:
            counts = self._of.setdefault(label if len(self._of) < self._most else OTHER, Counter())
        counts[second] += 1

    def samples(self, name: str, second: str | None = None) -> list[tuple[Labels, float]]:
        """name, second: of the labels"""
        return [
            ({name: label} if second is None else {name: label, second: value}, float(count))
            for label, counts in self._of.items() for value, count in counts.items()
        ]


def histogram(name: str, help: str, counts: Iterable[tuple[float, int]], total: float) -> MetricFamily:
    """A family of (upper bound, how many are between the bound before and it)."""
    rows = list(counts)
    buckets = list(zip((bound for bound, _ in rows), accumulate(count for _, count in rows), strict=True))
    return MetricFamily(name, help, "histogram", buckets=buckets, sum=total)
