# What is on its way to one connection: whole frames, oldest first, none of them begun to be sent.
#
#   inline bytes   ....[aaaa][bb][cccccc][d][eeeeeee].....      one growing buffer: small frames, and the heads of large ones
#                  ^head                            ^tail
#   frames         {a}{b}{c}{d*}{e}                             a ring of records, one a frame; * has a shared body
#   bodies         [d's body]                                   bytes objects, each shared by all outboxes it went to
#
# A frame the drop-oldest policy gave up stays where it is, marked dead, until half of the buffer is dead: then the buffer
# is compacted. Whoever sends takes bytes from the front, and takes over the rest of a frame that was sent in part.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from broker.wire.ledger cimport Ledger

cdef enum Policy:
    DROP_NEWEST = 0     # the order of outbox.POLICIES
    DROP_OLDEST = 1
    DISCONNECT = 2
    PAUSE = 3

cdef enum:
    MESSAGE = 1        # fire and forget: the slow policy may drop it
    SHARED = 2         # the frame goes on in the next of `bodies`
    DEAD = 4           # dropped, not compacted away yet
    FIRM = 8           # a message that the slow policy must not drop: its client acknowledges it

ctypedef struct Frame:
    uint32_t inline_size
    uint32_t number    # the subscription it is for, if a message
    uint32_t flags

cdef enum:
    SMALL_OUTBOX = 64 * 1024     # exempt from the common limit: one slow consumer must not stop the quick ones

@cython.final
cdef class Outbox:
    cdef:
        Ledger ledger
        readonly Py_ssize_t limit          # bytes, for messages
        public Py_ssize_t frame_max        # bytes of the largest message its client takes
        Policy policy_code
        char* data
        Py_ssize_t head, tail, capacity
        Frame* frames
        Py_ssize_t first, count, frames_capacity    # a ring; capacity is a power of two
        Py_ssize_t scanned                 # leading frames known to be of no use to drop-oldest
        Py_ssize_t pinned                  # leading frames that may not be dropped: their counts have been reported
        object bodies                      # deque of bytes
        readonly Py_ssize_t size           # unsent bytes, shared bodies included, dead ones not
        readonly Py_ssize_t held           # bytes of messages that wait for credit (kept by the targets)
        readonly Py_ssize_t control_size   # those of `size` that are no messages: answers, errors
        readonly Py_ssize_t messages       # unsent messages: what a close would lose
        Py_ssize_t firm                    # those of `messages` that a session keeps until they are acknowledged
        public bint crowded                # messages wait in its session's queue, too many of them: see Window
        public bint refill                 # its client has more to get: tell when everything is out
        readonly Py_ssize_t dead           # inline bytes of dead frames
        readonly bint dirty                # on the ledger's list for this turn's flush
        bint busy                          # got something since the last `rest`
        readonly bint closed               # takes nothing any more
        readonly bint pausing              # holds its publishers back until it has drained to `resume_at`
        public bint stuck                  # the socket is known to be full: sending now would be in vain
        readonly bint noticed              # the core has been told that it is slow
        Py_ssize_t resume_at
        readonly uint64_t sent, dropped, overflows    # messages
        readonly dict evicted              # subscription number -> messages dropped out of the outbox
        public object sink                 # who sends it (broker.net.flush.Sink)
        public object owner                # whose it is (the core's client); for views and notices

    cdef inline bint admits(self, Py_ssize_t size) noexcept:
        """Does a message of `size` bytes fit?"""
        cdef Py_ssize_t after = self.size + self.held + size
        if after > self.limit:
            return False
        return self.ledger.used + size <= self.ledger.limit or after <= SMALL_OUTBOX

    cdef bint holds_back(self) noexcept
    cdef bint make_room(self, Py_ssize_t size) except -1
    cdef bint has_room(self, Py_ssize_t size) except -1
    cdef int put(self, const char* head, Py_ssize_t head_size, const char* body, Py_ssize_t body_size,
                 uint32_t number, uint32_t flags) except -1
    cdef int put_shared(self, const char* head, Py_ssize_t head_size, bytes body, uint32_t number,
                        uint32_t flags) except -1
    cdef int reserve(self, Py_ssize_t inline_size) except -1
    cdef int reserve_record(self) except -1
    cdef void record(self, Py_ssize_t inline_size, uint32_t number, uint32_t flags) noexcept
    cdef int evict(self, Py_ssize_t i) except -1
    cdef int compact(self) except -1
    cdef int mark_dirty(self) except -1
    cdef int gather(self, char** starts, Py_ssize_t* sizes, int most) except -1
    cdef bytes consume(self, Py_ssize_t sent)
    cdef int shrink(self) except -1
    cdef int release(self) except -1
    cdef void begin_pause(self) noexcept
    cdef int notice(self) except -1
