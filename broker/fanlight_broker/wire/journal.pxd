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
#
# Where the journal of the whole broker is, sessions and retained messages included, is in one JournalPosition:
#
#   change 1 | 2 | 3 | 4 | 5 | 6 | 7
#                      ^           ^
#                      synced      appended    an acknowledgement of change 6 waits, one of change 4 does not

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight

@cython.final
cdef class JournalPosition:
    cdef:
        public uint64_t appended    # changes reported so far that an acknowledgement may have to wait for
        public uint64_t synced      # all up to it survive; without a journal both stay 0
        public bint full            # the store takes no more for now: publishers that need it are held back
        public bint refusing        # the disk is full or broken: publishers that need the store are refused

cdef class QueueJournal:
    cdef:
        uint64_t front, back    # the places given last at both ends

    cdef int entered(self, Flight flight, bint in_front) except -1
    cpdef enqueued(self, Flight flight, uint64_t place)
    cpdef removed(self, Flight flight, uint64_t place)
    cpdef assigned(self, Flight flight, QueueJournal origin, uint64_t place)
    cpdef given_up(self, Flight flight)
    cpdef ended(self, Flight flight)
