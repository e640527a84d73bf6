"""Queues: of sessions and queue groups as the limits want them, and named queues by their names.

    declare --> a named queue: its filters are in the router from now on, whether or not anybody consumes
    consume --> a consumer takes from it, until it leaves or its connection ends
    sweep   --> what is late, delayed or expired; queues that nobody has used for long enough end
    bury    --> what was discarded is published to the dead-letter topic of its queue

What waits and what is in flight is in the compiled `wire.NamedQueue`. Messages do not pass here.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from fanlight_broker import event_log
from fanlight_broker.core.burial import Burial, LetterMaker
from fanlight_broker.core.draining import Draining
from fanlight_broker.core.errors import (
    FanlightError,
    LimitExceeded,
    MessagesGone,
    NoSuchQueue,
    StoreUnavailable,
    Unsupported,
)
from fanlight_broker.core.filling import ArchiveFilling, Beginning, RetainedFilling
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Access, Action
from fanlight_broker.core.ports import Journal
from fanlight_broker.core.publishing import Publishing
from fanlight_broker.core.queue_bounds import adjust, put_in_force, swept
from fanlight_broker.core.queue_filters import QueueFilters
from fanlight_broker.core.replay import ReplaySource
from fanlight_broker.core.retained import Retained
from fanlight_broker.core.session_queues import new_queue
from fanlight_broker.core.share import SUBSCRIPTIONS
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.streams import StreamRecording, check_replayer
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.topics import parse_filter
from fanlight_broker.core.turns import Clock, Turns
from fanlight_broker.core.work_queue import (
    QueueConsumer,
    QueueOptions,
    WorkQueue,
    made_by,
    within_quota,
)
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.packed_row import PackedRow
from fanlight_broker.wire.receipts import Receiver
from fanlight_broker.wire.subscriptions import Subscriptions

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

log: Final = event_log.get("queues")

NAME_BYTES_MAX: Final = 255
SWEPT_PER_LOOK: Final = 512  # messages of a queue that are brought in or dropped between two of the clock
PROTOCOL: Final = "queue"  # of the subscriber that has a queue's filters, in views


class Queues:
    """wall: seconds since 1970, for dead letters; without one, the time of the broker's clock."""

    def __init__(
        self, limits: Limits, subscribing: Subscribing, publishing: Publishing, turns: Turns,
        retained: Retained, wall: Clock | None = None,
    ) -> None:
        self.limits = limits
        self.journal: Journal = NO_JOURNAL
        self.expired = 0
        self.burial = Burial(publishing, wall, self.get)
        self._subscribing = subscribing
        self._publishing = publishing
        self._shares = subscribing.shares
        self._ledger: Ledger = publishing.ledger
        self.recording = StreamRecording(self._ledger)
        self._turns = turns
        self._draining = Draining(turns)
        self._filters = QueueFilters(subscribing)
        self._retained = retained
        self.source: ReplaySource | None = None  # of archived messages, by offset
        self.watchers: list[Callable[[WorkQueue], None]] = []  # are called when a queue has ended, for whatever reason
        self._by_name: dict[str, WorkQueue] = {}
        self._ended = {  # what queues had done that have ended
            "queue_messages": 0, "queue_deliveries": 0, "queue_redeliveries": 0, "queue_acknowledged": 0,
            "queue_discarded": 0,
        }
        self._closed: set[NamedQueue] = set()  # ended, and not drained yet
        self._round: list[WorkQueue] = []  # still to be looked at in this sweep

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[WorkQueue]:
        return iter(self._by_name.values())

    @property
    def draining(self) -> int:
        """Queues that have ended, and whose messages are still to be dropped."""
        return len(self._closed)

    def counted(self) -> dict[str, int]:
        """What all queues have done so far, those that have ended included."""
        total = dict(self._ended)
        for inside in [*(queue.inside for queue in self), *self._closed]:
            add(total, inside)
        return total

    def get(self, name: str) -> WorkQueue | None:
        return self._by_name.get(name)

    def find(self, name: str) -> WorkQueue:
        """Raises NoSuchQueue."""
        found = self._by_name.get(name)
        if found is None:
            raise NoSuchQueue(name)
        return found

    # -- a queue's life ---------------------------------------------------------------------------------------------

    def declare(
        self, client: Client, name: str, filters: tuple[tuple[bytes, str], ...], options: QueueOptions, now: float,
        beginning: Beginning | None = None, condition: "Condition | None" = None,
    ) -> WorkQueue:
        """The queue of this name: a new one, or the one that exists, if it agrees.

        filters    texts and syntaxes; for a queue that exists, some of its own
        beginning  what a new queue, with one filter, begins with: see `known`; None: what is published from now on
        condition  on the content of what comes into it; as its filters, the same each time

        Raises QueueInUse, InvalidFilter, NotPermitted, LimitExceeded, StoreUnavailable, Unsupported.
        """
        found = self._by_name.get(name)
        if found is not None:
            found.check_agreement(filters, options, condition)
            self.check_reader(client.subscriber, found)
            return found
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX:
            raise LimitExceeded("the name of a queue has 1 byte at least", "queue_name_bytes", NAME_BYTES_MAX)
        if options.durable and self.journal.position.refusing:
            raise StoreUnavailable
        if self._shares.total(SharedPot.QUEUES) >= self.limits.queues_max:
            raise LimitExceeded("too many queues", "queues_max", self.limits.queues_max)
        share = client.subscriber.share
        self._shares.check(share, SharedPot.QUEUES)
        options = within_quota(options, client.quota)
        for text, syntax in filters:
            parse_filter(text, syntax, self.limits)  # all of them, before the queue is there
            self._subscribing.check(client.subscriber, text, syntax, name, condition)
            self._check_permissions(client.subscriber, text, syntax, options, beginning)
        if condition is not None:  # each filter has the selector
            self._subscribing.check_bytes(
                client.subscriber, condition.nbytes * len(filters), condition.nbytes * len(filters)
            )
        if beginning is not None and not beginning.retained and self.source is None:
            raise Unsupported(
                "this broker keeps no archive, so a queue cannot begin with archived messages", option="deliver"
            )
        log.info("queue_begun", queue=name, durable=options.durable)
        found = self.begin(
            client.subscriber, name, filters, options, now, filled=beginning is not None, condition=condition
        )
        if beginning is not None:
            self._fill(found, beginning)
        return found

    def _check_permissions(
        self, creator: Subscriber, text: bytes, syntax: str, options: QueueOptions, beginning: Beginning | None
    ) -> None:
        """Raises NotPermitted. All of a filter must be allowed: who consumes gets whatever is in the queue."""
        enforcement = self._subscribing.enforcement
        enforcement.check_filter(creator, Action.QUEUE, text, syntax, whole=True)
        if options.dead_letter is not None:
            enforcement.check(creator, Action.PUBLISH, *options.dead_letter)
        if beginning is not None and not beginning.retained:
            enforcement.check_filter(creator, Action.REPLAY, text, syntax, whole=True)

    def begin(
        self, creator: Subscriber, name: str, filters: tuple[tuple[bytes, str], ...], options: QueueOptions, now: float,
        *, filled: bool = False, condition: "Condition | None" = None,
    ) -> WorkQueue:
        """Create a queue, without a check. Messages may be restored into `inside.queue` at once.

        creator  whose user, share and format it has; after a restart, one that was never connected
        filled   its filters are not in force, nor is it stored: it is filled first

        Raises LimitExceeded, and has changed nothing in that case.
        """
        subscriber = Subscriber(
            name, creator.user, PROTOCOL, creator.format, creator.share, creator.inbox, creator.verified,
            creator.label, Subscriptions(by_filter=True), origin=made_by(creator),
        )
        queue = new_queue(self._ledger, self.limits, creator.share.account)
        inside = NamedQueue(name, queue, subscriber)
        found = WorkQueue(name, filters, options, subscriber, inside, unused_since=now, condition=condition)
        self.recording.begin(found)
        put_in_force(found, self.limits)
        self._by_name[name] = found
        self._shares.charge(creator.share, SharedPot.QUEUES)
        if not filled:
            try:
                self._bind(found)
            except FanlightError:  # the router has no room for its selector
                self.end(found)
                raise
            self._store(found)
        return found

    def _bind(self, queue: WorkQueue) -> None:
        """Put its filters in force. Raises InvalidFilter."""
        self._filters.enforce(queue)

    def bind(self, client: Client | None, queue: WorkQueue, text: bytes, syntax: str) -> None:
        """A queue that exists, and is not being filled, gets one filter more; nothing if it has it.

        client: None, an operator, is asked for no permission. Raises InvalidFilter, NotPermitted, LimitExceeded.
        """
        if self._filters.add(client.subscriber if client is not None else None, queue, text, syntax):
            self._changed(queue)

    def unbind(self, queue: WorkQueue, text: bytes, syntax: str) -> None:
        """It has a filter no more; nothing if it has not."""
        if self._filters.remove(queue, text, syntax):
            self._changed(queue)

    def _changed(self, queue: WorkQueue) -> None:
        if queue.options.durable and queue.filling is None:
            self.journal.queue_changed(queue)

    def _store(self, queue: WorkQueue) -> None:
        if queue.options.durable:
            queue.inside.queue.journal = self.journal.queue_begun(queue)
        if queue.inside.queue.journal is None:
            queue.inside.queue.backlog = PackedRow(
                self._ledger, queue.inside.queue.account, pages=self.journal.pages,
                memory_most=self.limits.queue_memory_bytes_max,
            )

    # -- what a new queue begins with -------------------------------------------------------------------------------

    def known(self, queue: WorkQueue, then: Callable[[FanlightError | None], None]) -> None:
        """Call `then` when it is known that the queue can be filled with what it is to begin with, or with the error:
        the queue ends then. At once, unless it is new.
        """
        if queue.waiting is None:
            then(None)
        else:
            queue.waiting.append(then)

    def _fill(self, queue: WorkQueue, wanted: Beginning) -> None:
        """Raises LimitExceeded, InvalidFilter; the queue is no more then."""
        queue.waiting = []
        bind, then = partial(self._bind, queue), partial(self._filled, queue)
        try:
            if wanted.retained:
                queue.filling = RetainedFilling(queue, self._retained, self._turns, self._ledger, bind, then)
            else:
                assert self.source is not None
                queue.filling = ArchiveFilling(
                    queue, self.source, wanted, self._ledger, bind, partial(self._fill_begun, queue), then
                )
            queue.filling.start()
            if queue.failure is not None:
                raise queue.failure
        except FanlightError:
            if queue.failure is None:
                self.end(queue)
            raise

    def _fill_begun(self, queue: WorkQueue, error: FanlightError | None) -> None:
        waiting, queue.waiting, queue.failure = queue.waiting or [], None, error
        for then in waiting:
            then(error)
        if error is not None and self._by_name.get(queue.name) is queue:
            self.end(queue)

    def _filled(self, queue: WorkQueue, error: FanlightError | None) -> None:
        """It has caught up with what is published; or it cannot, and ends."""
        if error is not None and queue.waiting is None:
            log.warning("queue_not_filled", queue=queue.name, text=error.text)
            self.end(queue, "messages_gone" if isinstance(error, MessagesGone) else "replay_failed")
            return
        if error is None:
            queue.filling = None
            queue.inside.let_in(self._ledger.now)
            self._store(queue)
            if queue.inside.queue.journal is not None:
                queue.inside.report()
        if queue.waiting is not None:
            self._fill_begun(queue, error)

    def adjust(self, queue: WorkQueue, options: QueueOptions) -> None:
        """Other options are in force from now on, of those that a policy may change; what is too much leaves soon."""
        if options != queue.options:
            adjust(queue, options, self.limits, self._ledger.now)
            if options.durable and queue.filling is None:
                self.journal.queue_adjusted(queue)

    def check_reader(self, subscriber: Subscriber, queue: WorkQueue) -> None:
        """Raises NotPermitted unless a subscriber may subscribe to all filters of the queue."""
        for text, syntax in queue.subjects:
            self._subscribing.check_permission(subscriber, text, syntax, whole=True)

    def check_manager(self, subscriber: Subscriber, queue: WorkQueue) -> None:
        """Raises NotPermitted unless it may do so, and may manage queues with these filters."""
        self.check_reader(subscriber, queue)
        for text, syntax in queue.subjects:
            self._subscribing.enforcement.check_filter(subscriber, Action.QUEUE, text, syntax, whole=True)

    def may_manage(self, subscriber: Subscriber, queue: WorkQueue) -> bool:
        """The same, to choose what is listed."""
        ask = self._subscribing.enforcement.decide_filter
        return all(
            self._subscribing.may_read_all(subscriber, text, syntax)
            and ask(subscriber, Action.QUEUE, text, syntax).access is Access.ALL
            for text, syntax in queue.subjects
        )

    def recheck(self, consumer: QueueConsumer, now: float) -> None:
        """Permissions have changed: end a consumer that may not read its queue any more."""
        queue, subscriber = consumer.queue, consumer.client.subscriber
        if queue.reader is subscriber:
            return
        try:
            for text, syntax in queue.subjects:
                self._subscribing.check_permission(subscriber, text, syntax, whole=True)
            check_replayer(self._subscribing.enforcement, subscriber, queue)
        except FanlightError:
            self.leave(consumer, now)
            consumer.ended("not_permitted")

    def end(self, queue: WorkQueue, reason: str = "consumer_deleted") -> int:
        """End a queue; its consumers are notified with the reason. Returns how many messages are lost.

        They may be dropped later: the name is free at once.
        """
        del self._by_name[queue.name]
        if queue.filling is not None:
            queue.filling.cancel()
        consumers, queue.consumers = queue.consumers, {}
        lost = queue.inside.close()
        self._closed.add(queue.inside)
        for consumer in consumers.values():
            self._refund(consumer)
            consumer.ended(reason)
        while (binding := queue.subscriber.subscriptions.any_left()) is not None:
            self._subscribing.unbind(binding)
        self._shares.refund(queue.subscriber.share, SharedPot.QUEUES)
        self._subscribing.enforcement.leave(queue.subscriber)
        if queue.options.durable and queue.filling is None:
            self.journal.queue_ended(queue)
        self._draining.drain(queue.inside, partial(self._drained, queue))
        log.info("queue_ended", queue=queue.name, lost=lost)
        for watcher in self.watchers:
            watcher(queue)
        return lost

    def _drained(self, queue: WorkQueue) -> None:
        self._closed.discard(queue.inside)
        add(self._ended, queue.inside)
        self._shares.dropped(queue.subscriber.share)
        if queue.options.durable and queue.filling is None:
            self.journal.queue_drained(queue)

    # -- consumers --------------------------------------------------------------------------------------------------

    def consume(
        self, client: Client, number: int, queue: WorkQueue, variant: Variant, prefetch: int, ack_wait: float,
        ended: Callable[[str], None], activated: Callable[[], None] | None = None, *, paused: bool = False,
        rank: int = 0, streams: bool = False,
    ) -> QueueConsumer:
        """A client takes from a queue. It gets what waits after `start`; those with a higher rank come first.

        streams    it reads streams by itself: a StreamReading
        ended      called with a reason when the broker ends it
        activated  called when it becomes the active consumer, before it gets anything

        Raises LimitExceeded, Unsupported.
        """
        if queue.options.stream is not None and not streams:
            raise Unsupported(f"the queue {queue.name!r} is a stream, which AMQP clients consume", option="queue")
        share = client.subscriber.share
        self._shares.check(share, SUBSCRIPTIONS)
        self._shares.charge(share, SUBSCRIPTIONS)
        window = queue.inside.add(
            client.outbox, variant, number, min(prefetch, self.limits.prefetch_max), ack_wait, client.subscriber,
            share.sessions, rank=rank,
        )
        consumer = QueueConsumer(queue, client, window, ended, activated, paused)
        queue.consumers[window] = consumer
        self._set_unused(queue, None)
        return consumer

    def start(self, consumer: QueueConsumer, now: float) -> None:
        """Its client knows of it, or of a `change`: it gets what it has room for, unless it is paused."""
        consumer.started = True
        if not consumer.paused:
            consumer.queue.inside.begin(consumer.window, now)

    def change(
        self, consumer: QueueConsumer, prefetch: int | None = None, ack_wait: float | None = None,
        paused: bool | None = None,
    ) -> None:
        """What is not None is another from now on. `start` delivers what there is room for then.

        A consumer that is paused keeps its place: while it is the active one, nobody gets anything.
        """
        inside, window = consumer.queue.inside, consumer.window
        if prefetch is not None or ack_wait is not None:
            inside.change(
                window, min(prefetch or window.inflight_max, self.limits.prefetch_max),
                window.ack_wait if ack_wait is None else ack_wait,
            )
        if paused is not None:
            consumer.paused = paused
        if consumer.paused:
            inside.pause(window)

    def leave(self, consumer: QueueConsumer, now: float) -> None:
        """A consumer has gone. What it has not acknowledged is for the others; does nothing if its queue has ended."""
        queue = consumer.queue
        if queue.consumers.pop(consumer.window, None) is None:
            return
        self._refund(consumer)
        windows = queue.inside.windows
        if queue.inside.single and len(windows) > 1 and windows[0] is consumer.window:
            successor = queue.consumers.get(windows[1])
            if successor is not None and successor.activated is not None:
                successor.activated()
        queue.inside.remove(consumer.window, now)
        if not queue.consumers:
            self._set_unused(queue, now)
            if queue.unused_seconds == 0:
                self.end(queue)

    def _set_unused(self, queue: WorkQueue, since: float | None) -> None:
        changed = (since is None) != (queue.unused_since is None)
        queue.unused_since = since
        if changed and queue.options.unused_seconds is not None:
            self._changed(queue)

    def confirm(self, then: Callable[[], None], receiver: Receiver | None = None) -> None:
        """Call `then` when what consumers of durable queues have acknowledged until now is stored."""
        self.journal.settle()
        self._publishing.acknowledgements.commit(then, receiver, recorded=False)

    def _refund(self, consumer: QueueConsumer) -> None:
        self._shares.refund(consumer.share, SUBSCRIPTIONS)

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> bool:
        """Do what is due. True if the turn ended before everything was done: call it again soon."""
        if not self._round:
            self._round = list(self._by_name.values())
        while self._round:
            queue = self._round.pop()
            if self._by_name.get(queue.name) is not queue:
                continue
            unfinished = swept(queue, now, SWEPT_PER_LOOK)
            if queue.unused_since is not None and now - queue.unused_since >= queue.unused_seconds:
                self.expired += 1
                self.end(queue)
            elif unfinished:
                self._round.append(queue)
            if self._turns.over():
                break
        return bool(self._round)

    # -- dead letters -----------------------------------------------------------------------------------------------

    def bury(self, inside: NamedQueue, now: float) -> None:
        """Publish what a queue has discarded to its dead-letter topic, as much as the turn allows; fill it."""
        queue = self._by_name.get(inside.name)
        if queue is not None and queue.inside is inside:
            if queue.filling is not None:
                queue.filling.drained()
            if inside.buried:
                self.burial.bury_some(queue, now)

    def bury_by(self, owner: str, make: LetterMaker) -> None:
        """From now on an owner makes the letters of the queues whose options name it, also of what waits for that."""
        self.burial.owners[owner] = make
        self._ledger.graves.extend(queue.inside for queue in self if queue.inside.buried)


def add(counts: dict[str, int], inside: NamedQueue) -> None:
    counts["queue_messages"] += inside.published
    counts["queue_deliveries"] += inside.deliveries
    counts["queue_redeliveries"] += inside.redeliveries
    counts["queue_acknowledged"] += inside.acknowledgements
    counts["queue_discarded"] += inside.discards
