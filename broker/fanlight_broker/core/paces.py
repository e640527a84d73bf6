"""Paces: how fast principals may publish, and be sent to (wire/token_bucket.pxd has the buckets).

    a publisher owes   --> its lane stops: BLOCKED by the bucket's gate --> Flow.hold_back --> `wait`: a deadline
    a subscriber owes  --> its sink stops flushing (net/flush.pyx), and it is in the bucket's `waiting`: a deadline
    the deadline       --> as many publishers go on as may publish a message now, and subscribers as long as there are
                           tokens; the others wait for the next one

Who owes is held up alone: a gate is an outbox of nobody, and what piles up for a subscriber meets its slow policy. A
connection may have several buckets in each direction, of its client, its user and its group: core/quota.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.errors import LimitExceeded, RateExceeded
from fanlight_broker.core.flow import FREED_AT_ONCE, Flow, Later
from fanlight_broker.core.login_rates import LoginRates
from fanlight_broker.core.metrics import BoundedCounts
from fanlight_broker.core.principal_rates import (
    MICROSECONDS,
    REFUSALS,
    SUBSCRIBING,
    TOGETHER_SECONDS,
    WHOLE_REQUEST,
    PrincipalRates,
    is_of_principal,
    microseconds,
)
from fanlight_broker.core.quota import HeldQuota, Holder, Per, Quota
from fanlight_broker.core.subscriber import Client
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.token_bucket import BucketChain, TokenBucket

# Clients that wait at the gate of one principal: some eight seconds of refusals, as long as a client waits for an
# answer. And those of all gates whose peers have gone: a second of them. One more is ended.
WAITING_MAX: Final = 2_048
ABSENT_MAX: Final = 256
GONE_MAX: Final = 100_000  # holders of each kind without a client whose debts are remembered: some 900 bytes each
# Between two looks at one bucket: each costs some 100 µs, whatever it lets go on. Less for a small bucket, so that it
# is not full before.
SECONDS_MIN, SECONDS_LEAST = 0.01, 0.001


@dataclass(slots=True)
class SharedPace:
    """The buckets of one holder of a quota, and how many clients that count in it are connected."""

    publish: TokenBucket
    deliver: TokenBucket
    clients: int = 0

    def use(self, quota: Quota) -> None:
        """Apply the rates of a quota from now on."""
        self.publish.limit(quota.publish.messages, quota.publish.octets, quota.burst_seconds)
        self.publish.refusing = quota.refuse
        self.publish.label = self.deliver.label = quota.name
        self.deliver.limit(quota.deliver.messages, quota.deliver.octets, quota.burst_seconds)

    def full_in(self, now: float) -> float:
        return max(self.publish.full_in(now), self.deliver.full_in(now))


class Paces:
    """later  calls back after this many seconds, with the time; without it the next `sweep` does what is due"""

    def __init__(
        self, flow: Flow, ledger: Ledger, later: Later | None = None, *, refusals_per_second: int = 0,
        subscribing_percent: int = 100,
    ) -> None:
        self.held = 0  # publishers, each time that one had to wait
        self.sat_out = 0  # subscribers, each time that one began to wait, while none of the same bucket did
        self.refused = 0  # messages
        self.held_by, self.sat_out_by, self.refused_by = BoundedCounts(), BoundedCounts(), BoundedCounts()  # by quotas
        self.logins = LoginRates()
        self.refusals = PrincipalRates(REFUSALS, refusals_per_second)
        self.subscribing = PrincipalRates(SUBSCRIBING, microseconds(subscribing_percent))
        self.absent: set[Client] = set()  # that wait at the gate of a principal, and whose peers have gone
        self.ended = 0  # connections, each because it was one too many at the gate of a principal
        self._flow = flow
        self._ledger = ledger
        self._later = later
        self._of: dict[Holder, SharedPace] = {}
        self._joined: dict[Outbox, tuple[Holder, ...]] = {}
        # Holders without a client, until their buckets are full again. By kind: who invents the names of clients must
        # not make the broker forget what users owe.
        self._gone: dict[Per, Deadlines[Holder]] = {per: Deadlines() for per in Per}
        self._gates: dict[Outbox, TokenBucket] = {}  # by the gate, while anybody waits for it
        self._due: Deadlines[TokenBucket] = Deadlines()
        self._timer_at: float | None = None
        self._nowhere = Ledger(1, _nothing)  # of the gates, which are outboxes of no connection

    def __len__(self) -> int:
        """Holders with a pace."""
        return len(self._of)

    def __iter__(self) -> Iterator[tuple[Holder, SharedPace]]:
        return iter(self._of.items())

    def of(self, holder: Holder) -> Mapping[str, TokenBucket]:
        """The buckets of a holder that have a rate, by the names of their rates."""
        pace = self._of.get(holder)
        both = {} if pace is None else {"publish": pace.publish, "deliver": pace.deliver}
        logins = self.logins.of(holder)
        if logins is not None:
            both["logins"] = logins
        return {name: bucket for name, bucket in both.items() if limits(bucket)}

    def join(self, outbox: Outbox, quotas: Sequence[HeldQuota], now: float) -> None:
        """Give the connection of a client the buckets of its quotas, the narrowest first; or others, in their place."""
        before = self._joined.get(outbox, ())
        wanted = tuple(each for each in quotas if each.quota.publish or each.quota.deliver)
        if not wanted and not before:
            return
        for holder, _ in wanted:
            if holder not in before:
                self._enter(holder, now)
        self._joined[outbox] = tuple(holder for holder, _ in wanted)
        paces = []
        for holder, quota in wanted:
            pace = self._of[holder]
            pace.use(quota)
            paces.append(pace)
        outbox.pace = chain([pace.publish for pace in paces if limits(pace.publish)])
        self._sit_no_more(outbox)
        outbox.delivery = chain([pace.deliver for pace in paces if limits(pace.deliver)])
        for holder in before:
            if holder not in self._joined[outbox]:
                self._free_all(self._of[holder], now)  # it may wait for one that is not its own any more
                self._leave(holder, now)
            else:
                self._look_again(self._of[holder], now)
        if outbox.sits_out:
            outbox.sit_no_more()
        if not wanted:
            del self._joined[outbox]

    def leave(self, outbox: Outbox, now: float) -> None:
        """A client is not connected any more. What is owed is owed by the next one, too."""
        self._sit_no_more(outbox)
        outbox.pace = outbox.delivery = None
        for holder in self._joined.pop(outbox, ()):
            self._leave(holder, now)

    def _enter(self, holder: Holder, now: float) -> None:
        pace = self._of.get(holder)
        if pace is None:
            pace = self._of[holder] = SharedPace(TokenBucket(now=now), TokenBucket(now=now))
            pace.deliver.on_wait = self._wait_to_be_sent
        self._give_gate(pace.publish)
        self._gone[holder.per].discard(holder)
        pace.clients += 1

    def _give_gate(self, bucket: TokenBucket) -> None:
        if bucket.gate is None:
            bucket.gate = Outbox(self._nowhere, 1, "pause")

    def _leave(self, holder: Holder, now: float) -> None:
        pace, gone = self._of[holder], self._gone[holder.per]
        pace.clients -= 1
        if pace.clients:
            return
        self._gates.pop(pace.publish.gate, None)
        pace.publish.gate = None  # nobody waits for it, and it takes as much memory as all else
        gone.set(holder, now + pace.full_in(now))
        if len(gone) > GONE_MAX:
            del self._of[next(iter(gone.due(inf, 1)))]

    def check(self, pace: BucketChain, now: float) -> None:
        """Raises RateExceeded for a message that is published too fast, where such are refused."""
        for bucket in pace.buckets:
            if bucket.refusing and bucket.owes_now(now):
                self.refused += 1
                self.refused_by.add(bucket.label)
                by = "publish_messages" if bucket.messages_rate < inf else "publish_bytes"
                raise RateExceeded(
                    f"published too fast; again in {bucket.seconds(now):.3g} s", by,
                    min(bucket.messages_rate, bucket.octets_rate),
                )

    def wait(self, bucket: TokenBucket, now: float) -> None:
        """A publisher waits for this bucket's gate."""
        self.held += 1
        bucket.held += 1
        self.held_by.add(bucket.label)
        self._open_later(bucket, now)

    def refused_too_often(self, principal: str, count: int, now: float) -> TokenBucket | None:
        """Requests of a client of a principal were refused. Returns the bucket with the gate that it has to wait for
        (`wait_in_turn`); None: it goes on.
        """
        return self._with_gate(self.refusals.note(principal, count, now))

    def subscribed_too_long(self, principal: str, seconds: float, now: float) -> TokenBucket | None:
        """The same for the time that its subscriptions took, while the loop had others' messages to pass."""
        return self._with_gate(self.subscribing.note(principal, seconds * WHOLE_REQUEST * MICROSECONDS, now))

    def _with_gate(self, bucket: TokenBucket | None) -> TokenBucket | None:
        if bucket is not None:
            self._give_gate(bucket)
        return bucket

    def check_line(self, bucket: TokenBucket) -> None:
        """Raises LimitExceeded if one more client is not to wait for this gate.

        Who opens connections, has its requests refused and leaves would fill the broker with those that wait: where a
        peer has sent more than its socket takes, its end is not heard of before it is read from.
        """
        if bucket.gate is not None and self._flow.waiting_for(bucket.gate) >= WAITING_MAX:
            self.ended += 1
            raise LimitExceeded(
                f"requests refused too often: {WAITING_MAX} clients of this user or address wait for that",
                "refusals_per_second_max" if bucket.label is REFUSALS else "subscribing_percent",
                self.refusals.per_second if bucket.label is REFUSALS else bucket.messages_rate * 100 / MICROSECONDS,
            )

    def wait_in_turn(self, bucket: TokenBucket, now: float) -> None:
        """The client waits for the gate."""
        self._open_later(bucket, now)

    def may_stay(self, client: Client) -> bool:
        """A client's peer has gone while it is held back. False: it is to end, with what it has sent unread.

        Else a host that is refused everything, and leaves, would fill the broker with connections that wait.
        """
        blocker = self._flow.blocker_of(client)
        bucket = self._gates.get(blocker) if blocker is not None else None
        if bucket is None or not is_of_principal(bucket):
            return True
        if len(self.absent) >= ABSENT_MAX:
            self.ended += 1
            return False
        self.absent.add(client)
        return True

    def _open_later(self, bucket: TokenBucket, now: float) -> None:
        if bucket.gate not in self._gates:
            self._gates[bucket.gate] = bucket
            self._set(bucket, now + pause(bucket, now), now)

    def _wait_to_be_sent(self, bucket: TokenBucket) -> None:
        """A subscriber waits for this bucket; as one of several it is looked at with the others."""
        self.sat_out += 1
        bucket.held += 1
        self.sat_out_by.add(bucket.label)
        now = self._ledger.now
        self._set(bucket, now + pause(bucket, now), now)

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Let those go on that may, and forget those that owe nothing."""
        self.logins.sweep(now)
        self.refusals.sweep(now)
        self.subscribing.sweep(now)
        for gone in self._gone.values():
            for holder in gone.due(now, len(gone)):
                del self._of[holder]
        for bucket in self._due.due(now, len(self._due)):
            if self._let_go_on(bucket, now):
                self._due.set(bucket, now + pause(bucket, now))
        first = self._due.first
        if first is not None:
            self._set_timer(first, now)

    def _let_go_on(self, bucket: TokenBucket, now: float) -> bool:
        """As many as there are tokens for, the ones that have waited longest. True if others still wait."""
        if bucket.gate in self._gates and not self._flow.go_on_some(bucket.gate, now, max(1, bucket.room(now))):
            del self._gates[bucket.gate]
        self._ledger.now = now
        for _ in range(FREED_AT_ONCE):
            if not bucket.waits or bucket.seconds(now) > 0:
                break
            bucket.next_waiting().sit_no_more()
        return bucket.gate in self._gates or bucket.waits

    def _free_all(self, pace: SharedPace, now: float) -> None:
        while pace.publish.gate in self._gates and self._flow.go_on_some(pace.publish.gate, now, FREED_AT_ONCE):
            pass
        self._gates.pop(pace.publish.gate, None)

    def _look_again(self, pace: SharedPace, now: float) -> None:
        """Its rates have changed: those who wait may have to wait for less long."""
        for bucket in (pace.publish, pace.deliver):
            if bucket.gate in self._gates or bucket.waits:
                self._set(bucket, now + pause(bucket, now), now)

    @staticmethod
    def _sit_no_more(outbox: Outbox) -> None:
        """It does not wait for any of its buckets any more."""
        for bucket in outbox.delivery.buckets if outbox.delivery is not None else ():
            bucket.waits_no_more(outbox)

    def _set(self, bucket: TokenBucket, at: float, now: float) -> None:
        self._due.set(bucket, at)
        self._set_timer(at, now)

    def _set_timer(self, at: float, now: float) -> None:
        if self._later is not None and (self._timer_at is None or at < self._timer_at):
            self._timer_at = at
            self._later(max(0.0, at - now), partial(self._fired, at))

    def _fired(self, at: float, now: float) -> None:
        if self._timer_at == at:  # else an earlier one has fired since this one was set
            self._timer_at = None
            self.sweep(now)


def pay(client: Client | None, message: Message, now: float) -> None:
    """A message counts at its publisher's rate that is not fanned out now: it is delayed, repeated or refused."""
    pace = client.outbox.pace if client is not None else None
    if pace is not None:
        pace.take(1, len(message.topic) + len(message.payload), now)


def holding(pace: BucketChain | None, now: float) -> TokenBucket | None:
    """The bucket that the next message of a publisher has to wait for, where what comes too fast waits."""
    if pace is None:
        return None
    return next((each for each in pace.buckets if not each.refusing and each.owes_now(now)), None)


def limits(bucket: TokenBucket) -> bool:
    return min(bucket.messages_rate, bucket.octets_rate) < inf


def pause(bucket: TokenBucket, now: float) -> float:
    """Seconds until the next look at a bucket that somebody waits for."""
    if is_of_principal(bucket):
        return max(bucket.seconds(now), TOGETHER_SECONDS)
    rates = ((bucket.messages_burst, bucket.messages_rate), (bucket.octets_burst, bucket.octets_rate))
    filled = min((burst / rate for burst, rate in rates if rate < inf), default=inf)
    return max(bucket.seconds(now), min(SECONDS_MIN, max(SECONDS_LEAST, filled / 2)))


def chain(buckets: Sequence[TokenBucket]) -> BucketChain | None:
    """Those of one connection; None: there are none."""
    found = None
    for bucket in reversed(buckets):
        found = BucketChain(bucket, found)
    return found


def _nothing() -> None:
    """The outbox of a gate never has anything to flush."""
