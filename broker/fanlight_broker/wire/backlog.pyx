# cython: language_level=3
"""The backlog of a durable queue, a port: see backlog.pxd. A store implements it."""

from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message, Variant

cdef enum:
    HEAD = 256    # enough for a consumer until the next fetch has come


cdef class Backlog:
    """Abstract. What its queue does not report to its journal, it reports: `drop_first` and `expire` do."""

    def __cinit__(self, *arguments, **keywords):
        self.head = HEAD

    def count(self, Py_ssize_t messages, Py_ssize_t octets):
        """So many more are in it; less than 0: fewer. For one that is written in Python."""
        self.length += messages
        self.nbytes += octets

    cdef int take(self, uint64_t number, Message message, Variant variant, Py_ssize_t octets) except -1:
        """`add`, for what has no flight."""
        cdef Flight flight = Flight.__new__(Flight)
        flight.message, flight.variant, flight.number = message, variant, number
        self.add(flight, octets)
        return 0

    cpdef add(self, Flight flight, Py_ssize_t octets):
        """A message that its journal has given a number, the largest of all here. Its flight is not used any more."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef Py_ssize_t drop_first(self) except -1:
        """Remove the oldest; it will not be delivered. Returns the bytes that it counted. There is one."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef fetch(self):
        """Begin to read the oldest, if that has not begun. `Queue.fetched` gets them, later and not within this."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef expire(self, double now, Py_ssize_t most):
        """Remove what has expired, so many at most, as far as that is known without reading; (messages, bytes)."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef since(self):
        """When the oldest came, of a named queue; an earlier time while that is being read. None: it is not known."""
        return None
