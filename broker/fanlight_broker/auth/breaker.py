"""A circuit breaker: after failures in a row nobody asks for a while, and then one asks, to see.

A service that answers, but not as it should, may fail on what it was asked: on a name that its database does not take,
say. Whoever finds such a question must not close the service for everybody, so failures of that kind count once for
each asker.

No clock here: `now` is an argument.
"""

from typing import Final

FAILURES: Final = 5  # in a row
FIRST_SECONDS: Final = 1.0
SECONDS_MAX: Final = 30.0
ASKERS_MAX: Final = 100  # that are known to have had such an answer, 100 bytes each


class Breaker:
    """Of one service."""

    def __init__(self) -> None:
        self._failures = 0
        self._seconds = 0.0  # of the present pause; 0 without one
        self._until = 0.0
        self._trying = False  # one asks, to see
        self._askers: set[str] = set()  # whose questions were answered otherwise than they should, in this row

    @property
    def open(self) -> bool:
        """Whether the service counts as out of order."""
        return self._seconds > 0

    def admits(self, now: float) -> bool:
        """Whether to ask now. The outcome must be reported."""
        if not self.open:
            return True
        if self._trying or now < self._until:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        self._failures, self._seconds, self._trying = 0, 0.0, False
        self._askers.clear()

    def failed(self, now: float, asker: str = "") -> bool:
        """Returns whether this failure opens the circuit. asker: who had an answer, if there was one."""
        if asker:
            if asker in self._askers:
                self.given_up()
                return False
            if len(self._askers) < ASKERS_MAX:
                self._askers.add(asker)
        self._failures += 1
        if self.open and not self._trying:
            return False  # one that was under way before
        if self._failures < FAILURES and not self._trying:
            return False
        opens, self._trying = not self.open, False
        self._seconds = min(SECONDS_MAX, 2 * self._seconds or FIRST_SECONDS)
        self._until = now + self._seconds
        return opens

    def given_up(self) -> None:
        """There is no outcome: nobody waits for the answer any more, or it says nothing of the service."""
        self._trying = False
