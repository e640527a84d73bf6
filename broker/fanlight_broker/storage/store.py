"""The store: `ports.Journal` over a log. What is reported in a turn is one entry, sealed at its end.

    core, wire --each change--> Store, StoredQueueJournal --records--> log, the open entry
                                                                         | seal, at the end of the turn
                 acknowledgements <-- position.synced <-- progress <-- synced by the log's own thread

A session whose expiry is 0 is not kept, and has no journal. A queue group's queue is kept from the first member on
whose session is. recovery.py makes all of it anew from the log.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.declarations import Declaration
from fanlight_broker.core.delayed_message import DelayedEntry, DelayedMessage
from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.will import Will
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.storage import records
from fanlight_broker.storage.facts import (
    DeclarationFact,
    GroupFact,
    MarkFact,
    QueueFact,
    RoundFact,
    SessionFact,
    packed,
    pair,
    stored_origin,
)
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.message_records import message_record, retained_record
from fanlight_broker.storage.page_file import PageFile
from fanlight_broker.storage.pager import Pager
from fanlight_broker.storage.restating import (
    on_loan,
    restate_flights,
    restate_named,
    restate_on_loan,
    restate_waiting,
)
from fanlight_broker.storage.sealed_turns import SealedTurns
from fanlight_broker.storage.store_records import delayed_record, in_namespace, subscription_fact
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.storage.stored_queue import AT_ONCE, QueueRecords, StoredQueueJournal
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.queue import Queue

log: Final = event_log.get("store")

LATER_SECONDS: Final = 0.01  # what nobody waits for is sealed after this time, or with what somebody waits for

RESTART: Final = "a record could not be written, so what follows it would be wrong; restart the broker"

SLICE: Final = 256  # subscriptions that are restated between two looks at the turn's time

# Name, filter, syntax, text of the selector, namespace.
GroupKey = tuple[str, bytes, str, str | None, str | None]
SessionKey = tuple[str, str]  # namespace, name
QueueKey = tuple[str, str, str]  # "queue", namespace, name


class Store:
    """The journal of one broker.

    now, wall   the clock of every `now`, and wall-clock time, in seconds
    schedule    called with a number of seconds: call `seal` after them, at the end of this turn if it is 0
    changed     called when `position` has come further, is full or refusing, or is so no longer
    durability  what an acknowledgement waits for
    durabilities  what those of listeners wait for that differ from it

    Nothing that waits needs a sync if all of them are less than SYNCED: then the log is synced by `log.sync` alone.
    Whoever made the log calls `progress` when it has `progressed`.
    """

    def __init__(
        self, log: Log, ledger: Ledger, *, now: Callable[[], float], wall: Callable[[], float],
        schedule: Callable[[float], None], changed: Callable[[], None] = lambda: None,
        durability: StoreDurability = StoreDurability.SYNCED, durabilities: Collection[StoreDurability] = (),
    ) -> None:
        self.log = log
        self.position = JournalPosition()
        self.records = QueueRecords(log, self.position, ledger, self._begun)
        self.restoring = False  # recovery.py makes sessions that the log has: they are not reported again
        self.journals: dict[SessionKey | GroupKey | QueueKey, StoredQueueJournal] = {}  # of what has not begun again
        self._now, self._wall, self._schedule = now, wall, schedule
        self.syncing = log.syncing = StoreDurability.SYNCED in (durability, *durabilities)
        log.wakes_early = self.syncing and StoreDurability.WRITTEN in (durability, *durabilities)
        self._groups: dict[GroupKey, StoredQueueJournal] = {}
        self._group_queues: dict[GroupKey, Queue] = {}
        self._pager: Pager | None = None
        self.pages: PageFile | None = None
        self._turns = SealedTurns(
            log, self.records, self.position, durability.value, changed=changed, failed=self._report_failure
        )
        self._turns.syncing = self.syncing
        self.records.seal_now = self._turns.seal
        ledger.journal = self.records
        self._adjust_wall()

    @property
    def pager(self) -> Pager | None:
        """Reads what waits on the disk; None: what waits stays in memory."""
        return self._pager

    @pager.setter
    def pager(self, pager: Pager) -> None:
        self._pager = self._turns.pager = pager

    # -- the end of a turn --------------------------------------------------------------------------------------------

    def _begun(self, haste: int) -> None:
        self._adjust_wall()
        self._schedule(0.0 if haste == AT_ONCE else LATER_SECONDS)

    def _adjust_wall(self) -> None:
        self.records.wall = self._wall() - self._now()

    def seal(self) -> None:
        """The turn is over: hand what was reported to the log's writer."""
        self._turns.seal()

    def close(self) -> None:
        """Seal, once and for all: nothing that is reported afterwards is kept or promised. Then the log is closed."""
        self.seal()
        self.records.close()

    def progress(self) -> None:
        """The log is further, or has failed: say so in `position`."""
        self._turns.progress()

    def _report_failure(self) -> None:
        log.error("store_failed", exc_info=self.records.error, advice=RESTART)

    def readable(self, number: int) -> None:
        """Messages up to this number are synced."""
        if self.pager is not None:
            self.pager.synced_number = number

    @property
    def low(self) -> str | None:
        """Why nothing more is taken though it could be: there is little room (FreeSpace)."""
        return self._turns.low

    @low.setter
    def low(self, low: str | None) -> None:
        self._turns.low = low

    @property
    def trouble(self) -> str | None:
        """Why nothing that needs the store is accepted at present; None while it is.

        While no file can be made ahead, those that there are have room for acknowledgements, which make room.
        """
        return self.failure or self.low or self.log.short

    @property
    def crowded(self) -> bool:
        """Has the disk too little room? Files that are not needed any more are to be given back soon."""
        return self.low is not None or self.log.short is not None

    @property
    def failure(self) -> str | None:
        """Why nothing is synced at present; None while it is."""
        if self.records.error is not None:
            return f"{self.records.error!r}: {RESTART}"
        return self.log.trouble

    # -- sessions -----------------------------------------------------------------------------------------------------

    def session_begun(self, session: Session) -> QueueJournal | None:
        if self.restoring:
            journal = self.journals.pop((session.subscriber.namespace, session.name))
        elif session.expiry <= 0:
            return None
        else:
            journal = StoredQueueJournal(self.records)
            self._report(session, journal)
        if self.pager is not None:
            self.pager.attach(session.window.queue, journal, session)
        return journal

    def session_changed(self, session: Session) -> None:
        journal = journal_of(session)
        if journal is not None and not self.restoring and not session.ended:
            self._report(session, journal)

    def _report(self, session: Session, journal: StoredQueueJournal) -> None:
        if session.connected:
            journal.left = 0.0
        elif not journal.left:
            journal.left = self._wall()
        self.records.append(records.SESSION, packed(self._fact(session, journal)))

    def _fact(self, session: Session, journal: StoredQueueJournal) -> SessionFact:
        subscriber = session.subscriber
        return SessionFact(
            journal.id, session.name, subscriber.user, subscriber.protocol, subscriber.format.family,
            subscriber.verified, subscriber.label, subscriber.share.stored_name, subscriber.inbox, session.expiry,
            journal.left or None, session.numbers, self._will(session.will), stored_origin(subscriber.origin),
            subscriber.origin.own or None,
        )

    def _will(self, will: Will | None) -> tuple[bytes, float | None, float] | None:
        if will is None:
            return None
        return message_record(will.message, 0, self.records.wall), will.lifetime, will.delay

    def session_ended(self, session: Session) -> None:
        journal = journal_of(session)
        if journal is not None:
            self.records.append(records.SESSION_ENDED, pair(journal.id, 0))

    def session_drained(self, session: Session) -> None:
        if self.pager is not None:
            self.pager.detach(session.window.queue)

    def received(self, session: Session, identifier: int) -> None:
        journal = journal_of(session)
        if journal is not None and not self.restoring:
            self.records.append(records.RECEIVED, pair(journal.id, identifier))

    def released(self, session: Session, identifier: int) -> None:
        journal = journal_of(session)
        if journal is not None:
            self.records.append(records.RELEASED, pair(journal.id, identifier))

    # -- subscriptions and groups -------------------------------------------------------------------------------------

    def subscribed(self, subscription: Subscription) -> None:
        session: Session | None = subscription.owner.session
        journal = journal_of(session)
        if journal is None:
            return
        if subscription.group is not None and subscription.group.queue is not None:
            self._keep_group(subscription, subscription.group.name, subscription.group.queue)
        if not self.restoring:
            self.records.append(records.SUBSCRIBED, packed(subscription_fact(journal, subscription)))

    def unsubscribed(self, subscription: Subscription) -> None:
        session: Session | None = subscription.owner.session
        journal = journal_of(session)
        if journal is not None and session is not None and not session.ended:
            self.records.append(records.UNSUBSCRIBED, pair(journal.id, subscription.number))

    def within(self, namespace: str) -> "StoreWithin":
        return StoreWithin(self, namespace)

    def group_begun(
        self, name: str, filter: bytes, syntax: str, where: str | None, namespace: str | None = None
    ) -> QueueJournal | None:
        key = name, filter, syntax, where, namespace
        journal = self.journals.pop(key, None) if self.restoring else None
        if journal is None:
            journal = StoredQueueJournal(self.records, of_group=True)
        self._groups[key] = journal
        return journal

    def _keep_group(self, subscription: Subscription, name: str, queue: Queue) -> None:
        """The session of a member is kept: so is what waits for the group, from now on and until it ends."""
        journal = stored(queue)
        if journal is None:
            return
        key = (
            name, subscription.filter, SYNTAXES[subscription.syntax_number], where_of(subscription.condition),
            subscription.owner.namespace or None,
        )
        if self.pager is not None and queue.backlog is None:
            self._group_queues[key] = queue
            self.pager.attach(queue, journal)
        if journal.active:
            return
        journal.active = True
        self.records.append(records.GROUP, packed(GroupFact(journal.id, *key)))
        queue.report()

    def group_ended(
        self, name: str, filter: bytes, syntax: str, where: str | None, namespace: str | None = None
    ) -> None:
        journal = self._groups.pop((name, filter, syntax, where, namespace))
        self._group_queues.pop((name, filter, syntax, where, namespace), None)
        if journal.active:
            self.records.append(records.GROUP_ENDED, pair(journal.id, 0))

    def group_drained(self, queue: Queue) -> None:
        if self.pager is not None:
            self.pager.detach(queue)

    def settle(self) -> None:
        if self.records.haste or self.log.synced < self.log.appended:
            self.records.settle()

    def queue_begun(self, queue: WorkQueue) -> QueueJournal | None:
        inside, options = queue.inside, queue.options
        if self.restoring:
            journal = self.journals.pop(("queue", queue.subscriber.namespace, queue.name))
        else:
            journal = StoredQueueJournal(self.records, named=True)
            self._report_queue(queue, journal)
        if self.pager is not None and not inside.queue.reads_dropped:
            # What is dropped for room is read at once, to be published: such a queue stays in memory.
            self.pager.attach(inside.queue, journal, reads_expired=options.dead_letter is not None)
        return journal

    def queue_changed(self, queue: WorkQueue) -> None:
        journal = stored(queue.inside.queue)
        if journal is not None:
            self._report_queue(queue, journal)

    def queue_adjusted(self, queue: WorkQueue) -> None:
        self.queue_changed(queue)
        if self.pager is not None and (journal := stored(queue.inside.queue)) is not None:
            self.pager.adjust(queue.inside.queue, journal, reads_expired=queue.options.dead_letter is not None)

    def _report_queue(self, queue: WorkQueue, journal: StoredQueueJournal) -> None:
        self.records.append(records.QUEUE, packed(self._queue_fact(queue, journal)))

    def _queue_fact(self, queue: WorkQueue, journal: StoredQueueJournal) -> QueueFact:
        since = queue.unused_since + self.records.wall if queue.unused_since is not None else None
        return QueueFact.of(journal.id, queue, since)

    def queue_purged(self, queue: WorkQueue) -> None:
        if queue.inside.queue.journal is not None:
            self.records.expect()

    def queue_ended(self, queue: WorkQueue) -> None:
        journal = stored(queue.inside.queue)
        if journal is not None:
            self.records.append(records.QUEUE_ENDED, pair(journal.id, 0))

    def queue_drained(self, queue: WorkQueue) -> None:
        if self.pager is not None:
            self.pager.detach(queue.inside.queue)

    def read_waiting(self, queue: Queue, most: int, then: Callable[[Sequence[Message]], None]) -> None:
        backlog = queue.backlog
        if self.pager is None or not isinstance(backlog, StoredBacklog) or not backlog.length:
            then(())
            return
        numbers = [number for number, _ in backlog.numbers.first(most)]
        self.pager.read(numbers, lambda found: then([found[each] for each in numbers if each in found]))

    # -- retained messages and marks ----------------------------------------------------------------------------------

    def retained(
        self, message: Message, share: Share | None, origin: str | None, namespace: str | None = None
    ) -> None:
        if not self.restoring:
            body = self._retained(message, share, origin)
            if namespace is None:
                self.records.append(records.RETAINED, body)
            else:
                self.records.append(records.RETAINED_IN, in_namespace(namespace, body))

    def _retained(self, message: Message, share: Share | None, origin: str | None) -> bytes:
        return retained_record(message, self.records.wall, origin, share.stored_name if share is not None else None)

    def cleared(self, topic: bytes, syntax: str, namespace: str | None = None) -> None:
        within = (namespace,) if namespace is not None else ()
        self.records.append(records.CLEARED, packed((SYNTAXES.index(syntax), topic, *within)))

    def marked(self, mark: Mark) -> None:
        self.records.append(records.MARK, packed(MarkFact(*mark)))

    def declared(self, declaration: Declaration) -> None:
        self.records.append(records.DECLARED, packed(DeclarationFact(*declaration)))

    def undeclared(self, owner: str, key: bytes) -> None:
        self.records.append(records.UNDECLARED, packed(DeclarationFact(owner, key)))

    @property
    def reads_delayed(self) -> bool:
        return True

    def delayed(self, due: float, delayed: DelayedMessage, nbytes: int, namespace: str | None = None) -> int:
        number = self.records.keep(delayed.message)
        self.records.append(records.DELAYED, delayed_record(number, due, nbytes, delayed.publisher, namespace))
        return number

    def read_delayed(self, ids: Sequence[int], then: Callable[[Mapping[int, Message]], None]) -> None:
        assert self.pager is not None
        self.pager.read(ids, then)

    def delayed_done(self, id: int) -> None:
        self.records.give_up(id)
        self.records.append(records.DELAYED_DONE, pair(id, 0))

    # -- once more, for a round (checkpoint.py) -----------------------------------------------------------------------

    def restate_round(self) -> None:
        """A round begins: what is numbered goes on from here."""
        self.records.forget_sets()
        numbers = self.records
        self.records.restate(records.ROUND, packed(RoundFact(
            numbers.last_number, numbers.last_queue, numbers.last_slot, numbers.last_set
        )))

    def restate_session(self, session: Session) -> Iterator[None]:
        """All of a session, in slices. One that is not kept may have something of a group that is."""
        journal = journal_of(session)
        self.records.flush()
        if journal is None:
            for origin, flights in on_loan(session.window).items():
                if origin.active:
                    restate_on_loan(self.records, origin, flights)
            return
        self.records.restate(records.SESSION, packed(self._fact(session, journal)))
        journal.restate_slots()
        for count, subscription in enumerate(list(session.subscriptions), 1):
            if subscription in session.subscriptions:
                self.records.restate(records.SUBSCRIBED, packed(subscription_fact(journal, subscription)))
            if count % SLICE == 0:
                yield
                if session.ended:
                    return
                self.records.flush()
        for identifier in session.unreleased.in_use():
            self.records.restate(records.RECEIVED, pair(journal.id, identifier))
        restate_waiting(self.records, session.window.queue)
        restate_flights(self.records, session.window)

    def group_keys(self) -> list[GroupKey]:
        """Of those groups whose queue is kept."""
        return [key for key, journal in self._groups.items() if journal.active]

    def group_queue(self, key: GroupKey) -> Queue | None:
        return self._group_queues.get(key)

    def restate_group(self, key: GroupKey) -> None:
        journal, queue = self._groups.get(key), self._group_queues.get(key)
        if journal is None or queue is None:
            return
        self.records.flush()
        self.records.restate(records.GROUP, packed(GroupFact(journal.id, *key)))
        journal.restate_slots()
        restate_waiting(self.records, queue)

    def restate_queue(self, queue: WorkQueue) -> None:
        journal = stored(queue.inside.queue)
        if journal is not None:
            self.records.flush()
            self.records.restate(records.QUEUE, packed(self._queue_fact(queue, journal)))
            journal.restate_slots()
            restate_named(self.records, queue.inside)

    def restate_retained(
        self, message: Message, share: Share | None, origin: str | None, namespace: str = ""
    ) -> None:
        body = self._retained(message, share, origin)
        if namespace:
            self.records.restate(records.RETAINED_IN, in_namespace(namespace, body))
        else:
            self.records.restate(records.RETAINED, body)

    def restate_mark(self, mark: Mark) -> None:
        self.records.restate(records.MARK, packed(MarkFact(*mark)))

    def restate_declaration(self, declaration: Declaration) -> None:
        self.records.restate(records.DECLARED, packed(DeclarationFact(*declaration)))

    def restate_delayed(self, due: float, delayed: DelayedEntry, namespace: str = "") -> None:
        self.records.restate(
            records.DELAYED, delayed_record(delayed.id, due, delayed.nbytes, delayed.publisher, namespace or None)
        )


class StoreWithin:
    """The store, as the router and the retained and delayed messages of a namespace report to it."""

    def __init__(self, store: Store, namespace: str) -> None:
        self.group_begun = partial(store.group_begun, namespace=namespace)
        self.group_ended = partial(store.group_ended, namespace=namespace)
        self.retained = partial(store.retained, namespace=namespace)
        self.cleared = partial(store.cleared, namespace=namespace)
        self.reads_delayed = store.reads_delayed
        self.delayed = partial(store.delayed, namespace=namespace)
        self.read_delayed, self.delayed_done = store.read_delayed, store.delayed_done


def journal_of(session: Session | None) -> StoredQueueJournal | None:
    """None: the session is not kept."""
    return stored(session.window.queue) if session is not None else None


def stored(queue: Queue) -> StoredQueueJournal | None:
    """The journal of a queue; None: it is not kept."""
    assert queue.journal is None or isinstance(queue.journal, StoredQueueJournal)
    return queue.journal
