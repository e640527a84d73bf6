"""The broker: clients, their subscriptions, and what may be published. No socket, no protocol, no clock.

Protocols call in with what their peers ask; the answers are return values and errors. Messages do not pass here one by
one: a protocol's lane asks once for a topic's route, and the compiled half uses that until a subscription changes it.
"""

import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from broker.core.client import SILENT, Client, Speaker
from broker.core.endings import Endings
from broker.core.errors import LimitExceeded, NoSuchSubscription, SubscriptionInUse
from broker.core.flow import Flow, Later, NextTurn
from broker.core.limits import Limits
from broker.core.marks import Mark, Marks
from broker.core.ports import Store
from broker.core.replay import Keeper
from broker.core.retained import Retained
from broker.core.router import Router
from broker.core.sessions import Sessions
from broker.core.shares import Pot, Share, Shares, principal_of
from broker.core.standstill import Standstills
from broker.core.store import MemoryStore
from broker.core.subscription import Options, Subscription, group_name_of, nbytes_of, share_bytes
from broker.core.topics import INBOX_ROOT, SYNTAXES, check_filter, check_inbox, check_publisher, hashes_of, words_of
from broker.core.turns import Clock, Turns
from broker.wire.fanout import Route, publish
from broker.wire.hidden import hide, show
from broker.wire.ledger import Ledger
from broker.wire.message import Format, Message, Variants
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache

if TYPE_CHECKING:
    from broker.core.system_topics import SystemTopics

log: Final = structlog.stdlib.get_logger("core")

AFTER_MAX: Final = 2**63 - 1  # messages after which a subscription ends; a million a second take 292,000 years


class Broker:
    """One broker.

    schedule   called when something waits to be flushed; must see to it that a flush follows in this turn
    next_turn  called with what is to be called when everybody else has had a turn: a loop's `call_soon`; never at once
    later      called with seconds, and with what is to be called after them, with the time; without it, sweeps do that
    """

    def __init__(
        self, limits: Limits, schedule: Callable[[], Any], next_turn: NextTurn,
        later: Later | None = None, *, clock: Clock | None = None, cpu: Clock | None = None,
    ) -> None:
        self.limits = limits
        self.ledger = Ledger(limits.outboxes_bytes_max, schedule, limits.stored_bytes_max)
        self._bound(limits)
        self.routes = RouteCache(limits.routes_max, limits.routes_bytes_max)
        self.standstills = Standstills(self.ledger)
        self.turns = Turns(self.ledger, next_turn, clock, cpu)
        self.variants = Variants()
        self.shares = Shares(self.ledger, limits)
        self.router = Router(self.routes, limits, self.ledger, self.variants, self.turns)
        self.flow = Flow(self.ledger, limits, self.turns.later, later)
        self.retained = Retained(self.ledger, limits, self.shares)
        self.marks = Marks(limits, self.shares, lambda number: number in self.clients)
        self.store: Store = MemoryStore()
        self.keeper: Keeper | None = None  # of messages by offset, to be replayed
        self.endings = Endings(self, self.turns)
        self.sessions = Sessions(self)
        self.system_topics: SystemTopics | None = None  # put in by who knows all counters
        self.clients: dict[int, Client] = {}
        self.clients_maximum = 0  # connected at one time, so far
        self.connects = 0
        self.subscribes = 0
        self.unsubscribes = 0

    def use(self, limits: Limits) -> None:
        """Take new limits into force: for clients and subscriptions that come from now on."""
        self.limits = self.router.limits = self.retained.limits = self.marks.limits = limits
        self.flow.use(limits)
        self.shares.use(limits)
        self._bound(limits)

    def _bound(self, limits: Limits) -> None:
        ledger = self.ledger
        ledger.limit = limits.outboxes_bytes_max
        ledger.stored_limit = limits.stored_bytes_max
        ledger.inboxes.limit = limits.inboxes_bytes_max
        ledger.handshakes.limit = limits.handshakes_bytes_max
        ledger.sessions.limit = limits.sessions_bytes_max
        ledger.subscriptions.limit = limits.subscriptions_bytes_max

    # -- clients ----------------------------------------------------------------------------------------------------

    def new_outbox(self, policy: str | None = None) -> Outbox:
        """An outbox for a connection, with the policy that is wanted if it is allowed. Raises ValueError if unknown."""
        outbox = Outbox(self.ledger, self.limits.outbox_bytes_max, self.limits.slow_policy.value)
        self.flow.admit(outbox, policy)
        return outbox

    def connect(
        self, outbox: Outbox, speaker: Speaker, now: float, *,
        name: str | None, user: str, agent: str, address: str, protocol: str,
        format: Format, port: int = 0, verified: bool = False, label: str = "", share: Share | None = None,
    ) -> Client:
        """A connection is through its handshake.

        share  the one that its session is in, if it has one
        """
        if share is None:
            share = self.shares.of(principal_of(user, address, verified=verified))
        self.shares.join(share)
        self.connects += 1
        number = self.connects
        client = Client(
            number=number, name=name or f"client-{number}", user=user, agent=agent, address=address, port=port,
            protocol=protocol, format=format, outbox=outbox, speaker=speaker, connected_at=now,
            inbox=self.new_inbox(),
            verified=verified, label=label, share=share,
        )
        outbox.owner = client
        self.clients[number] = client
        hide(client, outbox, self.clients)
        self.clients_maximum = max(self.clients_maximum, len(self.clients))
        log.info(
            "client_connected", connection=number, client=client.name, address=address, port=port, agent=agent,
            user=user,
            **({"unverified_user": label} if label else {}),
        )
        return client

    def disconnect(self, client: Client, reason: str, now: float) -> list[Client]:
        """A client's connection is closed. Returns the publishers that need not wait for it any more.

        One with a session has left that before (`Sessions.leave`), or has it not any more.
        """
        if self.clients.pop(client.number, None) is None:
            return []
        if client.session is None:
            self.endings.end(client.subscriptions)
        self.shares.leave(client.share)
        client.outbox.discard()
        client.speaker = SILENT  # a session may keep the client for long: not its connection
        if client.session is None or client.session.client is not client:
            show(client, client.outbox)
        log.info(
            "client_disconnected", connection=client.number, client=client.name, address=client.address,
            port=client.port, reason=reason, lost=client.outbox.lost,
        )
        return self.flow.forget(client, now)

    def check_names(self, name: str | None, user: str | None) -> None:
        """May a client be called so? Raises LimitExceeded."""
        most = self.limits.name_bytes_max
        for what, text in (("client identifier", name), ("user name", user)):
            size = len((text or "").encode(errors="surrogatepass"))
            if size > most:
                raise LimitExceeded(f"a {what} of {size} bytes", "name_bytes_max", most)

    @staticmethod
    def new_inbox() -> str:
        """A prefix for reply topics that nobody else has, in `.` spelling."""
        return f"{INBOX_ROOT.decode()}.{secrets.token_hex(16)}"

    # -- subscriptions ----------------------------------------------------------------------------------------------

    def subscribe(self, client: Client, number: int, text: bytes, syntax: str, options: Options) -> Subscription:
        """Put a subscription in force.

        Raises InvalidFilter, NotPermitted, SubscriptionInUse, LimitExceeded.
        """
        if client.subscriptions.numbered(number) is not None:
            raise SubscriptionInUse(number)
        self.check_subscription(client, text, syntax, options.group)
        waiting = self.limits.pending_messages_max
        if options.waiting_max is not None:
            waiting = min(waiting, options.waiting_max)
        subscription = Subscription(
            client.outbox, self.variants.of(client.format), number, text, SYNTAXES.index(syntax), options.no_echo,
            credit=options.credit, after=min(options.after, AFTER_MAX), waiting_max=waiting,
        )
        self.begin_subscription(client, subscription, options.group)
        return subscription

    def check_subscription(self, client: Client, text: bytes, syntax: str, group: str | None = None) -> None:
        """May a client have one more subscription, with this filter?

        Raises InvalidFilter, NotPermitted, LimitExceeded.
        """
        limits = self.limits
        if len(client.subscriptions) >= limits.subscriptions_per_client_max:
            raise LimitExceeded(
                "too many subscriptions on this connection", "subscriptions_per_client_max",
                limits.subscriptions_per_client_max,
            )
        if len(self.router) >= limits.subscriptions_max:
            raise LimitExceeded("too many subscriptions", "subscriptions_max", limits.subscriptions_max)
        self.shares.check(client.share, Pot.SUBSCRIPTIONS)
        check_filter(text, syntax, limits)
        check_inbox(text, syntax, client.inbox)
        self._check_hashes(client, hashes_of(text, syntax))
        pot = self.ledger.subscriptions
        if pot.used + nbytes_of(text) > pot.limit:  # its part of the index is known once it is inserted
            raise LimitExceeded(
                f"all subscriptions together hold {pot.used} bytes", "subscriptions_bytes_max",
                limits.subscriptions_bytes_max,
            )
        self.shares.check(client.share, Pot.SUBSCRIPTIONS_BYTES, share_bytes(text, group))

    def _check_hashes(self, client: Client, hashes: int) -> None:
        """Bound filters with several `#`: each new topic is searched for what lies between two, filter by filter."""
        limits = self.limits
        if hashes < 2:
            return
        if hashes > limits.filter_hashes_max:
            raise LimitExceeded(f"a filter with {hashes} times #", "filter_hashes_max", limits.filter_hashes_max)
        if client.searching >= limits.searching_filters_per_client_max:
            raise LimitExceeded(
                "too many filters with several # on this connection", "searching_filters_per_client_max",
                limits.searching_filters_per_client_max,
            )
        if self.router.searching >= limits.searching_filters_max:
            raise LimitExceeded(
                "too many filters with several #", "searching_filters_max", limits.searching_filters_max
            )
        self.shares.check(client.share, Pot.SEARCHING_FILTERS)

    def begin_subscription(self, client: Client, subscription: Subscription, group: str | None) -> None:
        """Raises InvalidFilter, and has changed nothing then."""
        self.router.add(subscription, group, client.share.account)
        client.subscriptions.add(subscription)
        self._count_subscription(subscription, group, 1)
        self.subscribes += 1

    def _count_subscription(self, subscription: Subscription, group: str | None, sign: int) -> None:
        """It is in force now, or not any more (sign -1)."""
        client: Client = subscription.client
        searching = hashes_of(subscription.filter, SYNTAXES[subscription.syntax_number]) > 1
        client.searching += sign * searching
        enter = self.shares.take if sign > 0 else self.shares.give_back
        if searching:
            enter(client.share, Pot.SEARCHING_FILTERS)
        enter(client.share, Pot.SUBSCRIPTIONS_BYTES, share_bytes(subscription.filter, group))
        enter(client.share, Pot.SUBSCRIPTIONS)

    def unsubscribe(self, client: Client, number: int) -> Subscription:
        """End a subscription at once; its counts are final when this returns. Raises NoSuchSubscription."""
        subscription = self.subscription(client, number)
        self.end_subscription(subscription)
        if client.outbox.policy == "drop_oldest":
            client.outbox.pin()
        return subscription

    def subscription(self, client: Client, number: int) -> Subscription:
        """A client's subscription by its number. Raises NoSuchSubscription."""
        found = client.subscriptions.numbered(number)
        if found is None:
            raise NoSuchSubscription(number)
        return found

    def finish(self) -> None:
        """End the subscriptions that have had their last message, and attend to what overflowed or failed."""
        for subscription in self.ledger.take_ended():
            client: Client = subscription.client
            if subscription in client.subscriptions:
                self.end_subscription(subscription)
                client.outbox.pin()
                client.speaker.subscription_ended(subscription, "after")
                client.outbox.evicted.pop(subscription.number, None)
        self.flow.attend()
        self._close_faulty()

    def _close_faulty(self) -> None:
        """Close the connections that a message could not be written for, each with one line in the log."""
        while self.ledger.faults:  # publishing the will of a closed connection may fail for another one
            for outbox in self.ledger.take_faults():
                client: Client | None = outbox.owner
                if client is None or outbox.closed:
                    continue
                log.error(
                    "delivery_failed", connection=client.number, client=client.name, address=client.address,
                    exc_info=outbox.fault,
                )
                client.speaker.say_goodbye("internal_error", "a message could not be written for this client")

    def end_subscription(self, subscription: Subscription) -> None:
        """Take it out of force; it gets nothing more."""
        subscription.cancel()
        group = group_name_of(subscription)
        subscription.client.subscriptions.remove(subscription)  # which looks for it by its group
        self.router.remove(subscription)
        self._count_subscription(subscription, group, -1)
        self.unsubscribes += 1

    # -- publishing -------------------------------------------------------------------------------------------------

    def route(self, topic: bytes, syntax: str) -> Route:
        """The route for a client's message. Raises InvalidTopic, NotPermitted."""
        check_publisher(topic)
        return self.router.route(topic, syntax)

    def publish(self, route: Route, message: Message, publisher: Outbox | None, now: float) -> int:
        """Publish a message on its topic's route, and retain it if it wants that. Returns how many get it.

        Look at `route.blocker_of(publisher)` first, unless it is a message that cannot wait.
        """
        self.ledger.now = now
        if message.retain:
            self.retained.put(message, now, publisher=publisher.owner if publisher is not None else None)
        return publish(route, self.ledger, publisher, message)

    def take_once(self, mark: Mark, client: Client, route: Route, send: Callable[[Route], bool]) -> bool:
        """Send a client's message whose mark does not repeat; with it the mark moves up. False if it is held back."""
        self.store.note(mark, route)
        sent = False
        try:
            sent = send(route)
        finally:
            if not sent:
                self.store.take_back()
        if sent:
            self.marks.advance(mark, client)
        return sent

    def publish_own(self, message: Message, now: float) -> None:
        """Publish and retain what the broker says of itself. Nobody waits for it, and nobody has sent it.

        The limits of topics are for clients, and so is the cache of routes.
        """
        self.retained.put(message, now, own=True)
        route = self.router.own_route(message.topic, SYNTAXES[message.syntax])
        publish(route, self.ledger, None, message, own=True)

    def check_reply(self, topic: bytes, syntax: str) -> None:
        """Raises InvalidTopic if a reply topic is none."""
        words_of(topic, syntax, self.limits)

    def _sweep_on(self, now: float) -> None:
        if self.sessions.sweep(now):
            self.turns.later(partial(self._sweep_on, now))
        self.finish()

    def sweep(self, now: float) -> None:
        """Now and then: let publishers go on that were held for long enough, end what is over."""
        try:
            self.flow.sweep(now)
            self.shares.sweep()
            if self.standstills.just_over(now):
                return
            if self.sessions.sweep(now):
                self.turns.later(partial(self._sweep_on, now))
            self.retained.sweep(now, self.turns.over)
            if self.system_topics is not None:
                self.system_topics.sweep(now)
        finally:
            self.finish()  # wills and $SYS may have been somebody's last message, or one too many
