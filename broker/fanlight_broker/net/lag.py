"""How late the loop is: a timer that should come every PERIOD seconds, and by how much it misses that."""

import asyncio
from typing import Final

from fanlight_broker.core.metrics import Histogram, MetricFamily

PERIOD: Final = 0.1  # seconds: some 20 µs each


class LoopLag:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._seen = Histogram()

    def start(self) -> None:
        self._due = self._loop.time() + PERIOD
        self._timer = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._seen.observe(max(0.0, self._loop.time() - self._due))
        self.start()

    def families(self) -> list[MetricFamily]:
        return [self._seen.family("loop_lag_seconds", "How late the event loop was, asked ten times a second")]
