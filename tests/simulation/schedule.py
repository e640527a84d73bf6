"""Simulated time: what happens next is decided by a seed, never by a clock or a thread."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any


class Schedule:
    """Events in the order of their times; those of the same time in a random order."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 1_000.0  # seconds
        self.wall = 1_700_000_000.0  # wall-clock time at 0; it changes when a clock is set
        self._events: list[tuple[float, float, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._order = count()

    def after(self, seconds: float, act: Callable[..., Any], *arguments: Any) -> None:
        event = (self.now + seconds, self.random.random(), next(self._order), act, arguments)
        heappush(self._events, event)

    def soon(self, act: Callable[..., Any], *arguments: Any, most: float = 0.05) -> None:
        """Within `most` seconds."""
        self.after(self.random.uniform(0, most), act, *arguments)

    def step(self) -> None:
        """Run the next event."""
        at, _, _, act, arguments = heappop(self._events)
        self.now = max(self.now, at)  # after a standstill, all that was due happens at once
        act(*arguments)
