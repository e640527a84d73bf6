"""Python's garbage collector: its full pass over all tracked objects cannot be interrupted.

The pass stays short because there are few objects to visit: those made before the start are frozen, and those in the
broker's tables are hidden (wire/hidden.pxd). It is measured here, so that a table that is not hidden is noticed.

While `fanlightd serve` starts there are no passes (early.py): nearly all that is made then stays, and passes over it
were a sixth of the start.
"""

import gc
from collections.abc import Callable
from typing import Any, Final

FULL: Final = 2  # the generation whose pass visits all objects

COUNTERS: Final = {"garbage_passes": "Full passes of Python's garbage collector"}
GAUGES: Final = {
    "garbage_pass_max_seconds": "Seconds of CPU of the longest full pass of Python's garbage collector since the start",
}


class Garbage:
    """cpu  seconds of the processor that this thread has used"""

    def __init__(self, cpu: Callable[[], float]) -> None:
        self.passes = 0
        self.longest = 0.0
        self._cpu = cpu
        self._began = 0.0

    def start(self) -> None:
        """Freeze the objects made until now: they live as long as the process, and are not visited again."""
        gc.freeze()
        gc.enable()
        gc.callbacks.append(self._on_pass)

    def stop(self) -> None:
        if self._on_pass in gc.callbacks:
            gc.callbacks.remove(self._on_pass)

    def _on_pass(self, phase: str, about: dict[str, Any]) -> None:
        if about["generation"] != FULL:
            return
        if phase == "start":
            self._began = self._cpu()
            return
        self.passes += 1
        self.longest = max(self.longest, self._cpu() - self._began)

    def counters(self) -> dict[str, int]:
        return {"garbage_passes": self.passes}

    def gauges(self) -> dict[str, float]:
        return {"garbage_pass_max_seconds": self.longest}
