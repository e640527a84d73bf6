# cython: language_level=3
"""The backlog of a durable queue, a port: see backlog.pxd. A store implements it."""

from fanlight_broker.wire.flight cimport Flight

cdef enum:
    HEAD = 256    # enough for a consumer until the next fetch has come


cdef class Backlog:
    """Abstract. What its queue does not report to its journal, it reports: `drop_first`, `clear` and `expire` do."""

    def __cinit__(self, *arguments, **keywords):
        self.head = HEAD

    def count(self, Py_ssize_t messages, Py_ssize_t octets):
        """So many more are in it; less than 0: fewer. For one that is written in Python."""
        self.length += messages
        self.nbytes += octets

    cpdef add(self, Flight flight, Py_ssize_t octets):
        """A message that its journal has given a number, the largest of all here. Its flight is not used any more."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef Py_ssize_t drop_first(self) except -1:
        """Remove the oldest; it will not be delivered. Returns the bytes that it counted. There is one."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef fetch(self):
        """Begin to read the oldest, if that has not begun. `Queue.fetched` gets them, later and not within this."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef clear(self):
        """Remove everything: its queue has ended."""
        raise NotImplementedError("a backlog that keeps nothing")

    cpdef expire(self, double now):
        """Remove what has expired, as far as that is known without reading; (messages, bytes) of them."""
        raise NotImplementedError("a backlog that keeps nothing")
