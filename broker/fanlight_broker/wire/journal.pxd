# The journal of one durable queue, and of the window that is its consumer: each change, as it happens.
#
#   enqueued   a message is in the queue, at a place: larger behind, smaller in front
#   removed    it is not any more: dropped, expired, or the queue has ended
#   assigned   it is in flight with a tag, out of the queue that `origin` is the journal of; None: it has never waited
#   given_up   of a message in flight there is only the tag
#   ended      the tag is free
#
# Who keeps nothing has no journal: a queue and its window test one pointer for each change. What was taken out of a
# queue and is put back because there was no room has not changed, and is not reported.
#
# A journal does not raise, for it is called in the middle of changes: it keeps an error for its next sync.

from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight

cdef class QueueJournal:
    cdef:
        uint64_t front, back    # the places given last at both ends

    cdef int entered(self, Flight flight, bint in_front) except -1
    cpdef enqueued(self, Flight flight, uint64_t place)
    cpdef removed(self, Flight flight, uint64_t place)
    cpdef assigned(self, Flight flight, QueueJournal origin, uint64_t place)
    cpdef given_up(self, Flight flight)
    cpdef ended(self, Flight flight)
