"""How late the loop is: a timer that should come every PERIOD seconds, and by how much it misses that.

Beside the histogram of all there is the worst of the last RECENT to 2 * RECENT ticks, for a look at how it is now.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from fanlight_broker.core.metrics import Histogram, MetricFamily

PERIOD: Final = 0.1  # seconds: some 20 µs each
RECENT: Final = 50   # ticks: 5 s

GAUGES: Final = {"loop_lag_recent_seconds": "Worst delay of the event loop in the last 5 to 10 seconds"}


class LoopLag:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._seen = Histogram()
        self._ticks = 0
        self._worst = self._worst_before = 0.0  # of this round of RECENT ticks, and of the one before

    def start(self) -> None:
        self._due = self._loop.time() + PERIOD
        self._timer = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        lag = max(0.0, self._loop.time() - self._due)
        self._seen.observe(lag)
        self._ticks += 1
        if self._ticks % RECENT == 0:
            self._worst_before, self._worst = self._worst, 0.0
        self._worst = max(self._worst, lag)
        self.start()

    def gauges(self) -> Mapping[str, float]:
        return {"loop_lag_recent_seconds": max(self._worst, self._worst_before)}

    def families(self) -> list[MetricFamily]:
        return [self._seen.family("loop_lag_seconds", "How late the event loop was, asked ten times a second")]
