# cython: language_level=3
"""The journal port of a durable queue: see journal.pxd. core/ports.py has that of sessions and retained messages."""

from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight

cdef enum:
    FIRST_PLACE = 1 << 30    # places in front of it are for what comes back from flight


cdef class JournalPosition:
    """Where the journal of a broker is. The journal writes it, and everybody reads it.

    Both numbers count changes, not entries of a log: each change that an acknowledgement may have to wait for raises
    `appended`, also if it is written together with the change before it.
    """


cdef class QueueJournal:
    """Abstract: a store has one for each durable queue. What a method raises ends the change that it reports."""

    def __cinit__(self):
        self.front = self.back = <uint64_t> FIRST_PLACE << 20

    cdef int entered(self, Flight flight, bint in_front) except -1:
        """Give a message that enters the queue its place, and report it."""
        if in_front:
            self.front -= 1
            flight.order = self.front
        else:
            self.back += 1
            flight.order = self.back
        self.enqueued(flight, flight.order)
        return 0

    cpdef enqueued(self, Flight flight, uint64_t place):
        """`flight` is in the queue at this place."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef removed(self, Flight flight, uint64_t place):
        """What was at this place is lost."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef assigned(self, Flight flight, QueueJournal origin, uint64_t place):
        """`flight` is in flight with its tag, from this place of the queue of `origin`; None: from no queue."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef given_up(self, Flight flight):
        """The message of `flight` has arrived, its tag is still in use."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef ended(self, Flight flight):
        """`flight` has ended, its tag is free."""
        raise NotImplementedError("a journal that keeps nothing")
