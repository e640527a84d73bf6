# A flight: one message on its way to one subscriber that acknowledges it.
#
#   QUEUED --> SENT --> ENDED          acknowledged once
#                 '-> TAG_ONLY --> ENDED      in two steps: the message has arrived and is given up, its tag is still in
#                                             use
#
# What the acknowledgements are called, and which of them a quality of service takes, is the protocol's.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.message cimport Message, Variant

cdef enum FlightState:
    QUEUED = 0      # also one that has a tag, and is sent when that is synced
    SENT = 1
    TAG_ONLY = 2
    ENDED = 3

cdef class Source:
    # Where the message of a flight was taken from, and is given back to: a Consumer (queue.pxd).
    pass

# The garbage collector does not see it: there is one for each delivery, and what refers to it drops it when it ends.
# 72 bytes, for which pymalloc gives 80. It has no methods: there would be a table of them in each.
@cython.final
@cython.no_gc
cdef class Flight:
    cdef:
        readonly Message message      # None once it is TAG_ONLY
        readonly Variant variant      # None in a group's queue: the member that takes it has one
        Source source                 # of a queue group's queue; None: of the session's own
        readonly uint64_t tag         # 0: none yet
        uint64_t order                # sent: the order in which to send again
        public uint64_t number        # of a journal, in the queue that it was put into; 0: none
        double since                  # of a named queue: when it came into it; else 0
        double due                    # of a named queue, in flight: when it is to be acknowledged
        readonly uint32_t attempt     # of a named queue: how often it was sent
        readonly FlightState state
        unsigned char qos             # of the delivery, from SENT on
        unsigned char counted         # it takes one of the window's `inflight_max`
        readonly unsigned char priority     # in a queue with priorities, of those; else 0
