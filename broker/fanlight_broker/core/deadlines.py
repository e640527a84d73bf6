"""Deadlines: things with a time each, asked in order of their times. A heap that forgets lazily.

There may be one for each session: the garbage collector does not look at them (wire/hidden.pxd).
"""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from fanlight_broker.wire.hidden import hide

Thing = TypeVar("Thing", bound=Hashable)


class Deadlines(Generic[Thing]):
    """At most one deadline a thing. Its size is bounded by twice the things in it."""

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

    def discard(self, thing: Thing) -> None:
        self._at.pop(thing, None)

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._at

    @property
    def first(self) -> float | None:
        """The earliest time; None if there is none."""
        while self._heap:
            at, order, thing = self._heap[0]
            if self._at.get(thing) == (at, order):
                return at
            heappop(self._heap)
        return None

    def passed(self, thing: Thing, now: float) -> bool:
        """Has its time come?"""
        at = self._at.get(thing)
        return at is not None and at[0] <= now

    def due(self, now: float, most: int) -> Iterator[Thing]:
        """Those whose time has come, earliest first, `most` of them; each is taken out before it is given."""
        while most > 0 and self._heap and self._heap[0][0] <= now:
            at, order, thing = heappop(self._heap)
            if self._at.get(thing) == (at, order):
                del self._at[thing]
                most -= 1
                yield thing
