"""When the oldest delivery of a channel was sent, for consumer_timeout, without a time in each delivery.

    marks   (time, the last tag at that time), oldest first; a new one after a sixteenth of the time-out at the earliest

A delivery was sent before the first mark that has its tag, and after the mark before that. So a channel is late by a
sixteenth of the time-out at most.
"""

from collections import deque
from typing import Final, NamedTuple

MARKS: Final = 16  # within one time-out


class Mark(NamedTuple):
    time: float
    last: int


class DeliveryTimes:
    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()

    def overdue(self, oldest: int | None, last: int, timeout: float, now: float) -> bool:
        """Was a delivery sent `timeout` seconds ago that is not acknowledged?

        oldest  tag that is not acknowledged; None: there is none
        last    tag that was given
        """
        marks = self._marks
        if oldest is None:
            marks.clear()
            return False
        while marks and marks[0].last < oldest:
            marks.popleft()
        if not marks or (marks[-1].last < last and now - marks[-1].time >= timeout / MARKS):
            marks.append(Mark(now, last))
        return now - marks[0].time >= timeout
