# cython: language_level=3
"""A lane: the compiled half of a connection. Which frames there are, and what they ask, is its protocol's
(protocols/*/lane.pyx).

The frame at hand stays at hand, and the inbox must not change, until `frame`, `forward`, `done` or the next `advance`.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize

cdef Py_ssize_t NO_MAXIMUM = <Py_ssize_t> ((<size_t> -1) >> 1)

ANY_SIZE = NO_MAXIMUM


cdef class Lane:
    """The frames of one connection.

    frame_max    largest frame accepted, in bytes, as the protocol counts them
    control_max  bytes of unsent answers beyond which this connection is not read any further
    """

    def __cinit__(self, Inbox inbox not None, Outbox outbox not None, RouteCache routes not None,
                  Ledger ledger not None, *, Py_ssize_t frame_max, Py_ssize_t control_max):
        self.inbox = inbox
        self.outbox = outbox
        self.use_routes(routes)
        self.ledger = ledger
        self.frame_max = frame_max
        self.publish_max = NO_MAXIMUM
        self.control_max = control_max

    cpdef int use_routes(self, RouteCache routes) except -1:
        """Find the routes of what its client publishes here from now on: before anything is published."""
        self.routes = routes
        self.batcher = routes.batcher
        return 0

    def note_activity(self, double now):
        """The peer's silence begins now."""
        self.last_activity = now - self.ledger.standstill

    def silence(self, double now):
        """Seconds since the peer was heard of last, those not counted in which the loop stood still."""
        cdef double awake = now - self.ledger.standstill
        if self.last_activity > awake:
            self.last_activity = awake    # it was read from behind a standstill that was not known of yet
        return awake - self.last_activity

    # -- the frame at hand, for Python ------------------------------------------------------------------------------

    def frame(self):
        """The body of the frame at hand. It is done with that."""
        cdef bytes body = PyBytes_FromStringAndSize(<const char*> self.body_at, self.body_size)
        self.pass_frame()
        return body

    def hold_back(self, Outbox blocker):
        """The frame at hand waits for this outbox, or for something else: as BLOCKED does, by Python's decision."""
        self.blocker = blocker
        self.stop()

    def forward(self, Route route not None):
        """Send the PUBLISH at hand on this route. `confirm` acknowledges it.

        Returns False if an outbox holds it back: `blocker` says which (None: no queue has room for it), and the frame
        is still at hand then.
        """
        self.blocker = None
        self.note_position()
        return self.sent(self.batcher.publish_alone(route, self.ledger, self.outbox, self.message), route)

    def done(self):
        """The PUBLISH at hand needs nothing more: pass over it."""
        self.pass_frame()

    def forget_receipts(self):
        """The connection has ended: drop the acknowledgements that wait."""
        if self.receipts is not None:
            self.receipts.forget(self)

    def confirm(self, Route route not None):
        """Acknowledge the PUBLISH that was forwarded last, when it is stored, with what has changed since then.

        False: its acknowledgement is for Python.
        """
        return self.acknowledge_sent(route)

    def waits(self, Route route not None):
        """Would an acknowledgement of the PUBLISH at hand have to wait?"""
        raise NotImplementedError

    # -- the loop ---------------------------------------------------------------------------------------------------

    cpdef int advance(self, double now=0.0) except -1:
        """Process frames until one needs Python, or none is left. Returns one of the events of lane.pxd."""
        cdef int event
        self.ledger.now = now
        self.blocker = None
        try:
            event = self.read_frames(now)
        finally:
            self.batcher.flush_batch()
        if self.active:
            self.active = False
            self.last_activity = now - self.ledger.standstill
        if event == NEED_MORE and self.inbox.over():
            return NO_ROOM
        return event

    cdef int read_frames(self, double now) except -1:
        """Frames one after the other, as long as none is in the way, and no longer than the turn (`Ledger.worked`)."""
        raise NotImplementedError

    cdef bint sent(self, Py_ssize_t routed, Route route) except -1:
        """The PUBLISH at hand has `routed` subscriptions: skip it. False if it is held back."""
        raise NotImplementedError

    cdef bint acknowledge_sent(self, Route route) except -1:
        """Acknowledge the PUBLISH that was `sent` last, if it expects that. False: Python does."""
        raise NotImplementedError

    cdef bint ask(self, Route route, int kind) except -1:
        cdef Message message = self.message
        return self.badge.asked(route, kind, message.topic_at, message.topic_size, message.syntax)

    cdef bint asks_python(self, Route route, int asked) except -1:
        cdef int decides = route.decided & asked
        if decides & LED_ON and route.leads_by_itself():
            decides &= ~LED_ON
        return decides & (RULED | LED_ON) \
            or (decides & TRACED and self.routes.finder.sampler.wants(self.message, self.ledger.now))

    cdef int pass_frame(self) noexcept:
        self.inbox.pos += self.frame_size
        return 0
