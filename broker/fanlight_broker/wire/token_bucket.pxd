# A pace: how fast one principal may go, in one direction; a token bucket of messages and one of octets.
#
#   tokens  <-- rate a second, up to the burst
#      |----> one a message, one an octet; the last message may take more octets than there are: the rest is owed
#
# While it owes, its publishers are not read from (they wait for `gate`, an outbox of nobody), or what they publish is
# refused; or, in the other direction, nothing more is sent to its subscribers (they are in `waiting`). The owner
# (core/paces.py) lets them go on when the debt is paid.
#
# Several may hold for one connection, its client's and its user's: a BucketChain. Each message takes from all of them.
# The method: RFC 2697 (srTCM), with one bucket of each kind, that may go below zero by one message.

cimport cython
from libc.stdint cimport int64_t, uint64_t

@cython.final
cdef class TokenBucket:
    cdef:
        readonly double messages_rate, octets_rate      # a second; infinity: no limit
        readonly double messages_burst, octets_burst
        double messages, octets                         # tokens; below zero: owed
        double filled_at                                # the time of the tokens
        public bint refusing                            # what is published while it owes is refused, not held back
        public object gate                              # the Outbox that held publishers wait for, or None
        object waiting                                  # OrderedDict of outboxes that are not flushed, or None
        public object on_wait                           # called with it when the first of them begins to wait
        readonly uint64_t spent                         # messages
        readonly uint64_t refused                       # of them, by `owes_now` of a pace that refuses
        public uint64_t held                            # times that somebody had to wait; its owner counts
        public object label                             # of the quota that it comes from; for views

    cdef inline void fill(self, double now) noexcept:
        cdef double seconds = now - self.filled_at
        if seconds > 0:
            self.filled_at = now
            self.messages = min(self.messages + seconds * self.messages_rate, self.messages_burst)
            self.octets = min(self.octets + seconds * self.octets_rate, self.octets_burst)

    cdef inline void spend(self, double messages, double octets, double now) noexcept:
        """So much has passed."""
        self.fill(now)
        self.messages -= messages
        self.octets -= octets
        self.spent += <uint64_t> <int64_t> messages    # below zero: what did not pass after all

    cdef inline bint owes(self, double now) noexcept:
        """Must the next message wait?"""
        if self.messages >= 1 and self.octets >= 1:
            return False
        self.fill(now)
        return self.messages < 1 or self.octets < 1

    cdef double wait(self, double now) noexcept
    cdef int add_waiting(self, outbox) except -1


@cython.final
cdef class BucketChain:
    # What the messages of one connection take from, in one direction.
    cdef:
        readonly TokenBucket bucket
        readonly BucketChain wider    # None: no more

    cdef inline void spend(self, double messages, double octets, double now) noexcept:
        self.bucket.spend(messages, octets, now)
        if self.wider is not None:
            self.wider.spend_all(messages, octets, now)

    cdef inline bint owes(self, double now, bint refusing) noexcept:
        """Owes any of them that refuses, or any that holds back?"""
        if self.bucket.refusing == refusing and self.bucket.owes(now):
            return True
        return self.wider is not None and self.wider.any_owes(now, refusing)

    cdef void spend_all(self, double messages, double octets, double now) noexcept
    cdef bint any_owes(self, double now, bint refusing) noexcept
    cdef TokenBucket first_owing(self, double now)
    cdef void least(self, double now, double* messages, double* octets) noexcept
