"""Subscribing: checks, begins and ends subscriptions, for all protocols.

    check --> begin --> in force --> end
      |         |                     ^--- UNSUBSCRIBE, its last message, or the end of its client (core/teardown.py)
      |         InvalidFilter
      InvalidFilter, NotPermitted, LimitExceeded

Limits are checked for the client that subscribes. What a subscription uses is charged to its share. An ordinary
subscription begins and ends in compiled code (wire/subscription_table.pxd): `enter`.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from fanlight_broker.core.draining import Draining
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import LimitExceeded, NoSuchSubscription, SubscriptionInUse
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Access, Action
from fanlight_broker.core.ports import Journal, SubscriptionTrail
from fanlight_broker.core.router import Router
from fanlight_broker.core.share import SUBSCRIPTIONS, SUBSCRIPTIONS_BYTES
from fanlight_broker.core.shares import Share, SharedPot, Shares
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscription import (
    SUBSCRIPTION_BYTES,
    Subscription,
    SubscriptionOptions,
    group_name_of,
    share_bytes,
    sizes_of,
)
from fanlight_broker.core.topics import INBOX_ROOT, SYNTAXES, check_filter, check_inbox, first_word, hashes_of, is_inbox
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.queue import Queue

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

SUBSCRIBE: Final = Action.SUBSCRIBE  # in Python 3.11 a class looks its members up slowly
AFTER_MAX: Final = 2**63 - 1  # messages after which a subscription ends: 292,000 years at a million a second


class Subscribing:
    def __init__(self, limits: Limits, router: Router, shares: Shares, enforcement: Enforcement, turns: Turns) -> None:
        self.router = router
        self.shares = shares
        self.limits = limits
        self.enforcement = enforcement
        self.journal: Journal = NO_JOURNAL
        self.trail: SubscriptionTrail | None = None
        self._draining = Draining(turns)
        self.begun = 0
        self.ended = 0

    @property
    def draining(self) -> int:
        """Queues of groups that have ended, and whose messages are still to be dropped."""
        return len(self._draining)

    @property
    def limits(self) -> Limits:
        """Those of subscriptions that begin from now on."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self.router.table.bound(
            limits.subscriptions_per_client_max, limits.subscriptions_max, limits.topic_bytes_max,
            limits.topic_words_max,
        )

    def subscribe(
        self, client: Client, number: int, text: bytes, syntax: str, options: SubscriptionOptions
    ) -> Subscription:
        """Put a subscription of a client without a session in force.

        Raises InvalidFilter, NotPermitted, SubscriptionInUse, LimitExceeded.
        """
        waiting = self.limits.pending_messages_max
        if options.waiting_max is not None:
            waiting = min(waiting, options.waiting_max)
        subscription = Subscription(
            client.outbox, self.router.variants.of(client.subscriber.format), number, text, SYNTAXES.index(syntax),
            options.no_echo, credit=options.credit, after=min(options.after, AFTER_MAX), waiting_max=waiting,
            condition=options.condition,
        )
        if options.group is not None or not self.enter(client.subscriber, subscription):
            if client.subscriber.subscriptions.numbered(number) is not None:
                raise SubscriptionInUse(number)
            subscription.partly = self.check(client.subscriber, text, syntax, options.group, options.condition)
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

    def enter(self, subscriber: Subscriber, subscription: Subscription) -> bool:
        """`check` and `begin` of an ordinary one that is in no group, in compiled code. False: they must be called."""
        if not (self._may_enter(subscriber, subscription) and self.router.table.enter(
            subscription, subscriber.subscriptions, subscriber.share.counts
        )):
            return False
        self.begun += 1
        self.subscribed(subscription)
        return True

    def subscribed(self, subscription: Subscription) -> None:
        """It is in force, or is with other options: who is told of that."""
        self.journal.subscribed(subscription)
        if self.trail is not None:
            self.trail.subscribed(subscription)

    def _may_enter(self, subscriber: Subscriber, subscription: Subscription) -> bool:
        """Do permissions allow all of it?"""
        enforcement = self.enforcement
        if enforcement.badge_of(subscriber) is None:
            return True
        syntax = SYNTAXES[subscription.syntax_number]
        return enforcement.decide_filter(subscriber, Action.SUBSCRIBE, subscription.filter, syntax).access is Access.ALL

    def check(
        self, subscriber: Subscriber, text: bytes, syntax: str, group: str | None = None,
        condition: "Condition | None" = None, *, whole: bool = False,
    ) -> bool:
        """May a subscriber have one more subscription, with this filter? True: partly, and it is to be marked so.

        group  of which all members can get each message: so all of the filter must be allowed, as with `whole`

        Raises InvalidFilter, NotPermitted, LimitExceeded.
        """
        limits = self._limits
        if len(subscriber.subscriptions) >= limits.subscriptions_per_client_max:
            raise LimitExceeded(
                "too many subscriptions on this connection", "subscriptions_per_client_max",
                limits.subscriptions_per_client_max,
            )
        if len(self.router) >= limits.subscriptions_max:
            raise LimitExceeded("too many subscriptions", "subscriptions_max", limits.subscriptions_max)
        if len(text) >= limits.topic_words_max - 1 or len(text) > limits.topic_bytes_max:  # else it cannot be too long
            check_filter(text, syntax, limits)
        partly = self.check_permission(subscriber, text, syntax, whole=whole or group is not None)
        self._check_hashes(subscriber, hashes_of(text, syntax))
        self.shares.check(subscriber.share, SUBSCRIPTIONS)
        more = SUBSCRIPTION_BYTES + len(text) + (condition.nbytes if condition is not None else 0)
        self.check_bytes(subscriber, more, share_bytes(text, group, condition))
        return partly

    def check_permission(self, subscriber: Subscriber, text: bytes, syntax: str, *, whole: bool = False) -> bool:
        """May it have what this filter matches? True: partly; `whole`: that is not enough. Raises NotPermitted.

        What is published to its own inbox is its own, without a rule that says so.
        """
        if text.startswith(INBOX_ROOT):
            check_inbox(text, syntax, subscriber.inbox)
            if first_word(text, syntax) == INBOX_ROOT:
                return False
        return self.enforcement.check_filter(subscriber, SUBSCRIBE, text, syntax, whole=whole)

    def may_read_all(self, subscriber: Subscriber, text: bytes, syntax: str) -> bool:
        """`check_permission` for all of a filter, to choose what is shown."""
        if first_word(text, syntax) == INBOX_ROOT:
            return is_inbox(text, syntax, subscriber.inbox)
        return self.enforcement.decide_filter(subscriber, Action.SUBSCRIBE, text, syntax).access is Access.ALL

    def check_bytes(self, subscriber: Subscriber, held: int, shared: int) -> None:
        """Is there room for subscriptions that take so much, and count so much in their share? Raises LimitExceeded."""
        pot = self.router.ledger.subscriptions
        if pot.used + held > pot.limit:  # its part of the index is known after it is inserted
            raise LimitExceeded(
                f"all subscriptions together hold {pot.used} bytes", "subscriptions_bytes_max",
                self.limits.subscriptions_bytes_max,
            )
        self.shares.check(subscriber.share, SUBSCRIPTIONS_BYTES, shared)

    def _check_hashes(self, subscriber: Subscriber, hashes: int) -> None:
        """Bound filters with several `#`: each new topic is searched for the words between two of them."""
        limits = self._limits
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
        self.router.add(subscription, group, subscriber.share.root.account)
        subscriber.subscriptions.add(subscription)
        self._count(subscription, group, 1)
        self.begun += 1
        self.subscribed(subscription)

    def restore(self, found: Sequence[tuple[Subscriber, Sequence[Subscription]]]) -> None:
        """`begin` those of sessions from before a restart that are in no group and have no condition.

        Nobody needs a report of them.
        """
        subscriptions = list(chain.from_iterable(own for _, own in found))
        by_share: dict[Share, list[Subscription]] = {}
        for subscriber, own in found:
            for each in own:
                subscriber.subscriptions.add(each)
            by_share.setdefault(subscriber.share, []).extend(own)
        sizes = {share: sizes_of(each) for share, each in by_share.items()}
        for each in self.router.restore(subscriptions, sum(held for held, _ in sizes.values())):
            owner: Subscriber = each.owner
            owner.searching += 1
            self.shares.charge(owner.share, SharedPot.SEARCHING_FILTERS)
        for share, (_, octets) in sizes.items():
            self.shares.charge(share, SUBSCRIPTIONS_BYTES, octets)
            self.shares.charge(share, SUBSCRIPTIONS, len(by_share[share]))
        self.begun += len(subscriptions)

    def end(self, subscription: Subscription) -> None:
        """Take it out of force; nothing more is delivered to it. What waited for its group may be dropped later, if it
        was the last that took from there.
        """
        subscription.cancel()
        if self.trail is not None:
            self.trail.unsubscribed(subscription)
        subscriber: Subscriber = subscription.owner
        ended = None
        if not self.leave(subscriber, subscription):
            group = group_name_of(subscription)
            subscriber.subscriptions.remove(subscription)  # which finds it by its group
            ended = self.router.remove(subscription)
            self._count(subscription, group, -1)
        self.ended += 1
        self.journal.unsubscribed(subscription)
        if ended is not None:
            # The last member's principal pays for it.
            self._draining.drain(ended, partial(self._drained, ended, subscription.owner.share))

    def _drained(self, queue: Queue, share: Share) -> None:
        self.shares.dropped(share)
        self.journal.group_drained(queue)

    def leave(self, subscriber: Subscriber, subscription: Subscription) -> bool:
        """The end of an ordinary one, in compiled code. False: it is not ordinary."""
        if not self.router.table.leave(subscription, subscriber.subscriptions, subscriber.share.counts):
            return False
        self.router.sweep_later()
        self.shares.dropped(subscriber.share)
        return True

    def bind(self, subscriber: Subscriber, subscription: Subscription, queue: NamedQueue) -> None:
        """Put a checked filter of a named queue in force. It ends by `unbind`. Raises InvalidFilter."""
        self.router.bind(subscription, queue)
        subscriber.subscriptions.add(subscription)
        self._count(subscription, queue.name, 1)
        self.begun += 1
        if self.trail is not None:
            self.trail.subscribed(subscription)

    def unbind(self, subscription: Subscription) -> None:
        """Take a filter of a named queue out of force."""
        if self.trail is not None:
            self.trail.unsubscribed(subscription)
        group = group_name_of(subscription)
        subscription.owner.subscriptions.remove(subscription)
        self.router.remove(subscription)
        self._count(subscription, group, -1)
        self.ended += 1

    def _count(self, subscription: Subscription, group: str | None, sign: int) -> None:
        """It is in force now (sign 1), or no longer (sign -1)."""
        subscriber: Subscriber = subscription.owner
        filter, count = subscription.filter, self.shares.charge if sign > 0 else self.shares.refund
        if hashes_of(filter, SYNTAXES[subscription.syntax_number]) > 1:
            subscriber.searching += sign
            count(subscriber.share, SharedPot.SEARCHING_FILTERS)
        count(subscriber.share, SUBSCRIPTIONS)
        nbytes = share_bytes(filter, group, subscription.condition)
        count(subscriber.share, SUBSCRIPTIONS_BYTES, nbytes)
