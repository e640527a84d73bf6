"""What the client waits for: answers to its requests, PONGs, replies.

A plain table with numbers going up. It also remembers how many fire-and-forget messages had been queued
before each
question: the broker works in order, so an answer shows that it has read all of those.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from .errors import FanlightError, LimitExceeded
from .frames import U32_MAX


class Answers:
    """Futures by request number. `limit`: how many may be awaited at once."""

    def __init__(self, limit: int) -> None:
        self.confirmed = 0  # fire-and-forget messages that the broker has certainly read
        self.on_change: Callable[[], None] = lambda: None  # called when waiting begins, and when it ends
        self._limit = limit
        self._last = 0
        self._waiting: dict[int, tuple[asyncio.Future[Any], int]] = {}
        self._expected: set[asyncio.Future[Any]] = set()

    def __len__(self) -> int:
        """Answers that somebody still waits for."""
        return len(self._expected)

    def open(self, position: int) -> tuple[int, asyncio.Future[Any]]:
        """A new number and the future of its answer; `position` messages were queued before it.

        Raises LimitExceeded.
        """
        if len(self._waiting) >= self._limit:
            raise LimitExceeded(
                f"{self._limit:,} requests are waiting for their answers; await some of them first",
                details={"limit": "pending_requests", "value": self._limit},
            )
        number = self._last = self._last % U32_MAX + 1
        while number in self._waiting:  # only after four thousand million requests
            number = self._last = self._last % U32_MAX + 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, position)
        self._expected.add(future)
        future.add_done_callback(self._no_longer_expected)  # for callers who give up
        if len(self._expected) == 1:
            self.on_change()
        return number, future

    def resolve(self, number: int | None, result: Any) -> bool:
        """The answer to `number` came. False when nothing of that number was asked."""
        future = self._settled(number)
        if future is None:
            return False
        if not future.done():  # its caller may have given up: the answer still confirms
            future.set_result(result)
        return True

    def refuse(self, number: int | None, error: FanlightError) -> bool:
        """As `resolve`, with an error."""
        future = self._settled(number)
        if future is None:
            return False
        if not future.done():
            future.set_exception(error)
        return True

    def forget(self, number: int) -> None:
        """Nobody waits for that answer any more, and it need not come."""
        self._waiting.pop(number, None)

    def confirm(self, position: int) -> None:
        """The total of fire-and-forget messages that the broker has read."""
        self.confirmed = max(self.confirmed, position)

    def fail_all(self, error: FanlightError, *, forget: bool = False) -> None:
        """Fail everyone who waits. `forget`: no answer will come any more; else it is still matched."""
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen: a caller that was cancelled meanwhile does not fetch it
        if forget:
            self._waiting.clear()

    def _settled(self, number: int | None) -> asyncio.Future[Any] | None:
        if number is None:
            return None
        entry = self._waiting.pop(number, None)
        if entry is None:
            return None
        future, position = entry
        self.confirm(position)
        self._no_longer_expected(future)  # at once: a frame behind it may be the one too many
        return future

    def _no_longer_expected(self, future: asyncio.Future[Any]) -> None:
        if future in self._expected:
            self._expected.discard(future)
            if not self._expected:
                self.on_change()
