# Flights that wait, in order: a ring of them, with a deque's names, and without its calls through Python.
#
#   slots   [ c | d | . | . | . | a | b ]      a power of two
#                                ^first         count 4
#
# It doubles when it is full, and is halved when three quarters of it are empty.

cimport cython

from fanlight_broker.wire.flight cimport Flight

@cython.final
@cython.no_gc
cdef class FlightRow:
    cdef:
        void** slots            # of `capacity`: Flight, owned, at `count` places from `first` on
        Py_ssize_t first, capacity
        readonly Py_ssize_t count

    cpdef int append(self, Flight flight) except -1
    cpdef int appendleft(self, Flight flight) except -1
    cpdef Flight popleft(self)
    cpdef int rotate(self, Py_ssize_t places) except -1
    cdef int resize(self, Py_ssize_t capacity) except -1

    cdef inline Py_ssize_t place(self, Py_ssize_t nth) noexcept:
        return (self.first + nth) & (self.capacity - 1)
