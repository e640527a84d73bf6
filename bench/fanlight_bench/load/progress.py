"""The progress of a run, in one line of a terminal that is rewritten."""

import time
from types import TracebackType
from typing import Self, TextIO

from fanlight_bench.load.run import Progress

WIDTH = 110
EVERY_SECONDS = 0.25  # a rate over less than that jumps about


class ProgressLine:
    """Give it to `run` as `progress`. A context manager: at its end the line is gone."""

    def __init__(self, out: TextIO, name: str) -> None:
        self._out = out
        self._name = name
        self._on = out.isatty()
        self._phase = ""
        self._at = 0.0
        self._before: dict[str, int] = {}
        self._shown = False

    def __call__(self, progress: Progress) -> None:
        if not self._on:
            return
        now = time.monotonic()
        if progress.phase == self._phase and now - self._at < EVERY_SECONDS:
            return
        line = text(self._name, progress, self._before if progress.phase == self._phase else {}, now - self._at)
        self._phase, self._at, self._before = progress.phase, now, progress.counters
        self._out.write(f"\r{line[:WIDTH]:<{WIDTH}}")
        self._out.flush()
        self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._out.write("\r" + " " * WIDTH + "\r")
            self._out.flush()


def text(name: str, progress: Progress, before: dict[str, int], seconds: float) -> str:
    """The line: the phase and its duration, the throughput, and the faults so far."""
    counters = progress.counters
    line = f"{name}: {progress.phase} {progress.seconds:.1f} s"
    for key in ("published", "received", "connected", "changed", "stored", "looked_up"):
        if counters.get(key):
            line += f", {counters[key]:,} {'delivered' if key == 'received' else key.replace('_', ' ')}"
            if key in before and seconds > 0:
                line += f" ({(counters[key] - before[key]) / seconds:,.0f}/s)"
    wrong = sum(counters.get(key, 0) for key in ("repeated", "reordered", "misrouted", "damaged", "refused", "closed"))
    return f"{line}, {wrong:,} FAULTS" if wrong else line
