# cython: language_level=3
"""How fast one principal may publish, or be sent to: see token_bucket.pxd."""

from collections import OrderedDict

cimport cython
from libc.math cimport INFINITY

cdef double BURST_SECONDS = 1.0    # of the rate: what may pass at once


@cython.final
cdef class TokenBucket:
    """Two token buckets, full at first.

    messages, octets  a second; 0: no limit
    burst             seconds of both rates that may pass at once; at least one message
    refusing          what is published while it owes is refused; else it waits
    """

    def __cinit__(self, double messages=0, double octets=0, *, double burst=BURST_SECONDS, bint refusing=False,
                  double now=0):
        self.refusing = refusing
        self.filled_at = now
        self.messages = self.messages_burst = 0
        self.limit(messages, octets, burst)
        self.messages, self.octets = self.messages_burst, self.octets_burst

    def limit(self, double messages, double octets, double burst=BURST_SECONDS):
        """Other rates from now on. Raises ValueError for one that is below 0."""
        if not (messages >= 0 and octets >= 0 and burst > 0):
            raise ValueError(f"rates of {messages} messages and {octets} octets a second, a burst of {burst} s")
        self.messages_rate = messages or INFINITY
        self.octets_rate = octets or INFINITY
        self.messages_burst = max(1.0, messages * burst) if messages else INFINITY
        self.octets_burst = max(1.0, octets * burst) if octets else INFINITY
        self.messages = min(self.messages, self.messages_burst) if messages else INFINITY
        self.octets = min(self.octets, self.octets_burst) if octets else INFINITY

    def take(self, double messages, double octets, double now):
        """`spend` for Python."""
        self.spend(messages, octets, now)

    def owes_now(self, double now):
        """Must the next message wait, or be refused? A refusal is counted."""
        if not self.owes(now):
            return False
        self.refused += self.refusing
        return True

    def seconds(self, double now):
        """Until the next message may pass."""
        return self.wait(now)

    def full_in(self, double now):
        """Seconds until both buckets are full."""
        self.fill(now)
        cdef double seconds = 0
        if self.messages < self.messages_burst:
            seconds = (self.messages_burst - self.messages) / self.messages_rate
        if self.octets < self.octets_burst:
            seconds = max(seconds, (self.octets_burst - self.octets) / self.octets_rate)
        return seconds

    def owed(self, double now):
        """Messages and octets that have passed and were more than there were tokens for; 0 if none."""
        self.fill(now)
        return max(0.0, -self.messages), max(0.0, -self.octets)

    def room(self, double now):
        """How many messages may pass now, about; at most a million."""
        self.fill(now)
        return 0 if self.owes(now) else <int> min(self.messages, 1e6)

    cdef double wait(self, double now) noexcept:
        cdef double seconds = 0
        self.fill(now)
        if self.messages < 1:
            seconds = (1 - self.messages) / self.messages_rate
        if self.octets < 1:
            seconds = max(seconds, (1 - self.octets) / self.octets_rate)
        return seconds

    # -- who waits to be sent to ------------------------------------------------------------------------------------

    cdef int add_waiting(self, outbox) except -1:
        if self.waiting is None:
            self.waiting = OrderedDict()
        self.waiting[outbox] = None
        if len(self.waiting) == 1:
            self.on_wait(self)
        return 0

    @property
    def waits(self):
        """Does anybody wait to be sent to?"""
        return self.waiting is not None

    def next_waiting(self):
        """The outbox that has waited longest; it waits no more. There is one."""
        outbox = next(iter(self.waiting))
        self.waits_no_more(outbox)
        return outbox

    def waits_no_more(self, outbox not None):
        if self.waiting is not None:
            self.waiting.pop(outbox, None)
            if not self.waiting:
                self.waiting = None


@cython.final
cdef class BucketChain:
    """The buckets of one connection, in one direction. Those that wait wait for the first that owes."""

    def __cinit__(self, TokenBucket bucket not None, BucketChain wider=None):
        self.bucket, self.wider = bucket, wider

    @property
    def buckets(self):
        return (self.bucket,) if self.wider is None else (self.bucket, *self.wider.buckets)

    def take(self, double messages, double octets, double now):
        """`spend` for Python."""
        self.spend(messages, octets, now)

    def owing(self, double now):
        """The first of them that owes, or None."""
        return self.first_owing(now)

    cdef void spend_all(self, double messages, double octets, double now) noexcept:
        self.spend(messages, octets, now)

    cdef bint any_owes(self, double now, bint refusing) noexcept:
        return self.owes(now, refusing)

    cdef TokenBucket first_owing(self, double now):
        if self.bucket.owes(now):
            return self.bucket
        return None if self.wider is None else self.wider.first_owing(now)

    cdef void least(self, double now, double* messages, double* octets) noexcept:
        """The tokens that there are now, of the one that has least: what the two hold already, or less."""
        self.bucket.fill(now)
        messages[0] = min(messages[0], self.bucket.messages)
        octets[0] = min(octets[0], self.bucket.octets)
        if self.wider is not None:
            self.wider.least(now, messages, octets)
