"""Marks: how far each producer has got, so that what it publishes again is taken once.

    (user, producer) -> (batch, sequence)    the highest that was taken, in the order in which they moved up

A message whose mark is not above its producer's is a repetition. A mark belongs to the user who was authenticated, so
that nobody can push up another's. Bounded: past `marks_max` the producer that moved up longest ago is forgotten, and
what it publishes again is taken again. Keeping marks with the messages is the store's matter (`ports.Store.note`).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.core.limits import Limits


class Mark(NamedTuple):
    """Which message of whom."""

    user: str  # as authenticated; "" if anonymous
    producer: str
    batch: int
    sequence: int


class Marks:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.repeated = 0  # messages that were not taken again
        self.forgotten = 0  # producers
        self._highest: dict[tuple[str, str], tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._highest)

    def __iter__(self) -> Iterator[Mark]:
        """The one that moved up longest ago first."""
        return (Mark(*key, *place) for key, place in self._highest.items())

    def repeats(self, mark: Mark) -> bool:
        """Was the message of this mark taken before, or a later one of its producer? Counted if so."""
        highest = self._highest.get(mark[:2])
        if highest is None or mark[2:] > highest:
            return False
        self.repeated += 1
        return True

    def advance(self, mark: Mark) -> None:
        """The message of this mark is taken."""
        highest = self._highest.pop(mark[:2], (0, 0))
        self._highest[mark[:2]] = max(highest, mark[2:])
        while len(self._highest) > self.limits.marks_max:
            del self._highest[next(iter(self._highest))]
            self.forgotten += 1

    def restore(self, marks: Iterable[Mark]) -> None:
        """Those that a store has kept, in their order."""
        for mark in marks:
            self.advance(mark)
