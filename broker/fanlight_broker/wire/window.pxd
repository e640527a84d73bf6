# What is on its way to one session with QoS 1 or 2, and what waits to be.
#
#   offer --> room? --> slots   [ . | 17 | . | . | 20 | 5 | . | . ]      a Flight at identifier & mask; in use: in_flight
#               |                 PUBLISH is out, waiting for PUBACK, PUBREC or PUBCOMP
#               '-- no --> queue  {Flight, Flight, ...}                 no identifier yet; bounded
#
#   after a reconnect: again    {Flight, ...}                           have an identifier, are to be sent once more, first
#   of queue groups:   sources  [Source(queue, variant), ...]           unsent messages that any member may take
#
# An identifier is chosen so that its slot is free, so a look-up is one comparison; and when the table doubles, flights
# that had different slots have different slots again.

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.ledger cimport Account, Ledger, Pot
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.outbox cimport Outbox

cdef enum FlightState:
    QUEUED = 0
    AWAITING_PUBACK = 1
    AWAITING_PUBREC = 2
    AWAITING_PUBCOMP = 3       # it has arrived: the message is given up, the identifier is not free yet
    ENDED = 4

# The collector does not see it: there is one for each delivery, and what it refers to lets go of it when it ends.
@cython.final
@cython.no_gc
cdef class Flight:
    cdef:
        readonly Message message      # None from PUBREC on
        readonly Variant variant      # None in a group's queue: the member that takes it has one
        readonly int identifier       # 0: none yet
        readonly FlightState state
        Source source                 # of which group it was taken, or None
        bint counted                  # it takes one of receive_max
        uint64_t order                # of its PUBLISH, or of its PUBREC

cdef class Consumers:
    # Several who take from one queue: what the queue's windows ask of them.
    cpdef feed(self, double now)

@cython.final
@cython.no_gc
cdef class Queue:
    cdef:
        Ledger ledger
        readonly Account account      # of the principal it is kept for, or None
        object flights                # deque, oldest first
        public Consumers group        # the queue group that it is of, as long as that has members; else None
        public Py_ssize_t messages_max, bytes_max
        public bint drop_oldest       # when it is full; else the newest
        readonly Py_ssize_t nbytes
        readonly Py_ssize_t mortal    # messages in it that expire some day
        readonly uint64_t dropped, expired

    cdef bint put(self, Flight flight) except -1
    cdef bint over_share(self) except -1
    cdef bint has_room(self, Py_ssize_t size) noexcept
    cdef int put_back(self, Flight flight) except -1
    cdef Flight pop(self, double now)
    cdef int entered(self, Flight flight, int sign) noexcept
    cdef bint over(self, int quarters) noexcept

@cython.no_gc
cdef class Source:
    cdef:
        readonly Queue queue
        readonly Variant variant
        readonly uint64_t taken

@cython.final
cdef class Window:
    cdef:
        Outbox box                    # of the present connection; the absent one's (outbox.pxd) while there is none
        public object owner           # whose it is (the core's subscriber)
        readonly Queue queue
        readonly bint open            # the client is there and may be sent to
        readonly bint ended           # its session is over: its subscriptions deliver nothing more
        readonly bint resting         # the turn was over before all was sent that has room: `advance` goes on
        readonly Py_ssize_t receive_max
        readonly Py_ssize_t in_flight # identifiers in use
        readonly Py_ssize_t sent      # of receive_max, those in use
        readonly list sources
        readonly uint64_t settled     # flights that came to their end, whichever
        Ledger ledger
        Pot pot                       # that counts `slots`, from the first growth on
        list slots
        Py_ssize_t mask
        int last                      # identifier given
        uint64_t order
        object again                  # deque

    cdef bint full(self) except -1
    cdef int offer(self, Message message, Variant variant, Source source) except -1
    cdef int launch(self, Flight flight) except -1
    cdef int assign(self, Flight flight) except -1
    cdef int grow(self) except -1
    cdef Py_ssize_t grown(self) noexcept
    cdef Flight find(self, int identifier)
    cdef int remove(self, Flight flight) except -1
    cdef int keep(self, Py_ssize_t octets) noexcept
    cdef int enqueue(self, Message message, Variant variant, Source source) except -1
    cdef Flight following(self, double now)
    cdef int pump(self, double now) except -1
    cdef bint settle(self, int identifier, FlightState state, double now) except -1
