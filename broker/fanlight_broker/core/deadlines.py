"""Deadlines: things with a time each, in order of their times. A heap with lazy removal.

There may be one for each session: the garbage collector does not look at them (wire/hidden.pxd).
"""

from collections.abc import Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from fanlight_broker.wire.hidden import hide

Thing = TypeVar("Thing", bound=Hashable)


class Deadlines(Generic[Thing]):
    """At most one deadline per thing. Its size is at most about twice the number of things."""

    def __init__(self) -> None:
        self._at: dict[Thing, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Thing]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._at)

    def set(self, thing: Thing, at: float) -> None:
        """Give a thing a deadline, in place of the one it may have."""
        order = next(self._order)
        self._at[thing] = place = (at, order)
        entry = (at, order, thing)
        heappush(self._heap, entry)
        hide(place, entry, self._at, self._heap)
        if len(self._heap) > 2 * len(self._at) + 64:
            self._heap = [(at, order, thing) for thing, (at, order) in self._at.items()]
            heapify(self._heap)
            hide(self._heap, *self._heap)

    def set_all(self, found: Iterable[tuple[Thing, float]]) -> None:
        """Give many things their deadlines. None of them has one."""
        for thing, at in found:
            order = next(self._order)
            self._at[thing] = place = (at, order)
            entry = (at, order, thing)
            heappush(self._heap, entry)
            hide(place, entry)
        hide(self._at, self._heap)

    def discard(self, thing: Thing) -> None:
        self._at.pop(thing, None)

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._at

    @property
    def first(self) -> float | None:
        """The earliest time, or None."""
        while self._heap:
            at, order, thing = self._heap[0]
            if self._at.get(thing) == (at, order):
                return at
            heappop(self._heap)
        return None

    def passed(self, thing: Thing, now: float) -> bool:
        """Has its deadline passed?"""
        at = self._at.get(thing)
        return at is not None and at[0] <= now

    def due(self, now: float, most: int) -> Iterator[Thing]:
        """Those whose deadline has passed, earliest first, `most` of them; each is removed before it is yielded."""
        while most > 0 and self._heap and self._heap[0][0] <= now:
            at, order, thing = heappop(self._heap)
            if self._at.get(thing) == (at, order):
                del self._at[thing]
                most -= 1
                yield thing
