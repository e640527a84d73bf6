"""When the oldest delivery of a channel was sent, for consumer_timeout, without a time in each delivery.

    readings   (time, the last tag at that time), oldest first; at most one in a sixteenth of the time-out

A delivery was sent before the first reading that has its tag, and after the one before that. So a channel is late by a
sixteenth of the time-out at most.
"""

from collections import deque
from typing import Final

READINGS: Final = 16  # within one time-out


class DeliveryTimes:
    __slots__ = ("_readings",)

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def overdue(self, oldest: int | None, last: int, timeout: float, now: float) -> bool:
        """Was a delivery sent `timeout` seconds ago that is not acknowledged?

        oldest  tag that is not acknowledged; None: all are acknowledged
        last    tag that was given
        """
        readings = self._readings
        if oldest is None:
            readings.clear()
            return False
        while readings and readings[0][1] < oldest:
            readings.popleft()
        if not readings or (readings[-1][1] < last and now - readings[-1][0] >= timeout / READINGS):
            readings.append((now, last))
        return now - readings[0][0] >= timeout
