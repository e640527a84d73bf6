"""Paces: principals that may publish so much a second and no more (wire/token_bucket.pxd has the bucket).

    a publisher owes --> its lane stops: BLOCKED by the pace's gate --> Flow.hold_back --> `wait`: a deadline
    the deadline     --> as many publishers go on as may publish a message now; the others wait for the next one

A principal that owes is held up alone: a gate is an outbox of nobody.
"""

from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.errors import RateExceeded
from fanlight_broker.core.flow import Flow, Later
from fanlight_broker.core.quota import Quota
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.token_bucket import TokenBucket

GONE_MAX: Final = 100_000  # principals without a client whose pace is remembered: some 500 bytes each
SECONDS_MIN: Final = 0.001  # between two looks at one gate


@dataclass(slots=True)
class SharedPace:
    """The pace of one principal, and how many of its clients are connected."""

    pace: TokenBucket
    clients: int = 0


class Paces:
    """later  calls back after this many seconds, with the time; without it the next `sweep` does what is due"""

    def __init__(self, flow: Flow, ledger: Ledger, later: Later | None = None) -> None:
        self.held = 0  # publishers, each time that one had to wait
        self.refused = 0  # messages
        self._flow = flow
        self._ledger = ledger
        self._later = later
        self._of: dict[str, SharedPace] = {}
        self._gone: Deadlines[str] = Deadlines()  # principals without a client: until their buckets are full again
        self._paces: dict[Outbox, TokenBucket] = {}  # by the gate, while anybody waits for it
        self._due: Deadlines[Outbox] = Deadlines()
        self._timer_at: float | None = None

    def __len__(self) -> int:
        """Principals with a pace."""
        return len(self._of)

    def join(self, principal: str, quota: Quota, now: float) -> TokenBucket | None:
        """A client of a principal is connected. Returns the pace of all of them, if they have one."""
        held = self._of.get(principal)
        if held is None:
            if not quota.publish:
                return None
            held = self._of[principal] = SharedPace(TokenBucket(now=now))
            # The outbox of no connection, in a ledger of its own.
            held.pace.gate = Outbox(Ledger(1, _nothing), 1, "pause")
        self._gone.discard(principal)
        held.clients += 1
        self.use(held.pace, quota)
        return held.pace

    @staticmethod
    def use(pace: TokenBucket, quota: Quota) -> None:
        """Apply the rates of a quota from now on."""
        pace.limit(quota.publish.messages, quota.publish.octets, quota.burst_seconds)
        pace.refusing = quota.refuse

    def leave(self, principal: str, now: float) -> None:
        """A client that had a pace is not connected any more. What is owed is owed by the next one, too."""
        held = self._of[principal]
        held.clients -= 1
        if held.clients == 0:
            self._gone.set(principal, now + held.pace.full_in(now))
            if len(self._gone) > GONE_MAX:
                del self._of[next(iter(self._gone.due(inf, 1)))]

    def check(self, pace: TokenBucket, now: float) -> None:
        """Raises RateExceeded for a message that is published too fast, where such are refused."""
        if pace.refusing and pace.owes_now(now):
            self.refused += 1
            by = "publish_messages" if pace.messages_rate < inf else "publish_bytes"
            raise RateExceeded(
                f"published too fast; again in {pace.seconds(now):.3g} s", by,
                min(pace.messages_rate, pace.octets_rate),
            )

    def wait(self, pace: TokenBucket, now: float) -> None:
        """A publisher waits for this pace's gate."""
        self.held += 1
        if pace.gate not in self._paces:
            self._paces[pace.gate] = pace
            self._set(pace.gate, now + pace.seconds(now), now)

    def sweep(self, now: float) -> None:
        """Let those go on that may, and forget those that owe nothing."""
        for principal in self._gone.due(now, len(self._gone)):
            del self._of[principal]
        for gate in self._due.due(now, len(self._due)):
            pace = self._paces[gate]
            if not self._flow.go_on_some(gate, now, max(1, pace.room(now))):
                del self._paces[gate]
            else:
                self._due.set(gate, now + max(SECONDS_MIN, pace.seconds(now)))
        first = self._due.first
        if first is not None:
            self._set_timer(first, now)

    def _set(self, gate: Outbox, at: float, now: float) -> None:
        self._due.set(gate, at)
        self._set_timer(at, now)

    def _set_timer(self, at: float, now: float) -> None:
        if self._later is not None and (self._timer_at is None or at < self._timer_at):
            self._timer_at = at
            self._later(max(0.0, at - now), partial(self._fired, at))

    def _fired(self, at: float, now: float) -> None:
        if self._timer_at == at:  # else an earlier one has fired since this one was set
            self._timer_at = None
            self.sweep(now)


def _nothing() -> None:
    """The outbox of a gate never has anything to flush."""
