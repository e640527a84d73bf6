# Who takes from a queue, as the queue knows them, and why a message leaves it without having been acknowledged.

from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight

cdef enum Discard:    # why a message is in its queue no more, without having been acknowledged
    EXPIRED = 0           # its own time is over, or that of the queue
    OVERFLOW = 1          # the queue was full
    REJECTED = 2          # a consumer will not have it
    EXHAUSTED = 3         # it was delivered as often as it may be
    UNDELIVERABLE = 4     # it is too large for a consumer, or has no form in its protocol
    PURGED = 5            # the queue was emptied

cdef class Consumers:
    # All who take from one queue: what the windows of its consumers, and the queue, ask of them.
    cdef readonly uint64_t deliveries, redeliveries, acknowledgements    # of a named queue, so far

    cpdef feed(self, double now)
    cdef int discarded(self, Flight flight, Discard why) except -1
    cdef int drained(self) except -1
    cdef int discarded_unread(self, Py_ssize_t messages) except -1
