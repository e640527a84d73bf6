# A queue of messages, oldest first, and who takes from it.
#
#   put --> flights {Flight, Flight, ...} --pop--> a Window, of a session, or of a member of a queue group
#             ^     ^                                |
#             |     '-- put_back -- no room, or gone '
#             '-- backlog (backlog.pxd): what a durable queue has not in memory, or a long one has packed

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.consumers cimport Consumers, Discard
from fanlight_broker.wire.flight cimport Flight, Source
from fanlight_broker.wire.flight_row cimport FlightRow
from fanlight_broker.wire.journal cimport QueueJournal
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.levels cimport Levels
from fanlight_broker.wire.message cimport Message, Variant

@cython.final
@cython.no_gc
cdef class Queue:
    cdef:
        Ledger ledger
        readonly Account account      # of the principal it is kept for, or None
        object flights                # FlightRow, oldest first; or Levels; or NOTHING
        Py_ssize_t length
        public QueueJournal journal   # of what must survive a restart; None: nothing does
        public Backlog backlog        # None: all of it is in memory
        public bint idle              # no consumer is connected: what comes is not taken soon
        public Consumers group        # the queue group that it is of, as long as that has members; else None
        public Py_ssize_t messages_max, bytes_max
        public bint drop_oldest       # when it is full, of the lowest priority; else the newest
        public bint buries_newest     # one that it has no room for is discarded, as one of its own
        public bint in_order          # what has expired leaves it when it is the oldest, and not before
        public Py_ssize_t reads_dropped    # below so many: what it drops for room is read first, to be buried
        public bint by_bodies         # `bytes_max` and `nbytes` count payloads alone
        public Py_ssize_t wanting     # its group is notified when fewer wait, once; 0: never
        readonly int priorities       # 0: all messages are alike, and it reads no priority
        public double ttl             # seconds that a message may wait since it came; NEVER ends: infinite
        readonly Py_ssize_t nbytes    # with those kept apart
        readonly Py_ssize_t apart     # messages that wait for their time, and are in no order: they count as well
        readonly Py_ssize_t mortal    # messages in it that expire some day
        readonly Py_ssize_t sifted    # of those in memory, that `expire` has looked at; 0: it begins anew
        readonly uint64_t dropped, expired

    cdef int enter(self, Message message, Variant variant) except -1
    cdef bint put(self, Flight flight) except -1
    cdef bint over_share(self) except -1
    cdef bint has_room(self, Py_ssize_t size) noexcept
    cdef bint fits(self, Py_ssize_t size) noexcept
    cdef int put_back(self, Flight flight) except -1
    cdef int put_in_front(self, Flight flight) except -1
    cdef int put_stored(self, Flight flight) except -1
    cdef int put_restored(self, Flight flight) except -1
    cdef bint set_aside(self, Flight flight, Py_ssize_t size) except -1
    cdef object row(self)
    cdef Flight oldest(self)
    cdef bint outranked(self, Flight flight) except -1
    cdef int drop_first(self) except -1
    cdef bint reads_first(self) except -1
    cdef bint left(self, Flight flight, Py_ssize_t size) except -1
    cdef int fetch(self, double now) except -1
    cdef int come_in(self, Flight flight, double now) except -1
    cdef int unpacked(self, Message message, double came, uint32_t attempt, double now) except -1
    cdef int lose(self, Flight flight, Discard why) except -1
    cdef int put_apart(self, Flight flight) except -1
    cdef int set_apart(self, Flight flight) except -1
    cdef int bring_in(self, Flight flight) except -1
    cdef int drop_apart(self, Flight flight) except -1
    cdef Py_ssize_t purge(self, Py_ssize_t most) except -1
    cdef inline int add_last(self, Flight flight) except -1:
        if self.priorities:
            return (<Levels> self.flights).append(flight)
        return (<FlightRow> self.flights).append(flight)

    cdef inline Flight take_first(self):
        return (<Levels> self.flights).popleft() if self.priorities else (<FlightRow> self.flights).popleft()

    cdef inline Py_ssize_t size_of(self, Message message) noexcept:
        return message.payload_size if self.by_bodies else message.bytes_held()

    cdef inline bint bounds_admit(self, Message message) noexcept:
        """Has it a place for a message that does not stay there?"""
        return self.apart < self.messages_max and self.nbytes + self.size_of(message) <= self.bytes_max

    cdef inline bint outlived(self, Flight flight, double now) noexcept:
        return flight.message.expires_at <= now or flight.since + self.ttl <= now

    cdef Flight pop(self, double now)
    cdef int entered(self, Flight flight, int sign) noexcept
    cdef bint over(self, int quarters) noexcept

# A window at the queue of a group, of which its target is a member.
@cython.final
@cython.no_gc
cdef class Consumer(Source):
    cdef:
        readonly Queue queue
        readonly Variant variant      # how this consumer's copies are written
        readonly uint64_t taken

cdef Flight new_flight(Message message, Variant variant, Queue queue)
