# A route: who gets the messages on one topic.
#
#   Route ("stock.nasdaq.AAPL")
#     targets  [Target, Target, Target, ...]                  one a subscription
#     groups   [QueueGroup [Target, Target], ...]             one a queue group; one member gets the message
#     screens  RouteScreens, or None                          those with selectors, to be asked for each message

cimport cython
from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.permits cimport permit_known
from fanlight_broker.wire.retained cimport RetainedEntry
from fanlight_broker.wire.screening cimport RouteScreens

cdef enum:
    RULED = 1                # a routing rule may act on the topic's messages: Python decides on each
    TRACED = 2               # a Sampler is asked about each, and Python publishes those that it chooses
    LED_ON = 4               # there may be queues behind the topic (core/onward.py), which Python finds for each

cdef class Route

# Queues behind a topic (core/onward.py). While it is `valid` every message of the topic goes to these, whatever it
# says, and lanes need no Python for it.
@cython.final
@cython.no_gc
cdef class QueuesBehind:
    cdef:
        readonly list queues              # named queues
        public bint valid                 # False: they are one message's alone, or a binding has changed since
        Route joined                      # the route of the topic with these, as long as that is the same:
        list targets, groups

    cdef Route joined_with(self, Route route)

@cython.final
@cython.no_gc
cdef class Route:
    cdef:
        readonly bytes key                # none octets: it is of a topic that is not kept
        readonly list targets, groups     # replaced, never changed; not seen by the garbage collector: see `unseen`
        readonly Py_ssize_t nbytes        # what it takes, about; what its merged targets stand for counts
        readonly bint is_text             # the topic is UTF-8; not all protocols ask for that
        public uint64_t hits
        Py_ssize_t hash, place            # the cache's, and where in it; -1: it is not kept
        uint64_t generation               # of the subscriptions that it is about: see changes.pxd
        uint64_t hits_seen                # by the clock's hand that looks for the route to remove
        public ArchiveTap tap             # which keeps what passes here, or None
        public RetainedEntry retained     # of its topic, which may be over; None: Python has not looked yet
        readonly RouteScreens screens     # None: nobody asks what a message says. Else `targets` and `groups` are those
                                          # who do not: see RouteCache.screened
        readonly bint filtered            # of one message: no selector is true of it
        public QueuesBehind behind        # of its topic, if it is LED_ON; None: Python has not looked, or looks at each
        int decided                       # RULED, TRACED, LED_ON: what decides on a message beside it; mostly nothing
        # Permission classes of which is known that they may publish, retain, request here: see badge.pxd.
        uint64_t permitted[3]             # a bit for each of the first
        uint32_t permitted_too[4]         # others, the last that were asked about: 4 * number + kind; 0 is nobody
        unsigned char permitted_next      # the place that is used next
        uint64_t permit_serial            # its own, under which still others are in a table: permits.pxd; 0: none are

    cdef inline bint leads_by_itself(self) noexcept:
        """Is it known which queues behind the topic every message goes to?"""
        return self.behind is not None and self.behind.valid and self.screens is None

    cdef int permit(self, int number, int kind) noexcept
    cdef int forget_permits(self) noexcept

    cdef inline bint permits(self, int number, int kind) noexcept:
        """Is it known that a class may do this? A number from 64 on is one of the four here, or in the table."""
        if number < 64:
            return self.permitted[kind] >> number & 1
        cdef uint32_t wanted = 4 * <uint32_t> number + kind
        return self.permitted_too[0] == wanted or self.permitted_too[1] == wanted or self.permitted_too[2] == wanted \
            or self.permitted_too[3] == wanted \
            or (self.permit_serial != 0 and permit_known(self.permit_serial, wanted))

    cdef int set_targets(self, list targets, list groups, RouteScreens screens) except -1
    cdef Outbox blocker(self, Outbox publisher)
    cdef bint refused_by_queue(self, Ledger ledger, Message message) except -1

    cdef inline bint refuses(self, Ledger ledger, Message message) except -1:
        """Must a message not be published, because a named queue has no room for it?"""
        return ledger.refusers and PyList_GET_SIZE(self.groups) and self.refused_by_queue(ledger, message)
