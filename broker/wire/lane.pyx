# cython: language_level=3
"""A lane: the compiled half of a connection. What it does with a frame is its protocol's (protocols/*/lane.pyx)."""

from broker.wire.fanout cimport Route

# What `advance` returns.
NEED_MORE = 0     # the rest is an incomplete frame, or nothing
FRAME = 1         # a frame for Python
PUBLISH = 2       # a PUBLISH for Python
BLOCKED = 3       # an outbox holds this client back: `blocker`; None: no queue has room; the frame is still to be done
FAULT = 4         # malformed; nothing more can be read
TOO_LARGE = 5     # a frame above the limit; nothing more can be read
NO_ROOM = 6       # the rest is an incomplete frame, and all inboxes together hold too much: it is given up
TURN_OVER = 7     # there is more, for the next turn


cdef class Lane:
    """The frames of one connection."""

    def advance(self, double now=0.0):
        """Process frames until one needs Python, or none is left. Returns one of the numbers above."""
        return self.take(now)

    def hear(self, double now):
        """The peer's silence begins now."""
        self.heard_at = now - self.ledger.standstill

    def silence(self, double now):
        """Seconds since the peer was heard of last, those not counted in which the loop stood still."""
        cdef double awake = now - self.ledger.standstill
        if self.heard_at > awake:
            self.heard_at = awake    # it was read from behind a standstill that was not known of yet
        return awake - self.heard_at

    def hold(self, Outbox blocker):
        """The frame at hand waits for this outbox, or for something else: as BLOCKED does, by Python's decision."""
        self.blocker = blocker
        self.inbox.keep_rest()

    def forward(self, Route route not None):
        """Send the PUBLISH at hand on this route, and its acknowledgement if it wants one and `answers`.

        Returns False if an outbox holds it back: `blocker` says which, and the frame is still at hand then.
        """
        raise NotImplementedError

    def done(self):
        """The PUBLISH at hand needs nothing more: pass over it."""
        raise NotImplementedError

    def answers(self, Route route not None):
        """Does `forward` acknowledge the PUBLISH at hand by itself? Else Python does, once it is stored."""
        raise NotImplementedError

    cdef int take(self, double now) except -1:
        cdef int event
        self.ledger.now = now
        try:
            event = self.take_frames(now)
        finally:
            self.collector.settle()
        if self.heard:
            self.heard = False
            self.heard_at = now - self.ledger.standstill
        if event == WAITS and self.inbox.over():
            return OVER
        return event

    cdef int take_frames(self, double now) except -1:
        raise NotImplementedError
