"""A loop in the test's hand: what other threads call runs when the test pumps it."""

import queue
from collections.abc import Callable
from typing import Any

SECONDS = 60.0  # that anything may take before a test fails


class Handle:
    def __init__(self, callback: Callable[[], Any]) -> None:
        self.callback: Callable[[], Any] | None = callback

    def cancel(self) -> None:
        self.callback = None


class HandLoop:
    def __init__(self) -> None:
        self.later: list[Handle] = []
        self._soon: queue.Queue[Callable[[], Any]] = queue.Queue()

    def call_later(self, delay: float, callback: Callable[[], Any]) -> Handle:
        self.later.append(Handle(callback))
        return self.later[-1]

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self._soon.put(lambda: callback(*args))

    call_soon_threadsafe = call_soon

    def time_passes(self) -> None:
        """Every timer that is running goes off."""
        due, self.later = self.later, []
        for handle in due:
            if handle.callback is not None:
                handle.callback()

    def run_until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self._soon.get(timeout=SECONDS)()

    def run_all(self) -> None:
        """What is there now, and what comes of it."""
        while True:
            try:
                self._soon.get_nowait()()
            except queue.Empty:
                return
