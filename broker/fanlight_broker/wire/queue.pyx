# cython: language_level=3
"""A queue: messages that wait for consumers, with bounds, a policy for when it is full, and expiry.

A session has one, with one consumer: its window. A queue group has one as long as it has members that acknowledge.
"""

cimport cython

from sys import maxsize

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.consumers cimport EXPIRED, OVERFLOW, PURGED, Discard
from fanlight_broker.wire.flight cimport ENDED, Flight, Source
from fanlight_broker.wire.flight_row cimport FlightRow
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.levels cimport Levels
from fanlight_broker.wire.message cimport HOLDER, Message, Variant
from fanlight_broker.wire.packed_row cimport PackedRow

# In place of a row: most sessions never have anything waiting.
cdef tuple NOTHING = ()


cdef Flight new_flight(Message message, Variant variant, Queue queue):
    """Charged to the account of a queue: in it, or in its window."""
    cdef Flight flight = Flight.__new__(Flight)
    flight.message = message
    flight.variant = variant
    if queue.priorities:
        flight.priority = min(message.format.priority(message), queue.priorities - 1)
    message.add_holder(queue.ledger, queue.account)
    return flight


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

    def prioritize(self, int priorities):
        """Messages with a higher priority are taken first: 0 to `priorities` - 1, what is above counts as the last.

        To be called before anything waits. All that waits is in memory then, and the backlog has it only until it is
        read after a restart: a number does not say which priority its message has.
        """
        if self.length:
            raise ValueError("messages wait already")
        Levels(priorities)    # raises ValueError for what is no number of them
        self.priorities = priorities

    cdef object row(self):
        """For what waits."""
        return Levels(self.priorities) if self.priorities else FlightRow()

    cdef Flight oldest(self):
        """Of those in memory, or None."""
        if len(self.flights) == 0:
            return None
        return (<Levels> self.flights).oldest() if self.priorities else <Flight> self.flights[0]

    cdef int enter(self, Message message, Variant variant) except -1:
        """`put` of a message that comes: without a flight, where it goes to the backlog in any case."""
        cdef Py_ssize_t size
        cdef uint64_t number
        if self.backlog is not None and self.journal is not None and self.ttl == INFINITY \
                and (self.backlog.length or (self.idle and not self.priorities)):
            size = self.size_of(message)
            if self.fits(size):
                number = self.journal.entered(message, variant)
                if number:
                    self.backlog.take(number, message, variant, size)
                    self.length += 1
                    self.nbytes += size
                    return 0
        self.put(new_flight(message, variant, self))
        return 0

    cdef bint put(self, Flight flight) except -1:
        """False if it was dropped, by the policy."""
        cdef Ledger ledger = self.ledger
        cdef Py_ssize_t size = self.size_of(flight.message)
        while self.length + self.apart >= self.messages_max or self.nbytes + size > self.bytes_max \
                or ledger.stored > ledger.stored_limit or self.over_share():
            if self.drop_oldest and self.reads_first():
                break    # it is above its bounds until that is read
            self.dropped += 1
            ledger.dropped_queue += 1
            if not self.drop_oldest or self.length == 0 or size > self.bytes_max or self.outranked(flight):
                if (self.drop_oldest or self.buries_newest) and self.group is not None:
                    self.group.discarded(flight, OVERFLOW)
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
            self.flights = self.row()
        self.add_last(flight)
        self.entered(flight, 1)
        return True

    cdef bint outranked(self, Flight flight) except -1:
        """Is its priority lower than those of all that wait?"""
        return self.priorities > 0 and len(self.flights) > 0 and (<Levels> self.flights).lowest() > flight.priority

    cdef bint set_aside(self, Flight flight, Py_ssize_t size) except -1:
        """Leave a message to the backlog, if it is not sent soon, or others wait there. False if it stays in memory."""
        cdef Backlog backlog = self.backlog
        if backlog.at_hand:
            if self.priorities or (backlog.length == 0 and self.near()):
                return False
            (<PackedRow> backlog).put(flight.message, flight.since, flight.attempt, size)
            return self.left(flight, size)
        # A group does not catch up: its queue does not know whether one of its members is there.
        if backlog.length == 0 and (self.priorities or (not self.idle and (
            (self.length < backlog.head and self.nbytes < HEAD_BYTES) or (self.group is None and self.catches_up())
        ))):
            return False
        if flight.number == 0:
            return False    # the journal could not take it
        backlog.add(flight, size)
        return self.left(flight, size)

    cdef bint left(self, Flight flight, Py_ssize_t size) except -1:
        """The backlog has it now."""
        self.length += 1
        self.nbytes += size
        flight.message.drop_holder(self.ledger, self.account)
        return True

    cdef int drop_first(self) except -1:
        """Drop the oldest: a new one needs its room."""
        cdef Flight oldest
        if len(self.flights) == 0 and self.backlog.at_hand:
            self.fetch(-INFINITY)    # also what has expired
        if len(self.flights) > 0:
            oldest = (<Levels> self.flights).pop_lowest() if self.priorities else self.flights.popleft()
            self.entered(oldest, -1)
            return self.lose(oldest, OVERFLOW)
        self.nbytes -= self.backlog.drop_first()
        self.length -= 1
        if self.group is not None:
            self.group.discarded_unread(1)
        return 0

    cdef bint reads_first(self) except -1:
        """Is the oldest on the disk, and to be buried when it is dropped? Then it is read, and `trim` drops it."""
        if self.length >= self.reads_dropped or len(self.flights) > 0 or self.backlog is None \
                or self.backlog.at_hand or not self.backlog.length or self.ledger.stored > self.ledger.stored_limit:
            return False
        self.backlog.fetch()
        return True

    def trim(self, Py_ssize_t most=maxsize):
        """Drop the oldest until it is within its bounds, if it is of those that do so, and so many at most. Returns
        whether there may be more to drop.
        """
        while self.drop_oldest and self.length \
                and (self.length + self.apart > self.messages_max or self.nbytes > self.bytes_max):
            if most <= 0:
                return True
            if self.reads_first():
                break
            self.dropped += 1
            self.ledger.dropped_queue += 1
            self.drop_first()
            most -= 1
        return False

    cdef int lose(self, Flight flight, Discard why) except -1:
        """It was in the queue, and will not be delivered."""
        if self.group is not None:
            self.group.discarded(flight, why)
        if self.journal is not None and flight.number:    # else the group has use for it, and reports it later
            self.journal.removed(flight)
        flight.message.drop_holder(self.ledger, self.account)
        flight.state = ENDED
        return 0

    cdef bint has_room(self, Py_ssize_t size) noexcept:
        """Would `put` keep a message of this size?"""
        if self.drop_oldest and self.length and size <= self.bytes_max:
            return True
        return self.fits(size)

    cdef bint fits(self, Py_ssize_t size) noexcept:
        """Is there room without dropping anything, if nobody keeps the message yet?"""
        cdef Ledger ledger = self.ledger
        # `put` asks when the message is entered already.
        return self.length + self.apart < self.messages_max and self.nbytes + size <= self.bytes_max \
            and ledger.stored + size + HOLDER <= ledger.stored_limit \
            and (self.account is None or self.account.admits(size + HOLDER, ledger))

    cdef bint over_share(self) except -1:
        """Does what its principal keeps take more than the share of it? Counted if so."""
        if self.account is None or not self.account.over(self.ledger):
            return False
        self.account.refuse(self.ledger)
        self.ledger.dropped_share += 1
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
            self.flights = self.row()
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
            self.flights = self.row()
        self.add_last(flight)
        return self.entered(flight, 1)

    cdef int put_restored(self, Flight flight) except -1:
        """The journal has it from before a restart: nobody takes it soon."""
        if self.backlog is None or not self.set_aside(flight, self.size_of(flight.message)):
            self.put_stored(flight)
        return 0

    def restore(self, Message message not None, Variant variant, uint64_t number, double since=0, uint32_t attempt=0):
        """Take in a message that waited before a restart, under its number; in the order of these.

        variant  None in the queue of a group
        since    of a named queue: when it came
        attempt  of a named queue: how often it was delivered
        """
        cdef Flight flight = new_flight(message.kept(), variant, self)
        flight.number, flight.since, flight.attempt = number, since, attempt
        self.put_restored(flight)

    def backlog_restored(self):
        """The backlog has what waited before a restart."""
        self.length += self.backlog.length
        self.nbytes += self.backlog.nbytes

    cdef int put_apart(self, Flight flight) except -1:
        """A message that was in flight waits again, out of order, whatever the bounds: until `bring_in`, or
        `drop_apart`.
        """
        self.set_apart(flight)
        if self.journal is not None:
            self.journal.returned(flight)
        return 0

    cdef int set_apart(self, Flight flight) except -1:
        """`put_apart`, of a message that was apart before a restart."""
        self.apart += 1
        self.nbytes += self.size_of(flight.message)
        return 0

    cdef int bring_in(self, Flight flight) except -1:
        """A message that was kept apart is the oldest now."""
        self.apart -= 1
        self.nbytes -= self.size_of(flight.message)
        return self.put_back(flight)

    cdef int drop_apart(self, Flight flight) except -1:
        """A message that was kept apart is purged."""
        self.apart -= 1
        self.nbytes -= self.size_of(flight.message)
        self.dropped += 1
        return self.lose(flight, PURGED)

    cdef int entered(self, Flight flight, int sign) noexcept:
        """Count a message that was added (1) or removed (-1)."""
        self.length += sign
        self.nbytes += sign * self.size_of(flight.message)
        if flight.message.expires_at != INFINITY:
            self.mortal += sign
        return 0

    cdef Flight pop(self, double now):
        """The oldest that has not expired; None if there is none, or it is to be fetched from the backlog."""
        cdef Flight flight
        cdef Py_ssize_t stored = 0
        if self.backlog is not None:
            stored = self.backlog.length
            if stored and (self.priorities or 4 * (self.length - stored) <= self.backlog.head):
                self.fetch(now)
                stored = self.backlog.length
        while self.length > stored or (stored and self.backlog.at_hand):
            if self.length == stored:    # all of those have expired
                self.fetch(now)
                stored = self.backlog.length
                continue
            flight = self.take_first()
            self.entered(flight, -1)
            if self.length < self.wanting:
                self.wanting = 0
                self.group.drained()
            if not self.outlived(flight, now):
                return flight
            self.lose(flight, EXPIRED)
            self.expired += 1
            self.ledger.expired += 1
        return None

    def fetched(self, list messages not None, Py_ssize_t removed, Py_ssize_t octets, double now):
        """The backlog has read its oldest: [(message, variant or None, number, deliveries so far, since), ...].

        removed, octets  messages that it has removed, with those that could not be read, and bytes that they counted
        """
        cdef Flight flight
        cdef Message message
        self.length -= removed
        self.nbytes -= octets
        for message, variant, number, attempt, since in messages:
            flight = new_flight(message, variant, self)
            flight.number, flight.attempt, flight.since = number, attempt, since
            self.come_in(flight, now)
        if self.reads_dropped:
            self.trim()

    cdef int come_in(self, Flight flight, double now) except -1:
        """A message of the backlog, which has it no more, follows the others in memory, unless it has expired."""
        if self.in_order or not self.outlived(flight, now):
            if self.flights is NOTHING:
                self.flights = self.row()
            self.add_last(flight)
            return self.entered(flight, 1)
        self.lose(flight, EXPIRED)
        self.expired += 1
        self.ledger.expired += 1
        return 0

    cdef int fetch(self, double now) except -1:
        """Get the oldest of the backlog: at once if they are packed, later from a disk."""
        cdef PackedRow row
        cdef Message message
        cdef Py_ssize_t most
        cdef double came = 0
        cdef uint32_t attempt = 0
        if not self.backlog.at_hand:
            self.backlog.fetch()
            return 0
        row = <PackedRow> self.backlog
        most = 2 * row.head    # in one piece, if nearly all have expired
        while row.length and len(self.flights) < row.head and most:
            most -= 1
            message = row.read(&came, &attempt)
            if message is None:
                break
            self.unpacked(message, came, attempt, now)
        return self.settle_losses()

    cdef int settle_losses(self) except -1:
        """Messages of a packed row could not be read from the disk."""
        cdef PackedRow row = <PackedRow> self.backlog
        if row.lost:
            self.length -= row.lost
            self.nbytes -= row.lost_counted
            self.dropped += row.lost
            self.ledger.dropped_queue += row.lost
            if self.group is not None:
                self.group.discarded_unread(row.lost)
            row.lost = row.lost_counted = 0
        return 0

    cdef int unpacked(self, Message message, double came, uint32_t attempt, double now) except -1:
        cdef Flight flight
        cdef Py_ssize_t size = self.size_of(message)
        if attempt == 0 and type(self.flights) is FlightRow and message.expires_at > now and came + self.ttl > now:
            message.hold(self.ledger, self.account)
            (<FlightRow> self.flights).append_message(message, came)
            self.mortal += message.expires_at != INFINITY
            return 0
        flight = new_flight(message, None, self)
        flight.since, flight.attempt = came, attempt
        self.length -= 1
        self.nbytes -= size
        return self.come_in(flight, now)

    cdef bint over(self, int quarters) noexcept:
        """Is it filled to this many quarters, or more?"""
        return 4 * self.length >= quarters * self.messages_max or 4 * self.nbytes >= quarters * self.bytes_max

    def filled(self, int quarters):
        """`over`, for Python."""
        return self.over(quarters)

    def waiting(self):
        """The messages in it that are in memory, oldest first (a copy)."""
        return [flight.message for flight in self.flights]

    def report(self):
        """The journal has not kept what waits, and is to keep it from now on."""
        cdef Flight flight
        for flight in self.flights:
            if flight.number == 0:
                self.journal.enqueued(flight)

    cdef Py_ssize_t purge(self, Py_ssize_t most) except -1:
        """Drop the oldest, so many at most: an operator wants it. Returns how many messages."""
        cdef Flight flight
        cdef Py_ssize_t count = 0
        while count < most and self.length:
            if len(self.flights) > 0:
                flight = self.flights.popleft()
                self.entered(flight, -1)
                self.lose(flight, PURGED)
            elif self.backlog.at_hand:
                self.fetch(-INFINITY)
                continue
            else:
                self.nbytes -= self.backlog.drop_first()
                self.length -= 1
            count += 1
        self.dropped += count
        self.ledger.dropped_session += count
        return count

    def drop(self, Py_ssize_t most):
        """Nobody takes from it any more: drop this many of its messages. Returns whether any is left."""
        self.purge(most)
        return self.length > 0


@cython.no_gc
cdef class Consumer(Source):
    """One window as a consumer of a queue."""

    def __cinit__(self, Queue queue not None, Variant variant not None):
        self.queue = queue
        self.variant = variant
