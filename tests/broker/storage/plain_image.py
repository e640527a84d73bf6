"""`storage.image` in plain Python, to compare with.

What the records of a log amount to: sessions, queues and messages as they were when the last entry was synced.

Records are applied in the order of the log, from its floor on. There a round begins (checkpoint.py), which says once
more what is known, among the changes that went on meanwhile. So a change is applied whatever is known: of a queue that
is not known yet, too, for its window may be. Messages have numbers here, and are not kept.
"""

import struct
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from fanlight_broker.core.topics import Canonical, canonical
from fanlight_broker.storage import records
from fanlight_broker.storage.facts import (
    DeclarationFact,
    DelayedFact,
    GroupFact,
    MarkFact,
    QueueFact,
    RoundFact,
    SessionFact,
    SubscriptionFact,
    pair_of,
    read_fact,
    unpacked,
)
from fanlight_broker.storage.message_records import read_head
from fanlight_broker.storage.number_list import NumberList
from fanlight_broker.storage.records import (
    ASSIGNED,
    GIVEN_UP,
    TRIED,
    BadRecord,
    read_ended,
    read_in_flight,
    read_moves,
    read_waiting,
)
from fanlight_broker.storage.waiting_numbers import WaitingNumbers
from fanlight_broker.wire.due_table import DueTable

Copy = tuple[int, int]  # queue and number


class SlotFact(NamedTuple):
    """SLOT: a queue, and how its copies are written; None in the queue of a group, where the member says it."""

    number: int
    queue: int
    variant: tuple[int, int, bytes] | None  # quality, RetainRule, identifiers


HEAD = struct.Struct("<QQIIIIiHBBBB")  # of a MESSAGE
SHORT_HEAD = struct.Struct("<QHHHBBHBBBB")
FORM_AT, SHORT = 15, 0xFF


def topic_of(body: bytes) -> tuple[int, bytes]:
    """(number of the syntax, topic) of a message without slots."""
    if body[FORM_AT] == SHORT:
        _, _, _, topic_size, _, _, _, syntax, family_size, *_ = SHORT_HEAD.unpack_from(body)
        at = SHORT_HEAD.size + family_size
    else:
        *_, topic_size, _, syntax, family_size, _ = HEAD.unpack_from(body)
        at = HEAD.size + family_size
    return syntax, body[at : at + topic_size]


@dataclass(slots=True)
class StoredFlight:
    """A copy in flight."""

    slot: int  # of the window's queue: how it is written
    tag: int
    tag_only: bool = False


@dataclass(slots=True)
class StoredQueue:
    """A session's queue, and its window; a group's queue; or a named queue, where all waits that is not ended."""

    id: int
    waiting: WaitingNumbers = field(default_factory=WaitingNumbers)  # times of expiry are wall-clock times
    # Of the window, in the order in which they are to be sent again.
    flights: dict[Copy, StoredFlight] = field(default_factory=dict)
    # Of a named queue: number -> deliveries so far, and when it may be delivered again, in ms since 1970, or 0.
    tried: dict[int, tuple[int, int]] = field(default_factory=dict)
    ttl: float = inf  # of a named queue: seconds that a message may wait


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
        self.named: dict[int, QueueFact] = {}
        self.queues: dict[int, StoredQueue] = {}  # of all three
        self.slots: dict[int, SlotFact] = {}
        # Topic, in either syntax, or (namespace, topic) -> record.
        self.retained: dict[Canonical | tuple[str, Canonical], bytes] = {}
        self.marks: dict[tuple[str, str], MarkFact] = {}
        self.declarations: dict[tuple[str, bytes], DeclarationFact] = {}
        self.delayed = DueTable()  # times are wall-clock times
        # Of these, by number: principal, name, protocol, whether it is a session, namespace.
        self.delayed_publishers: dict[tuple[str, str, str, bool, str | None], int] = {}
        self.last_number = self.last_queue = self.last_slot = self.last_set = 0
        self.applied = 0  # records
        self._windows: dict[Copy, StoredQueue] = {}  # of copies in flight
        self._sets: dict[int, tuple[int, ...]] = {}
        self._apply = {
            records.MESSAGE: self._message,
            records.MOVES: self._moves,
            records.ENDED: self._ended,
            records.SLOT: self._slot,
            records.SLOT_SET: self._slot_set,
            records.RETAINED: self._retained,
            records.RETAINED_IN: self._retained_in,
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
            records.DECLARED: self._declared,
            records.UNDECLARED: self._undeclared,
            records.QUEUE: self._queue,
            records.QUEUE_ENDED: self._queue_ended,
            records.DELAYED: self._delayed,
            records.DELAYED_DONE: self._delayed_done,
            records.ROUND: self._round,
            records.WAITING: self._waiting,
            records.IN_FLIGHT: self._in_flight,
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
                queue.waiting.add(head.number, slot, head.nbytes, min(head.expires, head.came + queue.ttl))

    def _moves(self, body: bytes) -> None:
        for kind, queue_id, number, slot, tag in read_moves(body):
            copy = queue_id, number
            if kind == TRIED:
                if queue_id in self.queues:
                    self.queues[queue_id].tried[number] = slot, tag
                continue
            if kind == ASSIGNED:
                self._take(copy)
                found = self.slots.get(slot)
                window = self.queues.get(found.queue) if found is not None else None
                if window is not None:
                    self._send(window, copy, StoredFlight(slot, tag))
            elif kind == GIVEN_UP:
                window = self._windows.get(copy)
                if window is not None:
                    flight = window.flights.pop(copy)
                    flight.tag_only = True
                    window.flights[copy] = flight  # behind the others
            else:
                window = self._windows.pop(copy, None)
                if window is not None:
                    del window.flights[copy]
                if queue_id in self.queues:
                    self.queues[queue_id].waiting.put_again(number, 0)

    def _ended(self, body: bytes) -> None:
        for queue_id, first, last in read_ended(body):
            for number in range(first, last + 1):
                if queue_id == 0:  # a repair gives up a delayed message
                    self.delayed.discard(number)
                self._take((queue_id, number))

    def _take(self, copy: Copy) -> None:
        """It is no more where it was."""
        window = self._windows.pop(copy, None)
        if window is not None:
            del window.flights[copy]
            return
        queue = self.queues.get(copy[0])
        if queue is not None:
            queue.waiting.remove(copy[1])
            if queue.tried:
                queue.tried.pop(copy[1], None)

    def _send(self, window: StoredQueue, copy: Copy, flight: StoredFlight) -> None:
        self._windows[copy] = window
        window.flights[copy] = flight

    def _round(self, body: bytes) -> None:
        fact = read_fact(RoundFact, body)
        self.last_number, self.last_queue = max(self.last_number, fact.number), max(self.last_queue, fact.queue)
        self.last_slot, self.last_set = max(self.last_slot, fact.slot), max(self.last_set, fact.set)

    def _waiting(self, body: bytes) -> None:
        id, more, at = read_waiting(body)
        queue = self.queues.get(id)
        if queue is None:
            return
        numbers = NumberList()
        numbers.read(body, at)
        if not more and id in self.groups:
            queue.waiting.restate(numbers)
            return
        if not more:
            queue.waiting.replace(numbers)
            queue.tried.clear()
            return
        for slot, first, last in numbers.runs():
            for number in range(first, last + 1):
                queue.waiting.put_again(number, slot)

    def _in_flight(self, body: bytes) -> None:
        id, flights = read_in_flight(body)
        window = self.queues.get(id)
        if window is None:
            return
        for copy in window.flights:
            del self._windows[copy]
        window.flights.clear()
        for queue_id, number, slot, tag, tag_only in flights:
            self._take((queue_id, number))
            self._send(window, (queue_id, number), StoredFlight(slot, tag, tag_only))

    def _slot(self, body: bytes) -> None:
        fact = read_fact(SlotFact, body)
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
        syntax, topic = topic_of(body)
        self.retained[canonical(topic, syntax)] = body

    def _retained_in(self, body: bytes) -> None:
        size = body[0] + 1
        syntax, topic = topic_of(body[size:])
        self.retained[body[1:size].decode(), canonical(topic, syntax)] = body[size:]

    def _cleared(self, body: bytes) -> None:
        syntax, topic, *namespace = unpacked(body)
        key = canonical(topic, syntax)
        self.retained.pop((namespace[0], key) if namespace else key, None)

    def _declared(self, body: bytes) -> None:
        fact = read_fact(DeclarationFact, body)
        self.declarations[fact[:2]] = fact

    def _undeclared(self, body: bytes) -> None:
        self.declarations.pop(read_fact(DeclarationFact, body)[:2], None)

    def _mark(self, body: bytes) -> None:
        fact = read_fact(MarkFact, body)
        self.marks.pop(fact[:2], None)  # the one used last stands at the end
        self.marks[fact[:2]] = fact

    def _delayed(self, body: bytes) -> None:
        fact = read_fact(DelayedFact, body)
        if fact.id < 1:
            raise BadRecord("a delayed message without a number")
        publisher = self.delayed_publishers.setdefault(fact[3:], len(self.delayed_publishers))
        self.delayed.discard(fact.id)
        self.delayed.add(fact.id, fact.due, fact.nbytes, publisher)

    def _delayed_done(self, body: bytes) -> None:
        id, _ = pair_of(body)
        self.delayed.discard(id)

    # -- sessions and groups ------------------------------------------------------------------------------------------

    def _session(self, body: bytes) -> None:
        fact = read_fact(SessionFact, body)
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
        """A session, a named queue or a group has ended. What a window had of groups waits there again, if they
        have not ended.
        """
        queue = self.queues.pop(id)
        for copy in queue.flights:
            del self._windows[copy]
            origin = self.queues.get(copy[0])
            if origin is not None:
                origin.waiting.put_again(copy[1], 0)

    def _subscribed(self, body: bytes) -> None:
        fact = read_fact(SubscriptionFact, body)
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

    def _queue(self, body: bytes) -> None:
        fact = read_fact(QueueFact, body)
        self.last_queue = max(self.last_queue, fact.id)
        self.named[fact.id] = fact
        if fact.id not in self.queues:
            self.queues[fact.id] = StoredQueue(fact.id)
        self.queues[fact.id].ttl = fact.message_seconds if fact.message_seconds is not None else inf

    def _queue_ended(self, body: bytes) -> None:
        id, _ = pair_of(body)
        if self.named.pop(id, None) is not None:
            self._drop_queue(id)

    def _group(self, body: bytes) -> None:
        fact = read_fact(GroupFact, body)
        self.last_queue = max(self.last_queue, fact.id)
        self.groups[fact.id] = fact
        if fact.id not in self.queues:
            self.queues[fact.id] = StoredQueue(fact.id)

    def _group_ended(self, body: bytes) -> None:
        id, _ = pair_of(body)
        if self.groups.pop(id, None) is not None:
            self._drop_queue(id)
