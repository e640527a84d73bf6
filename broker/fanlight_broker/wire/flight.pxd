# A flight: one message on its way to one subscriber that acknowledges it.
#
#   QUEUED --> SENT --> ENDED          acknowledged once
#                 '-> TAG_ONLY --> ENDED      in two steps: the message has arrived and is given up, its tag is still in
#                                             use
#
# What the acknowledgements are called, and which of them a quality of service takes, is the protocol's.

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.message cimport Message, Variant

cdef enum FlightState:
    QUEUED = 0
    SENT = 1
    TAG_ONLY = 2
    ENDED = 3

cdef class Source:
    # Where the message of a flight was taken from, and is given back to: a Consumer (queue.pxd).
    pass

# The garbage collector does not see it: there is one for each delivery, and what refers to it drops it when it ends.
@cython.final
@cython.no_gc
cdef class Flight:
    cdef:
        readonly Message message      # None once it is TAG_ONLY
        readonly Variant variant      # None in a group's queue: the member that takes it has one
        readonly uint64_t tag         # 0: none yet
        Source source                 # of a queue group's queue; None: of the session's own
        uint64_t order                # in a queue its place there; sent, the order in which to send again
        readonly FlightState state
        bint counted                  # it takes one of the window's `inflight_max`

    cdef inline int quality(self) noexcept:
        """Of the delivery; there is a message."""
        return min(self.variant.qos, self.message.qos)
