"""When the oldest delivery of a channel was sent, for consumer_timeout, without a time in each delivery.

    marks   (time, the last tag at that time), oldest first; a new one after a sixteenth of the time-out at the earliest

A delivery was sent before the first mark that has its tag, and after the mark before that. So a channel is late by a
sixteenth of the time-out at most.
"""

from collections import deque
from typing import Final

MARKS: Final = 16  # within one time-out


class DeliveryTimes:
    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def overdue(self, oldest: int | None, last: int, timeout: float, now: float) -> bool:
        """Was a delivery sent `timeout` seconds ago that is not acknowledged?

        oldest  tag that is not acknowledged; None: there is none
        last    tag that was given
        """
        marks = self._marks
        if oldest is None:
            marks.clear()
            return False
        while marks and marks[0][1] < oldest:
            marks.popleft()
        if not marks or (marks[-1][1] < last and now - marks[-1][0] >= timeout / MARKS):
            marks.append((now, last))
        return now - marks[0][0] >= timeout
