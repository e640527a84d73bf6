# cython: language_level=3
"""What the records of a log amount to: sessions, queues and messages as they were when the last entry was synced.

Records are applied in the order of the log, from its floor on. There a round begins (checkpoint.py), which says once
more what is known, among the changes that went on meanwhile. So a change is applied whatever is known: of a queue that
is not known yet, too, for its window may be. Messages have numbers here, and are not kept.

tests/broker/storage/plain_image.py is the same in plain Python, to compare with.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.storage cimport records
from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.message_records cimport Places, places_of, topic_at
from fanlight_broker.storage.number_list cimport NumberList
from fanlight_broker.storage.records cimport ASSIGNED, GIVEN_UP, TRIED, first_of, name_of, second_of
from fanlight_broker.storage.stored_state cimport (
    StoredFlight, StoredQueue, StoredSession, StoredSlot, first_numbers, new_flight, new_session, slot_of,
)
from fanlight_broker.wire.due_table cimport DueTable
from fanlight_broker.core.topics import SYNTAXES, canonical
from fanlight_broker.storage.facts import (
    DeclarationFact, DelayedFact, GroupFact, MarkFact, QueueFact, RoundFact, SessionFact, SubscriptionFact,
    least_fields, read_fact, unpacked,
)
from fanlight_broker.storage.records import (
    TYPES, BadRecord, read_ended, read_in_flight, read_moves, read_waiting,
)

cdef enum:
    LOOK = 4_096    # records between two calls of `progress`
    DELAYED_BYTES = 64    # of a record DELAYED, about

cdef int SESSION_FIELDS = least_fields(SessionFact), SUBSCRIPTION_FIELDS = least_fields(SubscriptionFact)
cdef int SLASHES = SYNTAXES.index("mqtt")    # the syntax whose topics are keys as they are: core.topics.canonical


def type_name(int type):
    known = TYPES[type] if 0 < type < len(TYPES) else ""
    return known or f"record of type {type}"


cdef class Image:
    """Apply records, then read the fields."""

    def __cinit__(self):
        self.sessions, self.groups, self.named, self.queues, self.slots = {}, {}, {}, {}, {}
        self.retained, self.marks, self.windows, self.sets = {}, {}, {}, {}
        self.delayed, self.delayed_publishers = DueTable(), {}
        self.declarations = {}

    def read(self, Log log not None, uint64_t after=0, progress=None):
        """Apply all that a log has, from its floor on or behind the entry `after`; it is appended to then.

        progress  called with this now and then
        BadRecord says which entry it is of. LogError, OSError: those of the log.
        """
        cdef LogReader reader = log.open_reader(after)
        try:
            while reader.next_record():
                self.take_in(reader.type, reader.body, reader.size)
                if self.applied % LOOK == 0 and progress is not None:
                    self.share = reader.share()
                    progress(self)
        except BadRecord as error:
            raise BadRecord(f"entry {reader.sequence}, {type_name(reader.type)}: {error}") from error
        self.share = 1
        log.begin()

    def apply(self, int type, bytes body not None):
        """Apply one record. Raises BadRecord."""
        self.take_in(type, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))

    @property
    def messages(self):
        """Copies that wait or are in flight."""
        cdef StoredQueue queue
        cdef Py_ssize_t total = len(self.windows)
        for queue in self.queues.values():
            total += len(queue.waiting)
        return total

    @property
    def nbytes(self):
        """About what a round would write: the records that say all this once more."""
        cdef StoredSession session
        cdef StoredQueue queue
        cdef bytes body
        cdef uint64_t total = 0
        for session in self.sessions.values():
            total += session.nbytes
        for queue in self.queues.values():
            total += queue.waiting.numbers.memory
        for body in self.retained.values():
            total += PyBytes_GET_SIZE(body)
        for fact in self.declarations.values():
            total += len(fact.key) + len(fact.body)
        return total + DELAYED_BYTES * len(self.delayed)

    cdef int take_in(self, int type, const char* at, Py_ssize_t size) except -1:
        cdef bytes body
        self.applied += 1
        if type == records.MESSAGE:
            return self.message(at, size)
        if type == records.SLOT:
            return self.slot(at, size)
        body = PyBytes_FromStringAndSize(at, size)
        if type == records.ENDED:
            return self.ended(body)
        if type == records.MOVES:
            return self.moves(body)
        if type == records.RETAINED:
            return self.retain(body)
        if type == records.SUBSCRIBED:
            return self.subscribed(body)
        if type == records.SESSION:
            return self.session(body)
        if type == records.WAITING:
            return self.waiting(body)
        return self.take_in_rare(type, body)

    cdef int take_in_rare(self, int type, bytes body) except -1:
        if type == records.IN_FLIGHT:
            return self.in_flight(body)
        if type == records.UNSUBSCRIBED:
            return self.unsubscribed(body)
        if type == records.SESSION_ENDED:
            return self.session_ended(body)
        if type == records.RECEIVED or type == records.RELEASED:
            return self.identifier(body, type == records.RECEIVED)
        if type == records.SLOT_SET:
            return self.slot_set(body)
        if type == records.CLEARED:
            return self.cleared(body)
        if type == records.MARK:
            return self.mark(body)
        if type == records.DELAYED or type == records.DELAYED_DONE:
            return self.delay(body, type == records.DELAYED)
        if type == records.DECLARED or type == records.UNDECLARED:
            return self.declare(body, type == records.DECLARED)
        if type == records.ROUND:
            return self.round(body)
        if type == records.QUEUE or type == records.QUEUE_ENDED:
            return self.queue(body) if type == records.QUEUE else self.queue_ended(body)
        if type == records.RETAINED_IN:
            return self.retain_in(body)
        if type == records.GROUP or type == records.GROUP_ENDED:
            return self.group(body) if type == records.GROUP else self.group_ended(body)
        raise BadRecord(f"a record of type {type}, which this version does not know")

    # -- messages -----------------------------------------------------------------------------------------------------

    cdef int message(self, const char* body, Py_ssize_t size) except -1:
        cdef Places places
        cdef bytes members
        cdef uint32_t slot
        cdef const char* at
        cdef int i, count
        places_of(&places, body, size)
        self.last_number = max(self.last_number, places.number)
        at, count = places.slots, places.count
        if places.as_set:
            memcpy(&slot, at, sizeof(slot))
            members = self.sets.get(slot, b"")
            at, count = PyBytes_AS_STRING(members), <int> (PyBytes_GET_SIZE(members) // <Py_ssize_t> sizeof(slot))
        for i in range(count):
            memcpy(&slot, at + i * sizeof(slot), sizeof(slot))
            self.put(slot, &places)
        return 0

    cdef int put(self, uint32_t slot, Places* places) except -1:
        """A message went to the queue of a slot."""
        cdef StoredQueue queue = self.owner(slot)
        if queue is not None:
            queue.waiting.add(places.number, slot, places.octets, min(places.expires, places.came + queue.ttl))
        return 0

    cdef StoredQueue owner(self, uint32_t number):
        """The queue of a slot; None: it is not known, or has ended."""
        cdef void* found = PyDict_GetItem(self.slots, number)
        cdef StoredSlot slot
        if found is NULL:
            return None
        slot = <StoredSlot> found
        if slot.owner is None or slot.owner.ended:
            slot.owner = self.queues.get(slot.queue)
        return slot.owner

    cdef int moves(self, bytes body) except -1:
        cdef uint64_t id, number, tag
        cdef uint32_t slot
        cdef int kind
        for kind, id, number, slot, tag in read_moves(body):
            if kind == ASSIGNED:
                self.take(id, number)
                window = self.owner(slot)
                if window is not None:
                    self.send(window, (id, number), new_flight(slot, tag, False))
            elif kind == GIVEN_UP:
                self.give_up((id, number))
            elif kind == TRIED:
                self.try_once(id, number, slot, tag)
            else:
                self.put_again(id, number)
        return 0

    cdef int try_once(self, uint64_t id, uint64_t number, uint32_t deliveries, uint64_t due) except -1:
        cdef StoredQueue queue = self.queues.get(id)
        if queue is not None:
            if queue.tries is None:
                queue.tries = {}
            queue.tries[number] = deliveries, due
        return 0

    cdef int give_up(self, tuple copy) except -1:
        cdef StoredQueue window = self.windows.get(copy)
        cdef StoredFlight flight
        if window is not None:
            flight = window.sent.pop(copy)
            flight.tag_only = True
            window.sent[copy] = flight    # behind the others
        return 0

    cdef int put_again(self, uint64_t id, uint64_t number) except -1:
        """A copy that was in flight waits again."""
        cdef StoredQueue window = self.windows.pop((id, number), None), queue = self.queues.get(id)
        if window is not None:
            del window.sent[id, number]
        if queue is not None:
            queue.waiting.put_again(number, 0)
        return 0

    cdef int ended(self, bytes body) except -1:
        cdef uint64_t id, first, last, number
        for id, first, last in read_ended(body):
            for number in range(first, last + 1):
                if id == 0:    # a repair gives up a delayed message
                    self.delayed.discard(number)
                self.take(id, number)
        return 0

    cdef int take(self, uint64_t id, uint64_t number) except -1:
        """A copy is no more where it was."""
        cdef StoredQueue window, queue
        if self.windows:
            window = self.windows.pop((id, number), None)
            if window is not None:
                del window.sent[id, number]
                return 0
        queue = self.queues.get(id)
        if queue is not None:
            queue.waiting.remove(number)
            if queue.tries is not None:
                queue.tries.pop(number, None)
        return 0

    cdef int send(self, StoredQueue window, tuple copy, StoredFlight flight) except -1:
        self.windows[copy] = window
        if window.sent is None:
            window.sent = {}
        window.sent[copy] = flight
        return 0

    cdef int waiting(self, bytes body) except -1:
        cdef NumberList numbers
        cdef StoredQueue queue
        cdef uint64_t id, first, last, number
        cdef uint32_t slot
        cdef Py_ssize_t at
        cdef bint more
        id, more, at = read_waiting(body)
        queue = self.queues.get(id)
        if queue is None:
            return 0
        numbers = NumberList()
        numbers.read(body, at)
        if not more and id in self.groups:
            queue.waiting.restate(numbers)
            return 0
        if not more:
            queue.waiting.replace(numbers)
            queue.tries = None
            return 0
        for slot, first, last in numbers.runs():
            for number in range(first, last + 1):
                queue.waiting.put_again(number, slot)
        return 0

    cdef int in_flight(self, bytes body) except -1:
        cdef StoredQueue window
        cdef uint64_t id, number, tag
        cdef uint32_t slot
        cdef bint tag_only
        id, flights = read_in_flight(body)
        window = self.queues.get(id)
        if window is None:
            return 0
        if window.sent is not None:
            for copy in window.sent:
                del self.windows[copy]
            window.sent = None
        for id, number, slot, tag, tag_only in flights:
            self.take(id, number)
            self.send(window, (id, number), new_flight(slot, tag, tag_only))
        return 0

    cdef int round(self, bytes body) except -1:
        fact = read_fact(RoundFact, body)
        self.last_number, self.last_queue = max(self.last_number, fact.number), max(self.last_queue, fact.queue)
        self.last_slot, self.last_set = max(self.last_slot, fact.slot), max(self.last_set, fact.set)
        return 0

    cdef int slot(self, const char* body, Py_ssize_t size) except -1:
        cdef StoredSlot slot = slot_of(body, size)
        self.slots[slot.number] = slot
        self.last_slot = max(self.last_slot, <uint64_t> slot.number)
        self.last_queue = max(self.last_queue, slot.queue)
        return 0

    cdef int slot_set(self, bytes body) except -1:
        cdef uint32_t number
        if len(body) < 8 or len(body) % 4:
            raise BadRecord(f"a set of slots in {len(body)} bytes")
        memcpy(&number, PyBytes_AS_STRING(body), sizeof(number))
        self.sets[number] = body[4:]
        self.last_set = max(self.last_set, <uint64_t> number)
        return 0

    # -- retained and delayed messages, and marks ---------------------------------------------------------------------

    cdef int retain(self, bytes body) except -1:
        cdef int syntax = 0
        cdef bytes topic = topic_at(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body), &syntax)
        self.retained[self.key(topic, syntax)] = body
        return 0

    cdef int retain_in(self, bytes body) except -1:
        """The same in a namespace, whose name stands before it."""
        cdef int syntax = 0
        cdef Py_ssize_t size = body[0] + 1 if PyBytes_GET_SIZE(body) else 0
        cdef bytes inner = body[size:], topic
        if not 1 < size < PyBytes_GET_SIZE(body):
            raise BadRecord("a retained message without a namespace")
        topic = topic_at(PyBytes_AS_STRING(inner), PyBytes_GET_SIZE(inner), &syntax)
        self.retained[name_of(body[1:size]), self.key(topic, syntax)] = inner
        return 0

    cdef object key(self, bytes topic, int syntax):
        """Of a topic in either syntax. Raises BadRecord."""
        if syntax == SLASHES:
            return topic
        if not 0 <= syntax < len(SYNTAXES):
            raise BadRecord(f"a topic in syntax {syntax}")
        return canonical(topic, syntax)

    cdef int cleared(self, bytes body) except -1:
        syntax, topic, *namespace = unpacked(body)
        key = self.key(topic, syntax)
        self.retained.pop((namespace[0], key) if namespace else key, None)
        return 0

    cdef int mark(self, bytes body) except -1:
        fact = read_fact(MarkFact, body)
        self.marks.pop(fact[:2], None)    # the one used last stands at the end
        self.marks[fact[:2]] = fact
        return 0

    cdef int declare(self, bytes body, bint begins) except -1:
        fact = read_fact(DeclarationFact, body)
        if not (isinstance(fact.owner, str) and isinstance(fact.key, bytes) and isinstance(fact.body, bytes)):
            raise BadRecord("a declaration that is not a text and two strings of bytes")
        if begins:
            self.declarations[fact[:2]] = fact
        else:
            self.declarations.pop(fact[:2], None)
        return 0

    cdef int delay(self, bytes body, bint begins) except -1:
        if not begins:
            self.delayed.discard(first_of(body))
            return 0
        fact = read_fact(DelayedFact, body)
        if not 0 < fact.id <= 0xFFFFFFFFFFFFFFFF:
            raise BadRecord(f"a delayed message with the number {fact.id}")
        publisher = self.delayed_publishers.setdefault(fact[3:], len(self.delayed_publishers))
        self.delayed.discard(fact.id)
        self.delayed.add(fact.id, fact.due, fact.nbytes, publisher)
        return 0

    # -- sessions, groups and named queues ----------------------------------------------------------------------------

    cdef int session(self, bytes body) except -1:
        cdef uint64_t id
        cdef StoredSession found
        first_numbers(body, SESSION_FIELDS, &id, 1)
        self.last_queue = max(self.last_queue, id)
        found = self.sessions.get(id)
        if found is not None:
            found.body = body
        else:
            self.queues[id] = queue = StoredQueue(id)
            self.sessions[id] = new_session(body, queue)
        return 0

    cdef int session_ended(self, bytes body) except -1:
        cdef uint64_t id = first_of(body)
        if self.sessions.pop(id, None) is not None:
            self.drop_queue(id)
        return 0

    cdef int drop_queue(self, uint64_t id) except -1:
        """A session, a named queue or a group has ended. What a window had of groups waits there again, if they
        have not ended.
        """
        cdef StoredQueue queue = self.queues.pop(id), origin
        queue.ended = True
        for copy in queue.flights:
            del self.windows[copy]
            origin = self.queues.get(copy[0])
            if origin is not None:
                origin.waiting.put_again(copy[1], 0)
        return 0

    cdef int subscribed(self, bytes body) except -1:
        cdef uint64_t[2] numbers    # the session's, and its own
        cdef StoredSession session
        first_numbers(body, SUBSCRIPTION_FIELDS, numbers, 2)
        session = self.sessions.get(numbers[0])
        if session is not None:
            if session.filters is None:
                session.filters = {}
            session.filters[numbers[1]] = body
        return 0

    cdef int unsubscribed(self, bytes body) except -1:
        cdef StoredSession session = self.sessions.get(first_of(body))
        if session is not None and session.filters is not None:
            session.filters.pop(second_of(body), None)
        return 0

    cdef int identifier(self, bytes body, bint received) except -1:
        cdef StoredSession session = self.sessions.get(first_of(body))
        if session is not None and received:
            if session.identifiers is None:
                session.identifiers = set()
            session.identifiers.add(second_of(body))
        elif session is not None and session.identifiers is not None:
            session.identifiers.discard(second_of(body))
        return 0

    cdef StoredQueue begin_queue(self, uint64_t id):
        """The queue of a group, or a named queue, from now on."""
        cdef StoredQueue queue = self.queues.get(id)
        self.last_queue = max(self.last_queue, id)
        if queue is None:
            self.queues[id] = queue = StoredQueue(id)
        return queue

    cdef int queue(self, bytes body) except -1:
        fact = read_fact(QueueFact, body)
        self.named[fact.id] = fact
        self.begin_queue(fact.id).ttl = fact.message_seconds if fact.message_seconds is not None else INFINITY
        return 0

    cdef int queue_ended(self, bytes body) except -1:
        cdef uint64_t id = first_of(body)
        if self.named.pop(id, None) is not None:
            self.drop_queue(id)
        return 0

    cdef int group(self, bytes body) except -1:
        fact = read_fact(GroupFact, body)
        self.groups[fact.id] = fact
        self.begin_queue(fact.id)
        return 0

    cdef int group_ended(self, bytes body) except -1:
        cdef uint64_t id = first_of(body)
        if self.groups.pop(id, None) is not None:
            self.drop_queue(id)
        return 0
