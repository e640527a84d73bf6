"""Turns: no piece of work holds the loop for longer than TURN_SECONDS, however many connections ask for it.

    something is read --> begin --> one decision, one more, ... until `over` --> `later`: the rest, behind everybody's
    `later` works off what waits, first come, first served, until the same time is over; then the loop has its turn

What cannot be interrupted is bounded by itself: one match, one conversion, one frame. The core has no clock: it is put
in, and without one no turn is ever over. The poller, which is compiled, begins its turns by itself (Ledger.turn_ends).
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from fanlight_broker.wire.ledger import Ledger

TURN_SECONDS: Final = 0.002  # as the poller's: some hundred decisions

Clock = Callable[[], float]
Work = Callable[[], Any]


class Turns:
    """soon   calls a function in the loop's next turn, never at once: who puts off work is in the middle of some
    clock  the broker's
    cpu    seconds of the processor that this thread has used
    """

    def __init__(
        self, ledger: Ledger, soon: Callable[[Work], Any], clock: Clock | None = None, cpu: Clock | None = None
    ) -> None:
        self._ledger = ledger
        self._soon = soon
        self._cpu = cpu
        self._waiting: deque[Work] = deque()
        self._expected = False  # `_go_on` is called
        self._begun = False
        self._used = 0.0
        self._begun_at = 0.0
        ledger.clock = clock

    def __len__(self) -> int:
        """Pieces of work that wait."""
        return len(self._waiting)

    def begin(self) -> None:
        """Somebody is read from, or a tick has come. All that begins in one turn of the loop has one time together."""
        if self._begun or self._ledger.clock is None:
            return
        self._begun = True
        self._start(self._ledger.clock)
        self._soon(self._end)

    def _end(self) -> None:
        self._begun = False
        self._note()

    def _start(self, clock: Clock) -> None:
        self._begun_at = clock()
        self._ledger.turn_ends = self._begun_at + TURN_SECONDS
        if self._cpu is not None:
            self._used = self._cpu()

    def _note(self) -> None:
        ledger = self._ledger
        if self._cpu is None or ledger.clock is None:
            return
        if ledger.clock() - self._begun_at > ledger.turn_cpu_max:  # else it cannot have used more
            ledger.turn_cpu_max = max(ledger.turn_cpu_max, self._cpu() - self._used)

    def over(self) -> bool:
        """Must what is left be put off?"""
        return self._ledger.turn_over()

    def later(self, work: Work) -> None:
        """Do this when all that waits already has had its time."""
        self._waiting.append(work)
        if not self._expected:
            self._expected = True
            self._soon(self._go_on)

    def _go_on(self) -> None:
        ledger, most = self._ledger, len(self._waiting)
        if ledger.clock is not None:
            self._start(ledger.clock)
        try:
            for _ in range(most):  # what is put off now waits for the loop's next turn
                self._waiting.popleft()()
                if ledger.turn_over():
                    break
        finally:  # a fault in one must not keep those that wait behind it
            self._note()
            self._expected = bool(self._waiting)
            if self._expected:
                self._soon(self._go_on)
