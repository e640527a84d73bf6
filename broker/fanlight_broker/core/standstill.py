"""Standstills: time in which the process did not run, or its loop did one thing only. Nobody could be heard then.

    SIGSTOP, a paused virtual machine, a throttled cgroup, a long turn of the loop

Whoever must be heard of in time (keep alive, handshake, the end of a close) is timed by `Ledger.awake`, a clock without
them. Times that say how long something is good for go on: a message's expiry, a session's, a will's delay. What is due
by those is put off a little behind a standstill, so that what has arrived meanwhile is read first.
"""

from typing import Final

import structlog

from fanlight_broker.wire.ledger import Ledger

log: Final = structlog.stdlib.get_logger("core")

WORTH_A_LINE_SECONDS: Final = 1.0
PUT_OFF_MOST: Final = 4  # sweeps in a row: a machine that is always late has some, too


class Standstills:
    """Notices them: `note` is called at least once in each `period`, by whoever keeps time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._noted: float | None = None
        self._sweep_from = float("-inf")
        self._put_off = 0

    def note(self, now: float, period: float) -> None:
        """It is now; it was to be noted `period` seconds after the last time at the latest."""
        last, self._noted = self._noted, now
        late = 0.0 if last is None else now - last - period
        if late <= 0:
            return
        self._ledger.standstill += late
        if late >= period:
            self._sweep_from = now + period / 2
        if late >= WORTH_A_LINE_SECONDS:
            log.warning("stood_still", seconds=round(late, 3), advice="stopped, or the machine too busy?")

    def just_over(self, now: float) -> bool:
        """Is a sweep better put off, until what has arrived is read?"""
        if now >= self._sweep_from or self._put_off == PUT_OFF_MOST:
            self._put_off = 0
            return False
        self._put_off += 1
        return True
