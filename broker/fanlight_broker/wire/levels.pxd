# What waits in a queue with priorities: a row for each, oldest first. The highest that is not empty is taken from.
#
#   append     --> rows[flight.priority] ...->    behind those of its priority
#   appendleft --> <-... rows[flight.priority]    it was taken from there: before those of its priority
#   popleft    <-- the first of the highest
#   pop_lowest <-- the first of the lowest: a full queue drops that
#
# A Queue uses it as it uses a FlightRow, so it has the same names.

cimport cython

from fanlight_broker.wire.flight cimport Flight

cdef enum:
    PRIORITY_MOST = 9

@cython.final
@cython.no_gc
cdef class Levels:
    cdef:
        list rows
        Py_ssize_t length

    cpdef int append(self, Flight flight) except -1
    cpdef appendleft(self, Flight flight)
    cpdef Flight popleft(self)
    cdef Flight pop_lowest(self)
    cdef int lowest(self) except -1
    cdef Flight oldest(self)
