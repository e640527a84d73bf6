# cython: language_level=3
"""Named queues: messages wait until a consumer has acknowledged them. Drawn in named_queue.pxd.

Every message goes through the queue, and a consumer with room takes it from there in the same call. So there is one
place for bounds and for the journal, and messages leave in the order in which they came. A message that was in flight
and comes back is the oldest again.

As long as messages wait, each consumer is full, or has something in flight: its acknowledgement, or its outbox when it
has drained, fetches the next. So `give` looks for a consumer only if nothing waits.

Not here: filters, permissions, names and what becomes of discarded messages, which are the core's (core/queues.py).
"""

cimport cython

from heapq import heappop, heappush

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.inflight cimport TagCounter
from fanlight_broker.wire.outbox cimport Outbox, absent
from fanlight_broker.wire.publication cimport FanoutState, kept
from fanlight_broker.wire.queue cimport EXHAUSTED, PURGED, REJECTED, Discard, Queue, new_flight
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.target cimport Members, Target
from fanlight_broker.wire.window cimport Window

DISCARDS = ("expired", "overflow", "rejected", "deliveries", "undeliverable", "purged")    # by the numbers of Discard


@cython.no_gc
cdef class NamedQueue(Members):
    """One named queue.

    owner  whose its bindings are: the core's subscriber
    """

    def __cinit__(self, str name not None, Queue queue not None, owner=None):
        self.name = name
        self.queue = queue
        queue.group = self
        queue.idle = self.takes_all = True
        self.ledger = queue.ledger
        self.origin = Window(None, queue, None, owner)
        self.tags = TagCounter()
        self.members = unseen([])
        self.windows = unseen([])
        self.delayed = unseen([])
        self.graves = unseen([])

    def __len__(self):
        """Messages in it, those that are delivered and not acknowledged included."""
        return self.queue.length + self.queue.apart + self.unacknowledged

    @property
    def unacknowledged(self):
        """Messages that are delivered and not acknowledged."""
        cdef Window window
        cdef Py_ssize_t count = 0
        for window in self.windows:
            count += window.inflight.count
        return count

    @property
    def waiting_since(self):
        """When the message came that waits longest; None if nothing waits in order."""
        return (<Flight> self.queue.flights[0]).since if len(self.queue.flights) else None

    def bind(self, Target binding not None):
        """Messages of this filter are for it. Its destination is `origin`."""
        binding.extra().group = self
        self.members.append(binding)

    def unbind(self, Target binding not None):
        """No more. ValueError if it was not bound."""
        self.members.remove(binding)
        binding.extras.group = None

    # -- messages come ----------------------------------------------------------------------------------------------

    cdef bint give(self, Outbox publisher, FanoutState* publication) except -1:
        """Take a message in, and give it to a consumer that has room."""
        cdef Flight flight = new_flight(kept(publication), None, self.queue)
        cdef bint waiting = self.queue.length > 0
        cdef Window window
        flight.since = self.ledger.now
        self.published += 1
        if not self.queue.put(flight):
            self.discards += 1
        elif not waiting:
            window = self.taker()
            if window is not None:
                window.pump(self.ledger.now)
        return True

    cdef Window taker(self):
        """The next consumer that has room, in turn, or None."""
        cdef Py_ssize_t i, at, n = 1 if self.single and self.windows else len(self.windows)
        cdef Window window
        for i in range(n):
            at = (self.turn + i) % n
            window = <Window> self.windows[at]
            if window.open and window.sent < window.inflight_max:
                self.turn = at + 1
                return window
        return None

    cpdef feed(self, double now):
        """Let consumers with room take what waits."""
        cdef Window window
        cdef Py_ssize_t i, start = self.turn, n = 1 if self.single and self.windows else len(self.windows)
        for i in range(n):
            if not self.queue.length:
                break
            window = <Window> self.windows[(start + i) % n]
            window.pump(now)

    cdef Outbox blocker(self, Outbox publisher):
        return None    # what is too much for the consumers waits in the queue

    cdef bint refuses(self, Py_ssize_t size) except -1:
        return self.refusing and not self.queue.has_room(size)

    def refuse_publishers(self, bint refusing):
        """Are publishers refused when it is full? The ledger counts the queues that do, for the lanes."""
        self.ledger.refusers += <int> refusing - <int> self.refusing
        self.refusing = refusing

    cdef int stamp(self, uint64_t serial) except -1:
        cdef Window window
        for window in self.windows:
            window.box.stamp = serial
        return 0

    # -- consumers come and go --------------------------------------------------------------------------------------

    def add(self, Outbox outbox not None, Variant variant not None, uint32_t number, Py_ssize_t prefetch,
            double ack_wait, owner, pot):
        """A consumer: its window. It gets nothing before `begin`.

        prefetch  deliveries that it may have unacknowledged
        ack_wait  seconds after which a delivery that is not acknowledged goes to another
        """
        cdef Window window = Window(None, self.queue, pot, owner, counting=True, hub=self, variant=variant,
                                    number=number, counter=self.tags)
        window.attach(outbox, prefetch)
        window.ack_wait = ack_wait
        self.windows.append(window)
        self.queue.idle = False
        return window

    def begin(self, Window window not None, double now):
        """Its client knows of it: it gets what waits."""
        window.open = True
        self.go_on(window, now)

    def go_on(self, Window window not None, double now):
        """Give a consumer what it has room for: its outbox has drained, for example."""
        self.ledger.now = now
        if not self.single or self.windows[0] is window:
            window.pump(now)

    def remove(self, Window window not None, double now):
        """A consumer has gone: what it has not acknowledged is for the others. ValueError if it is none of it."""
        cdef Flight flight
        self.windows.remove(window)
        self.queue.idle = not self.windows
        window.open = False
        for flight in reversed(window.flights()):
            self.take_back(window, flight, now, 0)
        window.ended = True
        window.box = absent(self.ledger)
        self.feed(now)

    # -- messages come back -----------------------------------------------------------------------------------------

    def refuse(self, Window window not None, uint64_t tag, double delay, double now):
        """A consumer gives a delivery back; it waits `delay` seconds. False if it has no such delivery."""
        cdef Flight flight = window.inflight.find(tag)
        if flight is None:
            return False
        self.take_back(window, flight, now, delay)
        self.turn = self.windows.index(window) + 1    # to another, if there is one
        self.feed(now)
        window.pump(now)
        return True

    def reject(self, Window window not None, uint64_t tag, double now):
        """A consumer will never have this message, nor is another to get it. False if it has no such delivery."""
        cdef Flight flight = window.inflight.find(tag)
        if flight is None:
            return False
        self.discarded(flight, REJECTED)
        window.end_flight(flight)
        window.pump(now)
        return True

    def prolong(self, Window window not None, uint64_t tag, double now):
        """A consumer is still at work on a delivery: its time begins anew. False if it has no such delivery."""
        cdef Flight flight = window.inflight.find(tag)
        if flight is None:
            return False
        flight.due = now + window.ack_wait
        return True

    cdef int take_back(self, Window window, Flight flight, double now, double delay) except -1:
        """It is not acknowledged: it waits again, unless it was delivered as often as it may be."""
        cdef Flight returned
        if self.deliveries_max and flight.attempt >= self.deliveries_max:
            self.discarded(flight, EXHAUSTED)
            return window.end_flight(flight)
        returned = new_flight(flight.message, None, self.queue)
        returned.since, returned.attempt, returned.number = flight.since, flight.attempt, flight.number
        flight.number = 0    # the copy goes on: what ends here is the flight
        window.end_flight(flight)
        if delay <= 0:
            return self.queue.put_in_front(returned)
        self.queue.put_apart(returned)
        self.serial += 1
        heappush(self.delayed, unseen((now + delay, self.serial, returned)))
        return 0

    cdef int discarded(self, Flight flight, Discard why) except -1:
        """It leaves the queue without being acknowledged."""
        self.discards += 1
        if self.buries and why != PURGED:
            flight.message.add_holder(self.ledger, self.queue.account)
            self.graves.append((flight.message, <int> why, flight.attempt, flight.since))
            if len(self.graves) == 1:
                self.ledger.graves.append(self)
        return 0

    def exhume(self, Py_ssize_t most):
        """Up to `most` of the messages discarded since, oldest first: (message, why, deliveries, since)."""
        cdef list taken = self.graves[:most]
        cdef Message message
        del self.graves[:most]
        for message, _, _, _ in taken:
            message.drop_holder(self.ledger, self.queue.account)
        if self.graves:
            self.ledger.graves.append(self)
        return taken

    @property
    def buried(self):
        """Messages that `exhume` has still to return."""
        return len(self.graves)

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, double now):
        """Bring in what was delayed, take back what is not acknowledged in time, drop what has expired."""
        cdef Window window
        cdef Flight flight
        cdef bint back = False
        self.ledger.now = now
        while self.delayed and self.delayed[0][0] <= now:
            flight = heappop(self.delayed)[2]
            self.queue.bring_in(flight)
            back = True
        for window in self.windows:
            if window.next_due <= now:
                back = self.take_overdue(window, now) or back
        self.queue.expire(now)
        if back:
            self.feed(now)

    cdef bint take_overdue(self, Window window, double now) except -1:
        """The deliveries of a consumer that it has not acknowledged in time. Returns whether there were any."""
        cdef Flight flight
        cdef list overdue = []
        window.next_due = INFINITY
        for flight in window.flights():
            if flight.due <= now:
                overdue.append(flight)
            else:
                window.next_due = min(window.next_due, flight.due)
        for flight in reversed(overdue):
            self.take_back(window, flight, now, 0)
        return len(overdue) > 0

    # -- by an operator ---------------------------------------------------------------------------------------------

    def peek(self, Py_ssize_t most):
        """The oldest messages that wait: (message, attempt, since)."""
        cdef Flight flight
        cdef list found = []
        for flight in self.queue.flights:
            if len(found) == most:
                break
            found.append((flight.message, flight.attempt, flight.since))
        return found

    def purge(self):
        """Drop what waits; what is in flight stays. Returns how many messages."""
        cdef Flight flight
        cdef Py_ssize_t count = len(self.delayed)
        for _, _, flight in self.delayed:
            self.queue.drop_apart(flight)
        self.delayed.clear()
        return count + self.queue.clear()

    def end(self, double now):
        """It is over: drop everything, consumers included. Returns how many messages."""
        cdef Window window
        cdef Py_ssize_t count
        self.deliveries_max = 0
        self.buries = False
        self.refuse_publishers(False)
        for window in list(self.windows):
            window.open = False
        for window in list(self.windows):
            self.remove(window, now)
        count = self.purge()
        self.exhume(len(self.graves))
        self.origin.ended = True
        self.queue.group = None
        return count
