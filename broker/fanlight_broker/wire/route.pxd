# A route: who gets the messages on one topic.
#
#   Route ("stock.nasdaq.AAPL")
#     targets  [Target, Target, Target, ...]                  one a subscription
#     groups   [QueueGroup [Target, Target], ...]             one a queue group; one member gets the message

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.outbox cimport Outbox

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
        public ArchiveTap tap             # which keeps what passes here, or None

    cdef Outbox blocker(self, Outbox publisher)
