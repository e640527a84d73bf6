"""Subscribing: checks, begins and ends subscriptions, for all protocols.

    check --> begin --> in force --> end
      |         |                     ^--- UNSUBSCRIBE, its last message, or the end of its client (core/teardown.py)
      |         InvalidFilter
      InvalidFilter, NotPermitted, LimitExceeded

Limits are checked for the client that subscribes. What a subscription uses is charged to its share.
"""

from typing import Final

from fanlight_broker.core.errors import LimitExceeded, NoSuchSubscription, SubscriptionInUse
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.ports import Journal, Permissions
from fanlight_broker.core.router import Router
from fanlight_broker.core.shares import SharedPot, Shares
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscription import Subscription, SubscriptionOptions, group_name_of, nbytes_of, share_bytes
from fanlight_broker.core.topics import SYNTAXES, check_filter, check_inbox, hashes_of
from fanlight_broker.wire.named_queue import NamedQueue

AFTER_MAX: Final = 2**63 - 1  # messages after which a subscription ends: 292,000 years at a million a second


class Subscribing:
    def __init__(self, limits: Limits, router: Router, shares: Shares, permissions: Permissions) -> None:
        self.limits = limits
        self.router = router
        self.shares = shares
        self.permissions = permissions
        self.journal: Journal = NO_JOURNAL
        self.begun = 0
        self.ended = 0

    def subscribe(
        self, client: Client, number: int, text: bytes, syntax: str, options: SubscriptionOptions
    ) -> Subscription:
        """Put a subscription of a client without a session in force.

        Raises InvalidFilter, NotPermitted, SubscriptionInUse, LimitExceeded.
        """
        if client.subscriber.subscriptions.numbered(number) is not None:
            raise SubscriptionInUse(number)
        self.check(client.subscriber, text, syntax, options.group)
        waiting = self.limits.pending_messages_max
        if options.waiting_max is not None:
            waiting = min(waiting, options.waiting_max)
        subscription = Subscription(
            client.outbox, self.router.variants.of(client.subscriber.format), number, text, SYNTAXES.index(syntax),
            options.no_echo, credit=options.credit, after=min(options.after, AFTER_MAX), waiting_max=waiting,
        )
        self.begin(client.subscriber, subscription, options.group)
        return subscription

    def unsubscribe(self, client: Client, number: int) -> Subscription:
        """End a subscription at once; its counts are final then. Raises NoSuchSubscription."""
        subscription = self.find(client, number)
        self.end(subscription)
        if client.outbox.policy == "drop_oldest":
            client.outbox.pin()
        return subscription

    def find(self, client: Client, number: int) -> Subscription:
        """A client's subscription by its number. Raises NoSuchSubscription."""
        found = client.subscriber.subscriptions.numbered(number)
        if found is None:
            raise NoSuchSubscription(number)
        return found

    def check(self, subscriber: Subscriber, text: bytes, syntax: str, group: str | None = None) -> None:
        """May a subscriber have one more subscription, with this filter?

        Raises InvalidFilter, NotPermitted, LimitExceeded.
        """
        limits = self.limits
        if len(subscriber.subscriptions) >= limits.subscriptions_per_client_max:
            raise LimitExceeded(
                "too many subscriptions on this connection", "subscriptions_per_client_max",
                limits.subscriptions_per_client_max,
            )
        if len(self.router) >= limits.subscriptions_max:
            raise LimitExceeded("too many subscriptions", "subscriptions_max", limits.subscriptions_max)
        self.shares.check(subscriber.share, SharedPot.SUBSCRIPTIONS)
        check_filter(text, syntax, limits)
        check_inbox(text, syntax, subscriber.inbox)
        self.permissions.check_subscribe(subscriber, text, syntax)
        self._check_hashes(subscriber, hashes_of(text, syntax))
        pot = self.router.ledger.subscriptions
        if pot.used + nbytes_of(text) > pot.limit:  # its part of the index is known after it is inserted
            raise LimitExceeded(
                f"all subscriptions together hold {pot.used} bytes", "subscriptions_bytes_max",
                limits.subscriptions_bytes_max,
            )
        self.shares.check(subscriber.share, SharedPot.SUBSCRIPTIONS_BYTES, share_bytes(text, group))

    def _check_hashes(self, subscriber: Subscriber, hashes: int) -> None:
        """Bound filters with several `#`: each new topic is searched for the words between two of them."""
        limits = self.limits
        if hashes < 2:
            return
        if hashes > limits.filter_hashes_max:
            raise LimitExceeded(f"a filter with {hashes} times #", "filter_hashes_max", limits.filter_hashes_max)
        if subscriber.searching >= limits.searching_filters_per_client_max:
            raise LimitExceeded(
                "too many filters with several # on this connection", "searching_filters_per_client_max",
                limits.searching_filters_per_client_max,
            )
        if self.router.searching >= limits.searching_filters_max:
            raise LimitExceeded(
                "too many filters with several #", "searching_filters_max", limits.searching_filters_max
            )
        self.shares.check(subscriber.share, SharedPot.SEARCHING_FILTERS)

    def begin(self, subscriber: Subscriber, subscription: Subscription, group: str | None) -> None:
        """Put a checked subscription in force. Raises InvalidFilter, and has changed nothing in that case."""
        self.router.add(subscription, group, subscriber.share.account)
        subscriber.subscriptions.add(subscription)
        self._count(subscription, group, 1)
        self.begun += 1
        self.journal.subscribed(subscription)

    def end(self, subscription: Subscription) -> None:
        """Take it out of force; nothing more is delivered to it."""
        subscription.cancel()
        group = group_name_of(subscription)
        subscription.owner.subscriptions.remove(subscription)  # which finds it by its group
        self.router.remove(subscription)
        self._count(subscription, group, -1)
        self.ended += 1
        self.journal.unsubscribed(subscription)

    def bind(self, subscriber: Subscriber, subscription: Subscription, queue: NamedQueue) -> None:
        """Put a checked filter of a named queue in force. It ends by `unbind`. Raises InvalidFilter."""
        self.router.bind(subscription, queue)
        subscriber.subscriptions.add(subscription)
        self._count(subscription, queue.name, 1)
        self.begun += 1

    def unbind(self, subscription: Subscription) -> None:
        """Take a filter of a named queue out of force."""
        group = group_name_of(subscription)
        subscription.owner.subscriptions.remove(subscription)
        self.router.remove(subscription)
        self._count(subscription, group, -1)
        self.ended += 1

    def _count(self, subscription: Subscription, group: str | None, sign: int) -> None:
        """It is in force now (sign 1), or no longer (sign -1)."""
        subscriber: Subscriber = subscription.owner
        searching = hashes_of(subscription.filter, SYNTAXES[subscription.syntax_number]) > 1
        subscriber.searching += sign * searching
        enter = self.shares.charge if sign > 0 else self.shares.refund
        if searching:
            enter(subscriber.share, SharedPot.SEARCHING_FILTERS)
        enter(subscriber.share, SharedPot.SUBSCRIPTIONS_BYTES, share_bytes(subscription.filter, group))
        enter(subscriber.share, SharedPot.SUBSCRIPTIONS)
