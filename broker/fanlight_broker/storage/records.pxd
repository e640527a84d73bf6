# The records of the log. docs/store-format.md describes each.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.message cimport Message

cdef enum RecordType:
    MESSAGE = 1          # a message, and the slots that it went to
    MOVES = 2            # what became of messages in queues and in flight, in order
    ENDED = 3            # which of them are done with
    SLOT = 4
    SLOT_SET = 5
    RETAINED = 6
    CLEARED = 7
    SESSION = 8
    SESSION_ENDED = 9
    SUBSCRIBED = 10
    UNSUBSCRIBED = 11
    RECEIVED = 12
    RELEASED = 13
    GROUP = 14
    GROUP_ENDED = 15
    MARK = 16

cdef enum MoveKind:
    ASSIGNED = 0
    GIVEN_UP = 1
    RETURNED = 2

cdef enum:
    SLOTS_INLINE = 4     # more are a set
    IN_A_SET = 0xFF
    VARINT_MOST = 10     # bytes of 64 bits

# Bytes, as many as are put in.
cdef struct Growing:
    char* data
    Py_ssize_t size, capacity

cdef int make_room(Growing* octets, Py_ssize_t more) except -1

cdef inline void put_varint(Growing* octets, uint64_t value) noexcept:
    """There is room for it."""
    cdef unsigned char* at = <unsigned char*> octets.data
    while value >= 0x80:
        at[octets.size] = <unsigned char> (value & 0x7F | 0x80)
        value >>= 7
        octets.size += 1
    at[octets.size] = <unsigned char> value
    octets.size += 1

cdef inline uint64_t zigzag(uint64_t value, uint64_t before) noexcept:
    """A difference of two numbers, small if it is near 0 in either direction."""
    return (value - before) << 1 if value >= before else (before - value) << 1 | 1

cdef Py_ssize_t message_size(Message message, Py_ssize_t slots) except -1
cdef char* write_message(char* at, Message message, uint64_t number, double wall, const uint32_t* slots,
                         Py_ssize_t count, bint as_set) except NULL

cdef inline uint64_t number_of(const char* body, Py_ssize_t size) noexcept:
    """The number of a MESSAGE record; 0 if it is too short to have one."""
    cdef uint64_t number = 0
    if size >= <Py_ssize_t> sizeof(number):
        memcpy(&number, body, sizeof(number))
    return number
