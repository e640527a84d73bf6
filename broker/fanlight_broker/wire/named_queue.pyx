# cython: language_level=3
"""Named queues: messages wait until a consumer has acknowledged them. Drawn in named_queue.pxd.

A message goes to a consumer with room at once (handover.pyx), else through the queue, which messages leave in the order
in which they came. A message that was in flight and comes back is the oldest again.

As long as messages wait, each consumer is full, or has something in flight: its acknowledgement, or its outbox when it
has drained, fetches the next. So `give` looks for a consumer only if nothing waits.

Not here: filters, permissions, names and what becomes of discarded messages, which are the core's (core/queues.py).
"""

cimport cython

from heapq import heappop, heappush
from sys import maxsize

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.expiry cimport expire
from fanlight_broker.wire.flight cimport ENDED, Flight
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.inflight cimport CountingTags, TagCounter
from fanlight_broker.wire.outbox cimport Outbox, absent
from fanlight_broker.wire.publication cimport FanoutState, kept
from fanlight_broker.wire.consumers cimport EXHAUSTED, OVERFLOW, PURGED, REJECTED, Discard
from fanlight_broker.wire.queue cimport Queue, new_flight
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.target cimport Members, Target
from fanlight_broker.wire.window cimport Window

DISCARDS = ("expired", "overflow", "rejected", "deliveries", "undeliverable", "purged")    # by the numbers of Discard

queues_ended = 0


@cython.no_gc
cdef class NamedQueue(Members):
    """One named queue. owner: whose its bindings are, the core's subscriber."""

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
        self.held = unseen([])
        self.readers = unseen([])

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
        """When the message came that waits longest; None if nothing waits in order, or it is on the disk and not known.
        """
        cdef Flight oldest = self.queue.oldest()
        if oldest is not None:
            return oldest.since
        return self.queue.backlog.since() if self.queue.backlog is not None and self.queue.backlog.length else None

    def bind(self, Target binding not None):
        """Messages of this filter are for it. Its destination is `origin`."""
        binding.join_group(self)
        self.members.append(binding)

    def unbind(self, Target binding not None):
        """No more. ValueError if it was not bound."""
        self.members.remove(binding)
        binding.leave_group()

    # -- messages come ----------------------------------------------------------------------------------------------

    cdef bint give(self, Outbox publisher, FanoutState* publication) except -1:
        """Take a message in, and give it to a consumer that has room."""
        if self.recorder is not None:
            return self.keep_record(publisher, publication)
        if self.only is not None and not self.holding and write_through(self.only, publication):
            self.turn = 1    # as `taker` would have it
            self.published += 1
            return True
        if not self.pass_on(publication):
            self.enter(kept(publication))
        return True

    cdef int enter(self, Message message) except -1:
        cdef bint waiting = self.queue.length > 0
        cdef double now = self.ledger.now
        cdef Window window
        self.published += 1
        if self.holding or not self.queue.put_plain(message, now):
            return self.enter_flight(message)
        if not waiting:
            window = self.taker()
            if window is not None:
                window.pump(now)
                if self.queue.length:    # it had no room after all: another may
                    self.feed(now)
        return 0

    cdef int enter_flight(self, Message message) except -1:
        """A message that is held, late, or in more than its place in a row; or there is no room for it."""
        cdef Flight flight = new_flight(message, None, self.queue)
        cdef bint waiting = self.queue.length > 0, late
        cdef double now = self.ledger.now
        cdef Window window
        flight.since = now
        late = self.queue.outlived(flight, now)    # without a time to wait it is for a consumer with room, or expired
        if self.holding:
            self.hold(flight)
        elif not self.queue.put(flight):
            self.discards += not (self.queue.drop_oldest or self.queue.buries_newest)    # else `discarded` counts it
        elif not waiting:
            window = self.taker()
            if window is not None:
                window.pump(now - 1 if late else now)
                if self.queue.length and not late:    # it had no room after all: another may
                    self.feed(now)
        if late and self.queue.length and (self.queue.in_order or not waiting):
            expire(self.queue, now)
        return 0

    cdef int hold(self, Flight flight) except -1:
        """Keep a new message apart until all that were before it are in. If there is no room, the newest is dropped."""
        if self.queue.fits(self.queue.size_of(flight.message)):
            self.queue.set_apart(flight)
            self.held.append(flight)
            return 0
        self.queue.dropped += 1
        self.ledger.dropped_queue += 1
        self.ledger.turned_away += 1
        self.discarded(flight, OVERFLOW)
        flight.message.drop_holder(self.ledger, self.queue.account)
        flight.state = ENDED
        return 0

    def fill(self, Message message not None, double now):
        """Take in a message that was before the live ones, whatever the bounds."""
        cdef Flight flight = new_flight(message.kept(), None, self.queue)
        flight.since = self.ledger.now = now
        self.published += 1
        self.queue.put_stored(flight)
        self.feed(now)

    def let_in(self, double now):
        """All messages are in that were before the live ones: these follow, and no more are held."""
        cdef Flight flight
        cdef list held = self.held
        self.holding = False
        self.held = unseen([])
        self.ledger.now = now
        for flight in held:
            self.queue.apart -= 1
            self.queue.nbytes -= self.queue.size_of(flight.message)
            self.queue.put_stored(flight)
        self.feed(now)

    def report(self):
        """The journal has not kept what is in it, and is to keep it from now on: also how often each was delivered, and
        when it may be delivered again. Nothing is held.
        """
        cdef Window window
        cdef Flight flight
        for window in self.windows:
            for flight in window.flights():
                self.queue.journal.enqueued(flight)    # it is in the queue until it is acknowledged
                self.report_attempts(flight)
        for _, _, flight in self.delayed:
            self.queue.journal.enqueued(flight)
            self.queue.journal.returned(flight)
        self.queue.report()
        for flight in self.queue.flights:
            self.report_attempts(flight)

    cdef int report_attempts(self, Flight flight) except -1:
        """It was delivered before the journal knew of it."""
        if flight.attempt:
            flight.attempt -= 1    # the journal counts one more with each that is reported
            self.queue.journal.assigned(flight, self.queue.journal)
            flight.attempt += 1
        return 0

    cdef int drained(self) except -1:
        self.ledger.graves.append(self)
        return 0

    cpdef feed(self, double now):
        """Let consumers with room take what waits."""
        cdef Window window
        cdef Py_ssize_t i, n = 1 if self.single and self.windows else len(self.windows)
        cdef Py_ssize_t start = 0 if self.ranked else self.turn
        for i in range(n):
            if not self.queue.length:
                break
            window = <Window> self.windows[(start + i) % n]
            window.pump(now)
        if self.readers:
            self.call_readers()

    cdef int call_readers(self) except -1:
        cdef list waiting = self.readers
        self.readers = unseen([])
        for reader in waiting:
            reader()
        return 0

    cdef Outbox blocker(self, Outbox publisher):
        return None    # what is too much for the consumers waits in the queue

    cdef bint refuses(self, Message message) except -1:
        return bool(self.recorder.crowded) if self.recorder is not None else \
            self.refusing and not self.queue.has_room(self.queue.size_of(message))

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
            double ack_wait, owner, pot, *, bint guest=False, int rank=0):
        """A consumer: its window. It gets nothing before `begin`.

        prefetch  deliveries that it may have unacknowledged
        ack_wait  seconds after which a delivery that is not acknowledged goes to another
        guest     it takes a message at a time, beside a single active consumer as well
        rank      those with a higher one come first, as long as they have room; not in a queue that is `single`
        """
        cdef Window window = Window(None, self.queue, pot, owner, counting=True, hub=self, variant=variant,
                                    number=number, counter=self.tags)
        window.attach(outbox, prefetch)
        window.ack_wait = ack_wait
        cdef Py_ssize_t at = len(self.windows) - (0 if guest else self.guests)
        if rank and not self.single:
            window.rank = rank
            self.ranked = True
        while self.ranked and not guest and at and (<Window> self.windows[at - 1]).rank < window.rank:
            at -= 1
        self.windows.insert(at, window)
        self.windows_changed()
        self.guests += guest
        self.queue.idle = False
        return window

    def begin(self, Window window not None, double now):
        """Its client knows of it, or takes more after a pause: it gets what waits."""
        window.open = True
        self.go_on(window, now)

    def go_on(self, Window window not None, double now):
        """Give a consumer what it has room for: its outbox has drained, for example."""
        self.ledger.now = now
        if not self.single or self.windows[0] is window or self.is_guest(window):
            window.pump(now)

    def change(self, Window window not None, Py_ssize_t prefetch, double ack_wait):
        """Another prefetch and `ack_wait` for a consumer; what it has already keeps its time."""
        window.inflight_max = prefetch
        window.ack_wait = ack_wait

    def pause(self, Window window not None):
        """A consumer gets nothing until `begin`; what it has it may acknowledge."""
        window.open = False

    def remove(self, Window window not None, double now):
        """A consumer has gone: what it has not acknowledged is for the others. ValueError if it is none of it."""
        cdef Flight flight
        self.guests -= self.is_guest(window)
        self.windows.remove(window)
        self.windows_changed()
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
        self.discard(window, flight, REJECTED)
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
            return self.discard(window, flight, EXHAUSTED)
        returned = new_flight(flight.message, None, self.queue)
        returned.since, returned.attempt, returned.number = flight.since, flight.attempt, flight.number
        flight.number = 0    # the copy goes on: what ends here is the flight
        window.end_flight(flight)
        if delay <= 0:
            return self.queue.put_in_front(returned)
        returned.due = now + delay
        self.queue.put_apart(returned)
        return self.delay(returned)

    cdef int delay(self, Flight flight) except -1:
        """It is apart: `sweep` brings it in when it is due."""
        self.serial += 1
        heappush(self.delayed, unseen((flight.due, self.serial, flight)))
        return 0

    cdef int discard(self, Window window, Flight flight, Discard why) except -1:
        """It is in flight, and leaves the queue."""
        cdef uint64_t number = flight.number
        self.discarded(flight, why)
        window.end_flight(flight)
        if number and flight.number == 0:    # to be buried
            self.queue.journal.returned(<Flight> (<tuple> self.graves[-1])[0])
        return 0

    cdef int discarded(self, Flight flight, Discard why) except -1:
        """It leaves the queue without being acknowledged. What is to be buried is in the journal until it is."""
        cdef Flight grave
        self.discards += 1
        if self.buries and why != PURGED:
            grave = new_flight(flight.message, None, self.queue)
            grave.number, grave.attempt, grave.since = flight.number, flight.attempt, flight.since
            flight.number = 0
            self.graves.append((grave, <int> why))
            if len(self.graves) == 1:
                self.ledger.graves.append(self)
        return 0

    cdef int discarded_unread(self, Py_ssize_t messages) except -1:
        self.discards += messages
        return 0

    def exhume(self, Py_ssize_t most):
        """Up to `most` of the messages discarded since, oldest first: (message, why, deliveries, since).

        They are published in the turn of this call: so the journal has them once, whenever it ends.
        """
        cdef list taken = self.graves[:most], found = []
        cdef Flight grave
        del self.graves[:most]
        for grave, why in taken:
            if grave.number:
                self.queue.journal.removed(grave)
            found.append((grave.message, why, grave.attempt, grave.since))
            grave.message.drop_holder(self.ledger, self.queue.account)
        if self.graves:
            self.ledger.graves.append(self)
        return found

    @property
    def buried(self):
        """Messages that `exhume` has still to return."""
        return len(self.graves)

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, double now, Py_ssize_t most=maxsize):
        """Bring in what was delayed, take back what is not acknowledged in time, drop what has expired.

        most  messages that are brought in, and that are dropped. Returns whether there may be more
        """
        cdef Window window
        cdef Flight flight
        cdef bint back = False
        cdef Py_ssize_t left = most
        self.ledger.now = now
        while left and self.delayed and self.delayed[0][0] <= now:
            flight = heappop(self.delayed)[2]
            self.queue.bring_in(flight)
            back = True
            left -= 1
        for window in self.windows:
            if window.next_due <= now:
                back = self.take_overdue(window, now) or back
        left = min(left, most - expire(self.queue, now, most))
        if back:
            self.feed(now)
        return left <= 0 or self.queue.sifted > 0

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

    def purge(self, Py_ssize_t most=maxsize):
        """Drop what waits, so many messages at most; what is in flight stays. Returns how many."""
        cdef Flight flight
        cdef uint64_t discards = self.discards
        cdef Py_ssize_t count = 0
        while self.delayed and count < most:
            flight = self.delayed.pop()[2]    # without its last a heap is a heap
            self.queue.drop_apart(flight)
            count += 1
        while self.held and count < most:
            self.queue.drop_apart(self.held.pop())
            count += 1
        count += self.queue.purge(most - count)
        self.discards = discards + count    # those of the backlog as well
        return count

    def close(self):
        """It is over: nobody takes from it any more, and `drop` follows. Returns how many messages are lost."""
        global queues_ended
        cdef Window window
        self.deliveries_max, self.buries = 0, False
        self.refuse_publishers(False)
        for window in self.windows:
            window.open = False
            window.ended = True
            window.box = absent(self.ledger)
        self.call_readers()
        self.origin.ended = True
        queues_ended += 1
        return len(self)

    def drop(self, Py_ssize_t most):
        """After `close`: drop so many of its messages. Returns whether any is left."""
        cdef Py_ssize_t left
        self.take_from_consumers(most)
        left = most - self.purge(most)
        if left > 0 and self.graves:
            self.exhume(left)
        if self.windows or self.queue.length or self.queue.apart or self.graves:
            return True
        self.queue.group = None
        return False

    cdef int take_from_consumers(self, Py_ssize_t most) except -1:
        """After `close`: what consumers have not acknowledged waits again, so many at most."""
        cdef Window window
        cdef Flight flight
        cdef list flights
        while most > 0 and self.windows:
            window = <Window> self.windows[-1]
            flights = (<CountingTags?> window.inflight).first(most)
            for flight in flights:
                self.take_back(window, flight, self.ledger.now, 0)
            most -= len(flights) + 1
            if window.inflight.count == 0:
                self.windows.pop()
                self.windows_changed()
        return 0
