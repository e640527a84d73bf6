"""Refusal rates: how much of the loop's time clients get whose requests are refused.

    a request is refused --> note: a token of its principal's bucket
                             none left: its connection is not read from until there are some (core/paces.py)

A refusal takes some 50 µs, as long as a hundred messages, and a client that is above its quota, or has no permission,
may ask again at once. All connections of a principal have one bucket, which is kept until it is full again.
"""

from math import inf
from typing import Final

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.wire.token_bucket import TokenBucket

BURST_SECONDS: Final = 2.0  # of refusals, that may come at once
ONE_SECONDS_MAX: Final = 30  # of refusals, that one packet with many counts for: some 1.5 s of work at most
PRINCIPALS_MAX: Final = 10_000  # that are remembered, some 500 bytes each


class RefusalRates:
    """per_second  refusals of one principal, as long as it goes on; 0: nobody waits"""

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self.held = 0  # connections, each time that one had to wait
        self._of: dict[str, TokenBucket] = {}
        self._full: Deadlines[str] = Deadlines()  # when each is forgotten

    def __len__(self) -> int:
        """Principals that were refused something a moment ago."""
        return len(self._of)

    def note(self, principal: str, count: int, now: float) -> TokenBucket | None:
        """So many requests were refused. Returns the bucket that the client has to wait for; None: it need not."""
        if not self.per_second:
            return None
        bucket = self._of.get(principal)
        if bucket is None:
            if len(self._full) >= PRINCIPALS_MAX:
                del self._of[next(iter(self._full.due(inf, 1)))]
            bucket = self._of[principal] = TokenBucket(self.per_second, burst=BURST_SECONDS, now=now)
            bucket.label = "refusals"
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
