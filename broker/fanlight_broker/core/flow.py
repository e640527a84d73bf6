"""Flow: back-pressure. Publishers are held back while a consumer catches up, for a bounded time.

    outbox over its limit, its consumer may hold --> its publishers are held back until it has drained or disconnected
    the consumer's budget is used up             --> they continue at once; its slow policy decides what it loses
    the publisher's own budget is used up        --> it is not held back for any consumer for a while

Two budgets of time bound this: a small one for bursts, for every consumer, and a longer one for consumers with the
policy `pause`, which are disconnected when it is used up. A publisher has both budgets too, so that many slow
consumers, or one that connects again and again, cost it no more than one.

A standstill of the broker (core/standstill.py) uses up no budget, because no client could read meanwhile. So the times
here are those of `Ledger.awake`, except for timers.

Messages are dropped in the outbox, in compiled code. This module runs once per hold.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice, takewhile
from typing import Any, Final, NamedTuple

from fanlight_broker import event_log
from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.core.subscriber import CLOSED_CONNECTION, Client
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import BURST, PAUSES, Outbox

log: Final = event_log.get("flow")

Later = Callable[[float, Callable[[float], None]], Any]  # calls back after this many seconds, with the time
NextTurn = Callable[[Callable[[], None]], Any]

LOOKED_AT_PER_SWEEP: Final = 1_000  # clients whose budget is used up: checking them takes about 0.5 ms
FREED_AT_ONCE: Final = 256  # publishers that a pace lets go on in one turn
LOOK: Final = 16  # publishers resumed between two readings of the clock
AT_ONCE: Final = 0.005  # seconds: what is due this soon is done together with what is due now

# Whose budget a hold uses: the consumer's, and the publisher's own by its kind (BURST, PAUSES).
CONSUMER: Final = 0
STORE: Final = 4  # the archive or the store has no room: no budget, because a receipt must not be sent before
ANSWERS: Final = 8  # the publisher has left its own answers unread


class Budget(NamedTuple):
    seconds: float
    window: float


class Hold(NamedTuple):
    """What a publisher waits for."""

    blocker: Outbox
    kind: int


class Flow:
    """policy     the slow policy of an outbox that asks for none
    next_turn  calls back after the turns of all other connections
    later      calls back after a number of seconds; without it the next sweep does what is due
    """

    def __init__(self, ledger: Ledger, limits: Limits, next_turn: NextTurn, later: Later | None = None) -> None:
        self.ledger = ledger
        self.limits = limits
        self.policy, self._patient = self._default(limits)
        self.publishers_paused = 0
        self.slow_consumers = 0
        self.slow_consumers_disconnected = 0
        self._later = later
        self._next_turn = next_turn
        self._timer_at: float | None = None  # when the earliest timer fires
        self._waiting: dict[Outbox, dict[Client, None]] = {}  # in order, by the outbox that holds them back
        self._holds: dict[Client, Hold] = {}  # the same, by the publisher
        # By the ledger's `awake`: when a publisher's own budget is used up, and when a consumer's is.
        self._publishers_due: Deadlines[Client] = Deadlines()
        self._consumers_due: Deadlines[Outbox] = Deadlines()
        self._choked: dict[Outbox, float] = {}  # outboxes that hold their own client back (ANSWERS): since when
        # All that may be slow: half full, full at least once, or holding publishers back. In the order of coming in.
        self._behind: dict[Outbox, None] = {}
        self._overflowed: deque[tuple[Outbox, bool]] = deque()  # to be handled; True: closed, to be disconnected
        self._handling = False  # `_handle_overflowed` runs, or is scheduled
        self._used_up: dict[Client, None] = {}  # clients with a budget to be renewed
        self._held_before = 0.0  # seconds of all holds that have ended
        self._running = 0  # holds in progress, except for ANSWERS
        self._began = 0.0  # the sum of the times at which they began

    # -- budgets ----------------------------------------------------------------------------------------------------

    def admit(self, outbox: Outbox, wanted: str | None = None) -> None:
        """Give an outbox the slow policy that its client asks for, if allowed, and the budget of that policy."""
        limits = self.limits
        if wanted is None:  # as nearly all
            outbox.policy, outbox.patient = self.policy, self._patient
            return
        may_pause = limits.pause_allowed or limits.slow_policy is SlowPolicy.PAUSE
        if wanted == SlowPolicy.PAUSE and not may_pause:
            wanted = limits.slow_policy.value
        outbox.policy = wanted
        outbox.patient = self._budget(kind_of(outbox)).seconds > 0

    @staticmethod
    def _default(limits: Limits) -> tuple[str, bool]:
        """The slow policy of a client that asks for none, and whether publishers wait for such a one."""
        if limits.slow_policy is SlowPolicy.PAUSE:
            return limits.slow_policy.value, limits.pause_seconds_max > 0
        return limits.slow_policy.value, limits.burst_seconds_max > 0

    def _budget(self, kind: int) -> Budget:
        limits = self.limits
        if kind == PAUSES:
            return Budget(limits.pause_seconds_max, limits.pause_window_seconds)
        return Budget(limits.burst_seconds_max, limits.burst_window_seconds)

    # -- slow consumers ---------------------------------------------------------------------------------------------

    def handle_overflows(self) -> None:
        """Handle the outboxes that overflowed in this turn. A connection is reported once in its life.

        Those to be disconnected take nothing from now on. All else is done while the turn lasts, and for the others in
        later turns: hundreds may overflow with one message, each with a line for the log and megabytes to be freed.
        """
        for outbox in self.ledger.pop_attention():
            if outbox.closed:
                continue
            self._behind[outbox] = None
            if outbox.doomed:
                outbox.close()
            if outbox.noticed:  # else it is half full
                self._overflowed.append((outbox, outbox.doomed))
        if self._overflowed and not self._handling:
            self._handling = True
            self._handle_overflowed()

    def _handle_overflowed(self) -> None:
        try:
            while self._overflowed:
                self._handle_overflow(*self._overflowed.popleft())
                if self.ledger.turn_over():
                    break
        finally:  # an error in one must not stop those behind it
            self._handling = bool(self._overflowed)
            if self._handling:
                self._next_turn(self._handle_overflowed)

    def _handle_overflow(self, outbox: Outbox, doomed: bool) -> None:
        client = outbox.owner
        if not isinstance(client, Client) or client.connection is CLOSED_CONNECTION:
            return
        if not client.slow:
            client.slow = True
            if self.ledger.clock is not None:
                client.slow_since = self.ledger.clock()
            self.slow_consumers += 1
            log.warning(
                "slow_consumer", connection=client.number, client=client.subscriber.name, address=client.address,
                policy=outbox.policy, outbox_bytes=outbox.size, limit=outbox.limit,
            )
        if doomed:  # as it was when it was closed: it is reported twice if it was full before
            self._cut_off(client, f"more than {outbox.limit} bytes unread (outbox_bytes_max)")

    def _cut_off(self, client: Client, text: str) -> None:
        self.slow_consumers_disconnected += 1
        log.warning(
            "slow_consumer_disconnected", connection=client.number, client=client.subscriber.name, reason=text,
            lost=client.outbox.losable,
        )
        client.connection.cut_off("slow_consumer", text)

    # -- holding ----------------------------------------------------------------------------------------------------

    def hold_back(self, publisher: Client, blocker: Outbox, now: float) -> None:
        """Hold a publisher back until `blocker` has drained, or until a budget is used up."""
        awake = self.ledger.awake(now)
        self.publishers_paused += 1
        self._waiting.setdefault(blocker, {})[publisher] = None
        consumer: Client | None = blocker.owner
        if consumer is publisher and blocker.choked:
            # It is not notified: its outbox is full of answers that it does not read.
            self._holds[publisher] = Hold(blocker, ANSWERS)
            self._choked.setdefault(blocker, awake)
            self._set_timer(self.limits.pause_seconds_max, now)
            return
        if consumer is not None:
            self._behind[blocker] = None
        kind = kind_of(blocker) if consumer is not None else STORE
        self._holds[publisher] = Hold(blocker, kind)
        budget = self._budget(kind)
        own = publisher.hold_time(kind)
        own.begin(awake, budget.window)
        self._running += 1
        self._began += awake
        publisher.connection.notify_held(True, 0.0)
        if consumer is None:
            return
        time_held = consumer.hold_time(CONSUMER)
        time_held.begin(awake, budget.window)
        left = own.left(awake, budget.seconds)
        self._publishers_due.set(publisher, awake + left)
        if blocker not in self._consumers_due:
            self._consumers_due.set(blocker, awake + time_held.left(awake, budget.seconds))
        self._set_timer(min(left, time_held.left(awake, budget.seconds)), now)

    def use(self, limits: Limits) -> None:
        """Apply new limits. All deadlines are computed again in one step, because operators change budgets rarely."""
        self.limits = limits
        self.policy, self._patient = self._default(limits)
        for publisher, (blocker, kind) in self._holds.items():
            if kind in (BURST, PAUSES):
                seconds = self._budget(kind).seconds
                self._publishers_due.set(publisher, publisher.hold_time(kind).left(0.0, seconds))
                self._consumers_due.set(blocker, blocker.owner.hold_time(CONSUMER).left(0.0, seconds))

    def drained(self, outbox: Outbox, now: float) -> list[Client]:
        """An outbox has drained. Returns the publishers that may continue, in the order in which they were held back.

        The outbox's own client is among them if it waits to be refilled (`refill`, or a consumer that found no room).
        """
        refilled = [outbox.owner] if outbox.refill else []
        outbox.refill = False
        if outbox.pausing:
            return refilled
        self._choked.pop(outbox, None)
        return refilled + self._free_some(outbox, self.ledger.awake(now))

    def _free_some(self, outbox: Outbox, now: float) -> list[Client]:
        """Resume the publishers that an outbox holds back, as many as the turn has time for. The others follow in the
        next turn, if the outbox holds nothing back then.
        """
        freed: list[Client] = []
        for publisher in list(self._waiting.get(outbox, ())):
            if outbox.choked and self._holds[publisher].kind == ANSWERS:
                continue  # its own client, which has not read its answers
            if self._next_turn is not None and len(freed) % LOOK == LOOK - 1 and self.ledger.turn_over():
                self._next_turn(partial(self._free_more, outbox, now))
                break
            freed.append(self._free(publisher, now))
        return freed

    def _free_more(self, outbox: Outbox, now: float) -> None:
        if not outbox.pausing or outbox.choked:
            self._go_on(self._free_some(outbox, now))

    def go_on(self, outbox: Outbox, now: float) -> None:
        """An outbox has drained: let the publishers continue that it held back, each in a turn of its own."""
        self._go_on(self.drained(outbox, now))

    def go_on_some(self, outbox: Outbox, now: float, most: int) -> bool:
        """Let at most `most` publishers continue, the ones that have waited longest. True if others still wait."""
        waiting = list(islice(self._waiting.get(outbox, ()), min(most, FREED_AT_ONCE)))
        self._go_on([self._free(publisher, self.ledger.awake(now)) for publisher in waiting])
        return outbox in self._waiting

    def refill(self, outbox: Outbox) -> None:
        """Notify an outbox's own client when the outbox is empty, because there is more to send."""
        outbox.ask_for_more()

    def forget(self, client: Client, now: float) -> list[Client]:
        """A client has disconnected. Returns the publishers that were held back for it and may continue."""
        if client in self._holds:
            self._free(client, self.ledger.awake(now))
        self._used_up.pop(client, None)
        outbox = client.outbox
        outbox.refill = False
        self._behind.pop(outbox, None)
        outbox.drained()  # lowers the ledger's count if it was blocking
        if outbox not in self._waiting and outbox not in self._choked:  # mostly nobody waits for it
            outbox.owner = client.subscriber  # so that the two do not keep each other
            return []
        return self.drained(outbox, now)

    def _free(self, publisher: Client, now: float) -> Client:
        """End one hold. The consumer's time runs until its last publisher continues."""
        blocker, kind = self._holds.pop(publisher)
        waiting = self._waiting[blocker]
        del waiting[publisher]
        if not waiting:
            del self._waiting[blocker]
        if blocker.owner is not None and (not waiting or (len(waiting) == 1 and blocker in self._choked)):
            blocker.owner.hold_time(CONSUMER).end(now)
            self._consumers_due.discard(blocker)
        if kind != ANSWERS:
            self._publishers_due.discard(publisher)
            own = publisher.hold_time(kind)
            self._running -= 1
            self._began = self._began - (own.since or 0.0) if self._running else 0.0
            lasted = own.end(now)
            self._held_before += lasted
            publisher.connection.notify_held(False, lasted)
        return publisher

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Resume the publishers whose budget is used up, and renew the budgets whose window has passed."""
        self._do_what_is_due(now)
        now = self.ledger.awake(now)
        for client in list(islice(self._used_up, LOOKED_AT_PER_SWEEP)):
            del self._used_up[client]
            if not self._renew(client, now):
                self._used_up[client] = None  # behind the others

    def _set_timer(self, seconds: float, now: float) -> None:
        """Schedule the timer. `now` is the plain clock's: a standstill until then shows when the timer fires."""
        at = now + max(seconds, 0.0)
        if self._later is not None and (self._timer_at is None or at < self._timer_at):
            self._timer_at = at
            self._later(at - now, self._timer_fired)

    def _timer_fired(self, now: float) -> None:
        if self._timer_at is not None and now < self._timer_at - AT_ONCE:
            return  # an earlier timer has fired since this one was set
        self._timer_at = None
        self._do_what_is_due(now)

    def _do_what_is_due(self, time: float) -> None:
        """As much as the turn has time for; then the timer is set for the rest."""
        now = self.ledger.awake(time)
        self._go_on(self._due(now))
        begun = now - self.limits.pause_seconds_max + AT_ONCE
        for outbox, since in list(takewhile(lambda item: item[1] <= begun, self._choked.items())):
            del self._choked[outbox]
            if outbox.sits_out:  # the broker itself does not send them (core/paces.py)
                self._choked[outbox] = now
                continue
            self._cut_off(outbox.owner, f"read no answers for {now - since:.1f} s (pause_seconds_max)")
        due = [each for each in (self._publishers_due.first, self._consumers_due.first) if each is not None]
        due += [since + self.limits.pause_seconds_max for since in islice(self._choked.values(), 1)]
        if due:
            self._set_timer(min(due) - now, time)

    def _due(self, now: float) -> list[Client]:
        """End the holds whose budget is used up. Returns the publishers that may continue."""
        released: list[Client] = []
        for outbox in self._consumers_due.due(now + AT_ONCE, len(self._consumers_due)):
            released += self._give_up_on(outbox, now)
            if self._next_turn is not None and self.ledger.turn_over():
                return released
        for publisher in self._publishers_due.due(now + AT_ONCE, len(self._publishers_due)):
            publisher.outbox.exempt |= self._holds[publisher].kind
            self._used_up[publisher] = None
            released.append(self._free(publisher, now))
            if self._next_turn is not None and len(released) % LOOK == LOOK - 1 and self.ledger.turn_over():
                break
        return released

    def _give_up_on(self, outbox: Outbox, now: float) -> list[Client]:
        """A consumer has used up its budget. Returns the publishers that were held back for it."""
        consumer: Client = outbox.owner
        outbox.lose_patience()
        self._used_up[consumer] = None
        spent = consumer.hold_time(CONSUMER).total(now) - consumer.hold_time(CONSUMER).before
        released = self._free_some(outbox, now)
        if outbox.policy == SlowPolicy.PAUSE:
            window = self._budget(PAUSES).window
            self._cut_off(consumer, f"publishers were held {spent:.1f} s for it within {window:g} s"
                                    " (pause_seconds_max, pause_window_seconds)")  # fmt: skip
        return released

    def _renew(self, client: Client, now: float) -> bool:
        """Renew the budgets whose window has passed. True if no other is left to renew."""
        outbox = client.outbox
        if outbox.closed:
            return True
        for kind in (BURST, PAUSES):
            if outbox.exempt & kind and client.hold_time(kind).restored(now, self._budget(kind).window):
                outbox.exempt &= ~kind
        budget = self._budget(kind_of(outbox))
        if not outbox.patient and budget.seconds > 0 and client.hold_time(CONSUMER).restored(now, budget.window):
            outbox.patient = has_caught_up(client)
        return not outbox.exempt and (outbox.patient or budget.seconds <= 0)

    def _go_on(self, clients: Iterable[Client]) -> None:
        for client in clients:
            self._next_turn(client.connection.unblocked)

    # -- inspection ------------------------------------------------------------------------------------------------

    @property
    def publishers_held(self) -> int:
        """Publishers that the broker does not read from at present."""
        return len(self._holds)

    @property
    def behind(self) -> list[Outbox]:
        """Those that may be slow, and no others."""
        reported = [each for each in self.ledger.attention if not each.closed]
        return list(dict.fromkeys((*self._behind, *reported)))

    def caught_up(self, outbox: Outbox) -> None:
        """One of them is not slow any more; one that was full stays."""
        if not outbox.noticed:
            self._behind.pop(outbox, None)

    def is_held_back(self, publisher: Client) -> bool:
        """Is this publisher held back?"""
        return publisher in self._holds

    def waiting_for(self, blocker: Outbox) -> int:
        """Publishers that it holds back."""
        return len(self._waiting.get(blocker, ()))

    def blocker_of(self, publisher: Client) -> Outbox | None:
        """What holds it back, if anything does."""
        hold = self._holds.get(publisher)
        return hold.blocker if hold is not None else None

    def held_seconds(self, now: float) -> float:
        """Seconds that publishers were held back, in total."""
        return self._held_before + self._running * self.ledger.awake(now) - self._began


def kind_of(outbox: Outbox) -> int:
    """The kind of budget that a hold for this outbox uses."""
    return PAUSES if outbox.policy == SlowPolicy.PAUSE else BURST


def has_caught_up(client: Client) -> bool:
    """Is so little unread that a hold would smooth a burst? A client that reads nothing must not get a new budget."""
    outbox, session = client.outbox, client.subscriber.session
    return 2 * outbox.size <= outbox.limit and (session is None or not session.window.queue.filled(2))
