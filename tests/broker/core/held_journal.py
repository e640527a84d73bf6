"""A journal kept in memory that is synced when the test says so, and not before."""

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.message import Message
from tests.broker.core.test_journal import Journal
from tests.broker.wire.test_journal import Records


class HeldQueue(Records):
    """The journal of a queue. `session`: whose, None for a group's; what ends with its connection is not kept."""

    def __init__(self, position: JournalPosition, session: Session | None) -> None:
        super().__init__()
        self.position, self.session = position, session

    def _report(self) -> None:
        self.position.appended += self.session is None or self.session.expiry > 0

    def enqueued(self, flight: Flight) -> None:
        super().enqueued(flight)
        self._report()

    def assigned(self, flight: Flight, origin: QueueJournal) -> None:
        new = not flight.number
        super().assigned(flight, origin)
        assert flight.message is not None
        if new or min(flight.variant.qos, flight.message.qos) == 2:
            self._report()

    def given_up(self, flight: Flight, origin: QueueJournal) -> None:
        super().given_up(flight, origin)
        self._report()


class HeldJournal(Journal):
    """Everything that is reported is in its image; `position` counts the changes that something may wait for."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self.broker = broker
        broker.journal_to(self)

    def sync(self, changes: int | None = None, now: float = 1_000.0) -> None:
        """All changes are synced, or so many more."""
        position = self.position
        position.synced = position.appended if changes is None else min(position.appended, position.synced + changes)
        self.broker.position_changed(now)

    def _report(self, session: Session) -> None:
        self.position.appended += session.expiry > 0

    def session_begun(self, session: Session) -> QueueJournal:
        super().session_begun(session)
        self._report(session)
        self.queues[session.name] = journal = HeldQueue(self.position, session)
        return journal

    def session_changed(self, session: Session) -> None:
        super().session_changed(session)
        self._report(session)

    def session_ended(self, session: Session) -> None:
        super().session_ended(session)
        self._report(session)

    def received(self, session: Session, identifier: int) -> None:
        super().received(session, identifier)
        self._report(session)

    def released(self, session: Session, identifier: int) -> None:
        super().released(session, identifier)
        self._report(session)

    def group_begun(self, name: str, filter: bytes, syntax: str, where: str | None) -> QueueJournal:
        self.groups[name, filter] = journal = HeldQueue(self.position, None)
        return journal

    def marked(self, mark: Mark) -> None:
        self.position.appended += 1

    @property
    def reads_delayed(self) -> bool:
        return False

    def read_delayed(self, ids: object, then: object) -> None:
        raise AssertionError("delayed messages stay in memory here")

    def delayed(self, due: float, delayed: object, nbytes: int) -> int:
        self.position.appended += 1
        return 0

    def delayed_done(self, id: int) -> None:
        self.position.appended += 1

    def queue_begun(self, queue: WorkQueue) -> QueueJournal:
        self.position.appended += 1
        return HeldQueue(self.position, None)

    def settle(self) -> None:
        self.position.appended += 1

    def queue_changed(self, queue: WorkQueue) -> None:
        self.position.appended += queue.options.unused_seconds is not None

    def queue_adjusted(self, queue: WorkQueue) -> None:
        self.position.appended += 1

    def queue_purged(self, queue: WorkQueue) -> None:
        self.position.appended += 1

    def queue_ended(self, queue: WorkQueue) -> None:
        self.position.appended += 1

    def queue_drained(self, queue: WorkQueue) -> None:
        pass

    def subscribed(self, subscription: Subscription) -> None:
        super().subscribed(subscription)
        self._report(subscription.owner.session)

    def unsubscribed(self, subscription: Subscription) -> None:
        super().unsubscribed(subscription)
        self._report(subscription.owner.session)

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None:
        super().retained(message, share, origin)
        self.position.appended += 1

    def cleared(self, topic: bytes, syntax: str) -> None:
        super().cleared(topic, syntax)
        self.position.appended += 1
