"""Views that are made in steps: some in a turn of the loop, and then a rest of three times their processor time.

    view --next--> step, step, ... for SLICE_SECONDS --rest--> step, ...

A slice ends before a step that would take it past its time, if it takes as long as the longest one of the slice. Views
take turns, so that all of them together use at most a quarter of the loop.
"""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

from fanlight_broker.core.turns import TURN_SECONDS

REST: Final = 3  # times the processor time of a slice
SLICE_SECONDS: Final = 0.9 * TURN_SECONDS  # the steps of a view are not all alike

Made = TypeVar("Made")


class Slices:
    """clock  seconds of the processor that this thread has used"""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self.longest = 0.0  # seconds of the processor of one slice
        self._turns = asyncio.Lock()

    async def made(
        self, steps: Generator[None, None, Made], around: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> Made:
        """What the generator returns; its exceptions are raised. around: what is around each slice."""
        while True:
            async with self._turns:
                began = before = self._clock()
                step = 0.0  # seconds of the longest one of this slice: another one may take as long
                try:
                    with around():
                        while before - began + step < SLICE_SECONDS:
                            next(steps)
                            now = self._clock()
                            step, before = max(step, now - before), now
                except StopIteration as end:
                    made: Made = end.value
                    return made
                finally:
                    self.longest = max(self.longest, self._clock() - began)
                await asyncio.sleep(REST * (self._clock() - began))
