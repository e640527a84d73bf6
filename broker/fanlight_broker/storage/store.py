"""The store: `ports.Journal` over a log. What is reported in a turn is one entry, sealed at its end.

    core, wire --each change--> Store, StoredQueueJournal --records--> log, the open entry
                                                                         | seal, at the end of the turn
                 acknowledgements <-- position.synced <-- progress <-- synced by the log's own thread

A session whose expiry is 0 is not kept, and has no journal. A queue group's queue is kept from the first member on
whose session is. recovery.py makes all of it anew from the log.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.subscription import Subscription, group_name_of
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.will import Will
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.storage import records
from fanlight_broker.storage.facts import GroupFact, MarkFact, SessionFact, SubscriptionFact, packed, pair
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.pager import Pager
from fanlight_broker.storage.records import message_record, retained_record
from fanlight_broker.storage.stored_queue import AT_ONCE, QueueRecords, StoredQueueJournal
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.queue import Queue

log: Final = structlog.stdlib.get_logger("store")

LATER_SECONDS: Final = 0.01  # what nobody waits for is sealed after this time, or with what somebody waits for

RESTART: Final = "a record could not be written, so what follows it would be wrong; restart the broker"

GroupKey = tuple[str, bytes, str]  # name, filter, syntax


class Store:
    """The journal of one broker.

    now, wall   the clock of every `now`, and wall-clock time, in seconds
    schedule    called with a number of seconds: call `seal` after them, at the end of this turn if it is 0
    changed     called when `position` has come further, is full or refusing, or is so no longer
    durability  what an acknowledgement waits for

    Whoever made the log calls `progress` when it has `progressed`.
    """

    def __init__(
        self, log: Log, ledger: Ledger, *, now: Callable[[], float], wall: Callable[[], float],
        schedule: Callable[[float], None], changed: Callable[[], None] = lambda: None,
        durability: StoreDurability = StoreDurability.SYNCED,
    ) -> None:
        self.log = log
        self.position = JournalPosition()
        self.records = QueueRecords(log, self.position, ledger, self._begun)
        self.restoring = False  # recovery.py makes sessions that the log has: they are not reported again
        self.journals: dict[str | GroupKey, StoredQueueJournal] = {}  # of what is restored, until it has begun
        self._now, self._wall, self._schedule, self._changed = now, wall, schedule, changed
        self._durability = durability
        self._groups: dict[GroupKey, StoredQueueJournal] = {}
        self._group_queues: dict[GroupKey, Queue] = {}
        self.pager: Pager | None = None  # reads what waits on the disk; None: what waits stays in memory
        self._numbers: deque[tuple[int, int]] = deque()  # (sequence of an entry, last number of a message in it)
        self._sealed: deque[tuple[int, int]] = deque()  # (sequence of an entry, position.appended at its end)
        self._adjust_wall()

    # -- the end of a turn --------------------------------------------------------------------------------------------

    def _begun(self, haste: int) -> None:
        self._adjust_wall()
        self._schedule(0.0 if haste == AT_ONCE else LATER_SECONDS)

    def _adjust_wall(self) -> None:
        self.records.wall = self._wall() - self._now()

    def seal(self) -> None:
        """The turn is over: hand what was reported to the log's writer."""
        failed = self.records.error is not None
        self.records.finish()
        if self.records.error is not None:
            if not failed:
                log.error("store_failed", exc_info=self.records.error, advice=RESTART)
            return
        self.log.seal()
        self._sealed.append((self.log.appended, self.position.appended))
        self._numbers.append((self.log.appended, self.records.last_number))
        self.progress()

    def progress(self) -> None:
        """The log is further, or has failed: say so in `position`."""
        position = self.position
        before = position.synced, position.full, position.refusing
        reached = self._reached()
        while self._sealed and self._sealed[0][0] <= reached:
            position.synced = self._sealed.popleft()[1]
        position.full, position.refusing = self.log.full, self.trouble is not None
        self._page()
        if before != (position.synced, position.full, position.refusing):
            self._changed()

    def _page(self) -> None:
        """Read what queues have asked for, if it is synced by now."""
        while self._numbers and self._numbers[0][0] <= self.log.synced:
            self.readable(self._numbers.popleft()[1])
        if self.pager is not None:
            self.pager.work()

    def readable(self, number: int) -> None:
        """Messages up to this number are synced."""
        if self.pager is not None:
            self.pager.synced_number = number

    def _reached(self) -> int:
        """The last entry that is as durable as an acknowledgement promises."""
        if self._durability is StoreDurability.MEMORY:
            return self.log.appended
        return self.log.written if self._durability is StoreDurability.WRITTEN else self.log.synced

    @property
    def trouble(self) -> str | None:
        """Why nothing that needs the store is acknowledged at present; None while it is."""
        if self.records.error is not None:
            return f"{self.records.error!r}: {RESTART}"
        return self.log.trouble

    # -- sessions -----------------------------------------------------------------------------------------------------

    def session_begun(self, session: Session) -> QueueJournal | None:
        if self.restoring:
            journal = self.journals.pop(session.name)
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
        self.records.append(records.SESSION, packed(self._fact(session, journal.id)))

    def _fact(self, session: Session, id: int) -> SessionFact:
        subscriber = session.subscriber
        return SessionFact(
            id, session.name, subscriber.user, subscriber.protocol, subscriber.format.family, subscriber.verified,
            subscriber.label, subscriber.share.principal, subscriber.inbox, session.expiry,
            None if session.connected else self._wall(), session.numbers, self._will(session.will),
        )

    def _will(self, will: Will | None) -> tuple[bytes, float | None, float] | None:
        if will is None:
            return None
        return message_record(will.message, 0, self.records.wall), will.lifetime, will.delay

    def session_ended(self, session: Session) -> None:
        journal = journal_of(session)
        if journal is not None:
            self.records.append(records.SESSION_ENDED, pair(journal.id, 0))
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
            variant = subscription.variant
            self.records.append(records.SUBSCRIBED, packed(SubscriptionFact(
                journal.id, subscription.number, subscription.filter, subscription.syntax_number,
                group_name_of(subscription), variant.qos, subscription.no_echo, variant.retain, variant.identifiers,
            )))

    def unsubscribed(self, subscription: Subscription) -> None:
        session: Session | None = subscription.owner.session
        journal = journal_of(session)
        if journal is not None and session is not None and not session.ended:
            self.records.append(records.UNSUBSCRIBED, pair(journal.id, subscription.number))

    def group_begun(self, name: str, filter: bytes, syntax: str) -> QueueJournal | None:
        key = name, filter, syntax
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
        key = name, subscription.filter, SYNTAXES[subscription.syntax_number]
        if self.pager is not None and queue.backlog is None:
            self._group_queues[key] = queue
            self.pager.attach(queue, journal)
        if journal.active:
            return
        journal.active = True
        self.records.append(records.GROUP, packed(GroupFact(journal.id, *key)))
        queue.report()

    def group_ended(self, name: str, filter: bytes, syntax: str) -> None:
        journal = self._groups.pop((name, filter, syntax))
        queue = self._group_queues.pop((name, filter, syntax), None)
        if queue is not None and self.pager is not None:
            self.pager.detach(queue)
        if journal.active:
            self.records.append(records.GROUP_ENDED, pair(journal.id, 0))

    def queue_begun(self, queue: WorkQueue) -> QueueJournal | None:
        return None  # named queues are not kept yet

    def queue_ended(self, queue: WorkQueue) -> None:
        pass

    # -- retained messages and marks ----------------------------------------------------------------------------------

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None:
        if not self.restoring:
            principal = share.principal if share is not None else None
            body = retained_record(message, self.records.wall, origin, principal)
            self.records.append(records.RETAINED, body, message)

    def cleared(self, topic: bytes, syntax: str) -> None:
        self.records.append(records.CLEARED, packed((SYNTAXES.index(syntax), topic)))

    def marked(self, mark: Mark) -> None:
        self.records.append(records.MARK, packed(MarkFact(*mark)))


def journal_of(session: Session | None) -> StoredQueueJournal | None:
    """None: the session is not kept."""
    return stored(session.window.queue) if session is not None else None


def stored(queue: Queue) -> StoredQueueJournal | None:
    """The journal of a queue; None: it is not kept."""
    assert queue.journal is None or isinstance(queue.journal, StoredQueueJournal)
    return queue.journal
