# The window of one session: sends what is to be acknowledged, as far as there is room, and keeps what is not yet.
#
#   offer --> room? --> inflight  tag -> Flight                   its PUBLISH is out, its acknowledgement to come
#               |
#               '-- no --> queue  {Flight, Flight, ...}           no tag yet; bounded
#
#   QoS 2, with a journal: unsynced  {Flight, ...}                have a tag, are sent when the journal has it: else a
#                                                                 restart would send them a second time, with another
#   after a reconnect: again      {Flight, ...}                   have a tag, are to be sent once more, first
#   of queue groups:   consumers  [Consumer(queue, variant), ...] by which it takes unsent messages that any member may
#                                 take
#
# A consumer of a named queue has one, too, without a queue of its own: `queue` is that of all its consumers.

cimport cython
from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.flight cimport ENDED, Flight
from fanlight_broker.wire.frames cimport FIRM, MESSAGE
from fanlight_broker.wire.inflight cimport Inflight, ReusedTags
from fanlight_broker.wire.journal cimport JournalPosition, QueueJournal
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Format, Message, Variant, uint16_into
from fanlight_broker.wire.outbox cimport Outbox, Owner
from fanlight_broker.wire.publication cimport FanoutState
from fanlight_broker.wire.consumers cimport Consumers
from fanlight_broker.wire.queue cimport Consumer, Queue

@cython.final
cdef class Window:
    cdef:
        # What a delivery reads comes first, in two lines of the processor's cache.
        Outbox box                    # of the present connection; the absent one's (outbox.pxd) while there is none
        readonly Queue queue
        Ledger ledger
        # A consumer of a named queue (named_queue.pxd) has a window at that queue, in place of one of its own.
        readonly Consumers hub        # the named queue; None: it is a session's
        Format format                 # of `variant`
        readonly uint32_t number      # of its subscription
        readonly bint open            # the client is there and may be sent to
        public bint automatic         # what is sent is acknowledged by that
        readonly Py_ssize_t sent      # deliveries that the client has unacknowledged
        readonly Py_ssize_t inflight_max    # and those that it takes so
        readonly uint64_t delivered   # to it, as a consumer
        readonly Variant variant      # how its deliveries are written
        public int rank               # consumers with a higher one come first
        public double ack_wait        # seconds in which a delivery is to be acknowledged
        double next_due               # no delivery is to be acknowledged before
        public Owner owner            # whose it is; None: nobody's
        readonly Inflight inflight
        readonly bint ended           # its session is over: its subscriptions deliver nothing more
        readonly bint resting         # the turn was over before all was sent that has room: `advance` goes on
        readonly list consumers
        readonly uint64_t ended_flights     # whichever way they ended
        public JournalPosition position     # of the broker's journal; None: nothing waits for it
        readonly Py_ssize_t unsent    # with a tag that is not synced, and those behind them
        uint64_t order
        uint64_t gathered             # of a Finder, that looks for sessions with two subscriptions to one topic
        object again                  # deque, or None if it is empty
        object unsynced               # deque of (Flight, the position that it waits for), or None
        bint listed                   # in `position.windows`
        ReusedTags reused             # `inflight`, if it is one, to call it without a table; else None

    cdef inline bint full(self) except -1:
        """Would a message have to wait?"""
        return not self.open or self.sent + self.unsent >= self.inflight_max \
            or self.inflight.count >= self.inflight.most or self.again is not None or self.queue.length > 0 \
            or (self.sent and (not self.box.has_room(0)
                               or (self.queue.account is not None and self.queue.account.over(self.ledger))))

    cdef inline Flight find(self, uint64_t tag):
        return self.reused.look_up(tag) if self.reused is not None else self.inflight.find(tag)

    cdef inline bint waits(self) noexcept:
        """May `following` have something?"""
        return self.queue.length > 0 or self.again is not None or self.unsent > 0 or PyList_GET_SIZE(self.consumers) > 0

    cdef inline QueueJournal origin(self, Flight flight):
        """The journal of the queue in which a flight has its number; None: it has none."""
        cdef QueueJournal journal = None
        if flight.source is not None:
            journal = (<Consumer> flight.source).queue.journal
        return journal if journal is not None else self.queue.journal

    cdef inline int address(self, Flight flight) except -1:
        """A delivery of a named queue: count it, and fill in what this copy alone has."""
        flight.attempt += 1
        flight.due = self.ledger.now + self.ack_wait
        self.next_due = min(self.next_due, flight.due)
        self.hub.deliveries += 1
        self.delivered += 1
        if flight.attempt > 1:
            self.hub.redeliveries += 1
            self.ledger.redelivered += 1
        return flight.variant.format.address(flight.variant, self.number, flight.tag, flight.attempt)

    cdef inline int put(self, Flight flight) except -1:
        """Put it into the outbox; its variant's template is made for it."""
        cdef Variant variant = flight.variant
        cdef Outbox outbox = self.box
        if variant.hole_size == 2:
            uint16_into(variant.head + variant.hole, <uint32_t> flight.tag)
        elif self.hub is not None:
            self.address(flight)
        if variant.shared is NULL:
            outbox.put(variant.head, variant.head_size, variant.body, variant.body_size, 0, MESSAGE | FIRM)
        else:
            outbox.put_shared(variant.head, variant.head_size, <bytes> variant.shared, 0, MESSAGE | FIRM)
        self.ledger.payload_out += flight.message.payload_size
        if variant.stateful:
            variant.format.sent(variant)
        return 0

    cdef inline int count_acknowledged(self, Py_ssize_t flights) noexcept:
        self.ledger.acknowledged += flights
        if self.hub is not None:
            self.hub.acknowledgements += flights
        return 0

    cdef inline int keep(self, Py_ssize_t octets) noexcept:
        self.ledger.stored += octets
        if self.queue.account is not None:
            self.queue.account.count_for_all(octets)
        return 0

    cdef inline int send_off(self, Flight flight) except -1:
        """The same, which acknowledges it: it needs no tag."""
        if flight.number and self.queue.journal is not None:
            self.queue.journal.removed(flight)
        self.put(flight)
        self.count_acknowledged(1)
        self.ended_flights += 1
        flight.state = ENDED
        flight.message.drop_holder(self.ledger, self.queue.account)
        flight.message = None
        return 0

    cdef int offer(self, FanoutState* publication, Variant variant, Consumer consumer) except -1
    cdef int launch_synced(self, Flight flight) except -1
    cdef int launch(self, Flight flight) except -1
    cdef int assign(self, Flight flight) except -1
    cdef int lend(self, Flight flight, QueueJournal journal) except -1
    cdef int end_flight(self, Flight flight) except -1
    cdef int become_tag_only(self, Flight flight) except -1
    cdef int enqueue(self, FanoutState* publication, Variant variant, Consumer consumer) except -1
    cdef Flight following(self, double now)
    cdef int pump(self, double now) except -1
    cdef bint pour(self, double now) except -1
    cdef bint send(self, FanoutState* publication, Flight flight, double now) except -1
    # For the protocol, which knows what an acknowledgement means.
    cdef int acknowledged(self, Flight flight, double now) except -1
    cdef Py_ssize_t acknowledged_up_to(self, uint64_t tag, double now) except -1
    cdef int give_up_message(self, Flight flight) except -1
    cdef int refused(self, Flight flight, double now) except -1
