# cython: language_level=3
"""The journal port of a durable queue: see journal.pxd. core/ports.py has that of sessions and retained messages."""

from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message, Variant


cdef class JournalPosition:
    """Where the journal of a broker is. The journal writes it, and everybody reads it.

    Both numbers count changes, not entries of a log: each change that an acknowledgement may have to wait for raises
    `appended`, also if it is written together with the change before it.
    """

    def __cinit__(self):
        self.windows = []


cdef class QueueJournal:
    """Abstract: a store has one for each durable queue. What a method raises ends the change that it reports."""

    cdef uint64_t entered(self, Message message, Variant variant) noexcept:
        """`enqueued`, of a message that goes to the backlog and needs no flight. Its number, or 0 if it needs one."""
        return 0

    cpdef enqueued(self, Flight flight):
        """`flight` is in the queue, behind the others: give it a number."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef returned(self, Flight flight):
        """`flight` waits again, under its number: it was in flight."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef removed(self, Flight flight):
        """`flight`, which waited, is lost, or done with."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef assigned(self, Flight flight, QueueJournal origin):
        """`flight` is in flight with its tag. It has no number if it has never waited: give it one of `origin`."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef given_up(self, Flight flight, QueueJournal origin):
        """The message of `flight` has arrived, its tag is still in use."""
        raise NotImplementedError("a journal that keeps nothing")

    cpdef ended(self, Flight flight, QueueJournal origin):
        """`flight` has ended, its tag is free."""
        raise NotImplementedError("a journal that keeps nothing")
