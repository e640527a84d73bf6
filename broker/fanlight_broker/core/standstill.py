"""Standstills: time in which the process did not run, or its loop was busy, so that no peer was read from.

    SIGSTOP, a paused virtual machine, a throttled cgroup, a long turn of the loop

Time-outs of peers (keep alive, handshake, closing) use `Ledger.awake`, a clock without standstills. Lifetimes use the
plain clock: a message's expiry, a session's, a will's delay. What is due by those is deferred a little after a
standstill, so that what has arrived meanwhile is read first.
"""

from typing import Final

from fanlight_broker import event_log
from fanlight_broker.wire.ledger import Ledger

log: Final = event_log.get("core")

WORTH_A_LINE_SECONDS: Final = 1.0
PUT_OFF_MOST: Final = 4  # sweeps in a row, so that a machine that is always late sweeps too


class Standstills:
    """Detects them: the timer calls `note` at least once in each `period`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._noted: float | None = None
        self._sweep_from = float("-inf")
        self._put_off = 0

    def note(self, now: float, period: float) -> None:
        """Note the time; the next call is due `period` seconds later at the latest."""
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
        """Should a sweep be deferred until what has arrived is read?"""
        if now >= self._sweep_from or self._put_off == PUT_OFF_MOST:
            self._put_off = 0
            return False
        self._put_off += 1
        return True
