# What is on its way to one connection: whole frames, oldest first, none of them begun to be sent.
# Where their bytes are is in frames.pxd; here is how many may wait, and what happens to those above that.
#
# The sink reads bytes from the front, and owns the rest of a frame that was sent in part.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.frames cimport FIRM, MESSAGE, Frame, Frames
from fanlight_broker.wire.ledger cimport Ledger, Meter
from fanlight_broker.wire.token_bucket cimport BucketChain
from fanlight_broker.wire.batch cimport Batch

cdef enum Policy:
    DROP_NEWEST = 0     # the order of outbox.POLICIES
    DROP_OLDEST = 1
    DISCONNECT = 2
    PAUSE = 3

# Consumers that a publisher is not held back for any more, because its time for that is used up.
cdef enum Exemption:
    FROM_BURSTS = 1     # those of every policy but pause
    FROM_PAUSES = 2

cdef enum:
    SMALL_OUTBOX = 64 * 1024     # exempt from the common limit: one slow consumer must not stop the quick ones

cdef class Sink:
    # Who sends the frames of an outbox. What an outbox asks of it; the rest is fanlight_broker.net.flush's.
    cpdef flush_now(self)

cdef class Owner:
    # Whom an outbox or a window belongs to: the core's Client or Subscriber. Wire hands it back, and asks it only for
    # its `subscriber`, an attribute of both.
    pass

@cython.final
cdef class Outbox(Frames):
    cdef:
        Ledger ledger
        public Meter meter                 # of the port that accepted its connection
        public BucketChain pace            # of what its client publishes; None: as fast as it likes
        public BucketChain delivery        # of what is sent to its client, as far as they are messages; None: the same
        readonly bint sits_out             # nothing is sent before one of these has been paid, which it waits for
        readonly Py_ssize_t limit          # bytes, for messages
        public Py_ssize_t frame_max        # bytes of the largest message its client takes
        Policy policy_code
        readonly Py_ssize_t size           # unsent bytes, shared bodies included, dead ones not (the ledger has those)
        readonly Py_ssize_t awaiting_credit  # bytes of messages that wait for credit (kept by the targets)
        readonly Py_ssize_t control_size   # those of `size` that are no messages: answers, errors
        readonly Py_ssize_t messages       # unsent messages: what a close would lose
        Py_ssize_t firm                    # those of `messages` that a session keeps until they are acknowledged
        public bint crowded                # messages wait in its session's queue, too many of them: see Window
        public bint refill                 # its client has more to get: notify when everything is out
        readonly bint dirty                # on the ledger's list for this turn's flush
        bint busy                          # got something since the last `rest`
        readonly bint closed               # takes nothing any more
        public bint patient                # may hold publishers back; not any more when its time for that is used up
        public int exempt                  # its own client publishes without being held back: Exemption
        readonly bint pausing              # holds its publishers back until it has drained to `resume_at`
        readonly bint choked               # its own client is not read from until it has read its answers
        public bint stuck                  # the socket is known to be full: sending now would be in vain
        readonly bint noticed              # the core was notified that it is slow
        Py_ssize_t resume_at
        Py_ssize_t small                   # bytes that it may hold whatever the others hold
        Py_ssize_t let_in                  # bytes past the common limit since it began to hold publishers back
        readonly bint doomed               # noticed by the core, which ends it: policy disconnect
        bint given_up                      # what was unsent has been discarded
        readonly uint64_t sent, dropped, overflows    # messages
        readonly uint64_t lost             # messages that were unsent when it was given up
        readonly uint64_t published, published_bytes   # by its client; bytes of topics and payloads
        readonly uint64_t bytes_out        # written to its socket
        uint64_t stamp                     # of a Batcher, that looks for those that get only one copy
        readonly dict evicted              # subscription number -> messages dropped out of the outbox
        public Sink sink                   # who sends it; None: nobody yet, or nobody any more
        readonly object fault              # the exception that a delivery to it raised; None: there was none
        public Owner owner                 # whose it is; None: nobody's

    cdef inline bint admits(self, Py_ssize_t size) noexcept:
        """Does a message of `size` bytes fit?"""
        cdef Py_ssize_t after = self.size + self.awaiting_credit + size
        if after > self.limit:
            return False
        return self.ledger.used + size <= self.ledger.limit or after <= self.small

    cdef inline bint over_half(self, Py_ssize_t more) noexcept:
        """Is more than half of its limit taken, with so many bytes more?"""
        return 2 * (self.size + self.awaiting_credit + more) > self.limit

    cdef bint holds_back(self, Outbox publisher) noexcept
    cdef bint make_room(self, Py_ssize_t size) except -1
    cdef bint has_room(self, Py_ssize_t size) except -1
    cdef int put(self, const char* head, Py_ssize_t head_size, const char* body, Py_ssize_t body_size,
                 uint32_t number, uint32_t flags) except -1
    cdef inline char* place_for(self, Py_ssize_t size) except NULL:
        """Where a frame of this size is to be written; `placed` follows."""
        if self.tail + size > self.capacity:
            self.reserve(size)
        if self.count == self.frames_max:
            self.reserve_record()
        return self.data + self.tail

    cdef inline int placed(self, Py_ssize_t size, uint32_t number, uint32_t flags) except -1:
        """Append the frame that was written."""
        self.record(size, number, flags)
        self.tail += size
        self.size += size
        self.messages += flags & MESSAGE
        self.firm += (flags & FIRM) != 0
        self.ledger.used += size
        if not self.dirty:
            self.mark_dirty()
        return 0

    cdef int put_shared(self, const char* head, Py_ssize_t head_size, bytes body, uint32_t number,
                        uint32_t flags) except -1
    cdef int put_batch(self, Batch batch, uint32_t number) except -1
    cdef bint lets_in(self, Py_ssize_t size) noexcept
    cdef bint fits_without_dead(self, Py_ssize_t size) noexcept
    cdef bint evict_next(self) except -1
    cdef int mark_dirty(self) except -1
    cdef bytes consume(self, Py_ssize_t sent)
    cdef int shrink(self) except -1
    cdef void begin_pause(self) noexcept
    cdef void choke(self) noexcept
    cdef int notice(self) except -1
    cdef int doom(self) except -1
    cdef int note_fault(self, error) except -1

# One for all sessions of a ledger without a connection: closed, so nothing is ever in it, and nobody waits for it.
cdef Outbox absent(Ledger ledger)

cdef inline void count_published(Ledger ledger, Outbox publisher, Py_ssize_t octets) noexcept:
    """A message at the meter of the port that accepted its publisher, and at its publisher's pace."""
    if publisher is None:
        ledger.meter.messages_in += 1
    else:
        publisher.meter.messages_in += 1
        publisher.published += 1
        publisher.published_bytes += octets
        if publisher.pace is not None:
            publisher.pace.spend(1, octets, ledger.now)

cdef inline void uncount_published(Ledger ledger, Outbox publisher, Py_ssize_t octets) noexcept:
    """Undo `count_published`: the message was the broker's own, or is to be published again."""
    if publisher is None:
        ledger.meter.messages_in -= 1
    else:
        publisher.meter.messages_in -= 1
        publisher.published -= 1
        publisher.published_bytes -= octets
        if publisher.pace is not None:
            publisher.pace.spend(-1, -octets, ledger.now)
