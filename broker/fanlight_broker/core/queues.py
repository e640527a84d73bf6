"""Queues: of sessions and queue groups as the limits want them, and named queues by their names.

    declare --> a named queue: its filters are in the router from now on, whether or not anybody consumes
    consume --> a consumer takes from it, until it leaves or its connection ends
    sweep   --> what is late, delayed or expired; queues that nobody has used for long enough end
    bury    --> what was discarded is published to the dead-letter topic of its queue

What waits and what is in flight is in the compiled `wire.NamedQueue`. Messages do not pass here.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Final

import structlog

from fanlight_broker.core.dead_letters import dead_letter
from fanlight_broker.core.errors import LimitExceeded, NoSuchQueue, QueueInUse, StoreUnavailable
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.ports import Journal
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Direct, Publishing, Refused
from fanlight_broker.core.session_queues import new_queue
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.turns import Clock, Turns
from fanlight_broker.core.work_queue import Overflow, QueueConsumer, QueueOptions, WorkQueue
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.subscriptions import Subscriptions

log: Final = structlog.stdlib.get_logger("queues")

NAME_BYTES_MAX: Final = 255
BURIED_PER_TURN: Final = 64  # dead letters between two readings of the clock, about 20 µs each
PROTOCOL: Final = "queue"  # of the subscriber that has a queue's filters, in views


class Queues:
    """wall: seconds since 1970, for dead letters; without one, the time of the broker's clock."""

    def __init__(
        self, limits: Limits, subscribing: Subscribing, publishing: Publishing, turns: Turns,
        wall: Clock | None = None,
    ) -> None:
        self.limits = limits
        self.journal: Journal = NO_JOURNAL
        self.dead = self.dead_refused = self.expired = 0
        self._subscribing = subscribing
        self._publishing = publishing
        self._shares = subscribing.shares
        self._router = subscribing.router
        self._ledger: Ledger = publishing.ledger
        self._turns = turns
        self._wall = wall
        self._by_name: dict[str, WorkQueue] = {}
        self._ended = {  # what queues had done that have ended
            "queue_messages": 0, "queue_deliveries": 0, "queue_redeliveries": 0, "queue_acknowledged": 0,
            "queue_discarded": 0,
        }
        self._round: list[WorkQueue] = []  # still to be looked at in this sweep

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[WorkQueue]:
        return iter(self._by_name.values())

    def counted(self) -> dict[str, int]:
        """What all queues have done so far, those that have ended included."""
        total = dict(self._ended)
        for queue in self:
            add(total, queue.inside)
        return total

    def find(self, name: str) -> WorkQueue:
        """Raises NoSuchQueue."""
        found = self._by_name.get(name)
        if found is None:
            raise NoSuchQueue(name)
        return found

    # -- a queue's life ---------------------------------------------------------------------------------------------

    def declare(
        self, client: Client, name: str, filters: tuple[tuple[bytes, str], ...], options: QueueOptions, now: float
    ) -> WorkQueue:
        """The queue of this name: a new one, or the one that exists, if it agrees.

        filters  texts and syntaxes; for a queue that exists, some of its own

        Raises QueueInUse, InvalidFilter, NotPermitted, LimitExceeded, StoreUnavailable.
        """
        found = self._by_name.get(name)
        if found is not None:
            self._check_agreement(found, filters, options)
            self._check_reader(client.subscriber, found)
            return found
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX:
            raise LimitExceeded("the name of a queue has 1 byte at least", "queue_name_bytes", NAME_BYTES_MAX)
        if options.durable and self.journal.position.refusing:
            raise StoreUnavailable
        if len(self) >= self.limits.queues_max:
            raise LimitExceeded("too many queues", "queues_max", self.limits.queues_max)
        share = client.subscriber.share
        self._shares.check(share, SharedPot.QUEUES)
        for text, syntax in filters:
            self._subscribing.check(client.subscriber, text, syntax, name)
        return self.begin(client.subscriber, name, filters, options, now)

    def begin(
        self, creator: Subscriber, name: str, filters: tuple[tuple[bytes, str], ...], options: QueueOptions, now: float
    ) -> WorkQueue:
        """Create a queue, without a check. Messages may be restored into `inside.queue` at once.

        creator  whose user, share and format it has; after a restart, one that was never connected
        """
        subscriber = Subscriber(
            name, creator.user, PROTOCOL, creator.format, creator.share, creator.inbox, creator.verified,
            creator.label, Subscriptions(by_filter=True),
        )
        queue = new_queue(self._ledger, self.limits, creator.share.account)
        inside = NamedQueue(name, queue, subscriber)
        found = WorkQueue(name, filters, options, subscriber, inside, unused_since=now)
        self._apply(found)
        self._by_name[name] = found
        self._shares.charge(creator.share, SharedPot.QUEUES)
        for number, (text, syntax) in enumerate(filters, 1):
            binding = Subscription(
                inside.origin, self._router.variants.of(creator.format), number, text, SYNTAXES.index(syntax)
            )
            self._subscribing.bind(subscriber, binding, inside)
        if options.durable:
            queue.journal = self.journal.queue_begun(found)
        log.info("queue_begun", queue=name, durable=options.durable)
        return found

    def _apply(self, queue: WorkQueue) -> None:
        """Put options into force."""
        inside, options, limits = queue.inside, queue.options, self.limits
        inside.queue.messages_max = min(options.messages_max or limits.work_queue_messages_max,
                                        limits.work_queue_messages_max)
        inside.queue.bytes_max = min(options.bytes_max or limits.work_queue_bytes_max, limits.work_queue_bytes_max)
        inside.queue.drop_oldest = options.overflow in (Overflow.DROP_OLDEST, Overflow.DEAD_LETTER)
        inside.queue.ttl = options.message_seconds if options.message_seconds is not None else inf
        inside.deliveries_max = options.deliveries_max or 0
        inside.single = options.single_active
        inside.refuse_publishers(options.overflow in (None, Overflow.REFUSE_PUBLISHER))
        inside.buries = options.dead_letter is not None

    @staticmethod
    def _check_agreement(
        queue: WorkQueue, filters: tuple[tuple[bytes, str], ...], options: QueueOptions
    ) -> None:
        """Raises QueueInUse if a queue was made with something else than what is asked for."""
        for each in filters:
            if each not in queue.filters:
                raise QueueInUse(queue.name, "filter")
        different = options.first_difference(queue.options)
        if different is not None:
            raise QueueInUse(queue.name, different)

    def _check_reader(self, subscriber: Subscriber, queue: WorkQueue) -> None:
        """Raises NotPermitted unless a subscriber may subscribe to all filters of the queue."""
        for text, syntax in queue.filters:
            self._subscribing.check(subscriber, text, syntax)

    def end(self, queue: WorkQueue, now: float) -> int:
        """End a queue; its consumers are notified. Returns how many messages are lost."""
        del self._by_name[queue.name]
        consumers, queue.consumers = queue.consumers, {}
        lost = queue.inside.end(now)
        add(self._ended, queue.inside)
        for consumer in consumers.values():
            self._refund(consumer)
            consumer.ended("consumer_deleted")
        while (binding := queue.subscriber.subscriptions.any_left()) is not None:
            self._subscribing.unbind(binding)
        self._shares.refund(queue.subscriber.share, SharedPot.QUEUES)
        if queue.options.durable:
            self.journal.queue_ended(queue)
        log.info("queue_ended", queue=queue.name, lost=lost)
        return lost

    # -- consumers --------------------------------------------------------------------------------------------------

    def consume(
        self, client: Client, number: int, queue: WorkQueue, variant: Variant, prefetch: int, ack_wait: float,
        ended: Callable[[str], None],
    ) -> QueueConsumer:
        """A client takes from a queue. It gets what waits after `queue.inside.begin`.

        ended  called with a reason when the broker ends it

        Raises LimitExceeded.
        """
        share = client.subscriber.share
        self._shares.check(share, SharedPot.SUBSCRIPTIONS)
        self._shares.charge(share, SharedPot.SUBSCRIPTIONS)
        window = queue.inside.add(
            client.outbox, variant, number, min(prefetch, self.limits.prefetch_max), ack_wait, client.subscriber,
            share.sessions,
        )
        consumer = QueueConsumer(queue, client, window, ended)
        queue.consumers[window] = consumer
        queue.unused_since = None
        return consumer

    def leave(self, consumer: QueueConsumer, now: float) -> None:
        """A consumer has gone. What it has not acknowledged is for the others; does nothing if its queue has ended."""
        queue = consumer.queue
        if queue.consumers.pop(consumer.window, None) is None:
            return
        self._refund(consumer)
        queue.inside.remove(consumer.window, now)
        if not queue.consumers:
            queue.unused_since = now
            if queue.unused_seconds == 0:
                self.end(queue, now)

    def _refund(self, consumer: QueueConsumer) -> None:
        self._shares.refund(consumer.client.subscriber.share, SharedPot.SUBSCRIPTIONS)

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> bool:
        """Do what is due. True if the turn ended before everything was done: call it again soon."""
        if not self._round:
            self._round = list(self._by_name.values())
        while self._round:
            queue = self._round.pop()
            if self._by_name.get(queue.name) is not queue:
                continue
            queue.inside.sweep(now)
            if queue.unused_since is not None and now - queue.unused_since >= queue.unused_seconds:
                self.expired += 1
                self.end(queue, now)
            if self._turns.over():
                break
        return bool(self._round)

    # -- dead letters -----------------------------------------------------------------------------------------------

    def bury(self, now: float) -> None:
        """Publish what was discarded to the dead-letter topics, as much as the turn allows."""
        for inside in self._ledger.pop_graves():
            queue = self._by_name.get(inside.name)
            if queue is not None and queue.inside is inside:
                self._bury_some(queue, now)
        if self._ledger.graves:
            self._turns.later(partial(self.bury, now))

    def _bury_some(self, queue: WorkQueue, now: float) -> None:
        topic = queue.options.dead_letter
        assert topic is not None  # else nothing is kept to be buried
        for message, why, attempts, _ in queue.inside.exhume(BURIED_PER_TURN):
            wall = self._wall() if self._wall is not None else now
            letter = dead_letter(message, topic, queue.name, why, attempts, wall)
            if letter is None:
                self.dead_refused += 1
                continue
            outcome = self._publishing.accept(
                Publication(letter, queue.subscriber), Direct(self._ledger, letter, queue.inside.origin.stand_in()), now
            )
            queue.inside.origin.detach()
            self.dead += 1
            if isinstance(outcome, Refused):
                self.dead_refused += 1
                log.warning("dead_letter_refused", queue=queue.name, text=outcome.error.text)


def add(counts: dict[str, int], inside: NamedQueue) -> None:
    counts["queue_messages"] += inside.published
    counts["queue_deliveries"] += inside.deliveries
    counts["queue_redeliveries"] += inside.redeliveries
    counts["queue_acknowledged"] += inside.acknowledgements
    counts["queue_discarded"] += inside.discards
