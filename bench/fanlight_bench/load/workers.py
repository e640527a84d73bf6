"""The workers of a load, wherever they run: one in this process, or several in processes of their own.

Whoever measures says the same to both: connect, subscribe, start, run, begin, drain, outcomes.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from fanlight_bench.load import shared_counters
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.shared_counters import SharedCounters
from fanlight_bench.load.target import Target
from fanlight_bench.load.worker import Worker

SLICE_SECONDS = 0.1  # of the compiled loop at a time: between slices an interrupt is heard, and progress shown

Tick = Callable[[], None]


class Workers(ABC):
    """All workers of one load. shared: their counters; pids: their processes."""

    shared: SharedCounters
    pids: list[int]

    @abstractmethod
    def connect(self) -> int:
        """Open all connections; how many."""

    @abstractmethod
    def subscribe(self) -> int:
        """Subscribe; how many subscriptions."""

    @abstractmethod
    def start(self) -> None:
        """Make ready to publish."""

    @abstractmethod
    def run(self, seconds: float, tick: Tick) -> None:
        """Publish for so long, calling `tick` all along; less long when the broker closes or refuses."""

    @abstractmethod
    def begin(self) -> None:
        """What was measured so far was the warm-up."""

    @abstractmethod
    def drain(self, seconds: float) -> None:
        """Wait for what is still to come."""

    @abstractmethod
    def outcomes(self) -> list[dict[str, Any]]:
        """What only the workers know."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""


class OneWorker(Workers):
    """One worker, in this process."""

    def __init__(self, scenario: Scenario, target: Target) -> None:
        self.shared = shared_counters.private(scenario.streams)
        self.pids = []
        self._worker = Worker(scenario, target, self.shared)

    def connect(self) -> int:
        return self._worker.connect()

    def subscribe(self) -> int:
        return self._worker.subscribe()

    def start(self) -> None:
        self._worker.start()

    def run(self, seconds: float, tick: Tick) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._worker.broken():
            self._worker.run(min(left, SLICE_SECONDS))
            tick()

    def begin(self) -> None:
        self._worker.begin()

    def drain(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._worker.drain(max(0.0, min(end - time.monotonic(), SLICE_SECONDS))):
            if time.monotonic() >= end or self.shared.totals()["closed"]:
                return

    def outcomes(self) -> list[dict[str, Any]]:
        return [self._worker.outcome()]

    def close(self) -> None:
        self._worker.close()
