# A route: who gets the messages on one topic.
#
#   Route ("stock.nasdaq.AAPL")
#     targets  [Target, Target, Target, ...]                  one a subscription
#     groups   [QueueGroup [Target, Target], ...]             one a queue group; one member gets the message

cimport cython
from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport uint64_t

from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
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
    cdef bint refused_by_queue(self, Message message) except -1

    cdef inline bint refuses(self, Ledger ledger, Message message) except -1:
        """Must a message not be published, because a named queue has no room for it?"""
        return ledger.refusers and PyList_GET_SIZE(self.groups) and self.refused_by_queue(message)
