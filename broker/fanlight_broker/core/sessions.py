"""Sessions: found by client identifier, taken over, kept while the client is not connected, ended when they expire.

    connect --> new, or resumed, or taken over from a connection that is still open
    leave   --> ends with the connection (expiry 0), or waits: Deadlines
    sweep   --> ends the expired sessions, publishes the wills whose delay has passed

A connection calls connect, resume, ..., leave, in this order. If another connection has taken its session over, leave
has no effect.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.away import AwaySessions
from fanlight_broker.core.clients import Clients, new_inbox
from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.draining import Draining
from fanlight_broker.core.errors import NoSuchSubscription, NotPermitted, StoreUnavailable
from fanlight_broker.core.flow import Flow
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.moving import check_return, share_of
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.ports import Journal
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Direct, Outcome, Publishing, Refused
from fanlight_broker.core.requests import ConnectRequest, SessionOptions
from fanlight_broker.core.retained import SLICE, Cursor
from fanlight_broker.core.room import check_growth, room_for
from fanlight_broker.core.session_queues import new_queue, queue_maker
from fanlight_broker.core.session_table import SessionTable
from fanlight_broker.core.shares import Share, SharedPot, principal_of
from fanlight_broker.core.subscriber import Client, ClientConnection, Session, Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription, group_name_of
from fanlight_broker.core.teardown import Teardown
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.expiry import expire
from fanlight_broker.wire.hidden import hide, show
from fanlight_broker.wire.message import RETAIN_AS_PUBLISHED, RETAIN_CLEAR, RETAIN_SET, Message, Variant
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.subscription_table import Entering
from fanlight_broker.wire.subscriptions import Subscriptions
from fanlight_broker.wire.window import Window

log: Final = event_log.get("sessions")

LOOKED_AT_PER_SWEEP: Final = 5_000  # queues and messages in them: bounds a sweep to about 1 ms
ENDED_PER_SWEEP: Final = 250  # wills and sessions, about 50 µs each: 200,000 may be due at once
LOOK: Final = 16  # queues between two readings of the clock
TAKEN_OVER: Final = "taken_over"  # the reason given to a connection when another one takes its session over


class Sessions:
    def __init__(
        self, limits: Limits, clients: Clients, subscribing: Subscribing, publishing: Publishing, teardown: Teardown,
        flow: Flow, turns: Turns,
    ) -> None:
        self.limits = limits
        self.clients = clients
        self.subscribing = subscribing
        self.publishing = publishing
        self._teardown = teardown
        self._flow = flow
        self._turns = turns
        self._draining = Draining(turns)
        self._enforcement = subscribing.enforcement
        self._router = subscribing.router
        self._shares = subscribing.shares
        self._ledger = publishing.ledger
        self.wills: Deadlines[Session] = Deadlines()  # wills that wait for their delay
        self.journal: Journal = NO_JOURNAL
        self.taken_over = self.resumed = self.expired = self.made_room = self.wills_published = 0
        self._connected = 0
        self._round: list[Session] = []  # whose queues are still to be searched for expired messages
        self._table = SessionTable()
        self._place: int | None = None  # where the round of searches goes on
        self.from_place, self.in_pieces = self._table.from_place, self._table.in_pieces
        self._away = AwaySessions()

    def __len__(self) -> int:
        return len(self._table)

    def get(self, name: str) -> Session | None:
        return self._table.get(name)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._table)

    @property
    def draining(self) -> int:
        """Sessions that have ended, and whose messages are still to be dropped."""
        return len(self._draining)

    @property
    def away(self) -> int:
        """Sessions whose client is not connected."""
        return len(self._table) - self._connected

    def away_of(self, share: Share) -> int:
        """Those of one principal."""
        return len(self._away.of(share))

    # -- a connection's life ----------------------------------------------------------------------------------------

    def connect(
        self, outbox: Outbox, connection: ClientConnection, now: float, wanted: ConnectRequest
    ) -> tuple[Client, Session, bool]:
        """A client has completed its handshake. Returns it, its session, and whether the session was present before.

        `resume` sends messages, not this. Raises LimitExceeded, StoreUnavailable for a new session that outlives its
        connection, and NotPermitted for another user's session.
        """
        found = self._table.get(wanted.client_id)
        if found is not None and found.subscriber.user != wanted.user:
            raise NotPermitted("the session of this client identifier is another user's; choose another identifier")
        self.clients.check_names(wanted.client_id, wanted.user or wanted.label)
        if self._enforcement.restricts(wanted.origin):
            self._enforcement.check_connect(wanted.asker, wanted.will)
        overdue = found is not None and self._away.overdue(found, now)
        ending: Sequence[Session] = ()
        # With expiry 0 a session ends with its connection, which ends here.
        goes_on = found is not None and not (wanted.clean_start or overdue or found.ended or found.expiry <= 0)
        if found is not None and goes_on:
            share = found.share.root
        else:
            share = self._shares.of(principal_of(
                wanted.user, wanted.address, verified=wanted.verified, namespace=wanted.origin.namespace
            ))
        quota = self.clients.quota_of(wanted.asker, wanted.limits)
        self.clients.check(share, quota, now, found.client if found else None, wanted.will)
        if found is not None and goes_on:
            check_growth(self._shares, found, wanted)
            check_return(self._shares, found, quota)
        else:
            share = share_of(self._shares, share, quota)
            if wanted.expiry > 0 and self.journal.position.refusing:
                raise StoreUnavailable
            present = self._shares.total(SharedPot.SESSIONS)
            ending = room_for(self._shares, share, wanted, found, present, self._away.of(share))
        # Nothing below may refuse the client.
        if found is not None and found.client is not None:
            self.taken_over += 1
            old = found.client
            self._detach(found, now)
            old.connection.say_goodbye(TAKEN_OVER, "another connection has the same client identifier")
        if found is not None and not goes_on:
            self.expired += overdue
            self.end(found, now)
            found = None
        for session in ending:
            self.made_room += 1
            self.end(session, now)
        if found is None:
            session = self.begin(Subscriber(
                wanted.client_id, wanted.user, wanted.protocol, wanted.format, share, new_inbox(), wanted.verified,
                wanted.label, Subscriptions(by_filter=True), origin=wanted.origin,
            ), wanted.expiry)
        else:
            session = found
            self._rejoin(session, wanted)
        client = self._attach(session, outbox, connection, now, wanted, goes_on=found is not None)
        return client, session, found is not None

    def begin(self, subscriber: Subscriber, expiry: float = 0.0, now: float | None = None) -> Session:
        """Create a session that is not connected yet. Subscriptions and messages may be added to it at once.

        now  it is restored after a restart: its client has `expiry` seconds from now to reconnect
        """
        share = subscriber.share
        queue = new_queue(self._ledger, self.limits, share.account)
        session = Session(subscriber, Window(None, queue, share.sessions, subscriber), share.sessions, self.journal)
        session.window.position = self.journal.position
        self._table.put(session)
        hide(*session.things, *self._table.things)
        self._shares.charge(share, SharedPot.SESSIONS)
        session.expiry = self._bounded(expiry)
        if now is not None:
            self._wait(session, now)
        queue.journal = self.journal.session_begun(session)
        return session

    def restore(self, found: Sequence[tuple[Subscriber, float, float]]) -> list[Session]:
        """`begin` sessions from before a restart: their subscribers, seconds of expiry, and when each client left."""
        position, begun, make_queue = self.journal.position, self.journal.session_begun, queue_maker(self.limits)
        longest = self.limits.session_seconds_max
        made = []
        for subscriber, expiry, _ in found:
            pot = subscriber.share.sessions
            queue = make_queue(self._ledger, subscriber.share.account)
            session = Session(
                subscriber, Window(None, queue, pot, subscriber), pot, self.journal, min(expiry, longest)
            )
            session.window.position = position
            self._table.put(session)
            hide(*session.things)
            queue.journal = begun(session)
            made.append(session)
        hide(*self._table.things)
        for share, count in Counter(subscriber.share for subscriber, _, _ in found).items():
            self._shares.charge(share, SharedPot.SESSIONS, count)
        self._away.add_all(
            (session, left + session.expiry) for session, (_, _, left) in zip(made, found, strict=True)
        )
        return made

    def _attach(
        self, session: Session, outbox: Outbox, connection: ClientConnection, now: float, wanted: ConnectRequest, *,
        goes_on: bool,
    ) -> Client:
        """Attach a connection to a session. goes_on: the session was there before."""
        client = self.clients.connect(
            outbox, connection, now, name=wanted.client_id, user=wanted.user, verified=wanted.verified,
            label=wanted.label, agent=wanted.agent, address=wanted.address, port=wanted.port, protocol=wanted.protocol,
            format=wanted.format, subscriber=session.subscriber, limits=wanted.limits,
        )
        if wanted.frame_max is not None:
            outbox.frame_max = wanted.frame_max
        session.window.attach(outbox, min(wanted.receive_max, self.limits.inflight_messages_max))
        session.connected = True
        self._connected += 1
        if wanted.will is not None or session.will is not None or goes_on:
            session.will = wanted.will
            session.charge()
        session.expiry = self._bounded(wanted.expiry)
        if goes_on:
            self._away.discard(session)
            self.wills.discard(session)
        self.journal.session_changed(session)
        return client

    def _rejoin(self, session: Session, wanted: ConnectRequest) -> None:
        self.resumed += 1
        subscriber = session.subscriber
        before, subscriber.format = subscriber.format, wanted.format
        subscriber.protocol, subscriber.verified, subscriber.label = wanted.protocol, wanted.verified, wanted.label
        subscriber.origin = wanted.origin
        self._enforcement.renew(subscriber)
        if before is not wanted.format:
            variants = self._router.variants
            session.window.rebind(variants, wanted.format)
            for subscription in session.subscriptions:
                variant = variants.like(subscription.variant, wanted.format)
                self._router.rebind(subscription, variant, no_echo=subscription.no_echo)

    def resume(self, session: Session, now: float) -> None:
        """After CONNACK: send again what the client has not acknowledged, then what is queued."""
        session.window.resume(now)
        if session.window.resting and session.client is not None:
            self._turns.later(partial(self._go_on, session, session.client, now))
        self.advance(session, now)

    def _go_on(self, session: Session, client: Client, now: float) -> None:
        """Continue sending what the last turn had no time for."""
        if session.connected and session.client is client:
            session.window.advance(now)
            if session.window.resting:
                self._turns.later(partial(self._go_on, session, client, now))

    def leave(self, client: Client, now: float, *, will: bool, expiry: float | None = None) -> None:
        """A client has disconnected, or is about to.

        will    publish its will, after its delay; False deletes it
        expiry  seconds for which the session is kept, in place of those of CONNECT
        """
        session = client.subscriber.session
        if session is None or session.client is not client or not session.connected:
            return
        if not will and session.will is not None:
            session.will = None
            session.charge()
        if expiry is not None:
            session.expiry = self._bounded(expiry)
        self._detach(session, now)
        if session.expiry <= 0:
            self.end(session, now)

    def _detach(self, session: Session, now: float) -> None:
        """Separate a session from its connection."""
        session.connected = False
        self._connected -= 1
        for group in session.window.detach():
            group.feed(now)
        if session.will is not None:
            if session.will.delay > 0 and session.expiry > 0:
                self.wills.set(session, now + min(session.will.delay, session.expiry))
            else:
                self.publish_will(session, now)
        if session.expiry > 0:
            self._wait(session, now)
        self.journal.session_changed(session)

    def _wait(self, session: Session, now: float) -> None:
        """Keep the session until it expires, or its client reconnects."""
        self._away.add(session, now + session.expiry)

    def end(self, session: Session, now: float) -> None:
        """End a session: publish a waiting will, give back what it used. What waited may be dropped later."""
        if session.ended:
            return
        session.ended = True
        subscriber = session.subscriber
        if session.will is not None and not session.connected:
            self.publish_will(session, now)
        self.wills.discard(session)
        self._away.discard(session)
        self._teardown.end(subscriber.subscriptions)
        self._enforcement.leave(subscriber)
        session.clear_cursors()
        session.unreleased.clear()
        session.charge()
        lost = session.window.end()
        self._table.remove(session)
        show(*session.things)
        self._shares.refund(subscriber.share, SharedPot.SESSIONS)
        self.journal.session_ended(session)
        self._draining.drain(session.window.queue, partial(self._drained, session))
        log.info("session_ended", client=subscriber.name, lost=lost)

    def rename(self, session: Session, name: str) -> None:
        """See renaming.py."""
        self._table.rename(session, name)

    def _drained(self, session: Session) -> None:
        self._shares.dropped(session.share)
        self.journal.session_drained(session)

    def _bounded(self, expiry: float) -> float:
        return min(expiry, self.limits.session_seconds_max)

    def publish_will(self, session: Session, now: float) -> None:
        """Publish the will once and clear it; a refused will is logged."""
        will, session.will = session.will, None
        session.charge()
        self.journal.session_changed(session)
        self.wills.discard(session)
        assert will is not None
        message = will.published(now)
        outcome = self._send_will(session, message, now, requests=will.requests)
        if isinstance(outcome, Refused):
            log.warning("will_refused", client=session.name, text=outcome.error.text)
        else:
            self.wills_published += 1

    def _send_will(self, session: Session, message: Message, now: float, *, requests: bool) -> Outcome:
        """What is permitted now counts, and not what was when the client connected."""
        try:
            self._enforcement.check(session.subscriber, Action.WILL, message.topic, SYNTAXES[message.syntax], message)
        except NotPermitted as error:
            return Refused(error)
        sender = Direct(self._ledger, message, session.window.stand_in())
        try:
            return self.publishing.accept(Publication(message, session.subscriber, requests=requests), sender, now)
        finally:
            session.window.detach()

    def sweep(self, now: float) -> bool:
        """Publish wills that are due, end expired sessions, drop expired messages, a bounded number at a time.

        True if the turn ended before everything was done: call it again soon.
        """
        over = self._turns.over
        for session in self.wills.due(now, ENDED_PER_SWEEP):
            self.publish_will(session, now)
            if over():
                return True
        for session in self._away.due(now, ENDED_PER_SWEEP):
            self.expired += 1
            self.end(session, now)
            if over():
                return True
        self._drop_expired(now)
        return False

    def _drop_expired(self, now: float) -> None:
        if not self._round:
            self._round, self._place = self._table.from_place(self._place or 0, LOOKED_AT_PER_SWEEP)
        looked_at = 0
        while self._round and looked_at < LOOKED_AT_PER_SWEEP:
            queue = self._round.pop().window.queue
            looked_at += 1 + (len(queue) if queue.mortal else 0)
            expire(queue, now)
            if looked_at % LOOK == 0 and self._turns.over():
                break

    # -- subscriptions ----------------------------------------------------------------------------------------------

    def variant_of(self, session: Session, options: SessionOptions) -> Variant:
        """How messages are written for a subscription with these options."""
        retain = RETAIN_AS_PUBLISHED if options.retain_as_published else RETAIN_CLEAR
        return self._router.variants.of(session.subscriber.format, options.qos, retain, options.identifier)

    def subscribe(
        self, session: Session, filter: bytes, syntax: str, options: SessionOptions, variant: Variant | None = None
    ) -> tuple[Subscription, bool]:
        """Put a subscription in force, or change the one for the same filter. Returns it, and whether it is new.

        One with another selector takes the place of the one before, between two messages.

        `variant` is that of the options, for callers with many filters of the same options. Raises InvalidFilter,
        NotPermitted, LimitExceeded, StoreUnavailable.
        """
        if self.journal.position.refusing and session.outlives:
            raise StoreUnavailable
        if variant is None:
            variant = self.variant_of(session, options)
        subscriber = session.subscriber
        subscription = Subscription(
            session.window, variant, session.numbers + 1, filter, SYNTAXES.index(syntax), options.no_local,
            condition=options.condition,
        )
        if options.group is None and self.subscribing.enter(subscriber, subscription):
            session.numbers += 1
            return subscription, True
        found = subscriber.subscriptions.find(filter, options.group)
        if found is not None and found.condition == options.condition:
            self._router.set_partly(found, self.subscribing.check_permission(
                subscriber, filter, syntax, whole=options.group is not None
            ))
            self._router.rebind(found, variant, no_echo=options.no_local)
            self.subscribing.subscribed(found)
            return found, False
        subscription.partly = self.subscribing.check(subscriber, filter, syntax, options.group, options.condition)
        if found is not None:
            self._end(session, found)
        self.subscribing.begin(subscriber, subscription, options.group)
        session.numbers += 1
        return subscription, found is None

    def entering(self, session: Session) -> Entering | None:
        """What begins ordinary subscriptions in this turn, for callers with many filters. None: `subscribe` does."""
        subscribing, refusing = self.subscribing, self.journal.position.refusing
        if self._enforcement.badge_of(session.subscriber) is not None or (refusing and session.outlives):
            return None
        return Entering(self._router.table, session, subscribing)

    def unsubscribe(self, session: Session, filter: bytes, group: str | None) -> None:
        """End a subscription. Messages in flight are still delivered. Raises NoSuchSubscription."""
        subscription = session.subscriptions.find(filter, group)
        if subscription is None:
            raise NoSuchSubscription(0)
        self._end(session, subscription)

    def revoke(self, session: Session, subscription: Subscription) -> None:
        """End a subscription that permissions do not allow any more."""
        self._end(session, subscription)

    def _end(self, session: Session, subscription: Subscription) -> None:
        session.drop_cursor(subscription.number)
        self.subscribing.end(subscription)

    @staticmethod
    def options_of(subscription: Subscription) -> SessionOptions:
        """As the client requested them, except that the identifier is encoded."""
        variant = subscription.variant
        return SessionOptions(
            qos=variant.qos, no_local=subscription.no_echo,
            retain_as_published=variant.retain == RETAIN_AS_PUBLISHED, identifier=variant.identifiers,
            group=group_name_of(subscription), condition=subscription.condition,
        )

    # -- retained messages ------------------------------------------------------------------------------------------

    def send_retained(self, session: Session, subscription: Subscription) -> None:
        """Begin to send a subscription the retained messages; `advance` does the rest. Raises LimitExceeded."""
        if session.cursors:
            session.drop_cursor(subscription.number)  # a new one is behind the others
        retained, wanted = self.publishing.retained, subscription.variant
        place = retained.first_match(subscription.filter, subscription.syntax_number)
        if place is not None:
            variant = self._router.variants.of(session.subscriber.format, wanted.qos, RETAIN_SET, wanted.identifiers)
            session.add_cursor(Cursor(retained, subscription, variant, *place))

    def advance(self, session: Session, now: float) -> bool:
        """Send retained messages while there is room. True if some are left: call again when there is room.

        When the outbox has drained the client's `connection.unblocked` is called; an acknowledgement makes room, too.
        """
        left = SLICE
        while session.cursors and session.connected:
            number, cursor = next(iter(session.cursors.items()))
            left -= cursor.advance(now, left, self._turns.over)
            if cursor.done:
                session.drop_cursor(number)
            if left <= 0 or not cursor.has_room:
                break
            if self._turns.over():
                left = 0
                break
        if not session.cursors or not session.connected:
            return False
        outbox = session.window.outbox
        if outbox is not None and (left <= 0 or outbox.size):
            # Nothing else calls again after a slice that sent nothing.
            self._flow.refill(outbox)
        return True
