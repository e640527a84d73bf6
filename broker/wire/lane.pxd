# What the lanes of all protocols have in common, and all that a transport needs to know of one: it can be advanced.
#
#   Inbox --take_frames--> Outbox, Outbox, ...     until the protocol's Python is needed, or bytes are
#
# A transport that is compiled itself calls `take` and goes into Python only when there is something to do there.

from broker.wire.collector cimport Collector
from broker.wire.inbox cimport Inbox
from broker.wire.ledger cimport Ledger
from broker.wire.message cimport Message
from broker.wire.outbox cimport Outbox
from broker.wire.routes cimport RouteCache

cdef enum Event:    # what `advance` returns, in C
    WAITS = 0                 # NEED_MORE
    FOR_PYTHON = 1            # FRAME
    PUBLISH_FOR_PYTHON = 2    # PUBLISH
    HELD_BACK = 3             # BLOCKED
    REFUSED = 4               # FAULT
    OVERSIZE = 5              # TOO_LARGE
    OVER = 6                  # NO_ROOM
    ENOUGH = 7                # TURN_OVER

cdef class Lane:
    cdef:
        readonly Inbox inbox
        readonly Outbox outbox
        RouteCache routes
        Collector collector               # of the routes: what follows each other goes out in runs
        Ledger ledger
        public Py_ssize_t control_max     # bytes of answers that may pile up before reading stops
        readonly Message message          # the PUBLISH at hand, for the fan-out: it points into the inbox
        readonly Py_ssize_t routed        # subscriptions that the last PUBLISH went to, a queue group counting once
        readonly bint unkept              # each of them had a queue without room for it
        public bint plain                 # every PUBLISH is for Python
        public bint silent                # acknowledgements of what a store keeps are Python's: they wait until it is
        readonly object blocker           # the outbox that holds this client back, after BLOCKED
        readonly double heard_at          # when the peer was heard of last, in seconds of `Ledger.awake`
        bint heard                        # it was since; what counts for that is the protocol's to say
        public bint ready                 # nothing but bytes is waited for: what comes may be taken at once

    cdef int take_frames(self, double now) except -1
    cdef int take(self, double now) except -1
