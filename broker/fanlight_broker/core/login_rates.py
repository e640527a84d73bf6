"""Login rates: how often the clients of a quota's holder may log in (docs/quotas.md).

    a client's credentials are accepted --> check: one token of each of its quotas, or LoginRateExceeded

A login that is refused takes no token, so who tries too often gets in as often as the quota says. A bucket is kept
until it is full again, by its holder, whether anybody is connected or not. The turns of logins (login_turns.py) are of
the loop's time; they hold before anybody knows who it is, and without a quota.
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.errors import LoginRateExceeded
from fanlight_broker.core.metrics import BoundedCounts
from fanlight_broker.core.quota import HeldQuota, Holder, Per
from fanlight_broker.wire.token_bucket import TokenBucket

HOLDERS_MAX: Final = 100_000  # of each kind, whose buckets are not full: some 500 bytes each


class LoginRates:
    def __init__(self) -> None:
        self.refused = 0  # logins
        self.refused_by = BoundedCounts()  # by the names of quotas
        self._of: dict[Holder, TokenBucket] = {}
        # When each is full. By kind: who invents the names of clients must not make the broker forget its user.
        self._full: dict[Per, Deadlines[Holder]] = {per: Deadlines() for per in Per}

    def __len__(self) -> int:
        """Holders that logged in a moment ago."""
        return len(self._of)

    def __iter__(self) -> Iterator[Holder]:
        return iter(self._of)

    def of(self, holder: Holder) -> TokenBucket | None:
        return self._of.get(holder)

    def check(self, quotas: Sequence[HeldQuota], now: float) -> None:
        """A client with these quotas logs in. Raises LoginRateExceeded if one of its holders has done so too often."""
        limited = [each for each in quotas if each.quota.logins]
        buckets = [self._bucket(each, now) for each in limited]
        for (holder, quota), bucket in zip(limited, buckets, strict=True):
            if bucket.owes_now(now):
                self.refused += 1
                self.refused_by.add(bucket.label)
                raise LoginRateExceeded(
                    f"{holder.name} logs in too often; again in {bucket.seconds(now):.3g} s",
                    "quota logins",
                    quota.logins.messages,
                )
        for (holder, _), bucket in zip(limited, buckets, strict=True):
            bucket.take(1, 0, now)
            self._full[holder.per].set(holder, now + bucket.full_in(now))

    def _bucket(self, held: HeldQuota, now: float) -> TokenBucket:
        holder, quota = held
        bucket = self._of.get(holder)
        if bucket is None:
            full = self._full[holder.per]
            if len(full) >= HOLDERS_MAX:  # the one that is full first
                del self._of[next(iter(full.due(inf, 1)))]
            bucket = self._of[holder] = TokenBucket(quota.logins.messages, burst=quota.burst_seconds, now=now)
            full.set(holder, now)  # it is, until a login is accepted
        elif bucket.messages_rate != quota.logins.messages or bucket.messages_burst != max(
            1.0, quota.logins.messages * quota.burst_seconds
        ):  # another quota is in force
            bucket.limit(quota.logins.messages, 0, quota.burst_seconds)
            self._full[holder.per].set(holder, now + bucket.full_in(now))
        bucket.refusing = True
        bucket.label = quota.name
        return bucket

    def sweep(self, now: float) -> None:
        """Forget those whose buckets are full."""
        for full in self._full.values():
            for holder in full.due(now, len(full)):
                del self._of[holder]
