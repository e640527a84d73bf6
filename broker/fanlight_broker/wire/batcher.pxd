# Messages of one publisher to the same targets, one behind the other: joined into batches on their way to the outboxes.
#
#   PUBLISH a  PUBLISH a  PUBLISH b  PUBLISH a  PUBLISH c
#      |          |          |          |          |
#      |          |          '-- add ---'          '-- flush: each outbox gets a reference to the batch
#      '-- fan_out, as if there were no batches
#
#   OpenBatch    one for the subscribers whose copies have the same bytes: one Variant, and one number if that is in
#                them
#     batch        what was joined so far
#     joined   the targets that are to get it
#   individual   targets that get each message individually: little room, credit, an end, acknowledgements
#
# A batch is open only within one Lane.advance, and only while every message fits into every outbox that it is for.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.target cimport Target
from fanlight_broker.wire.ledger cimport Ledger, PendingBatches
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState
from fanlight_broker.wire.batch cimport Batch

cdef enum:
    OPEN_BATCHES = 8

cdef struct Link:
    void* target
    Py_ssize_t following    # in `links`; -1: the last

cdef struct Chain:          # of targets, in the order of the route
    Py_ssize_t length, first, last

cdef struct OpenBatch:
    void* variant           # borrowed, as are the targets: the route has them, and what is steady its format
    void* batch               # owned
    bint numbered           # the copies say which subscription they are for: `number`
    uint32_t number
    Chain joined            # the targets
    Py_ssize_t room         # bytes that all of them take
    Py_ssize_t frame_max

@cython.final
cdef class Batcher(PendingBatches):
    cdef:
        public Py_ssize_t reference_bytes  # a smaller batch is copied
        public Py_ssize_t room_least       # bytes that an outbox must have room for, to take part
        public bint off                    # no batches: every message is delivered individually
        readonly uint64_t batches, joined     # so far: those that outboxes got by reference, and messages in them
        Ledger ledger
        list targets                       # None: no batch is open
        Route route                        # on which it was begun; None: one that is not kept
        bint of_one_topic                  # messages on other routes do not join it
        readonly Outbox blocker            # the outbox that holds the publisher back
        unsigned char qos
        OpenBatch open[OPEN_BATCHES]
        int n_open
        Link* links
        Py_ssize_t n_links, links_capacity
        Chain individual
        bint adding                        # a callback of a flush may publish, too
        uint64_t serial
        Route last                         # of the message before, as long as it is valid
        list last_targets                  # of the message before
        Py_ssize_t in_a_row                # messages to them

    cdef Py_ssize_t publish(self, Route route, Ledger ledger, Outbox publisher, Message message, bint more) except -2
    cdef Py_ssize_t publish_alone(self, Route route, Ledger ledger, Outbox publisher, Message message) except -2
    cdef bint takes(self, Route route) noexcept
    cdef int forget(self) except -1
    cdef Outbox held_back_by(self)
    cdef bint start_batches(self, Route route, Ledger ledger, Outbox publisher, Message message) except -1
    cdef int make_batches(self) except -1
    cdef int sort_targets(self, Route route, Outbox publisher, FanoutState* publication) except -1
    cdef Py_ssize_t add(self, Route route, Outbox publisher, Message message) except -2
    cdef int flush_open_batches(self) except -1
    cdef int hand_over(self, Batch batch, Target target) except -1
    cdef bint held_back(self, Route route, Outbox publisher) except -1
    cdef Py_ssize_t deliver_individually(self, Route route, Outbox publisher, FanoutState* publication) except -1
    cdef int link(self, Target target, Chain* chain) except -1
    cdef OpenBatch* open_batch_for(self, Variant variant, uint32_t number) except? NULL
