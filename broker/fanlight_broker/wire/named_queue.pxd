# A named queue: messages of its filters wait in it, and consumers take and acknowledge them.
#
#   bindings in the router --give--> queue {Flight, ...} --feed--> windows [Window, Window, ...]   one a consumer
#                                      ^  ^                            |-- acknowledged: it is done with
#                                      |  '-- at once ---- returned <--|   refused, too late, or its connection ended
#                                      '-- delayed [(due, ., Flight)] <|
#                                                    graves [...] <----'   rejected, or returned too often
#
# It is a queue group whose queue stays when nobody takes from it. What it has in common with one, and with a session,
# is that code: Queue has what waits, with its bounds, Window what is in flight, CountingTags its tags. The windows of
# a queue share its Queue, and one counter of tags, so a tag is of one delivery only, whichever consumer has it.

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.handover cimport hand_over, passes, write_through
from fanlight_broker.wire.inflight cimport TagCounter
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState, kept
from fanlight_broker.wire.consumers cimport Discard
from fanlight_broker.wire.target cimport Members
from fanlight_broker.wire.window cimport Window

cdef uint64_t queues_ended        # so far, in this process

@cython.final
@cython.no_gc
cdef class NamedQueue(Members):
    cdef:
        # What a delivery reads comes first, behind what Members has last.
        Window only                       # its consumer, if it has one, and not several
        public object recorder            # of a stream: takes what comes, so that nothing ever waits; or None
        readonly uint64_t published       # messages that came
        Py_ssize_t turn
        public bint holding               # new messages wait in `held` for those that were before them
        readonly bint refusing            # when it is full its publishers are refused
        readonly Window origin            # never open: its bindings have it as their destination, and so their owner
        readonly list windows             # of its consumers: by rank, and in the order in which they came
        public uint32_t deliveries_max    # of one message; 0: without a bound
        public bint single                # only the consumer that came first gets anything
        public bint buries                # what is discarded is kept for the core, in `graves`
        readonly uint64_t discards        # messages gone without being acknowledged
        Ledger ledger
        TagCounter tags
        list held
        list delayed                      # a heap
        uint64_t serial                   # of the entries of the heap
        list graves                       # (Flight, Discard): in the journal as long as they are here
        bint ranked                       # consumers have had ranks, and are in the order of these
        Py_ssize_t guests                 # windows of those who take a message at a time: the last ones in `windows`
        list readers                      # called when the backlog has been read

    cdef inline int windows_changed(self) except -1:
        """Called with each change of `windows`."""
        self.only = <Window> self.windows[0] if PyList_GET_SIZE(self.windows) == 1 else None
        return 0

    cdef inline bint keep_record(self, Outbox publisher, FanoutState* publication) except -1:
        """`give` of a stream."""
        self.published += 1
        self.recorder(publisher, kept(publication))
        return True

    cdef int enter(self, Message message) except -1
    cdef int enter_flight(self, Message message) except -1
    cdef int call_readers(self) except -1
    cdef int hold(self, Flight flight) except -1
    cdef inline bint has_room(self, Window window) noexcept:
        # An outbox that is to drain first gets more when it has; one that has nothing to send will not be heard of.
        return window.open and window.sent < window.inflight_max and not window.box.closed \
            and not (window.box.refill and window.box.size)

    cdef inline Window taker(self):
        """The next consumer that has room, in turn among those of the highest rank, or None. One whose outbox is to
        drain first gets more when it has.
        """
        cdef Py_ssize_t i, at = 0, n = PyList_GET_SIZE(self.windows)
        cdef Window window, best = None
        if n == 1 or (n and self.single):
            window = <Window> PyList_GET_ITEM(self.windows, 0)
            self.turn = 1
            return window if self.has_room(window) else None
        for i in range(n):
            at = (self.turn + i) % n
            window = <Window> PyList_GET_ITEM(self.windows, at)
            if self.has_room(window) and (best is None or window.rank > best.rank):
                best = window
                if not self.ranked:
                    break
        if best is not None:
            self.turn = (at if not self.ranked else self.windows.index(best)) + 1
        return best

    cdef inline bint pass_on(self, FanoutState* publication) except -1:
        """Hand a message over to the next consumer. False: it is for the queue."""
        cdef Py_ssize_t turn = self.turn
        cdef Window window
        if self.holding or PyList_GET_SIZE(self.windows) == 0 or not passes(self.queue, publication):
            return False
        window = self.taker()
        if window is not None and hand_over(window, publication):
            self.published += 1
            return True
        self.turn = turn
        return False

    cdef inline bint is_guest(self, Window window) except -1:
        return self.guests > 0 and window in self.windows[-self.guests:]

    cdef bint take_overdue(self, Window window, double now) except -1
    cdef int take_back(self, Window window, Flight flight, double now, double delay) except -1
    cdef int report_attempts(self, Flight flight) except -1
    cdef int discard(self, Window window, Flight flight, Discard why) except -1
    cdef int take_from_consumers(self, Py_ssize_t most) except -1
    cdef int delay(self, Flight flight) except -1
