# Who gets a message, and the copying of it.
#
#   Route ("stock.nasdaq.AAPL")
#     targets  [Target, Target, Target, ...]            one a subscription
#     groups   [QueueGroup [Target, Target], ...]            one a queue group; one member gets the message
#
#   Target -> Outbox of its connection, number of the subscription, credit, messages left
#          -> or the Window of its session, which outlives connections and has the outbox of the present one
#
# A message is encoded once for each Variant on the route, into a head with a hole and a body (message.pxd); a copy is the
# head with its number in the hole, and the body. This file knows no more of the protocols.
#
# An exception while one target is served is that target's fault (`Target.fault`): the publisher does not see it, and all
# other targets are served.

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.window cimport Consumers, Queue, Source, Window

cdef enum Echo:
    ALL = 0            # messages of anybody
    NOT_OWN = 1        # none that its own client has published (no echo, no local)
    ONLY_OWN = 2       # only those: the other half of a merged target, see core.overlap

cdef class QueueGroup

# What few subscriptions have: made for those, so that the others need no place for it.
@cython.final
@cython.no_gc
cdef class Extras:
    cdef:
        object waiting                    # deque of frames (bytes) that wait for credit, or None
        Py_ssize_t waiting_max
        Source source                     # of its group's queue, if it is a member that acknowledges
        QueueGroup group                       # that it is a member of
        list parts                        # the targets that this one stands for, if it is a merged one

# A subscription, whole: the core knows it as that. There may be millions, so it is small (112 bytes), and the garbage
# collector does not see it: what holds one (a client's table, the router, a group) lets go of it when it ends.
@cython.final
@cython.no_gc
cdef class Target:
    cdef:
        Outbox direct                     # if it has no window
        readonly Window window
        readonly Variant variant          # the bytes of its copies
        readonly bytes filter             # as the client wrote it; taken apart only for people
        Extras extras                     # or None
        readonly int64_t credit           # messages it may still get; UNLIMITED
        readonly int64_t remaining        # messages until it ends by itself; UNLIMITED
        uint64_t handed, lost             # messages handed to the outbox, and those that it would have got
        readonly uint32_t number
        public uint32_t id                # the router's
        readonly unsigned char echo       # Echo
        readonly unsigned char syntax_number
        bint done                         # it delivers nothing more; see also Window.ended, Outbox.closed

    cdef inline void delivered_more(self, Py_ssize_t messages) noexcept:
        cdef Target part
        self.handed += messages
        if self.extras is not None and self.extras.parts is not None:
            for part in self.extras.parts:
                part.handed += messages

    cdef Extras extra(self)
    cdef Outbox box(self)
    cdef bint listens(self, Outbox publisher) noexcept
    cdef bint joins(self, int qos) noexcept
    cdef bint stalled(self) noexcept
    cdef Py_ssize_t pending(self)
    cdef int deliver(self, Message message, Variant variant) except -1
    cdef int wait_for_credit(self, Variant variant, Py_ssize_t payload) except -1
    cdef int count(self) except -1
    cdef int failed(self) except -1
    cdef int fault(self, error) except -1
    cpdef int discard(self) except -1

# It, its queue and its sources are in no cycle without a Target, so they are not the collector's either.
@cython.final
@cython.no_gc
cdef class QueueGroup(Consumers):
    cdef:
        readonly str name
        readonly list members
        readonly Py_ssize_t turn
        readonly Queue queue              # what no member can take now; None if no member has a window

    cdef int sources_of(self, Target member) except -1
    cdef int forget_sources(self, Window window) except -1
    cdef Target pick(self, Outbox publisher, Message message, bint* waits)
    cdef bint give(self, Outbox publisher, Message message) except -1
    cdef Outbox blocker(self, Outbox publisher)

@cython.final
@cython.no_gc
cdef class Route:
    cdef:
        readonly bytes key
        readonly list targets, groups     # not changed any more, nor seen by the garbage collector: see `unseen`
        readonly Py_ssize_t nbytes        # what it takes, about; what its merged targets stand for counts
        readonly bint is_text             # the topic is UTF-8; not all protocols ask for that
        public uint64_t hits
        public Py_ssize_t slot            # the core's number for it; -1: none
        public ArchiveTap tap                    # who keeps what passes here, or None

    cdef Outbox blocker(self, Outbox publisher)

ctypedef int (*Give)(Target, Message) noexcept    # what is called unchecked: see message.pxd

cdef inline int deliver_to(Target target, Message message) except -1:
    return target.deliver(message, target.variant)

cdef Py_ssize_t fan_out(Route route, Ledger ledger, Outbox publisher, Message message) except -1
