"""What metrics are made of when a number and a name are not enough: families with labels, and histograms."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Final, Literal, NamedTuple

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # bounds of a Histogram

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


def histogram(name: str, help: str, counts: Iterable[tuple[float, int]], total: float) -> MetricFamily:
    """A family of (upper bound, how many are between the bound before and it)."""
    rows = list(counts)
    buckets = list(zip((bound for bound, _ in rows), accumulate(count for _, count in rows), strict=True))
    return MetricFamily(name, help, "histogram", buckets=buckets, sum=total)
