"""Sets of ordered values as unions of spans: what a test of a selector lets a value be.

    price > 100              (100, end)
    price <> 5               (start, 5) (5, end)
    region IN ('eu', 'us')   [eu, eu] [us, us]
    name LIKE 'ab%'          [ab, ac)                 texts are ordered by their bytes

A span lies between two cuts, and a cut between two neighbouring values: (1, v, 0) is just below v, (1, v, 1) just above
it, (0,) and (2,) are the ends. Tuples are ordered as the cuts are. The spans of a set ascend and do not overlap.
Whether values lie between two cuts is not asked: between "a" and "a\\0" there is no text, and the span counts all the
same.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

__all__ = ["EVERYTHING", "Spans", "above", "below", "common", "complement", "contains", "points", "single_values"]

Cut = tuple[Any, ...]
Spans = tuple[tuple[Cut, Cut], ...]

START: Cut = (0,)
END: Cut = (2,)
EVERYTHING: Spans = ((START, END),)


def below(value: Any, *, included: bool = False) -> Spans:
    """All that is less than the value, or equal where it is included."""
    return ((START, (1, value, int(included))),)


def above(value: Any, *, included: bool = False) -> Spans:
    return (((1, value, int(not included)), END),)


def points(values: Iterable[Any]) -> Spans:
    return tuple(((1, value, 0), (1, value, 1)) for value in sorted(set(values)))


def common(one: Spans, other: Spans) -> Spans:
    """What is in both, in time linear in the spans."""
    found: list[tuple[Cut, Cut]] = []
    i = j = 0
    while i < len(one) and j < len(other):
        low, high = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if low < high:
            found.append((low, high))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(spans: Spans) -> Spans:
    found: list[tuple[Cut, Cut]] = []
    at = START
    for low, high in spans:
        if at < low:
            found.append((at, low))
        at = high
    if at < END:
        found.append((at, END))
    return tuple(found)


def contains(spans: Spans, value: Any) -> bool:
    """Whether it is in the set, in logarithmic time."""
    at = bisect_right(spans, (1, value, 0), key=itemgetter(0)) - 1
    return at >= 0 and (1, value, 1) <= spans[at][1]


def single_values(spans: Spans) -> list[Any] | None:
    """The values of a set that is given value by value; None of one with a span of several."""
    return [low[1] for low, _ in spans] if all(low[1:2] == high[1:2] != () for low, high in spans) else None
