"""Sets of filters: which of them others make redundant, and what is left.

A link that only asks whether any filter matches (a bridge, a node of a cluster) need not carry `site/1/temp` when it
carries `site/#`. Each filter is given a topic that it matches, and an index of the filters kept so far is asked
which match that topic: only those can cover it, and `covers` decides. More general filters are processed first
(`outline` ranks them), so that a kept filter is never dropped again, and the index holds only kept filters.

The cost: for each filter one match among the filters kept, and `covers` for those found until one of them does.
Ordinary filters find themselves or one other: 4 to 8 µs each, for ten thousand or a hundred thousand filters,
redundant or not. This is not a bound: filters can be constructed, such as thousands of `#.` and twelve words that are
`a` or `b` and `.#`, for which each match examines all others, and filters that match one another's topics without
covering are compared pairwise. The length of those topics is random per process, so that it cannot be predicted.

Single filters are compared: `a`, `a.*` and `a.*.*.#` together match all that `a.#` does, and none is redundant for
the others, nor `a.#` for them. Finding the smallest set of filters with the same topics is a different, hard problem.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from matchcore.filters import FilterIndex
from matchcore.inclusion import covers, outline

__all__ = ["Subsumed", "minimal_cover", "subsumed"]

Text = str | bytes
Given = TypeVar("Given", str, bytes, Text)

MAX_WORDS = 1024  # the largest limits an index takes: the filters were checked when they came
MAX_BYTES = 1 << 30


class Subsumed(NamedTuple):
    """A filter, and one that covers it and is not itself redundant."""

    filter: Text
    syntax: str
    by: Text
    by_syntax: str


def subsumed(index: FilterIndex) -> list[Subsumed]:
    """The filters of an index that are redundant where only any match counts, in no promised order.

    Time: usually in proportion to the filters (0.5 s for 100,000), up to filters x filters for those made to be slow:
    not for the thread of an event loop. Memory: some 500 bytes each meanwhile. RuntimeError if the index changes while
    its filters are read, which is the beginning; then it may.

    Of filters that match the same topics (`#.*` and `*.#`) all but one are. Without those listed, whatever ids they
    have, the index matches the same topics.
    """
    filters = list(dict.fromkeys((text, syntax) for text, syntax, _ in index.filters()))
    return [Subsumed(*filters[i], *filters[by]) for i, by in _redundant(filters).items()]


def minimal_cover(filters: Iterable[tuple[Given, str]]) -> list[tuple[Given, str]]:
    """Of (filter, syntax) those that no other one covers, in the order given; of equals the first.

    Every filter given is covered by one that is left, and none that is left by another; of all subsets of which that
    is true it is the smallest. It need not be the smallest set of filters that matches the same topics: a filter that
    only several together make redundant stays. Time and memory as of `subsumed`. Raises InvalidFilter.
    """
    given = list(filters)
    redundant = _redundant(given)
    return [pair for i, pair in enumerate(given) if i not in redundant]


def _redundant(filters: Sequence[tuple[Given, str]]) -> dict[int, int]:
    """By number: each redundant filter, and one that covers it and is not."""
    outlines = [outline(text, syntax) for text, syntax in filters]
    kept = FilterIndex(MAX_WORDS, MAX_BYTES)
    redundant: dict[int, int] = {}
    for i in sorted(range(len(filters)), key=lambda i: outlines[i][0]):
        text, syntax = filters[i]
        for by in kept.match(outlines[i][1], syntax=syntax):
            if covers(filters[by][0], text, a_syntax=filters[by][1], b_syntax=syntax):
                redundant[i] = by
                break
        else:
            kept.insert(text, i, syntax=syntax)
    return redundant
