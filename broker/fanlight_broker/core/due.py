"""Due messages: routes each delayed message when its time has come, to whoever is subscribed then.

    timer, sweep --> deliver: one message, one more, ... until the turn is over --> `Turns.later`: the rest
                        |
                        |-- the next one is on the disk: it is read, `arrived` --> `Turns.later`: deliver
                        '-- a queue refuses it, or the store is full --> due again: Delayed.try_again

In the order of their times, then in that in which they were accepted. 100,000 may be due at once.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.clients import Clients
from fanlight_broker.core.delayed import Delayed
from fanlight_broker.core.delayed_message import DelayedMessage, DelayedPublisher
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.flow import Later
from fanlight_broker.core.publishing import Direct, Publishing
from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.outbox import Outbox, Owner

log: Final = event_log.get("delayed")

AHEAD_SECONDS: Final = 1.0  # what is due later is for a later sweep: so there are not more timers than fit in here
GRAIN_SECONDS: Final = 0.005  # between two timers
LATE_SECONDS: Final = 0.001  # a loop's timer may fire half a millisecond early


class Absent(Owner):
    """The publisher of a delayed message whose connection is gone: a name for the archive."""

    user = ""  # it is not known any more

    def __init__(self, name: str, protocol: str) -> None:
        self.name = name
        self.user = ""  # not kept with the message: selectors find none
        self.protocol = protocol

    @property
    def subscriber(self) -> "Absent":
        return self


class DueMessages:
    """finish  called when messages were routed: the end of a turn"""

    def __init__(
        self, delayed: Delayed, publishing: Publishing, sessions: Sessions, clients: Clients, turns: Turns,
        finish: Callable[[], None], later: Later | None = None,
    ) -> None:
        self._delayed = delayed
        self._publishing = publishing
        self._sessions = sessions
        self._clients = clients
        self._turns = turns
        self._finish = finish
        self._later = later
        self._now = 0.0  # when it was looked at last
        self._timer_at: float | None = None
        self._going_on = False  # the rest of what is due waits for its turn
        self._absent: Outbox | None = None  # of the publisher that was absent last
        delayed.expect = self.expect
        delayed.arrived = self._arrived

    def sweep(self, now: float) -> None:
        """Route what is due, unless that is going on."""
        if not self._going_on:
            self.deliver(now)

    def expect(self, now: float) -> None:
        """Read the first, if it is due before long and not in memory; else set the timer for it."""
        self._now = now
        first = self._delayed.first
        if first is None or first > now + AHEAD_SECONDS or self._going_on:
            return
        if not self._delayed.is_here:
            self._delayed.read(now + AHEAD_SECONDS)
            return
        if self._later is None:
            return
        if self._timer_at is None or first < self._timer_at - GRAIN_SECONDS:
            self._timer_at = first
            self._later(max(first - now, 0.0) + LATE_SECONDS, self._timer_fired)

    def _timer_fired(self, now: float) -> None:
        self._timer_at = None
        self.sweep(now)

    def deliver(self, now: float) -> None:
        """Route what is due, as much as the turn has time for."""
        self._going_on = True
        try:
            self._going_on = self._deliver_some(now)
        finally:  # an error in one must not stop those behind it
            if self._going_on:
                self._turns.later(partial(self._go_on, now))
            else:
                self.expect(now)
            self._finish()

    def _arrived(self) -> None:
        if not self._going_on:
            self._going_on = True
            self._turns.later(partial(self._go_on, self._now))

    def _go_on(self, before: float) -> None:
        # Times that the archive writes down must not go backwards.
        self.deliver(self._turns.now(before))

    def _deliver_some(self, now: float) -> bool:
        """True if the turn was over before everything was done."""
        while (found := self._delayed.take_due(now)) is not None:
            self._deliver_one(*found, now)
            if self._turns.over():
                return True
        return False

    def _deliver_one(self, id: int, delayed: DelayedMessage, now: float) -> None:
        done = True
        try:
            if delayed.message.expired(now):
                self._delayed.expired += 1
            elif self._route(delayed, now):
                self._delayed.delivered += 1
            else:
                done = False
        except FanlightError as error:
            self._delayed.lost += 1
            log.warning("delayed_lost", client=delayed.publisher.name, text=error.text)
        finally:
            if done:
                self._delayed.done(id)
            else:
                self._delayed.try_again(id, now)

    def _route(self, delayed: DelayedMessage, now: float) -> bool:
        """Publish it for its publisher: what that does not want back it does not get. False: not now."""
        session = self._session_of(delayed.publisher)
        if session is None or session.client is not None:
            client = session.client if session is not None else None
            outbox = client.outbox if client is not None else self._outbox(delayed.publisher)
            pace, outbox.pace = outbox.pace, None  # its rate was paid when it was accepted
            try:
                return self._publishing.deliver(delayed, Direct(self._publishing.ledger, delayed.message, outbox), now)
            finally:
                outbox.pace = pace
        sender = Direct(self._publishing.ledger, delayed.message, session.window.stand_in())
        try:
            return self._publishing.deliver(delayed, sender, now)
        finally:
            session.window.detach()

    def _session_of(self, publisher: DelayedPublisher) -> Session | None:
        """None: it had none, or it has ended. Another user may have one of the same name now, and has not said this."""
        session = self._sessions.get(publisher.name) if publisher.session else None
        if session is not None and session.subscriber.verified \
                and session.subscriber.share.root.principal != publisher.share.root.principal:
            return None
        return session

    def _outbox(self, publisher: DelayedPublisher) -> Outbox:
        """The outbox of a publisher without a session; one that nobody has if its connection has ended."""
        client = self._clients.get(publisher.connection) if publisher.connection is not None else None
        if client is not None:
            return client.outbox
        owner = self._absent.owner if self._absent is not None else None
        if owner is None or (owner.name, owner.protocol) != (publisher.name, publisher.protocol):
            owner = Absent(publisher.name, publisher.protocol)
            self._absent = Outbox(self._publishing.ledger, 0, "drop_newest", owner)
        assert self._absent is not None
        return self._absent
