# What the lanes of all protocols have in common, and all that a transport needs to know of one: it can be advanced.
#
#   Inbox --read_frames--> Outbox, Outbox, ...     until the protocol's Python is needed, or bytes are
#
# A transport that is compiled itself calls `advance` and goes into Python only when there is something to do there.
#
# What is called once a message is inline here, or the protocol's own: with the loop of `read_frames` here too, and the
# search for a frame and the work on it virtual, a native PUBLISH took 957 instructions in place of 883, MQTT's 841 in
# place of 832 (callgrind, one subscriber).

from libc.stdint cimport uint64_t

from fanlight_broker.wire.badge cimport MAY_PUBLISH, MAY_REQUEST, MAY_RETAIN, Badge
from fanlight_broker.wire.batcher cimport Batcher
from fanlight_broker.wire.route cimport LED_ON, RULED, TRACED, Route
from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.receipts cimport Receipts, Receiver
from fanlight_broker.wire.routes cimport RouteCache

cpdef enum:
    # What `advance` returns.
    NEED_MORE = 0     # the rest is an incomplete frame, or nothing
    FRAME = 1         # a frame for Python: `frame` has it
    PUBLISH = 2       # a PUBLISH for Python: `message` points at it; answer with `forward` or `done`
    BLOCKED = 3       # an outbox holds this client back: `blocker`; None: no queue has room; the frame is still to be
                      # done
    FAULT = 4         # malformed: `fault`; nothing more can be read
    TOO_LARGE = 5     # a frame of `frame_size` bytes, above the limit; nothing more can be read
    NO_ROOM = 6       # the rest is an incomplete frame, and all inboxes together hold too much: it is given up
    TURN_OVER = 7     # there is more, for the next turn
    # Inside a lane.
    PASSED = 8        # the frame at hand is done with: go on

cdef class Lane(Receiver):
    cdef:
        readonly Inbox inbox
        readonly Outbox outbox
        RouteCache routes
        Batcher batcher               # of the routes: joins messages that follow each other
        Ledger ledger
        public Py_ssize_t frame_max       # bytes of the largest frame, as the protocol counts them
        public Py_ssize_t publish_max     # bytes of the largest PUBLISH that needs no Python: see ProtocolConnection
        public Py_ssize_t control_max     # bytes of answers that may pile up before reading stops
        public bint open                  # the handshake is done: PUBLISH may be forwarded
        readonly Message message          # the PUBLISH at hand, for the fan-out: it points into the inbox
        readonly Py_ssize_t routed        # subscriptions that the last PUBLISH went to, a queue group counting once
        readonly bint unkept              # each of them had a queue without room for it
        uint64_t position                 # where the journal was before that: if it is further, something has taken it
        public Badge badge                # what its client may publish; None: everything, if nobody is restricted
        public Receipts receipts          # where acknowledgements wait until what they acknowledge is stored; None:
                                          # none do
        readonly str fault                # what is wrong, after FAULT
        readonly Outbox blocker           # the outbox that holds this client back, after BLOCKED
        readonly double last_activity     # when the peer last sent something that counts, in seconds of `Ledger.awake`
        bint active                       # it has sent such since then (the protocol decides what counts for
                                          # keep-alive)
        public bint ready                 # nothing but bytes is waited for: what comes may be taken at once
        # The frame at hand.
        readonly Py_ssize_t frame_size    # in bytes, as the protocol counts them
        const unsigned char* body_at      # what is behind the part that says how large it is
        Py_ssize_t body_size

    cpdef int advance(self, double now=*) except -1
    cpdef int use_routes(self, RouteCache routes) except -1
    # The protocol's.
    cdef int read_frames(self, double now) except -1
    cdef bint sent(self, Py_ssize_t routed, Route route) except -1
    cdef bint acknowledge_sent(self, Route route) except -1
    cdef int pass_frame(self) noexcept

    cdef bint ask(self, Route route, int kind) except -1

    cdef bint asks_python(self, Route route, int asked) except -1

    cdef inline bint decided(self, Route route, int asked=RULED | TRACED | LED_ON) except -1:
        """Does Python decide on the message at hand: by routing rules, because it is traced, to lead it on?"""
        return route.decided & asked and self.asks_python(route, asked)

    cdef inline bint permitted(self, Route route, bint retains, bint requests) except -1:
        """May the client publish the message at hand? What a route does not know Python is asked, once. False: Python
        decides, and says what is wrong. So it is for a message that is larger than its client's quota allows, or comes
        too fast.
        """
        cdef int number
        if self.frame_size > self.publish_max:
            return False
        if self.outbox.pace is not None and self.outbox.pace.owes(self.ledger.now, True):
            return False
        if self.badge is None:
            return not self.ledger.restricted
        if self.badge.validity.over:
            return False
        number = self.badge.number
        return (route.permits(number, MAY_PUBLISH) or self.ask(route, MAY_PUBLISH)) \
            and (not retains or route.permits(number, MAY_RETAIN) or self.ask(route, MAY_RETAIN)) \
            and (not requests or route.permits(number, MAY_REQUEST) or self.ask(route, MAY_REQUEST))

    cdef inline bint unread(self) except -1:
        """Has the client too many unread answers, or published too fast? Then it is not read from: BLOCKED."""
        if self.outbox.pace is not None and self.outbox.pace.owes(self.ledger.now, False):
            self.blocker = <Outbox> self.outbox.pace.first_owing(self.ledger.now).gate
            self.stop()
            return True
        if self.outbox.control_size <= self.control_max:
            return False
        self.outbox.choke()
        self.blocker = self.outbox
        self.stop()
        return True

    cdef inline void note_position(self) noexcept:
        """A message that is to be acknowledged is about to be fanned out."""
        if self.receipts is not None:
            self.position = self.receipts.position.appended

    cdef inline int stop(self) except -1:
        """Nothing more can be done now: keep what is left until the next read."""
        return self.inbox.keep_rest()

    cdef inline int wait(self) except -1:
        """The PUBLISH at hand is held back, by what the batcher says."""
        self.blocker = self.batcher.held_back_by()
        return self.stop()

    cdef inline int write(self, const char* octets, Py_ssize_t size) except -1:
        """An answer into the client's own outbox."""
        if not self.outbox.closed:
            self.outbox.put(octets, size, NULL, 0, 0, 0)
            self.outbox.control_size += size
        return 0
