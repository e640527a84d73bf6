"""The restart: the broker's sessions, queues, retained messages and marks, made anew from the log.

    log.replay --records--> Image --restore--> Sessions.begin, Subscribing.begin, Window.restore, Retained.put, Marks

A client that was connected when the broker stopped is away from now on. What expires does so by wall-clock time, the
time of the stop included. Nothing is reported again, but what the broker of today cannot have any more.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import structlog

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.subscriber import Session, Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.will import Will
from fanlight_broker.storage import records
from fanlight_broker.storage.facts import SlotFact, SubscriptionFact, pair
from fanlight_broker.storage.image import Image, StoredQueue, StoredSession
from fanlight_broker.storage.records import BadRecord, read_message, read_retained
from fanlight_broker.storage.store import Store
from fanlight_broker.storage.store import stored as stored_journal
from fanlight_broker.storage.stored_queue import StoredQueueJournal
from fanlight_broker.wire.message import Format, Message, Variant
from fanlight_broker.wire.subscriptions import Subscriptions

log: Final = structlog.stdlib.get_logger("store")

LOOK: Final = 4_096  # records between two looks at the clock

Record = tuple[int, float, int, bytes]  # sequence, wall-clock time, type, body


class Recovered(NamedTuple):
    records: int
    sessions: int
    subscriptions: int
    messages: int
    retained: int
    marks: int


def recover(
    replay: Iterable[Record], store: Store, broker: Broker, formats: Mapping[str, Format], *, now: float, wall: float,
    progress: Callable[[int], None] = lambda records: None,
) -> Recovered:
    """Make what the log has, and let the broker report to the store from now on. Raises BadRecord.

    formats   one of each family, by its name
    progress  called now and then with the records that are read
    """
    image = Image()
    for sequence, _, type, body in replay:
        try:
            image.apply(type, body)
        except BadRecord as error:
            raise BadRecord(f"entry {sequence}, {type_name(type)}: {error}") from error
        if image.applied % LOOK == 0:
            progress(image.applied)
    return Recovery(image, store, broker, formats, now=now, wall=wall).run()


def type_name(type: int) -> str:
    return records.TYPES[type] if 0 < type < len(records.TYPES) else f"record of type {type}"


class Recovery:
    """One restart."""

    def __init__(
        self, image: Image, store: Store, broker: Broker, formats: Mapping[str, Format], *, now: float, wall: float
    ) -> None:
        self.image = image
        self.store = store
        self.broker = broker
        self.formats = formats
        self.now, self.wall = now, wall
        self._ahead = wall - now
        self._messages: dict[int, Message] = {}
        self._sessions: list[tuple[StoredSession, Session]] = []
        self._slots: dict[int, list[SlotFact]] = {}  # by queue

    def run(self) -> Recovered:
        image, store = self.image, self.store
        numbers = store.records
        numbers.last_number, numbers.last_queue = image.last_number, image.last_queue
        numbers.last_slot, numbers.last_set = image.last_slot, image.last_set
        numbers.wall = self._ahead
        store.log.number_from(image.last_number + 1)
        store.readable(image.last_number)
        for slot in image.slots.values():
            self._slots.setdefault(slot.queue, []).append(slot)
        store.restoring = True
        self.broker.journal_to(store)
        try:
            self._restore()
        finally:
            store.restoring = False
        self._end_groups()
        for stored, session in self._sessions:
            if stored.fact.left is None:
                store.session_changed(session)  # a second stop does not begin its time anew
        return Recovered(
            image.applied, len(image.sessions), sum(len(each.subscriptions) for each in image.sessions.values()),
            len(image.messages), len(image.retained), len(image.marks),
        )

    def _restore(self) -> None:
        for id, group in self.image.groups.items():
            self.store.journals[group.name, group.filter, group.syntax] = journal = self._journal(id, of_group=True)
            journal.active = True
        for stored in self.image.sessions.values():
            self._sessions.append((stored, self._begin(stored)))
        for stored, session in self._sessions:
            for fact in stored.subscriptions.values():
                self._subscribe(session, fact)
        for stored, session in self._sessions:
            self._fill(stored, session)
        for id in self.image.groups:
            self._fill_group(self.image.queues[id])
        refused = self._retain()
        self.broker.marks.restore(Mark(*fact) for fact in self.image.marks.values())
        self.store.restoring = False
        for message in refused:
            self.store.cleared(message.topic, SYNTAXES[message.syntax])

    def _journal(self, id: int, *, of_group: bool = False) -> StoredQueueJournal:
        journal = StoredQueueJournal(self.store.records, id, of_group=of_group)
        journal.slots_were((slot.number, *(slot.variant or (0, 0, b""))) for slot in self._slots.get(id, ()))
        return journal

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _begin(self, stored: StoredSession) -> Session:
        """The session, away since its client left, or since now if it was connected."""
        fact, sessions = stored.fact, self.broker.sessions
        away = max(0.0, self.wall - fact.left) if fact.left is not None else 0.0
        self.store.journals[fact.name] = self._journal(fact.id)
        session = sessions.begin(
            Subscriber(
                fact.name, fact.user, fact.protocol, self._format(fact.family), self.broker.shares.of(fact.principal),
                fact.inbox, fact.verified, fact.label, Subscriptions(by_filter=True),
            ),
            fact.expiry, self.now - away,
        )
        session.numbers = max([fact.numbers, *stored.subscriptions])
        for identifier in stored.unreleased:
            session.receive(identifier)
        if fact.will is not None:
            body, lifetime, delay = fact.will
            session.will = Will(read_message(body, self.formats, self._ahead), lifetime, delay)
            session.charge()
            sessions.wills.set(session, self.now - away + min(delay, fact.expiry))
        return session

    def _format(self, family: str) -> Format:
        found = self.formats.get(family)
        if found is None:
            raise BadRecord(f"a session of {family!r}, which this broker does not speak")
        return found

    def _subscribe(self, session: Session, fact: SubscriptionFact) -> None:
        variant = self._variant(session, fact.quality, fact.retain, fact.identifiers)
        subscription = Subscription(
            session.window, variant, fact.number, fact.filter, fact.syntax, fact.no_echo
        )
        self.broker.subscribing.begin(session.subscriber, subscription, fact.group)

    def _variant(self, session: Session, quality: int, retain: int, identifiers: bytes) -> Variant:
        return self.broker.variants.of(session.subscriber.format, quality, retain, identifiers)

    # -- messages -----------------------------------------------------------------------------------------------------

    def _message(self, number: int) -> Message:
        """One for all queues that it is in."""
        found = self._messages.get(number)
        if found is None:
            found = self._messages[number] = read_message(self.image.messages[number], self.formats, self._ahead)
        return found

    def _fill(self, stored: StoredSession, session: Session) -> None:
        """What is in flight, in the order in which it is to be sent again; then what waits."""
        window = session.window
        variants = {
            slot.number: self._variant(session, *slot.variant)
            for slot in self._slots.get(stored.queue.id, ()) if slot.variant is not None
        }
        consumed = {
            journal.id: consumer.queue for consumer in window.consumers
            if (journal := stored_journal(consumer.queue)) is not None
        }
        for (queue, number), flight in stored.queue.flights.items():
            variant = variants[flight.slot]
            if queue == stored.queue.id or queue in consumed:
                window.restore(
                    self._message(number), variant, flight.tag, flight.tag_only, number, consumed.get(queue)
                )
            else:  # of a group that it has left: it is the session's own now
                window.restore(self._message(number), variant, flight.tag, flight.tag_only)
                self.store.records.drop_copies(queue, (number,))
            self._charge(number)
        for number in sorted(stored.queue.waiting):
            message = self._message(number)
            window.restore(message, variants[stored.queue.waiting[number]], number=number)
            self._charge(number)

    def _fill_group(self, stored: StoredQueue) -> None:
        group = self.image.groups[stored.id]
        queue = self.broker.router.group_queue(group.name, group.filter, group.syntax)
        if queue is None:
            return  # it has no member any more
        for number in sorted(stored.waiting):
            queue.restore(self._message(number), None, number)
            self._charge(number)

    def _charge(self, number: int) -> None:
        """The log has the message once, however many queues keep it."""
        body = self.image.messages.pop(number, b"")
        if body:
            self.store.records.take_in(self._messages[number], len(body))

    def _end_groups(self) -> None:
        """Those that no session is a member of."""
        for key in [key for key in self.store.journals if not isinstance(key, str)]:
            journal = self.store.journals.pop(key)
            self.store.records.drop_copies(journal.id, sorted(self.image.queues[journal.id].waiting))
            self.store.records.append(records.GROUP_ENDED, pair(journal.id, 0))

    # -- retained messages --------------------------------------------------------------------------------------------

    def _retain(self) -> list[Message]:
        """Returns those that the limits of today refuse."""
        refused = []
        for body in self.image.retained.values():
            message, origin, principal = read_retained(body, self.formats, self._ahead)
            share = self.broker.shares.of(principal) if principal is not None else None
            if message.expired(self.now) or not self.broker.retained.put(message, self.now, share=share, origin=origin):
                refused.append(message)
            else:
                self.store.records.take_in(message, len(body))
        return refused
