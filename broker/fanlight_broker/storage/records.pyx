# cython: language_level=3
"""The records of the log: encoding and decoding of those that are many. Those of messages: message_records.pyx. The
others are msgpack: see facts.py.

Numbers are little-endian.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.allocator cimport reallocate

cdef enum:
    FIRST_OCTETS = 4096

TYPES = (
    "", "MESSAGE", "MOVES", "ENDED", "SLOT", "SLOT_SET", "RETAINED", "CLEARED", "SESSION", "SESSION_ENDED",
    "SUBSCRIBED", "UNSUBSCRIBED", "RECEIVED", "RELEASED", "GROUP", "GROUP_ENDED", "MARK",
    "QUEUE", "QUEUE_ENDED", "ROUND", "WAITING", "IN_FLIGHT", "DECLARED", "UNDECLARED",
)
TYPES += ("",) * (DELAYED - len(TYPES)) + ("DELAYED", "DELAYED_DONE", "RETAINED_IN")
globals().update({name: number for number, name in enumerate(TYPES) if name})
globals().update({"ASSIGNED": 0, "GIVEN_UP": 1, "RETURNED": 2, "TRIED": 3})


class BadRecord(ValueError):
    """A record whose checksum is right has no meaning: it was written by another version, or by a fault."""


# -- of records that have a session or queue and a number, 12 bytes; and of the name of a namespace

cdef uint64_t first_of(bytes body) except? 0xFFFFFFFFFFFFFFFF:
    """A session or queue. Raises BadRecord."""
    cdef uint64_t id
    if PyBytes_GET_SIZE(body) != sizeof(uint64_t) + sizeof(uint32_t):
        raise BadRecord(f"{PyBytes_GET_SIZE(body)} bytes in place of 12")
    memcpy(&id, PyBytes_AS_STRING(body), sizeof(id))
    return id


cdef uint32_t second_of(bytes body) noexcept:
    """The number beside it."""
    cdef uint32_t number
    memcpy(&number, PyBytes_AS_STRING(body) + sizeof(uint64_t), sizeof(number))
    return number


cdef str name_of(bytes octets):
    """Of a namespace. Raises BadRecord."""
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(f"the name of a namespace: {error}") from error


cdef int make_room(Growing* octets, Py_ssize_t more) except -1:
    cdef Py_ssize_t capacity
    cdef char* data
    if octets.size + more > octets.capacity:
        capacity = max(octets.size + more, max(2 * octets.capacity, <Py_ssize_t> FIRST_OCTETS))
        data = <char*> reallocate(octets.data, capacity)
        if data is NULL:
            raise MemoryError()
        octets.data = data
        octets.capacity = capacity
    return 0


cdef uint64_t get_varint(bytes body, Py_ssize_t* at) except? 0xFFFFFFFFFFFFFFFF:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef unsigned char octet
    cdef const unsigned char* octets = <const unsigned char*> PyBytes_AS_STRING(body)
    while at[0] < PyBytes_GET_SIZE(body) and shift < 64:
        octet = octets[at[0]]
        at[0] += 1
        value |= <uint64_t> (octet & 0x7F) << shift
        if not octet & 0x80:
            return value
        shift += 7
    raise BadRecord("a number that does not end within its record")


cdef uint64_t unzigzag(uint64_t value, uint64_t before) noexcept:
    return before - (value >> 1) if value & 1 else before + (value >> 1)


def read_moves(bytes body not None):
    """(kind, queue, number, slot, tag) of each; slot and tag are 0 unless it is ASSIGNED. Raises BadRecord.

    Of TRIED these are the deliveries so far, and when it may be delivered again: in ms since 1970, or 0.
    """
    cdef Py_ssize_t at = 0
    cdef uint64_t head, number = 0, slot, tag
    found = []
    while at < PyBytes_GET_SIZE(body):
        head = get_varint(body, &at)
        number = unzigzag(get_varint(body, &at), number)
        slot = tag = 0
        if head & 3 in (ASSIGNED, TRIED):
            slot = get_varint(body, &at)
            tag = get_varint(body, &at)
        found.append((head & 3, head >> 2, number, slot, tag))
    return found


def read_waiting(bytes body not None):
    """(queue, are they more than what is known already?, where its blocks begin: NumberList.read). Raises BadRecord."""
    cdef Py_ssize_t at = 0
    cdef uint64_t head = get_varint(body, &at)
    return head >> 1, head & 1 != 0, at


def read_in_flight(bytes body not None):
    """(queue of the window, [(queue, number, slot, tag, is there only the tag?), ...]). Raises BadRecord."""
    cdef Py_ssize_t at = 0
    cdef uint64_t window = get_varint(body, &at), queue, number = 0, slot, tag
    found = []
    while at < PyBytes_GET_SIZE(body):
        queue = get_varint(body, &at)
        number = unzigzag(get_varint(body, &at), number)
        slot = get_varint(body, &at)
        tag = get_varint(body, &at)
        found.append((queue, number, slot, tag >> 1, tag & 1 != 0))
    return window, found


def read_ended(bytes body not None):
    """(queue, first, last) of each run of numbers. Raises BadRecord."""
    cdef Py_ssize_t at = 0
    cdef uint64_t head, queue = 0, number = 0, more
    found = []
    while at < PyBytes_GET_SIZE(body):
        head = get_varint(body, &at)
        if head & 1:
            queue = head >> 1
            continue
        number = unzigzag(head >> 2, number)
        more = get_varint(body, &at) if head & 2 else 0
        found.append((queue, number, number + more))
        number += more
    return found
