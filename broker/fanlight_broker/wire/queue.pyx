# cython: language_level=3
"""A queue: messages that wait for consumers, with bounds, a policy for when it is full, and expiry.

A session has one, with one consumer: its window. A queue group has one as long as it has members that acknowledge.
"""

cimport cython

from collections import deque

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.flight cimport ENDED, Flight, Source
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.message cimport HOLDER, Message, Variant

cdef enum:
    HEAD_BYTES = 256 * 1024    # of a queue with a backlog, that are kept in memory beside one message

# In place of a deque, which takes 600 bytes: most sessions never have anything waiting.
cdef tuple NOTHING = ()


cdef Flight new_flight(Message message, Variant variant, Queue queue):
    """Charged to the account of a queue: in it, or in its window."""
    cdef Flight flight = Flight.__new__(Flight)
    flight.message = message
    flight.variant = variant
    message.add_holder(queue.ledger, queue.account)
    return flight


cdef class Consumers:
    cpdef feed(self, double now):
        """Messages have come back into the queue: let those consumers that have room take them."""
        raise NotImplementedError("consumers that are not fed")

    cdef int discarded(self, Flight flight, Discard why) except -1:
        """A message has left the queue, and nobody has acknowledged it."""
        return 0


@cython.no_gc
cdef class Queue:
    """Messages that cannot be sent now: at most `messages_max`, of at most `bytes_max` bytes."""

    def __cinit__(self, Ledger ledger not None, Py_ssize_t messages_max, Py_ssize_t bytes_max, bint drop_oldest=False,
                  Account account=None):
        self.ledger = ledger
        self.account = account
        self.messages_max = messages_max
        self.bytes_max = bytes_max
        self.drop_oldest = drop_oldest
        self.ttl = INFINITY
        self.flights = NOTHING

    def __len__(self):
        return self.length

    cdef bint put(self, Flight flight) except -1:
        """False if it was dropped, by the policy."""
        cdef Ledger ledger = self.ledger
        cdef Py_ssize_t size = flight.message.bytes_held()
        while self.length + self.apart >= self.messages_max or self.nbytes + size > self.bytes_max \
                or ledger.stored > ledger.stored_limit or self.over_share():
            self.dropped += 1
            ledger.dropped_queue += 1
            if not self.drop_oldest or self.length == 0 or size > self.bytes_max:
                flight.message.drop_holder(ledger, self.account)
                flight.state = ENDED
                ledger.turned_away += 1
                return False
            self.drop_first()
        if self.journal is not None:
            self.journal.enqueued(flight)
            if self.backlog is not None and self.set_aside(flight, size):
                return True
        if self.flights is NOTHING:
            self.flights = unseen(deque())
        self.flights.append(flight)
        self.entered(flight, 1)
        return True

    cdef bint set_aside(self, Flight flight, Py_ssize_t size) except -1:
        """Leave a message to the backlog, if it is not sent soon, or others wait there. False if it stays in memory."""
        cdef Backlog backlog = self.backlog
        if backlog.length == 0 and not self.idle and self.length < backlog.head and self.nbytes < HEAD_BYTES:
            return False
        if flight.number == 0:
            return False    # the journal could not take it
        backlog.add(flight, size)
        self.length += 1
        self.nbytes += size
        flight.message.drop_holder(self.ledger, self.account)
        return True

    cdef int drop_first(self) except -1:
        """Drop the oldest: a new one needs its room."""
        cdef Flight oldest
        if len(self.flights) > 0:
            oldest = self.flights.popleft()
            self.entered(oldest, -1)
            return self.lose(oldest, OVERFLOW)
        self.nbytes -= self.backlog.drop_first()
        self.length -= 1
        return 0

    cdef int lose(self, Flight flight, Discard why) except -1:
        """It was in the queue, and will not be delivered."""
        if self.journal is not None:
            self.journal.removed(flight)
        if self.group is not None:
            self.group.discarded(flight, why)
        flight.message.drop_holder(self.ledger, self.account)
        flight.state = ENDED
        return 0

    cdef bint has_room(self, Py_ssize_t size) noexcept:
        """Would `put` keep a message of this size?"""
        cdef Ledger ledger = self.ledger
        if self.drop_oldest and self.length and size <= self.bytes_max:
            return True
        # `put` asks when the message is entered already.
        return self.length + self.apart < self.messages_max and self.nbytes + size <= self.bytes_max \
            and ledger.stored + size + HOLDER <= ledger.stored_limit \
            and (self.account is None or self.account.admits(size + HOLDER, ledger))

    cdef bint over_share(self) except -1:
        """Does what its principal keeps take more than the share of it? Counted if so."""
        if self.account is None or not self.account.over(self.ledger):
            return False
        self.account.refused += 1
        self.ledger.dropped_share += 1
        if self.account.refused == 1:
            self.ledger.short.append(self.account)
        return True

    def charge_to(self, Account account):
        """Charge what is in it, and what is added later, to another principal."""
        cdef Flight flight
        for flight in self.flights:
            flight.message.add_holder(self.ledger, account)
            flight.message.drop_holder(self.ledger, self.account)
        self.account = account

    cdef int put_back(self, Flight flight) except -1:
        """A message that was popped and not sent is the oldest again, whatever the bounds."""
        if self.flights is NOTHING:
            self.flights = unseen(deque())
        self.flights.appendleft(flight)
        return self.entered(flight, 1)

    cdef int put_in_front(self, Flight flight) except -1:
        """A message that was in flight waits again, and is the oldest, whatever the bounds."""
        self.put_back(flight)
        if self.journal is not None:
            self.journal.returned(flight)
        return 0

    cdef int put_stored(self, Flight flight) except -1:
        """The journal has it: it is the newest, whatever the bounds."""
        if self.flights is NOTHING:
            self.flights = unseen(deque())
        self.flights.append(flight)
        return self.entered(flight, 1)

    cdef int put_restored(self, Flight flight) except -1:
        """The journal has it from before a restart: nobody takes it soon."""
        if self.backlog is None or not self.set_aside(flight, flight.message.bytes_held()):
            self.put_stored(flight)
        return 0

    def restore(self, Message message not None, Variant variant, uint64_t number):
        """Take in a message that waited before a restart, under its number; in the order of these.

        variant  None in the queue of a group
        """
        cdef Flight flight = new_flight(message.kept(), variant, self)
        flight.number = number
        self.put_restored(flight)

    cdef int put_apart(self, Flight flight) except -1:
        """A message that was in flight waits again, out of order, whatever the bounds: until `bring_in`, or
        `drop_apart`.
        """
        self.apart += 1
        self.nbytes += flight.message.bytes_held()
        if self.journal is not None:
            self.journal.returned(flight)
        return 0

    cdef int bring_in(self, Flight flight) except -1:
        """A message that was kept apart is the oldest now."""
        self.apart -= 1
        self.nbytes -= flight.message.bytes_held()
        return self.put_back(flight)

    cdef int drop_apart(self, Flight flight) except -1:
        """A message that was kept apart is purged."""
        self.apart -= 1
        self.nbytes -= flight.message.bytes_held()
        self.dropped += 1
        return self.lose(flight, PURGED)

    cdef int entered(self, Flight flight, int sign) noexcept:
        """Count a message that was added (1) or removed (-1)."""
        self.length += sign
        self.nbytes += sign * flight.message.bytes_held()
        if flight.message.expires_at != INFINITY:
            self.mortal += sign
        return 0

    cdef Flight pop(self, double now):
        """The oldest that has not expired; None if there is none, or it is to be fetched from the backlog."""
        cdef Flight flight
        cdef Py_ssize_t stored = 0
        if self.backlog is not None:
            stored = self.backlog.length
            if stored and 4 * (self.length - stored) <= self.backlog.head:
                self.backlog.fetch()
        while self.length > stored:
            flight = self.flights.popleft()
            self.entered(flight, -1)
            if not self.outlived(flight, now):
                return flight
            self.lose(flight, EXPIRED)
            self.expired += 1
            self.ledger.expired += 1
        return None

    def fetched(self, list messages not None, Py_ssize_t removed, Py_ssize_t octets, double now):
        """The backlog has read its oldest: [(message, variant or None, number), ...].

        removed, octets  messages that it has removed, with those that could not be read, and bytes that they counted
        """
        cdef Flight flight
        cdef Message message
        self.length -= removed
        self.nbytes -= octets
        for message, variant, number in messages:
            flight = new_flight(message, variant, self)
            flight.number = number
            flight.since = now    # the backlog does not say when it came
            if message.expires_at > now:
                self.put_stored(flight)
            else:
                self.lose(flight, EXPIRED)
                self.expired += 1
                self.ledger.expired += 1

    cdef bint over(self, int quarters) noexcept:
        """Is it filled to this many quarters, or more?"""
        return 4 * self.length >= quarters * self.messages_max or 4 * self.nbytes >= quarters * self.bytes_max

    def filled(self, int quarters):
        """`over`, for Python."""
        return self.over(quarters)

    def waiting(self):
        """The messages in it that are in memory, oldest first (a copy)."""
        return [flight.message for flight in self.flights]

    def expire(self, double now):
        """Drop expired messages at any place. Returns how many."""
        cdef Flight flight
        cdef uint64_t before = self.expired
        cdef object old = self.flights
        if self.backlog is not None and self.backlog.length:
            self.expire_backlog(now)
        if self.mortal == 0 and (self.ttl == INFINITY or not old or not self.outlived(old[0], now)):
            return self.expired - before
        self.flights = unseen(deque())
        for flight in old:
            if not self.outlived(flight, now):
                self.flights.append(flight)
            else:
                self.entered(flight, -1)
                self.lose(flight, EXPIRED)
                self.expired += 1
                self.ledger.expired += 1
        return self.expired - before

    cdef int expire_backlog(self, double now) except -1:
        cdef Py_ssize_t messages, octets
        messages, octets = self.backlog.expire(now)
        self.length -= messages
        self.nbytes -= octets
        self.expired += messages
        self.ledger.expired += messages
        return 0

    def report(self):
        """The journal has not kept what waits, and is to keep it from now on."""
        cdef Flight flight
        for flight in self.flights:
            if flight.number == 0:
                self.journal.enqueued(flight)

    def clear(self):
        """Drop everything: its subscribers have ended. Returns how many messages."""
        cdef Flight flight
        cdef Py_ssize_t lost = self.length
        for flight in self.flights:
            self.entered(flight, -1)
            self.lose(flight, PURGED)
        if self.backlog is not None:
            self.length -= self.backlog.length
            self.nbytes -= self.backlog.nbytes
            self.backlog.clear()
        self.flights = NOTHING
        self.dropped += lost
        self.ledger.dropped_session += lost
        return lost


@cython.no_gc
cdef class Consumer(Source):
    """One window as a consumer of a queue."""

    def __cinit__(self, Queue queue not None, Variant variant not None):
        self.queue = queue
        self.variant = variant
