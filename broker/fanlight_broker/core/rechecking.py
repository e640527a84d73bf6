"""Rechecking: what was allowed by other permissions is asked again, some in a turn.

    use_permissions --> each client: may it be connected? each subscription, consumer: in force, partly, or ended
    renewed         --> the same for one subscriber, which is of another class now

Whatever is asked for meanwhile is decided by the permissions in force: the badges of those before are revoked. What was
in force, and was not looked at yet, goes on by the permissions that allowed it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.clients import Clients
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import FanlightError, NotPermitted
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.queues import Queues
from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.turns import Turns

log: Final = event_log.get("permissions")

REASON: Final = "not_permitted"


class Rechecking:
    """finish  called when something was done: the end of a turn"""

    def __init__(
        self, enforcement: Enforcement, subscribing: Subscribing, clients: Clients, sessions: Sessions, queues: Queues,
        turns: Turns, finish: Callable[[], None], namespace: str = "",
    ) -> None:
        self.ended = 0  # subscriptions, consumers and connections
        self._round = 0
        self._enforcement = enforcement
        self._subscribing = subscribing
        self._clients = clients
        self._sessions = sessions
        self._queues = queues
        self._turns = turns
        self._finish = finish
        self._namespace = namespace
        enforcement.renewed = self.renewed

    def begin(self) -> None:
        """Ask again about everything."""
        self._round += 1
        self._go_on(self._everybody(), self._round)

    def renewed(self, subscriber: Subscriber) -> None:
        self._do_some(self._subscriptions(subscriber), self._round)  # its connection is in the middle of its own turn

    def _go_on(self, steps: Iterator[None], round: int) -> None:
        if round == self._round:  # else another one has begun, which asks about everything
            self._do_some(steps, round)
            self._finish()

    def _do_some(self, steps: Iterator[None], round: int) -> None:
        for _ in steps:
            if self._turns.over():
                self._turns.later(partial(self._go_on, steps, round))
                break

    def _everybody(self) -> Iterator[None]:
        """A step for each thing that is asked about. There may be a million sessions: no list of them is made."""
        clients, queues = list(self._clients), list(self._queues)
        for client in clients:
            if client.number in self._clients:
                yield from self._client(client)
        for session in self._sessions.in_pieces():
            if session is None or session.connected:
                yield
            else:
                yield from self._subscriptions(session.subscriber)
        for consumer in chain.from_iterable(list(queue.consumers.values()) for queue in queues):
            if consumer.window in consumer.queue.consumers:
                yield
                before = len(consumer.queue.consumers)
                self._queues.recheck(consumer, self._subscribing.router.ledger.now)
                self.ended += before - len(consumer.queue.consumers)

    def _client(self, client: Client) -> Iterator[None]:
        subscriber = client.subscriber
        yield
        client.connection.use_badge(self._enforcement.badge_of(subscriber))
        wrong = ""
        try:
            self._enforcement.check(subscriber, Action.CONNECT)
        except NotPermitted:
            wrong = "no permission to be connected any more"
        if not wrong and not self._enforcement.is_home(subscriber, self._namespace):
            wrong = "in another namespace by the permissions in force now; connect again"
        if wrong:
            self.ended += 1
            client.connection.say_goodbye(REASON, wrong)
        yield from client.connection.recheck()
        yield from self._subscriptions(subscriber)

    def _subscriptions(self, subscriber: Subscriber) -> Iterator[None]:
        yield
        for subscription in list(subscriber.subscriptions):
            if subscription in subscriber.subscriptions:
                yield
                self._subscription(subscriber, subscription)

    def _subscription(self, subscriber: Subscriber, subscription: Subscription) -> None:
        filter, syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
        if subscription not in subscriber.subscriptions:
            return  # it has ended since the last turn
        try:
            partly = self._subscribing.check_permission(
                subscriber, filter, syntax, whole=subscription.group is not None
            )
        except FanlightError as error:  # also of a filter that is beyond the limits of the rules
            self._end(subscriber, subscription, error)
        else:
            self._subscribing.router.set_partly(subscription, partly)

    def _end(self, subscriber: Subscriber, subscription: Subscription, error: FanlightError) -> None:
        self.ended += 1
        session, client = subscriber.session, subscriber.client
        if session is not None:
            self._sessions.revoke(session, subscription)
        else:
            self._subscribing.end(subscription)
        log.info("subscription_ended", client=subscriber.name, text=error.text)
        if client is not None:
            client.outbox.pin()
            client.connection.subscription_ended(subscription, REASON)
            client.outbox.evicted.pop(subscription.number, None)
