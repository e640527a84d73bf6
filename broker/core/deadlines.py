"""Deadlines: things with a time each, asked in order of their times. A heap that forgets lazily."""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

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
        self._at[thing] = (at, order)
        heappush(self._heap, (at, order, thing))
        if len(self._heap) > 2 * len(self._at) + 64:
            self._heap = [(at, order, thing) for thing, (at, order) in self._at.items()]
            heapify(self._heap)

    def discard(self, thing: Thing) -> None:
        self._at.pop(thing, None)

    def due(self, now: float) -> Iterator[Thing]:
        """Those whose time has come, earliest first; each is taken out before it is given."""
        while self._heap and self._heap[0][0] <= now:
            at, order, thing = heappop(self._heap)
            if self._at.get(thing) == (at, order):
                del self._at[thing]
                yield thing
