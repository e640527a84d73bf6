# What a log says of sessions and queues, while it is read: as small as it can be, for there may be millions.
#
# Records of sessions and subscriptions are kept as they are, and decoded when what they say is restored: most of a log
# may be replaced by what follows.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.waiting_numbers cimport WaitingNumbers

# A copy in flight.
@cython.final
@cython.no_gc
cdef class StoredFlight:
    cdef:
        readonly uint32_t slot    # of the window's queue: how it is written
        readonly uint64_t tag
        readonly bint tag_only

# A session's queue, and its window; a group's queue; or a named queue, where all waits that is not ended.
@cython.final
@cython.no_gc
cdef class StoredQueue:
    cdef:
        readonly uint64_t id
        readonly WaitingNumbers waiting    # times of expiry are wall-clock times
        dict sent                          # `flights`, or None
        dict tries                         # `tried`, or None
        double ttl                         # of a named queue: seconds that a message may wait
        bint ended

@cython.final
@cython.no_gc
cdef class StoredSession:
    cdef:
        bytes body                    # SESSION
        readonly StoredQueue queue
        dict filters                  # number -> SUBSCRIBED, or None
        set identifiers               # `unreleased`, or None

# A queue, and how its copies are written.
@cython.final
@cython.no_gc
cdef class StoredSlot:
    cdef:
        readonly uint32_t number
        readonly uint64_t queue
        readonly unsigned char quality, retain
        readonly bytes identifiers    # None: it is of a group, where the member says how
        StoredQueue owner             # the queue, once a message was found to be in it

cdef StoredFlight new_flight(uint32_t slot, uint64_t tag, bint tag_only)
cdef StoredSession new_session(bytes body, StoredQueue queue)
cdef StoredSlot slot_of(const char* body, Py_ssize_t size)
cdef int first_numbers(bytes body, int least, uint64_t* numbers, int count) except -1
