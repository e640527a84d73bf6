# Who gets a message, and the copying of it.
#
#   Route ("stock.nasdaq.AAPL")
#     targets  [Target, Target, Target, ...]            one a subscription
#     groups   [Group [Target, Target], ...]            one a queue group; one member gets the message
#
#   Target -> Outbox of its connection, number of the subscription, credit, messages left
#
# A frame is handed over as head + body. The head is a template of a few bytes with a hole of four at `hole`, into which
# each copy gets its target's number, big-endian; the body is the same for all. This file knows no more of the protocol.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from broker.wire.ledger cimport Ledger
from broker.wire.outbox cimport Outbox

cdef struct Head:
    char octets[32]
    Py_ssize_t size
    Py_ssize_t hole

cdef class Target:
    cdef:
        readonly Outbox outbox
        readonly uint32_t number
        readonly bint no_echo
        readonly int64_t credit           # messages it may still get; UNLIMITED
        readonly int64_t remaining        # messages until it ends by itself; UNLIMITED
        readonly bint ended
        readonly uint64_t delivered, dropped
        object waiting                    # deque of frames (bytes) that wait for credit, or None
        readonly Py_ssize_t waiting_max
        public object subscription        # the core's half

    cdef bint listens(self, Outbox publisher) noexcept
    cdef bint stalled(self) noexcept
    cdef Py_ssize_t pending(self)
    cdef int deliver(self, Head* head, const char* body, Py_ssize_t body_size, bytes shared) except -1
    cdef int hold(self, Head* head, const char* body, Py_ssize_t body_size) except -1
    cdef int count(self) except -1

cdef class Group:
    cdef:
        readonly list members
        readonly Py_ssize_t turn
    cdef Target pick(self, Outbox publisher)
    cdef Outbox blocker(self, Outbox publisher)

cdef class Route:
    cdef:
        readonly bytes key
        readonly list targets, groups
        public uint64_t hits
        public object slot                # the core's number for it

    cdef Outbox blocker(self, Outbox publisher)

cdef Py_ssize_t fan_out(Route route, Ledger ledger, Outbox publisher, Head* head, const char* body,
                        Py_ssize_t body_size) except -1
