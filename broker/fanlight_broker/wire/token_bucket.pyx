# cython: language_level=3
"""How fast one principal may publish, or be sent to: see token_bucket.pxd."""

cimport cython
from libc.math cimport INFINITY

cdef double BURST_SECONDS = 1.0    # of the rate: what may pass at once


@cython.final
@cython.no_gc
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
