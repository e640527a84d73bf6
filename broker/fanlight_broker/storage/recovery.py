"""The restart: the broker's sessions, named queues, retained messages and marks, made anew from the log.

    log --records--> Image --restore--> Sessions.begin, Subscribing.begin, Window.restore, Retained.put, Marks

A client that was connected when the broker stopped is away from now on. What expires does so by wall-clock time, the
time of the stop included. Nothing is reported again, but what the broker of today cannot have any more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from sys import intern
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from fanlight_broker import event_log
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.declarations import Declaration
from fanlight_broker.core.delayed_message import DelayedPublisher
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session, Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES, Canonical
from fanlight_broker.core.will import Will
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.storage.facts import UNKNOWN_MAKER, QueueFact, SessionFact, StoredOrigin, origin_of, pair
from fanlight_broker.storage.image import Image
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.message_records import came_at, read_all_retained, read_message
from fanlight_broker.storage.records import GROUP_ENDED, BadRecord
from fanlight_broker.storage.restating import restate_flights
from fanlight_broker.storage.restoring import batched, collector_paused, namespace_in, restored_condition
from fanlight_broker.storage.store import Store
from fanlight_broker.storage.store import stored as stored_journal
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.storage.stored_queue import StoredQueueJournal
from fanlight_broker.storage.stored_state import StoredQueue, StoredSession, StoredSlot
from fanlight_broker.wire.message import Format, Message, Variant
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.restoring import restore_to_queue, restore_to_window
from fanlight_broker.wire.subscriptions import Subscriptions

if TYPE_CHECKING:
    pass

Item = TypeVar("Item")

log: Final = event_log.get("store")

TOGETHER: Final = 1_024  # retained messages that are made at once, and things between two calls of `progress`
READ_AT_ONCE: Final = 1_024  # messages
GROUP_KEY: Final = 5  # fields of the key of a group in Store.journals: no session's or named queue's has so many


class Recovered(NamedTuple):
    records: int
    sessions: int
    queues: int
    subscriptions: int
    messages: int  # copies that wait or are in flight
    retained: int
    marks: int
    delayed: int
    bytes: int  # of the records that say all this once more, about


# Called now and then: what is being done, the share of it that is done, and what was found so far.
Progress = Callable[[str, float, Callable[[], Recovered]], None]


def no_progress(doing: str, share: float, found: Callable[[], Recovered]) -> None: ...


def recover(
    store: Store, broker: Broker, formats: Mapping[str, Format], *, now: float, wall: float, after: int = 0,
    progress: Progress = no_progress,
) -> Recovered:
    """Make what the store's log has, and let the broker report to the store from now on. Raises BadRecord.

    formats   one of each family, by its name
    after     the log is read from its floor on, or behind this entry
    """
    image = Image()
    with collector_paused():
        image.read(store.log, after, lambda image: progress("reading", image.share, partial(counted, image)))
        return Recovery(image, store, broker, formats, now=now, wall=wall, progress=progress).run()


def counted(image: Image) -> Recovered:
    return Recovered(
        image.applied, len(image.sessions), len(image.named),
        sum(each.subscription_count for each in image.sessions.values()), image.messages, len(image.retained),
        len(image.marks), len(image.delayed), image.nbytes,
    )


class Recovery:
    """One restart."""

    def __init__(
        self, image: Image, store: Store, broker: Broker, formats: Mapping[str, Format], *, now: float, wall: float,
        progress: Progress = no_progress,
    ) -> None:
        self.image = image
        self.store = store
        self.broker = broker
        self.formats = formats
        self.now, self.wall = now, wall
        self._progress = progress
        self._found = counted(image)
        self._made = 0  # sessions and retained messages
        self._ahead = wall - now
        self._messages: dict[int, Message] = {}  # that are needed at once
        self._sizes: dict[int, tuple[int, float]] = {}  # bytes and expiry of what was read
        self._came: dict[int, float] = {}  # number -> wall-clock time, or 0
        self._sessions: list[tuple[StoredSession, Session]] = []
        self._connected: list[Session] = []  # when the broker stopped
        self._slots: dict[int, list[StoredSlot]] = {}  # by queue
        self._named: dict[int, WorkQueue] = {}  # by the number of the queue
        self._variants: dict[Format, dict[tuple[int, int, bytes], Variant]] = defaultdict(dict)
        self._shares: dict[str, Share] = {}
        self._origins: dict[tuple[StoredOrigin | None, str | None], Origin] = {}
        self._used: list[WorkQueue] = []  # when the broker stopped

    def run(self) -> Recovered:
        image, store = self.image, self.store
        numbers = store.records
        numbers.last_number = max(image.last_number, store.log.number - 1)
        numbers.last_queue = image.last_queue
        numbers.last_slot, numbers.last_set = image.last_slot, image.last_set
        numbers.wall = self._ahead
        store.log.number_from(numbers.last_number + 1)
        store.readable(numbers.last_number)
        for slot in image.slots.values():
            self._slots.setdefault(slot.queue, []).append(slot)
        self._count_live()
        store.restoring = True
        self.broker.journal_to(store)
        try:
            self._restore()
        finally:
            store.restoring = False
        self._end_groups()
        for session in self._connected:
            store.session_changed(session)  # a second stop does not begin its time anew
        for queue in self._used:
            store.queue_changed(queue)
        self.broker.ask_again(always=any(own is not None for _, own in self._origins))
        return self._found

    def _count_made(self, count: int) -> None:
        before, self._made = self._made, self._made + count
        if before // TOGETHER != self._made // TOGETHER:
            total = self._found.sessions + self._found.retained
            self._progress("restoring", self._made / total, lambda: self._found)

    def _count_live(self) -> None:
        """What of it cannot be kept is reported as ended, like any other."""
        for queue in self.image.queues.values():
            queue.waiting.count_live(self.store.log)
            for _, number in queue.flights:
                self.store.log.live(number, 1)
        for id, _, _, _ in self.image.delayed:
            self.store.log.live(id, 1)
        self.store.log.reclaim()

    def _restore(self) -> None:
        for id, group in self.image.groups.items():
            key = group.name, group.filter, group.syntax, group.where, group.namespace
            self.store.journals[key] = journal = self._journal(id, of_group=True)
            journal.active = True
        for id, queue in self.image.named.items():
            self._named[id] = self._begin_queue(id, queue)
        for found in batched(list(self.image.sessions.values()), TOGETHER):
            for home, facts in self._by_home(found):
                begun = self._begin(home, facts)
                self._subscribe(home, begun)
                self._sessions += begun
                self._count_made(len(begun))
        self._read()
        for stored, session in self._sessions:
            self._fill(stored, session)
        for id, group in self.image.groups.items():
            home = self.broker.named(group.namespace or "")
            self._fill_queue(self.image.queues[id], home.router.group_queue(*group[1:5]))
        for id, made in self._named.items():
            self._fill_named(self.image.queues[id], made)
        refused = self._retain()
        self._delay()
        self.broker.declarations.restore(Declaration(*fact) for fact in self.image.declarations.values())
        self.broker.marks.restore(Mark(*fact) for fact in self.image.marks.values())
        self.store.restoring = False
        for namespace, message in refused:
            self.store.cleared(message.topic, SYNTAXES[message.syntax], namespace)

    def _journal(self, id: int, *, of_group: bool = False, named: bool = False) -> StoredQueueJournal:
        journal = StoredQueueJournal(self.store.records, id, of_group=of_group, named=named)
        slots = self._slots.get(id)
        if slots is not None:
            journal.slots_were((slot.number, *(slot.variant or (0, 0, b""))) for slot in slots)
        return journal

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _by_home(
        self, found: Sequence[StoredSession]
    ) -> Iterator[tuple[Namespace, list[tuple[StoredSession, SessionFact]]]]:
        """By their namespaces."""
        by_name: dict[str, list[tuple[StoredSession, SessionFact]]] = {}
        for stored in found:
            fact = stored.fact
            by_name.setdefault(self._origin(fact.origin, fact.own).namespace, []).append((stored, fact))
        return ((self.broker.named(name), facts) for name, facts in by_name.items())

    def _begin(
        self, home: Namespace, found: Sequence[tuple[StoredSession, SessionFact]]
    ) -> list[tuple[StoredSession, Session]]:
        """Their sessions, away since the client left, or since now if it was connected."""
        made = home.sessions.restore([self._subscriber(fact) for _, fact in found])
        for (stored, fact), session in zip(found, made, strict=True):
            session.numbers = fact.numbers
            if fact.left is None:
                self._connected.append(session)
            for identifier in stored.unreleased:
                session.receive(identifier)
            if fact.will is not None:
                self._leave_will(home, session, fact)
        return [(stored, session) for (stored, _), session in zip(found, made, strict=True)]

    def _subscriber(self, fact: SessionFact) -> tuple[Subscriber, float, float]:
        """Whose session it is, its expiry, and when its client left."""
        origin = self._origin(fact.origin, fact.own)
        self.store.journals[origin.namespace, fact.name] = journal = self._journal(fact.id)
        journal.left = fact.left if fact.left is not None else self.wall
        return Subscriber(
            fact.name, intern(fact.user), intern(fact.protocol), self._format(fact.family),
            self._share(fact.principal, alone=True), fact.inbox, fact.verified, intern(fact.label),
            Subscriptions(by_filter=True), origin=origin,
        ), fact.expiry, self.now - self._away(fact)

    def _origin(self, stored: StoredOrigin | None, own: str | None) -> Origin:
        """Many sessions have the same: one object for them, which the collector looks at."""
        found = self._origins.get((stored, own))
        if found is None:
            found = self._origins[stored, own] = origin_of(stored, own)
        return found

    def _away(self, fact: SessionFact) -> float:
        """Seconds since its client left; 0: it was connected."""
        return max(0.0, self.wall - fact.left) if fact.left is not None else 0.0

    def _leave_will(self, home: Namespace, session: Session, fact: SessionFact) -> None:
        assert fact.will is not None
        body, lifetime, delay = fact.will
        session.will = Will(read_message(body, self.formats, self._ahead), lifetime, delay)
        session.charge()
        home.sessions.wills.set(session, self.now - self._away(fact) + min(delay, fact.expiry))

    def _format(self, family: str) -> Format:
        found = self.formats.get(family)
        if found is None:
            raise BadRecord(f"a session of {family!r}, which this broker does not speak")
        return found

    def _subscribe(self, home: Namespace, begun: Sequence[tuple[StoredSession, Session]]) -> None:
        plain = []
        for stored, session in begun:
            if not stored.subscription_count:
                continue
            window, variants, own = session.window, self._variants[session.subscriber.format], []
            for fields in stored.filters_in_order():
                _, number, filter, syntax, group, quality, no_echo, retain, identifiers, where = fields
                variant = variants.get((quality, retain, identifiers))
                if variant is None:
                    variant = self._variant(session, quality, retain, identifiers)
                condition = None if where is None else restored_condition(where)
                subscription = Subscription(window, variant, number, filter, syntax, no_echo, condition=condition)
                if number > session.numbers:
                    session.numbers = number
                if group is None and condition is None:
                    own.append(subscription)
                else:
                    home.subscribing.begin(session.subscriber, subscription, group)
            plain.append((session.subscriber, own))
        home.subscribing.restore(plain)

    def _variant(self, session: Session, quality: int, retain: int, identifiers: bytes) -> Variant:
        format, key = session.subscriber.format, (quality, retain, identifiers)
        found = self._variants[format].get(key)
        if found is None:
            found = self._variants[format][key] = self.broker.variants.of(format, *key)
        return found

    def _share(self, name: str, *, alone: bool = False) -> Share:
        """alone: of a session, which moves to other holders of quotas without the others."""
        found = self._shares.get(name)
        if found is None:
            found = self._shares[name] = self.broker.shares.stored(name)
        return self.broker.shares.stored(name) if alone and found.holders else found

    # -- messages -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """The messages that are needed now, in one pass over the log: each is made once for all who have it."""
        needed = {
            number for queue in self.image.queues.values() for (_, number), flight in queue.flights.items()
            if not flight.tag_only
        }
        for id, made in self._named.items():
            needed.update(self._needed(self.image.queues[id], made))
        returned = {number for queue in self.image.queues.values() for number in queue.waiting.returned}
        reader = MessageReader(self.store.log)
        for numbers in batched(sorted(needed | returned), READ_AT_ONCE):
            bodies = reader.read(numbers)
            for number, why in reader.damage:
                self._unreadable(number, why)
            for number, body in bodies.items():
                try:
                    message = read_message(body, self.formats, self._ahead)
                except BadRecord as error:
                    self._unreadable(number, str(error))
                    continue
                self._sizes[number] = message.nbytes, message.expires_at
                if number in needed:
                    self._messages[number], self._came[number] = message, came_at(body)

    def _unreadable(self, number: int, why: str) -> None:
        log.error("message_unreadable", number=number, reason=why, advice="it is lost")
        if self.store.pager is not None:
            self.store.pager.unreadable += 1

    def _fill(self, stored: StoredSession, session: Session) -> None:
        """What is in flight, in the order in which it is to be sent again; then what waits."""
        if stored.queue.empty:
            return
        window = session.window
        variants = {
            slot.number: self._variant(session, *slot.variant)
            for slot in self._slots.get(stored.queue.id, ()) if slot.variant is not None
        }
        consumed = {
            journal.id: consumer.queue for consumer in window.consumers
            if (journal := stored_journal(consumer.queue)) is not None
        }
        adopted = False
        for (queue, number), flight in stored.queue.flights.items():
            variant = variants[flight.slot]
            message = self._messages.get(number)
            if flight.tag_only:
                message = Message(session.subscriber.format, b"", 0, b"", qos=2)  # its octets do not matter any more
            if message is None:
                self.store.records.drop_copies(queue, (number,))
            elif queue == stored.queue.id or queue in consumed:
                restore_to_window(window, message, variant, flight.tag, flight.tag_only, number, consumed.get(queue))
            else:  # of a group that it has left: it is the session's own now
                restore_to_window(window, message, variant, flight.tag, flight.tag_only)
                self.store.records.drop_copies(queue, (number,))
                adopted = True
        if adopted:  # their new records say that they were sent last
            self.store.records.flush()
            restate_flights(self.store.records, window)
        self._fill_queue(stored.queue, window.queue)

    def _fill_queue(self, stored: StoredQueue, queue: Queue | None) -> None:
        """What waits is its backlog."""
        if queue is None:
            return  # a group without a member
        numbers = stored.waiting.numbers
        numbers.adjust(-self._ahead)
        if stored.waiting.has_gaps:
            numbers = stored.waiting.merged(self._sizes)
            lost = [number for number in stored.waiting.returned if number not in self._sizes]
            self.store.records.drop_copies(stored.id, sorted(lost))
        backlog = queue.backlog
        assert isinstance(backlog, StoredBacklog)
        backlog.restore(numbers)
        queue.backlog_restored()

    # -- named queues -------------------------------------------------------------------------------------------------

    def _begin_queue(self, id: int, fact: QueueFact) -> WorkQueue:
        """A named queue, unused since its last consumer left, or since now if it had some: no consumer is restored."""
        origin = origin_of(fact.origin or UNKNOWN_MAKER, fact.own)
        self.store.journals["queue", origin.namespace, fact.name] = self._journal(id, named=True)
        unused = max(0.0, self.wall - fact.unused_since) if fact.unused_since is not None else 0.0
        creator = Subscriber(
            fact.name, fact.user, "", self._format(fact.family), self._share(fact.principal), fact.inbox,
            fact.verified, fact.label, origin=origin,
        )
        made = self.broker.named(origin.namespace).queues.begin(
            creator, fact.name, fact.filters, fact.options, self.now - unused,
            condition=None if fact.where is None else restored_condition(fact.where),
        )
        made.declared = fact.declared_options
        if fact.unused_since is None:
            self._used.append(made)
        return made

    def _needed(self, stored: StoredQueue, made: WorkQueue) -> list[int]:
        """What cannot be left to the backlog: it may not be delivered yet, or not any more; all, without a backlog."""
        if made.inside.queue.backlog is None:
            return [number for number, _ in stored.waiting.items()]
        most = made.inside.deliveries_max
        return [
            number for number, (attempt, due) in stored.tried.items()
            if number in stored.waiting and (self._time(due) > self.now or (most and attempt >= most))
        ]

    def _time(self, due: int) -> float:
        """Of the broker's clock. due: ms since 1970, or 0."""
        return due / 1000.0 - self._ahead if due else 0.0

    def _fill_named(self, stored: StoredQueue, made: WorkQueue) -> None:
        inside, journal = made.inside, stored_journal(made.inside.queue)
        assert journal is not None
        for number in sorted(self._needed(stored, made)):
            stored.waiting.remove(number)
            attempt, due = stored.tried.pop(number, (0, 0))
            message = self._messages.get(number)
            if message is None:
                self.store.records.drop_copies(stored.id, (number,))
                continue
            since = self._came[number] - self._ahead
            restore_to_queue(inside, message, number, since, attempt, self._time(due), self.now)
        if inside.queue.backlog is not None:
            for number, (attempt, _) in stored.tried.items():
                if number in stored.waiting:
                    journal.tried_before(number, attempt)
            self._fill_queue(stored, inside.queue)

    def _end_groups(self) -> None:
        """Those that no session is a member of."""
        for key in [key for key in self.store.journals if len(key) == GROUP_KEY]:
            journal = self.store.journals.pop(key)
            waiting = self.image.queues[journal.id].waiting
            self.store.records.drop_copies(journal.id, [number for number, _ in waiting.items()])
            self.store.records.append(GROUP_ENDED, pair(journal.id, 0))

    # -- delayed messages ---------------------------------------------------------------------------------------------

    def _delay(self) -> None:
        """Whatever the limits of today say: they were acknowledged."""
        publishers = list(self.image.delayed_publishers)
        for id, due, nbytes, number in self.image.delayed:
            principal, name, protocol, session, namespace = publishers[number]
            publisher = DelayedPublisher(self._share(principal), name, protocol, session, None)
            self.broker.named(namespace or "").delayed.restore(id, due - self._ahead, nbytes, publisher, self._ahead)

    # -- retained messages --------------------------------------------------------------------------------------------

    def _payer(self, principal: str | None) -> Share | None:
        return self._share(principal) if principal is not None else None

    def _retain(self) -> list[tuple[str | None, Message]]:
        """Returns those that the limits of today refuse, with the name of their namespace. The records go as the
        messages come.
        """
        refused: list[tuple[str | None, Message]] = []
        retained = self.image.retained
        by_name: dict[str | None, list[Canonical | tuple[str, Canonical]]] = {}
        for key in retained:
            by_name.setdefault(namespace_in(key), []).append(key)
        for name, own in by_name.items():
            home = self.broker.named(name or "")
            for keys in batched(own, TOGETHER):
                bodies = [retained.pop(key) for key in keys]
                found = read_all_retained(bodies, self.formats, self._ahead, self._payer)
                refused += [(name, each) for each in home.retained.restore(found, self.now)]
                self._count_made(len(keys))
        return refused
