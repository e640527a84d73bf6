"""How much of what there is a batch of a stream reads: the options with Trigger in their names.

    maxOffsetsPerTrigger   at most so many offsets
    maxBytesPerTrigger     at most so many bytes of segments, and at least one batch of the archive
    minOffsetsPerTrigger   nothing before there are so many, but no longer than
    maxTriggerDelay        this time after the batch before

Spark asks a source for one limit and gives it back with each question; a source with several knows the others itself.
Where Spark asks for all there is (a trigger that reads once), none of them holds.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fanlight_spark.options import positive, seconds, size
from fanlight_spark.positions import Log

LIMITS: Final = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
DELAY: Final = 900.0  # seconds, as Kafka's source has it


@dataclass(frozen=True, slots=True)
class Limits:
    """The options, read."""

    rows: int | None = None
    bytes: int | None = None
    rows_min: int | None = None
    delay: float = DELAY

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Limits":
        """Raises ValueError."""
        rows, least = positive(options, "maxOffsetsPerTrigger"), positive(options, "minOffsetsPerTrigger")
        if "maxTriggerDelay" in options and least is None:
            raise ValueError("maxTriggerDelay is how long to wait for minOffsetsPerTrigger: give both")
        if rows is not None and least is not None and least > rows:
            raise ValueError(f"minOffsetsPerTrigger={least} is above maxOffsetsPerTrigger={rows}")
        delay = seconds(options, "maxTriggerDelay") if "maxTriggerDelay" in options else DELAY
        return cls(rows, size(options, "maxBytesPerTrigger"), least, delay)


class Admission:
    """For one query, from batch to batch."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._last = clock()  # when there was something to read, or this began

    def end(self, archive: Log, first: int, end: int, *, waits: bool) -> int:
        """Of what there is from `first` to before `end`, where a batch ends: at `first` if it waits for more.

        waits: whether more may come; if not, what there is is read however little it is.
        """
        limits = self._limits
        too_few = waits and limits.rows_min is not None and end - first < limits.rows_min
        if too_few and self._clock() - self._last < limits.delay:
            return first
        if end > first:
            self._last = self._clock()
            # Not from an offset that retention has taken: that would be batches of nothing.
            there = max(first, min(archive.start, end))
            if limits.rows is not None:
                end = min(end, there + limits.rows)
            if limits.bytes is not None and end > there:
                end = archive.offset_after(there, end, limits.bytes)
        return end
