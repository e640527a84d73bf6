# A target: one subscription as the fan-out sees it, or one that stands for several of a session.
#
#   Target      --> direct: the Outbox of its connection
#               --> window: the Window of its session, which outlives connections and has the outbox of the present one
#   QueueGroup  --> one of its members; or its Queue, if all who acknowledge have no room      (group.pxd)
#
# These three are the destinations of a message: an outbox, what is in flight over one, and a queue. A target has the
# first two as two typed fields, of which one is None: one common class would be a call through a table for each copy.

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState
from fanlight_broker.wire.consumers cimport Consumers
from fanlight_broker.wire.queue cimport Consumer, Queue
from fanlight_broker.wire.window cimport Window

cdef enum Echo:
    ALL = 0            # messages of every publisher
    NOT_OWN = 1        # all but those of its own client (no echo, no local)
    ONLY_OWN = 2       # only those: the other half of a merged target, see core.overlap

cdef enum:
    UNLIMITED_CREDIT = -1

cdef class Target

# What a target is a member of: a QueueGroup (group.pxd), or the NamedQueue (named_queue.pxd) that it fills.
@cython.no_gc
cdef class Members(Consumers):
    cdef:
        readonly str name
        readonly list members
        uint64_t gathered                 # of a Finder, that looks for groups with several members on one topic
        readonly bint takes_all           # its queue keeps messages of every quality, not only of QoS 1 and 2
        readonly Queue queue              # of a group: what no member can take now; None if no member has a window

    cdef int renew_consumer(self, Target member) except -1
    cdef bint give(self, Outbox publisher, FanoutState* publication) except -1
    cdef Outbox blocker(self, Outbox publisher)
    cdef bint refuses(self, Message message) except -1
    cdef int stamp(self, uint64_t serial) except -1

# What few subscriptions have: made for those, so that the others need no place for it.
@cython.final
@cython.no_gc
cdef class Extras:
    cdef:
        object waiting                    # deque of frames (bytes) that wait for credit, or None
        Py_ssize_t waiting_max
        Consumer consumer                 # of its group's queue, if it is a member that acknowledges
        Members group                     # that it is a member of
        list parts                        # of a merged target: those that it replaces
        object condition                  # its selector (the core's), or None

# A subscription, whole: the core knows it as that. There may be millions, so it is small (112 bytes), and the garbage
# collector does not see it: what has one (a client's table, the router, a group) drops it when it ends.
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
        readonly int64_t remaining        # messages until it ends, or UNLIMITED
        uint64_t handed, lost             # messages handed to the outbox, and those that it would have got
        readonly uint32_t number
        public uint32_t id                # the router's
        readonly unsigned char echo       # Echo
        readonly unsigned char syntax_number
        public unsigned char partly       # its owner may not read all that its filter matches: see Finder.may_read
        # What is to be looked for in `extras`, which a delivery reads for these alone: its memory is mostly not cached.
        unsigned char grouped             # a group
        unsigned char merged              # parts
        unsigned char done                # it delivers nothing more; see also Window.ended, Outbox.closed

    cdef inline void delivered_more(self, Py_ssize_t messages) noexcept:
        cdef Target part
        self.handed += messages
        if self.merged:
            for part in self.extras.parts:
                part.handed += messages

    cdef inline Outbox box(self):
        return self.direct if self.window is None else self.window.box

    cdef inline bint listens(self, Outbox publisher) noexcept:
        """Does it get what this publisher publishes?"""
        if self.window is not None:
            if self.done or self.window.ended:
                return False
            return self.echo == ALL or (publisher is self.window.box) == (self.echo == ONLY_OWN)
        return not (self.done or self.direct.closed or (self.echo == NOT_OWN and publisher is self.direct))

    cdef inline Consumer consumer(self):
        """Of its group's queue, or None."""
        return self.extras.consumer if self.grouped else None

    cdef Extras extra(self)
    cdef int join_group(self, Members group) except -1
    cdef int leave_group(self) except -1
    cdef bint joins(self, int qos) noexcept
    cdef bint stalled(self) noexcept
    cdef Py_ssize_t pending(self)
    cdef int deliver(self, FanoutState* publication, Variant variant) except -1
    cpdef int send(self, Message message, Variant variant, double now) except -1
    cdef int wait_for_credit(self, Variant variant, Py_ssize_t payload) except -1
    cdef int count(self) except -1
    cdef int failed(self) except -1
    cdef int fault(self, error) except -1
    cpdef int discard(self) except -1
