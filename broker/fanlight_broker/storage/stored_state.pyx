# cython: language_level=3
"""What a log says of sessions and queues: see stored_state.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.waiting_numbers cimport WaitingNumbers
from fanlight_broker.wire.msgpack cimport (
    NO_FAULT, Fault, MsgpackCursor, array_header, is_nil, octets, unsigned_integer,
)
from fanlight_broker.storage.facts import SessionFact, SubscriptionFact, least_fields, read_fact
from fanlight_broker.storage.records import BadRecord

cdef int SUBSCRIPTION_FIELDS = least_fields(SubscriptionFact)


cdef class StoredFlight:
    pass


cdef class StoredQueue:
    def __cinit__(self, uint64_t id):
        self.id, self.ttl = id, INFINITY
        self.waiting = WaitingNumbers.__new__(WaitingNumbers)

    @property
    def empty(self):
        """Has it nothing that waits, and its window nothing in flight?"""
        return not self.sent and len(self.waiting) == 0

    @property
    def flights(self):
        """Of the window, {(queue, number): StoredFlight} in the order in which they are to be sent again."""
        return self.sent if self.sent is not None else {}

    @property
    def tried(self):
        """Of a named queue, {number: (deliveries so far, when it may be delivered again)}: in ms since 1970, or 0."""
        return self.tries if self.tries is not None else {}


cdef class StoredSession:
    @property
    def fact(self):
        """SessionFact. Raises BadRecord."""
        return read_fact(SessionFact, self.body)

    @property
    def subscriptions(self):
        """{number: SubscriptionFact}. Raises BadRecord."""
        if self.filters is None:
            return {}
        return {number: read_fact(SubscriptionFact, body) for number, body in self.filters.items()}

    def filters_in_order(self):
        """[the fields of a SubscriptionFact, ...], the one made first at the front. Raises BadRecord."""
        cdef bytes body
        cdef list found = []
        if self.filters is not None:
            for body in self.filters.values():
                found.append(subscription_fields(body))
        return found

    @property
    def subscription_count(self):
        return len(self.filters) if self.filters is not None else 0

    @property
    def unreleased(self):
        """The packet identifiers of QoS 2 that were received."""
        return self.identifiers if self.identifiers is not None else set()

    @property
    def nbytes(self):
        """Of its records."""
        cdef bytes body
        cdef Py_ssize_t total = PyBytes_GET_SIZE(self.body)
        if self.filters is not None:
            for body in self.filters.values():
                total += PyBytes_GET_SIZE(body)
        return total


cdef class StoredSlot:
    @property
    def variant(self):
        """(quality, RetainRule, identifiers), or None in the queue of a group."""
        return None if self.identifiers is None else (self.quality, self.retain, self.identifiers)


cdef StoredFlight new_flight(uint32_t slot, uint64_t tag, bint tag_only):
    cdef StoredFlight flight = StoredFlight.__new__(StoredFlight)
    flight.slot, flight.tag, flight.tag_only = slot, tag, tag_only
    return flight


cdef StoredSession new_session(bytes body, StoredQueue queue):
    cdef StoredSession session = StoredSession.__new__(StoredSession)
    session.body, session.queue = body, queue
    return session


cdef tuple subscription_fields(bytes body):
    """Of a SUBSCRIBED record, in the order of SubscriptionFact. Raises BadRecord."""
    cdef MsgpackCursor cursor
    cdef uint32_t fields = 0
    cdef uint64_t session = 0, number = 0, syntax = 0, quality = 0, retain = 0
    cdef const unsigned char* filter = NULL
    cdef const unsigned char* identifiers = NULL
    cdef Py_ssize_t filter_size = 0, identifiers_size = 0
    cdef bint is_str
    cdef int no_echo
    cursor.at = <const unsigned char*> PyBytes_AS_STRING(body)
    cursor.end = cursor.at + PyBytes_GET_SIZE(body)
    if array_header(&cursor, &fields) == NO_FAULT and fields == <uint32_t> SUBSCRIPTION_FIELDS \
            and unsigned_integer(&cursor, &session) == NO_FAULT and unsigned_integer(&cursor, &number) == NO_FAULT \
            and octets(&cursor, False, True, &filter, &filter_size, &is_str) == NO_FAULT \
            and unsigned_integer(&cursor, &syntax) == NO_FAULT and is_nil(&cursor) \
            and unsigned_integer(&cursor, &quality) == NO_FAULT and boolean(&cursor, &no_echo) \
            and unsigned_integer(&cursor, &retain) == NO_FAULT \
            and octets(&cursor, False, True, &identifiers, &identifiers_size, &is_str) == NO_FAULT:
        return (
            session, number, PyBytes_FromStringAndSize(<const char*> filter, filter_size), syntax, None, quality,
            no_echo != 0, retain, PyBytes_FromStringAndSize(<const char*> identifiers, identifiers_size),
            None,
        )
    return tuple(read_fact(SubscriptionFact, body))    # in a group, with a selector, or it makes no sense


cdef bint boolean(MsgpackCursor* cursor, int* value) noexcept:
    """False: it is not one."""
    if cursor.at >= cursor.end or cursor.at[0] & 0xFE != 0xC2:
        return False
    value[0] = cursor.at[0] & 1
    cursor.at += 1
    return True


cdef StoredSlot slot_of(const char* body, Py_ssize_t size):
    """A SLOT record: number, queue, [quality, RetainRule, identifiers] or nil. Raises BadRecord."""
    cdef MsgpackCursor cursor
    cdef StoredSlot slot = StoredSlot.__new__(StoredSlot)
    cdef uint32_t fields = 0
    cdef uint64_t number = 0, queue = 0, quality = 0, retain = 0
    cdef const unsigned char* start = NULL
    cdef Py_ssize_t length = 0
    cdef bint is_str
    cdef Fault fault
    cursor.at, cursor.end = <const unsigned char*> body, <const unsigned char*> body + size
    fault = array_header(&cursor, &fields)
    if fault == NO_FAULT and fields >= 3:
        fault = unsigned_integer(&cursor, &number) or unsigned_integer(&cursor, &queue)
        if fault == NO_FAULT and number <= 0xFFFFFFFF:
            slot.number, slot.queue = <uint32_t> number, queue
            if is_nil(&cursor):
                return slot
            fault = array_header(&cursor, &fields) or unsigned_integer(&cursor, &quality) \
                or unsigned_integer(&cursor, &retain) or octets(&cursor, False, True, &start, &length, &is_str)
            if fault == NO_FAULT and fields >= 3 and quality <= 0xFF and retain <= 0xFF:
                slot.quality, slot.retain = <unsigned char> quality, <unsigned char> retain
                slot.identifiers = PyBytes_FromStringAndSize(<const char*> start, length)
                return slot
    raise BadRecord(f"a slot in {size} bytes that make no sense")


cdef int first_numbers(bytes body, int least, uint64_t* numbers, int count) except -1:
    """The first numbers of a msgpack array of `least` fields or more. Raises BadRecord."""
    cdef MsgpackCursor cursor
    cdef uint32_t fields = 0
    cdef int i
    cursor.at = <const unsigned char*> PyBytes_AS_STRING(body)
    cursor.end = cursor.at + PyBytes_GET_SIZE(body)
    if array_header(&cursor, &fields) != NO_FAULT:
        raise BadRecord("no msgpack array")
    if fields < <uint32_t> least:
        raise BadRecord(f"{fields} fields in place of {least}")
    for i in range(count):
        if unsigned_integer(&cursor, &numbers[i]) != NO_FAULT:
            raise BadRecord(f"field {i} is no number")
    return 0
