"""What the records of a log amount to: sessions, queues and messages as they were when the last entry was synced.

Records are applied in the order of the log. A log whose oldest segments are gone begins in the middle: what a record
speaks of and the log does not have was restated behind it, or is done with (checkpoint.py), so it is passed over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fanlight_broker.core.topics import Canonical, canonical
from fanlight_broker.storage import records
from fanlight_broker.storage.facts import (
    GroupFact,
    MarkFact,
    SessionFact,
    SlotFact,
    SubscriptionFact,
    pair_of,
    unpacked,
)
from fanlight_broker.storage.records import ASSIGNED, GIVEN_UP, BadRecord, read_ended, read_head, read_moves


@dataclass(slots=True)
class StoredFlight:
    """A copy in flight."""

    slot: int  # of the window's queue: how it is written
    tag: int
    tag_only: bool = False


@dataclass(slots=True)
class StoredQueue:
    """A session's queue, and its window; or a group's queue."""

    id: int
    waiting: dict[int, int] = field(default_factory=dict)  # number -> slot
    lent: dict[int, int] = field(default_factory=dict)  # number of a copy in flight -> queue whose window has it
    # Of the window: (queue, number) -> flight, in the order in which they are to be sent again.
    flights: dict[tuple[int, int], StoredFlight] = field(default_factory=dict)


@dataclass(slots=True)
class StoredSession:
    fact: SessionFact
    queue: StoredQueue
    subscriptions: dict[int, SubscriptionFact] = field(default_factory=dict)
    unreleased: set[int] = field(default_factory=set)


class Image:
    """Apply records, then read the fields."""

    def __init__(self) -> None:
        self.sessions: dict[int, StoredSession] = {}
        self.groups: dict[int, GroupFact] = {}
        self.queues: dict[int, StoredQueue] = {}
        self.slots: dict[int, SlotFact] = {}
        self.retained: dict[Canonical, bytes] = {}  # topic, in either syntax -> record
        self.marks: dict[tuple[str, str], MarkFact] = {}
        self.messages: dict[int, bytes] = {}  # number -> record
        self.last_number = self.last_queue = self.last_slot = self.last_set = 0
        self.applied = 0  # records
        self._copies: dict[int, int] = {}  # number -> how many
        self._sets: dict[int, tuple[int, ...]] = {}
        self._apply = {
            records.MESSAGE: self._message,
            records.MOVES: self._moves,
            records.ENDED: self._ended,
            records.SLOT: self._slot,
            records.SLOT_SET: self._slot_set,
            records.RETAINED: self._retained,
            records.CLEARED: self._cleared,
            records.SESSION: self._session,
            records.SESSION_ENDED: self._session_ended,
            records.SUBSCRIBED: self._subscribed,
            records.UNSUBSCRIBED: self._unsubscribed,
            records.RECEIVED: self._received,
            records.RELEASED: self._released,
            records.GROUP: self._group,
            records.GROUP_ENDED: self._group_ended,
            records.MARK: self._mark,
        }

    def apply(self, type: int, body: bytes) -> None:
        """Raises BadRecord."""
        apply = self._apply.get(type)
        if apply is None:
            raise BadRecord(f"a record of type {type}, which this version does not know")
        self.applied += 1
        apply(body)

    # -- messages -----------------------------------------------------------------------------------------------------

    def _message(self, body: bytes) -> None:
        head = read_head(body)
        self.last_number = max(self.last_number, head.number)
        for slot in self._sets.get(head.slot_set, ()) if head.slot_set else head.slots:
            found = self.slots.get(slot)
            queue = self.queues.get(found.queue) if found is not None else None
            if queue is not None:
                self._add_copy(queue, head.number, slot)
        if head.number in self._copies:
            self.messages[head.number] = body

    def _add_copy(self, queue: StoredQueue, number: int, slot: int) -> None:
        if number not in queue.waiting and number not in queue.lent:
            self._copies[number] = self._copies.get(number, 0) + 1
        queue.waiting[number] = slot

    def _drop_copies(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            left = self._copies.get(number, 0) - 1
            if left > 0:
                self._copies[number] = left
            else:
                self._copies.pop(number, None)
                self.messages.pop(number, None)

    def _moves(self, body: bytes) -> None:
        for kind, queue_id, number, slot, tag in read_moves(body):
            queue = self.queues.get(queue_id)
            if queue is None:
                continue
            if kind == ASSIGNED:
                found = self.slots.get(slot)
                window = self.queues.get(found.queue) if found is not None else None
                if window is not None and number in queue.waiting:
                    del queue.waiting[number]
                    queue.lent[number] = window.id
                    window.flights[queue_id, number] = StoredFlight(slot, tag)
                continue
            window = self.queues.get(queue.lent.get(number, 0))
            flight = window.flights.pop((queue_id, number), None) if window is not None else None
            if flight is None or window is None:
                continue
            if kind == GIVEN_UP:
                flight.tag_only = True
                window.flights[queue_id, number] = flight  # behind the others
            else:
                queue.waiting[number] = 0
                del queue.lent[number]

    def _ended(self, body: bytes) -> None:
        for queue_id, first, last in read_ended(body):
            queue = self.queues.get(queue_id)
            if queue is None:
                continue
            for number in range(first, last + 1):
                window = self.queues.get(queue.lent.pop(number, 0))
                if window is not None:
                    del window.flights[queue_id, number]
                elif queue.waiting.pop(number, None) is None:
                    continue
                self._drop_copies((number,))

    def _slot(self, body: bytes) -> None:
        fact = SlotFact.read(body)
        self.slots[fact.number] = fact
        self.last_slot = max(self.last_slot, fact.number)
        self.last_queue = max(self.last_queue, fact.queue)

    def _slot_set(self, body: bytes) -> None:
        if len(body) < 8 or len(body) % 4:
            raise BadRecord(f"a set of slots in {len(body)} bytes")
        number, *slots = (int.from_bytes(body[at : at + 4], "little") for at in range(0, len(body), 4))
        self._sets[number] = tuple(slots)
        self.last_set = max(self.last_set, number)

    # -- retained messages and marks ----------------------------------------------------------------------------------

    def _retained(self, body: bytes) -> None:
        syntax, topic = records.topic_of(body)
        self.retained[canonical(topic, syntax)] = body

    def _cleared(self, body: bytes) -> None:
        syntax, topic = unpacked(body)
        self.retained.pop(canonical(topic, syntax), None)

    def _mark(self, body: bytes) -> None:
        fact = MarkFact.read(body)
        self.marks.pop(fact[:2], None)  # the one used last stands at the end
        self.marks[fact[:2]] = fact

    # -- sessions and groups ------------------------------------------------------------------------------------------

    def _session(self, body: bytes) -> None:
        fact = SessionFact.read(body)
        self.last_queue = max(self.last_queue, fact.id)
        found = self.sessions.get(fact.id)
        if found is not None:
            found.fact = fact
        else:
            self.queues[fact.id] = queue = StoredQueue(fact.id)
            self.sessions[fact.id] = StoredSession(fact, queue)

    def _session_ended(self, body: bytes) -> None:
        id, _ = pair_of(body)
        if self.sessions.pop(id, None) is not None:
            self._drop_queue(id)

    def _drop_queue(self, id: int) -> None:
        """A session has ended, or a group. What its window had of groups is waiting there again, unless it has ended:
        then that follows in the same entry.
        """
        queue = self.queues.pop(id)
        for queue_id, number in queue.flights:
            origin = self.queues.get(queue_id)
            if origin is not None:
                del origin.lent[number]
                origin.waiting[number] = 0
        self._drop_copies(queue.waiting)
        for number, window_id in queue.lent.items():
            if window_id != id:
                del self.queues[window_id].flights[id, number]
        self._drop_copies(queue.lent)

    def _subscribed(self, body: bytes) -> None:
        fact = SubscriptionFact.read(body)
        session = self.sessions.get(fact.session)
        if session is not None:
            session.subscriptions[fact.number] = fact

    def _unsubscribed(self, body: bytes) -> None:
        id, number = pair_of(body)
        session = self.sessions.get(id)
        if session is not None:
            session.subscriptions.pop(number, None)

    def _received(self, body: bytes) -> None:
        id, identifier = pair_of(body)
        session = self.sessions.get(id)
        if session is not None:
            session.unreleased.add(identifier)

    def _released(self, body: bytes) -> None:
        id, identifier = pair_of(body)
        session = self.sessions.get(id)
        if session is not None:
            session.unreleased.discard(identifier)

    def _group(self, body: bytes) -> None:
        fact = GroupFact.read(body)
        self.last_queue = max(self.last_queue, fact.id)
        self.groups[fact.id] = fact
        if fact.id not in self.queues:
            self.queues[fact.id] = StoredQueue(fact.id)

    def _group_ended(self, body: bytes) -> None:
        id, _ = pair_of(body)
        self.groups.pop(id, None)
