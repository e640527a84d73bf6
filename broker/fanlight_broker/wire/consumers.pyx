# cython: language_level=3
"""Who takes from a queue: see consumers.pxd. A group of windows, or a named queue."""

from fanlight_broker.wire.flight cimport Flight


cdef class Consumers:
    cpdef feed(self, double now):
        """Messages have come back into the queue: let those consumers that have room take them."""
        raise NotImplementedError("consumers that are not fed")

    cdef int discarded(self, Flight flight, Discard why) except -1:
        """A message has left the queue, and nobody has acknowledged it."""
        return 0

    cdef int drained(self) except -1:
        """Fewer wait in the queue than it was to have."""
        return 0

    cdef int discarded_unread(self, Py_ssize_t messages) except -1:
        """So many have left the backlog, and nobody has acknowledged them."""
        return 0
