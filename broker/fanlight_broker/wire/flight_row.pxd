# Flights that wait, in order: a ring of them, with a deque's names, and without its calls through Python.
#
#   slots   [ c | d | . | . | . | a | b ]      a power of two
#                                ^first         count 4
#
# It doubles when it is full, and is halved when three quarters of it are empty.
#
# A message of which there is nothing to know but when it came has no flight: it is in its slot itself, which is 80
# bytes less, and of a queue that is filled with a hundred others one cache miss less, when it is taken. Who looks at it
# as a flight makes one of it.

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message

cdef enum:
    KEPT_SLOTS = 64       # of a row that is not halved any more

cdef struct RowSlot:
    size_t item             # owned: the address of a Flight; or that of a Message, plus 1
    double since            # with a Message: when it came

@cython.final
@cython.no_gc
cdef class FlightRow:
    cdef:
        RowSlot* slots             # of `capacity`, those in use at `count` places from `first` on
        Py_ssize_t first, capacity
        readonly Py_ssize_t count

    cpdef int append(self, Flight flight) except -1
    cpdef int appendleft(self, Flight flight) except -1
    cpdef Flight popleft(self)
    cpdef int rotate(self, Py_ssize_t places) except -1
    cdef int resize(self, Py_ssize_t capacity) except -1
    cdef Flight flight_at(self, Py_ssize_t nth)

    cdef inline Py_ssize_t place(self, Py_ssize_t nth) noexcept:
        return (self.first + nth) & (self.capacity - 1)

    cdef inline int append_message(self, Message message, double since) except -1:
        """As the last, without a flight."""
        cdef RowSlot* slot
        if self.count == self.capacity:
            self.resize(2 * self.capacity)
        slot = &self.slots[self.place(self.count)]
        slot.item, slot.since = <size_t> <void*> message | 1, since
        Py_INCREF(message)
        self.count += 1
        return 0

    cdef inline RowSlot* first_message(self) noexcept:
        """The first, if it is a message without a flight; else NULL."""
        cdef RowSlot* slot = &self.slots[self.first]
        return slot if self.count and slot.item & 1 else NULL

    cdef inline int drop_first_message(self) except -1:
        """Take out what `first_message` has found."""
        cdef RowSlot* slot = &self.slots[self.first]
        self.first = self.place(1)
        self.count -= 1
        Py_DECREF(message_in(slot))
        if self.capacity > KEPT_SLOTS and 4 * self.count <= self.capacity:
            self.resize(self.capacity // 2)
        return 0

cdef inline Message message_in(RowSlot* slot):
    """Of a slot that `first_message` has found."""
    return <Message> <void*> (slot.item - 1)
