"""Strangers: connections that end before anybody has logged in, and how many of them an address may make.

    a connection ends without a login --> note: a token of its address's bucket
    an address owes                   --> what it opens next is closed as soon as it is accepted, until that is paid

Accepting a connection and forgetting it takes some 50 µs, as long as a hundred messages, and needs no credentials. Who
logs in pays nothing, so a fleet that comes back is not held up, and connections that are there stay. Failed logins have
delays of their own (auth/penalties.py): those are about guessing, this is about the loop's time.

It is counted at the end and not at the beginning, when nobody knows who will log in; so an address can owe for what it
had opened at once, `OWED_SECONDS_MAX` at most. No clock here: `now` is an argument.
"""

from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.places import place_of
from fanlight_broker.wire.token_bucket import TokenBucket

log: Final = event_log.get("net")

BURST_SECONDS: Final = 2.0  # of such connections, that may come at once
OWED_SECONDS_MAX: Final = 30.0  # how long an address is refused for what it did before
LOG_SECONDS: Final = 60.0  # between two lines of the log about one address
ADDRESSES_MAX: Final = 10_000  # that are remembered, some 500 bytes each; past it: the one that is paid first goes


class Strangers:
    """One for all listeners of a broker."""

    def __init__(self) -> None:
        self.refused = 0  # connections
        self._of: dict[str, TokenBucket] = {}
        self._full: Deadlines[str] = Deadlines()  # when each is forgotten
        self._logged: OrderedDict[str, float] = OrderedDict()  # when, the last one last; as many as are remembered

    def __len__(self) -> int:
        """Addresses of which a connection ended without a login a moment ago."""
        return len(self._of)

    def note(self, address: str, limits: Limits, now: float) -> None:
        """A connection of this address has ended, and nobody had logged in."""
        per_second = limits.connections_without_login_per_second_max
        self._sweep(now)
        if not per_second or not address:  # nobody's, as a proxy has not said who it is from
            return
        place = place_of(address)
        bucket = self._of.get(place)
        if bucket is None:
            if len(self._of) >= ADDRESSES_MAX:
                del self._of[next(iter(self._full.due(inf, 1)))]
            bucket = self._of[place] = TokenBucket(per_second, burst=BURST_SECONDS, now=now)
        elif bucket.messages_rate != per_second:
            bucket.limit(per_second, 0, BURST_SECONDS)
        if bucket.owed(now)[0] < OWED_SECONDS_MAX * per_second:
            bucket.take(1, 0, now)
        self._full.set(place, now + bucket.full_in(now))

    def refusal(self, address: str, limits: Limits, now: float) -> str | None:
        """The limit by which a new connection of this address is refused, in words; None: it is not."""
        per_second = limits.connections_without_login_per_second_max
        if not self._of or not per_second:
            return None
        place = place_of(address)
        bucket = self._of.get(place)
        if bucket is None or not bucket.owes_now(now):
            return None
        self.refused += 1
        limit = (
            f"{per_second} connections a second from one address that end without a login "
            "(connections_without_login_per_second_max)"
        )
        if now - self._logged.get(place, -inf) >= LOG_SECONDS:
            self._logged[place] = now
            self._logged.move_to_end(place)
            if len(self._logged) > ADDRESSES_MAX:
                self._logged.popitem(last=False)
            log.warning(
                "strangers_refused", address=address, seconds=round(bucket.seconds(now), 3), limit=limit,
                advice="look for a scanner, a health check or clients with wrong credentials; raise the limit if they "
                "are many clients behind one address",
            )  # fmt: skip
        return limit

    def _sweep(self, now: float) -> None:
        for place in self._full.due(now, len(self._full)):
            del self._of[place]


class StrangersNow:
    """The same by the limits in force and a clock, for one listener."""

    def __init__(self, strangers: Strangers, limits: Callable[[], Limits], clock: Callable[[], float]) -> None:
        self._strangers, self._limits, self._clock = strangers, limits, clock

    def refusal(self, address: str) -> str | None:
        if not self._strangers:  # nobody, nearly always
            return None
        return self._strangers.refusal(address, self._limits(), self._clock())

    def note(self, address: str) -> None:
        self._strangers.note(address, self._limits(), self._clock())
