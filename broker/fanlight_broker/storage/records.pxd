# The records of the log. docs/store-format.md describes each.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.varint cimport put_varint as varint_at

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
    QUEUE = 17
    QUEUE_ENDED = 18
    ROUND = 19           # everything is restated from here on: what is the last number, queue, slot, set
    WAITING = 20         # the numbers that wait in a queue
    IN_FLIGHT = 21       # what is in flight in a window
    DECLARED = 22        # what a client of a protocol has declared, in the protocol's own words
    UNDECLARED = 23
    DELAYED = 30
    DELAYED_DONE = 31
    RETAINED_IN = 32     # RETAINED, in a namespace

cdef enum MoveKind:
    ASSIGNED = 0
    GIVEN_UP = 1
    RETURNED = 2
    TRIED = 3            # of a named queue: how often it was delivered, and when it may be again

cdef enum:
    SLOTS_INLINE = 4     # more are a set
    IN_A_SET = 0xFF
    VARINT_MOST = 10     # bytes of 64 bits
    CAME_OCTETS = 8      # of the time when a message came, behind its slots, if a named queue has it

# Bytes, as many as are put in.
cdef struct Growing:
    char* data
    Py_ssize_t size, capacity

cdef uint64_t first_of(bytes body) except? 0xFFFFFFFFFFFFFFFF
cdef uint32_t second_of(bytes body) noexcept
cdef str name_of(bytes octets)
cdef int make_room(Growing* octets, Py_ssize_t more) except -1
cdef uint64_t get_varint(bytes body, Py_ssize_t* at) except? 0xFFFFFFFFFFFFFFFF

cdef inline void put_varint(Growing* octets, uint64_t value) noexcept:
    """There is room for it."""
    octets.size = varint_at(octets.data + octets.size, value) - octets.data

cdef inline uint64_t zigzag(uint64_t value, uint64_t before) noexcept:
    """A difference of two numbers, small if it is near 0 in either direction."""
    return (value - before) << 1 if value >= before else (before - value) << 1 | 1
