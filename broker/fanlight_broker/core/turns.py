"""Turns: no work occupies the loop for longer than TURN_SECONDS, whatever the number of connections.

    something is read --> begin --> one decision, one more, ... until `over` --> `later`: the rest, after all others
    `later` processes what waits in order, until a turn is over; then the loop continues

What cannot be interrupted has bounds of its own: one match, one conversion, one frame. The core has no clock: it is
injected, and without one no turn is ever over. The compiled poller begins its own turns (Ledger.turn_ends).
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from fanlight_broker.wire.ledger import Ledger

TURN_SECONDS: Final = 0.002  # as the poller's: about a hundred decisions

Clock = Callable[[], float]
Work = Callable[[], Any]


class Turns:
    """soon   calls a function in the loop's next turn, never at once: callers are in the middle of other work
    clock  the broker's
    cpu    processor seconds used by this thread
    """

    def __init__(
        self, ledger: Ledger, soon: Callable[[Work], Any], clock: Clock | None = None, cpu: Clock | None = None
    ) -> None:
        self.deferred = 0  # pieces of work that were left for a later turn
        self._ledger = ledger
        self._soon = soon
        self._cpu = cpu
        self._waiting: deque[Work] = deque()
        self._expected = False  # `_go_on` is scheduled
        self._begun = False
        self._used = 0.0
        self._begun_at = 0.0
        self.over = ledger.turn_over  # must the rest be deferred? Asked for each filter, so without a call in between
        ledger.clock = clock

    def __len__(self) -> int:
        """Pieces of work that wait."""
        return len(self._waiting)

    def begin(self) -> None:
        """Begin a turn, at a read or a tick. Everything that begins in one turn of the loop shares its time."""
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

    def now(self, before: float) -> float:
        """The present time, for work that was begun at `before` and goes on; without a clock that time."""
        clock = self._ledger.clock
        return before if clock is None else max(before, clock())

    def later(self, work: Work) -> None:
        """Do this after everything that waits already."""
        self.deferred += 1
        self._waiting.append(work)
        if not self._expected:
            self._expected = True
            self._soon(self._go_on)

    def _go_on(self) -> None:
        ledger, most = self._ledger, len(self._waiting)
        if ledger.clock is not None:
            self._start(ledger.clock)
        try:
            for _ in range(most):  # what is deferred now waits for the loop's next turn
                self._waiting.popleft()()
                if ledger.turn_over():
                    break
        finally:  # an error in one must not stop those behind it
            self._note()
            self._expected = bool(self._waiting)
            if self._expected:
                self._soon(self._go_on)
