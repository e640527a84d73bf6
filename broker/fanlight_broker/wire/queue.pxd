# A queue of messages, oldest first, and who takes from it.
#
#   put --> flights {Flight, Flight, ...} --pop--> a Window, of a session, or of a member of a queue group
#             ^     ^                                |
#             |     '-- put_back -- no room, or gone '
#             '-- backlog (backlog.pxd): what a durable queue has not in memory, or a long one has packed

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.consumers cimport Consumers, Discard
from fanlight_broker.wire.flight cimport Flight, Source
from fanlight_broker.wire.flight_row cimport FlightRow
from fanlight_broker.wire.journal cimport QueueJournal
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.levels cimport Levels
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.packed_row cimport is_shared

cdef enum:
    HEAD_BYTES = 256 * 1024    # of a queue with a backlog, that are kept in memory beside one message
    HEADS = 16                 # heads of one whose consumer is there, while nothing waits in the backlog

@cython.final
@cython.no_gc
cdef class Queue:
    cdef:
        # What a delivery reads that does not stay here comes first, in two lines of the processor's cache.
        readonly Account account      # of the principal it is kept for, or None
        Py_ssize_t length
        readonly Py_ssize_t apart     # messages that wait for their time, and are in no order: they count as well
        readonly Py_ssize_t nbytes    # with those kept apart
        public Py_ssize_t messages_max, bytes_max
        public QueueJournal journal   # of what must survive a restart; None: nothing does
        public double ttl             # seconds that a message may wait since it came; NEVER ends: infinite
        public bint by_bodies         # `bytes_max` and `nbytes` count payloads alone
        readonly int priorities       # 0: all messages are alike, and it reads no priority
        Ledger ledger
        object flights                # FlightRow, oldest first; or Levels; or NOTHING
        public Backlog backlog        # None: all of it is in memory
        public Consumers group        # the queue group that it is of, as long as that has members; else None
        public bint idle              # no consumer is connected: what comes is not taken soon
        public bint drop_oldest       # when it is full, of the lowest priority; else the newest
        public bint buries_newest     # one that it has no room for is discarded, as one of its own
        public bint in_order          # what has expired leaves it when it is the oldest, and not before
        public Py_ssize_t reads_dropped    # below so many: what it drops for room is read first, to be buried
        public Py_ssize_t wanting     # its group is notified when fewer wait, once; 0: never
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
    cdef int settle_losses(self) except -1
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

    cdef inline bint put_plain(self, Message message, double now) except -1:
        """`put` of a message that comes now, without a flight. False: nothing was done, for it has to have one, or
        there is no room.
        """
        cdef Py_ssize_t size = self.size_of(message)
        if self.priorities or self.journal is not None or message.expires_at <= now or self.ttl <= 0 \
                or self.length + self.apart >= self.messages_max or self.nbytes + size > self.bytes_max:
            return False
        if self.backlog is not None and (self.backlog.length or not (self.near() or is_shared())):
            return False    # it is packed. What many queues share takes less as it is
        message.hold(self.ledger, self.account)
        if self.ledger.stored > self.ledger.stored_limit \
                or (self.account is not None and self.account.over(self.ledger)):
            message.let_go(self.ledger, self.account)
            return False
        if self.length == 0 and type(self.flights) is not FlightRow:
            self.flights = FlightRow()
        (<FlightRow> self.flights).append_message(message, now)
        self.length += 1
        self.nbytes += size
        self.mortal += message.expires_at != INFINITY
        return True

    cdef inline bint near(self) noexcept:
        """Nothing waits in its backlog: is what comes taken so soon that it stays as it is?"""
        return self.length < self.backlog.head or (not self.idle and self.catches_up())

    cdef inline bint catches_up(self) noexcept:
        """May a consumer that is there have fallen behind for a moment alone? What goes to the backlog comes back from
        it, and all that comes meanwhile, too. A quarter of the memory for messages is for not doing that.
        """
        return self.length < HEADS * self.backlog.head and self.nbytes < HEADS * HEAD_BYTES \
            and self.ledger.stored < self.ledger.stored_limit // 4

    cdef inline bint all_plain(self) noexcept:
        """May messages without a flight wait in it, and none that is to be read from a disk?"""
        return self.journal is None and (self.backlog is None or self.backlog.at_hand) \
            and type(self.flights) is FlightRow

    cdef inline bint runs_low(self) noexcept:
        """Is more of the backlog to be fetched?"""
        return self.backlog is not None and self.backlog.length \
            and 4 * (self.length - self.backlog.length) <= self.backlog.head

    cdef inline int remove_plain(self, Message message) except -1:
        """The first leaves it, which is a message without a flight. Who took it has it, and lets it go."""
        (<FlightRow> self.flights).drop_first_message()
        self.length -= 1
        self.nbytes -= self.size_of(message)
        self.mortal -= message.expires_at != INFINITY
        return 0

    cdef inline Flight take_first(self):
        return (<Levels> self.flights).popleft() if self.priorities else (<FlightRow> self.flights).popleft()

    cdef inline Py_ssize_t size_of(self, Message message) noexcept:
        return message.payload_size if self.by_bodies else message.bytes_held()

    cdef inline bint has_place(self, Py_ssize_t held, Py_ssize_t payload) noexcept:
        """Has it a place for a message, without dropping another? held: bytes that it takes while it is kept"""
        return self.length + self.apart < self.messages_max \
            and self.nbytes + (payload if self.by_bodies else held) <= self.bytes_max

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
