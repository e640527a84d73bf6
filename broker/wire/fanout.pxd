# Who gets a message, and the copying of it.
#
#   Route ("stock.nasdaq.AAPL")
#     targets  [Target, Target, Target, ...]            one a subscription
#     groups   [Group [Target, Target], ...]            one a queue group; one member gets the message
#
#   Target -> Outbox of its connection, number of the subscription, credit, messages left
#          -> or the Window of its session, which outlives connections and has the outbox of the present one
#
# A message is encoded once for each Variant on the route, into a head with a hole and a body (message.pxd); a copy is the
# head with its number in the hole, and the body. This file knows no more of the protocols.

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from broker.wire.ledger cimport Ledger
from broker.wire.message cimport Message, Variant
from broker.wire.outbox cimport Outbox
from broker.wire.window cimport Queue, Source, Window

cdef enum Echo:
    ALL = 0            # messages of anybody
    NOT_OWN = 1        # none that its own client has published (no echo, no local)
    ONLY_OWN = 2       # only those: the other half of a merged target, see core.overlap

@cython.final
cdef class Target:
    cdef:
        Outbox direct                     # if it has no window
        readonly Window window
        readonly Variant variant          # the bytes of its copies
        readonly uint32_t number
        readonly Echo echo
        readonly int64_t credit           # messages it may still get; UNLIMITED
        readonly int64_t remaining        # messages until it ends by itself; UNLIMITED
        readonly bint ended
        readonly uint64_t delivered, dropped
        object waiting                    # deque of frames (bytes) that wait for credit, or None
        readonly Py_ssize_t waiting_max
        public object subscription        # the core's half
        Source source                     # of its group's queue, if it is a member that acknowledges
        readonly list parts               # the targets that this one stands for, if it is a merged one

    cdef Outbox box(self)
    cdef bint listens(self, Outbox publisher) noexcept
    cdef bint stalled(self) noexcept
    cdef Py_ssize_t pending(self)
    cdef int deliver(self, Message message, Variant variant) except -1
    cdef int hold(self, Variant variant, Py_ssize_t payload) except -1
    cdef int count(self) except -1

@cython.final
cdef class Group:
    cdef:
        readonly list members
        readonly Py_ssize_t turn
        readonly Queue queue              # what no member can take now; None if no member has a window

    cdef Target pick(self, Outbox publisher, Message message, bint* waits)
    cdef bint give(self, Outbox publisher, Message message) except -1
    cdef Outbox blocker(self, Outbox publisher)

@cython.final
cdef class Route:
    cdef:
        readonly bytes key
        readonly list targets, groups
        public uint64_t hits
        public object slot                # the core's number for it

    cdef Outbox blocker(self, Outbox publisher)

cdef Py_ssize_t fan_out(Route route, Ledger ledger, Outbox publisher, Message message) except -1
