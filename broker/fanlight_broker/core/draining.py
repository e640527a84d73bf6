"""Draining: drops what queues had that have ended, a slice per turn.

A queue that has ended, a named one, a group's or a session's, has no consumer and gets nothing, and the journal knows
its end. What was in it may be a million messages, some 0.3 µs each. Until they are dropped they count as stored bytes,
and in no queue.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from fanlight_broker.core.turns import Turns

DROPPED_PER_LOOK: Final = 256  # messages between two readings of the clock


class Ended(Protocol):
    """A queue that has ended."""

    def drop(self, most: int, /) -> bool:
        """Drop this many of its messages. Returns whether any is left."""
        ...


class Draining:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: deque[tuple[Ended, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        """Queues that are still to be drained."""
        return len(self._waiting)

    def drain(self, queue: Ended, then: Callable[[], None]) -> None:
        """Drop all that is in it, and call `then`: at once, if it is little."""
        if not self._waiting and not queue.drop(DROPPED_PER_LOOK):
            then()
            return
        self._waiting.append((queue, then))
        if len(self._waiting) == 1:
            self._turns.later(self._go_on)

    def _go_on(self) -> None:
        while self._waiting:
            queue, then = self._waiting[0]
            if not queue.drop(DROPPED_PER_LOOK):
                self._waiting.popleft()
                then()
            if self._waiting and self._turns.over():
                self._turns.later(self._go_on)
                return
