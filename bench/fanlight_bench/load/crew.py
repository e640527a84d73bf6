"""The parts of a load, wherever they run: one in this process, or several in processes of their own.

Whoever measures says the same to both: connect, subscribe, start, run, begin, drain, outcomes.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from fanlight_bench.load import board
from fanlight_bench.load.board import Board
from fanlight_bench.load.part import Part
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target

SLICE_SECONDS = 0.1  # of the compiled loop at a time: between slices an interrupt is heard, and progress told

Tick = Callable[[], None]


class Crew(ABC):
    """All parts of one load. board: their counters; pids: their processes."""

    board: Board
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
        """What only the parts know."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Alone(Crew):
    """One part, in this process."""

    def __init__(self, scenario: Scenario, target: Target) -> None:
        self.board = board.private(scenario.streams)
        self.pids = []
        self._part = Part(scenario, target, self.board)

    def connect(self) -> int:
        return self._part.connect()

    def subscribe(self) -> int:
        return self._part.subscribe()

    def start(self) -> None:
        self._part.start()

    def run(self, seconds: float, tick: Tick) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._part.broken():
            self._part.run(min(left, SLICE_SECONDS))
            tick()

    def begin(self) -> None:
        self._part.begin()

    def drain(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._part.drain(max(0.0, min(end - time.monotonic(), SLICE_SECONDS))):
            if time.monotonic() >= end or self.board.totals()["closed"]:
                return

    def outcomes(self) -> list[dict[str, Any]]:
        return [self._part.outcome()]

    def close(self) -> None:
        self._part.close()
