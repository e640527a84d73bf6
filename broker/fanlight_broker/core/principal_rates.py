"""Rates of principals: how much of the loop's time clients get for what is no message.

    a request is refused, or has taken time --> note: tokens of its principal's bucket
                                  none left: its connection is not read from until there are some (core/paces.py)

A refusal takes some 50 µs, as long as a hundred messages, and a client that is above its quota, or has no permission,
may ask again at once: `refusals_per_second_max`. What is granted takes time as well, so who subscribes and unsubscribes
without pause would take half of a busy loop: `subscribing_percent`, of which a token is a microsecond. That is charged
while the loop is crowded with messages (core/login_turns.py), and nobody waits where nothing else is to be done.

All connections of a principal have one bucket of each kind, which is kept until it is full again. Who waits goes on
when there are tokens for a tenth of a second, and not for each one: to let somebody go on takes as long as a refusal.
"""

from math import inf
from typing import Final

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.wire.token_bucket import TokenBucket

BURST_SECONDS: Final = 2.0  # of refusals, or of the part of time, that may come at once
ONE_SECONDS_MAX: Final = 30  # of them, that one packet counts for
TOGETHER_SECONDS: Final = 0.1  # of tokens, before somebody who waits goes on
PRINCIPALS_MAX: Final = 10_000  # that are remembered, some 500 bytes each
REFUSALS, SUBSCRIBING = "refusals", "subscribing"  # labels of the buckets
MICROSECONDS: Final = 1e6
WHOLE_REQUEST: Final = 2  # times as long as what is done for it: reading, answering and waiting come to the same


def microseconds(percent: int) -> int:
    """The rate of a part of the loop's time; 0: all of it, which nobody waits for."""
    return int(percent / 100 * MICROSECONDS) if percent < 100 else 0


class PrincipalRates:
    """per_second  tokens of one principal, as long as it goes on; 0: nobody waits"""

    def __init__(self, label: str, per_second: int) -> None:
        self.label = label
        self.per_second = per_second
        self.held = 0  # connections, each time that one had to wait
        self._of: dict[str, TokenBucket] = {}
        self._full: Deadlines[str] = Deadlines()  # when each is forgotten

    def __len__(self) -> int:
        """Principals that something was noted of a moment ago."""
        return len(self._of)

    def note(self, principal: str, count: float, now: float) -> TokenBucket | None:
        """Take so many tokens. Returns the bucket that the client has to wait for; None: it need not."""
        if not self.per_second:
            return None
        bucket = self._of.get(principal)
        if bucket is None:
            if len(self._full) >= PRINCIPALS_MAX:
                del self._of[next(iter(self._full.due(inf, 1)))]
            bucket = self._of[principal] = TokenBucket(self.per_second, burst=BURST_SECONDS, now=now)
            bucket.label = self.label
        elif bucket.messages_rate != self.per_second:
            bucket.limit(self.per_second, 0, BURST_SECONDS)
        bucket.take(min(count, ONE_SECONDS_MAX * self.per_second), 0, now)
        self._full.set(principal, now + bucket.full_in(now))
        if not bucket.owes_now(now):
            return None
        self.held += 1
        return bucket

    def sweep(self, now: float) -> None:
        """Forget those whose buckets are full."""
        for principal in self._full.due(now, len(self._full)):
            del self._of[principal]


def is_of_principal(bucket: TokenBucket) -> bool:
    """Is it one of these, and none of a quota?"""
    return bucket.label is REFUSALS or bucket.label is SUBSCRIBING
