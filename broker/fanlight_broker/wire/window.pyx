# cython: language_level=3
"""The inflight window of a session, and the queue behind it (MQTT 5, 4.3, 4.4 and 4.9).

A message is sent when the receive maximum and the outbox have room, else it waits in the queue; an acknowledgement
makes room for the next. A window outlives its connection: while the client is away everything waits. With nothing in
flight one message is always sent, however full the outbox is, so that an acknowledgement comes and things go on.
"""

cimport cython

from collections import deque

from cpython.list cimport PyList_GET_ITEM
from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from fanlight_broker.wire.frames cimport FIRM, MESSAGE
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport CONVERSION, Account, Ledger, Pot
from fanlight_broker.wire.message cimport HOLDER, Message, Variant, begin, uint16_into, prepare
from fanlight_broker.wire.outbox cimport Outbox, absent

cdef enum:
    IDENTIFIERS = 65_535
    FIRST_SLOTS = 8
    SENDING = 4    # what sending one counts as, in copies: it goes into the window's table, too

STATES = ("queued", "awaiting PUBACK", "awaiting PUBREC", "awaiting PUBCOMP", "ended")
AWAITED = (None, "PUBACK", "PUBREC", "PUBCOMP", None)    # by the same numbers


@cython.no_gc
@cython.freelist(256)
cdef class Flight:
    """One message on its way to one session. The message is counted in the ledger as long as it is held."""


cdef inline Flight new_flight(Message message, Variant variant, Queue queue):
    """Charged to the account of a queue: in it, or in its window."""
    cdef Flight flight = Flight.__new__(Flight)
    flight.message = message
    flight.variant = variant
    message.add_holder(queue.ledger, queue.account)
    return flight

# In place of a deque, which takes 600 bytes: most sessions never have anything waiting.
cdef tuple NOTHING = ()


include "queue.pxi"


@cython.no_gc
cdef class Source:
    """A queue group's queue, as one member takes from it."""

    def __cinit__(self, Queue queue not None, Variant variant not None):
        self.queue = queue
        self.variant = variant


cdef class Window:
    """What is on its way to one session. It is closed until `resume`."""

    def __cinit__(self, Outbox outbox, Queue queue not None, Pot pot=None, owner=None):
        self.ledger = queue.ledger
        self.box = outbox if outbox is not None else absent(self.ledger)
        self.queue = queue
        self.owner = owner
        self.pot = pot if pot is not None else self.ledger.sessions
        self.again = NOTHING
        self.sources = unseen([])
        self.slots = unseen([None] * FIRST_SLOTS)
        self.mask = FIRST_SLOTS - 1

    def __dealloc__(self):
        if self.pot is not None:
            self.pot.force(-self.grown())

    @property
    def outbox(self):
        """Of the present connection, or None."""
        return self.box if self.box is not self.ledger.absent else None

    @property
    def nbytes(self):
        """What it is charged for: its slots, those of its first table not counted."""
        return self.grown()

    cdef Py_ssize_t grown(self) noexcept:
        return 8 * (self.mask + 1 - FIRST_SLOTS)

    # -- a message comes --------------------------------------------------------------------------------------------

    cdef bint full(self) except -1:
        """Would a message have to wait?"""
        return not self.open or self.sent >= self.receive_max or self.in_flight >= IDENTIFIERS \
            or len(self.again) > 0 or len(self.queue.flights) > 0 \
            or (self.sent and (not self.box.has_room(0)
                               or (self.queue.account is not None and self.queue.account.over(self.ledger))))

    cdef int offer(self, Message message, Variant variant, Source source) except -1:
        """Send a message of QoS 1 or 2, or let it wait: if it is a queue group's (`source`), in the group's queue."""
        cdef Flight flight
        if self.full():
            return self.enqueue(message, variant, source)
        if not prepare(variant, message):
            self.ledger.dropped_unspellable += 1
            return 0
        if variant.head_size + variant.body_size > self.box.frame_max:
            self.ledger.dropped_too_large += 1
            return 0
        if self.sent and not self.box.has_room(variant.head_size + variant.body_size):
            return self.enqueue(message, variant, source)
        flight = new_flight(message.kept(), variant, self.queue)
        flight.source = source
        self.assign(flight)
        return self.launch(flight)

    cdef int enqueue(self, Message message, Variant variant, Source source) except -1:
        if source is not None:
            source.queue.put(new_flight(message.kept(), None, source.queue))
            return 0
        cdef uint64_t dropped = self.queue.dropped
        self.queue.put(new_flight(message.kept(), variant, self.queue))
        if not self.open:
            return 0
        if self.queue.dropped != dropped:
            self.box.notice()
        if self.box.patient and self.queue.over(2):
            # The client is there, and falls behind: its publishers wait, as they do for a full outbox.
            self.box.crowded = True
            self.box.begin_pause()
        return 0

    cdef int launch(self, Flight flight) except -1:
        """Put it into the outbox; its variant's template is made for it."""
        cdef Variant variant = flight.variant
        cdef Outbox outbox = self.box
        flight.counted = True
        flight.state = AWAITING_PUBACK if min(variant.qos, flight.message.qos) == 1 else AWAITING_PUBREC
        self.sent += 1
        if variant.hole_size == 2:
            uint16_into(variant.head + variant.hole, flight.identifier)
        if variant.shared is NULL:
            outbox.put(variant.head, variant.head_size, variant.body, variant.body_size, 0, MESSAGE | FIRM)
        else:
            outbox.put_shared(variant.head, variant.head_size, <bytes> variant.shared, 0, MESSAGE | FIRM)
        self.ledger.payload_out += flight.message.payload_size
        if variant.stateful:
            variant.format.sent(variant)
        return 0

    cdef int assign(self, Flight flight) except -1:
        """Give it an identifier that is not in use [MQTT-2.2.1-3], and whose slot is free."""
        cdef int identifier = self.last
        if 4 * self.in_flight >= 3 * self.mask:
            self.grow()
        while True:
            identifier = 1 if identifier >= IDENTIFIERS else identifier + 1
            if self.slots[identifier & self.mask] is None:
                break
        self.last = flight.identifier = identifier
        self.slots[identifier & self.mask] = flight
        self.in_flight += 1
        self.order += 1
        flight.order = self.order
        return 0

    cdef int grow(self) except -1:
        cdef list slots = [None] * (2 * (self.mask + 1))
        cdef Flight flight
        self.pot.force(8 * (self.mask + 1))
        self.mask = 2 * self.mask + 1
        for flight in self.slots:
            if flight is not None:
                slots[flight.identifier & self.mask] = flight
        self.slots = unseen(slots)
        return 0

    # -- an acknowledgement comes -----------------------------------------------------------------------------------

    cdef Flight find(self, int identifier):
        cdef Flight flight = <Flight> PyList_GET_ITEM(self.slots, identifier & self.mask)
        return flight if flight is not None and flight.identifier == identifier else None

    cdef int remove(self, Flight flight) except -1:
        self.slots[flight.identifier & self.mask] = None
        self.in_flight -= 1
        if flight.counted:
            self.sent -= 1
            flight.counted = False
        flight.state = ENDED
        self.settled += 1
        if flight.message is not None:
            flight.message.drop_holder(self.ledger, self.queue.account)
            flight.message = None
        else:
            self.keep(-HOLDER)
        return 0

    cdef int keep(self, Py_ssize_t octets) noexcept:
        self.ledger.stored += octets
        if self.queue.account is not None:
            self.queue.account.stored += octets
        return 0

    cdef bint settle(self, int identifier, FlightState state, double now) except -1:
        """The acknowledgement that ends a flight in this state. False if there is none with this identifier."""
        cdef Flight flight = self.find(identifier)
        if flight is None or flight.state != state:
            return False
        self.remove(flight)
        self.ledger.acknowledged += 1
        self.pump(now)
        return True

    def awaited(self, int identifier):
        """The acknowledgement that the message in flight with this identifier waits for; None if none is in flight."""
        cdef Flight flight = self.find(identifier)
        return None if flight is None else AWAITED[flight.state]

    def acknowledge(self, int identifier, double now):
        """PUBACK. False if no QoS 1 message is in flight with this identifier."""
        return self.settle(identifier, AWAITING_PUBACK, now)

    def received(self, int identifier):
        """PUBREC: the message has arrived, PUBREL is to be sent. False if no QoS 2 message has this identifier."""
        cdef Flight flight = self.find(identifier)
        if flight is None or flight.state not in (AWAITING_PUBREC, AWAITING_PUBCOMP):
            return False
        if flight.state == AWAITING_PUBREC:
            flight.message.drop_holder(self.ledger, self.queue.account)
            flight.message = None
            self.keep(HOLDER)    # the flight itself is there until PUBCOMP
            flight.state = AWAITING_PUBCOMP
            self.order += 1
            flight.order = self.order
        return True

    def complete(self, int identifier, double now):
        """PUBCOMP. False if no message with this identifier waits for it."""
        return self.settle(identifier, AWAITING_PUBCOMP, now)

    def refuse(self, int identifier, double now):
        """PUBACK or PUBREC with a reason code of 0x80 or more: the message is discarded, for a queue group too (4.8.2)."""
        cdef Flight flight = self.find(identifier)
        if flight is None or flight.state not in (AWAITING_PUBACK, AWAITING_PUBREC):
            return False
        self.remove(flight)
        self.ledger.refused += 1
        self.pump(now)
        return True

    # -- room for more ----------------------------------------------------------------------------------------------

    cdef Flight following(self, double now):
        """What is to be sent next: what was sent on an earlier connection, then the queue, then the groups'."""
        cdef Flight flight
        cdef Source source
        while self.again:
            flight = self.again.popleft()
            if flight.state != ENDED and flight.message is not None:
                return flight
        if self.in_flight >= IDENTIFIERS:
            return None
        flight = self.queue.pop(now)
        if flight is not None:
            return flight
        for source in self.sources:
            flight = source.queue.pop(now)
            if flight is not None:
                flight.source = source
                flight.variant = source.variant
                return flight
        return None

    cdef int pump(self, double now) except -1:
        """Send what waits, as far as there is room and the turn is not over; one at least, if nothing is in flight."""
        cdef Flight flight
        cdef Message message
        cdef Variant variant
        cdef Py_ssize_t size, work
        cdef bint again
        self.resting = False
        while self.open and self.sent < self.receive_max:
            flight = self.following(now)
            if flight is None:
                break
            message, variant = flight.message, flight.variant
            again = flight.identifier != 0
            begin(message)
            size = -1
            try:
                if variant.encode(message, again, now):
                    size = variant.head_size + variant.body_size
                else:
                    self.ledger.dropped_unspellable += 1
            except Exception as error:
                # It is dropped, too: it would end each further connection of this session as it does this one.
                self.box.note_fault(error)
            if size > self.box.frame_max:
                # As if it had been sent and acknowledged [MQTT-3.1.2-25].
                self.ledger.dropped_too_large += 1
                size = -1
            if size < 0:
                if again:
                    self.remove(flight)
                else:
                    message.drop_holder(self.ledger, (self.queue if flight.source is None else flight.source.queue).account)
                    flight.state = ENDED
            elif self.sent and not self.box.has_room(size):
                if again:
                    self.again.appendleft(flight)
                elif flight.source is not None:
                    flight.source.queue.put_back(flight)
                    flight.source = None
                else:
                    self.queue.put_back(flight)
                size = -2
            elif again:
                self.ledger.redelivered += 1
                self.launch(flight)
            else:
                if flight.source is not None:
                    flight.source.taken += 1
                    message.add_holder(self.ledger, self.queue.account)
                    message.drop_holder(self.ledger, flight.source.queue.account)
                self.assign(flight)
                self.launch(flight)
            variant.serial = 0
            work = SENDING
            if message.laden:
                if message.translations is not None:
                    work = CONVERSION
                message.finish()
            if size == -2:
                break
            if self.ledger.worked(work) and self.sent:
                self.resting = True
                break
        if self.box.crowded and not self.queue.over(1):
            self.box.crowded = False
            if not self.box.dirty:
                self.box.mark_dirty()    # its flush finds that it has drained
        return 0

    def advance(self, double now):
        """Send what waits, as far as there is room."""
        self.pump(now)

    # -- connections come and go ------------------------------------------------------------------------------------

    def attach(self, Outbox outbox not None, Py_ssize_t receive_max):
        """A connection for this session; nothing is sent to it before `resume`."""
        if not 1 <= receive_max <= IDENTIFIERS:
            raise ValueError(f"a receive maximum of {receive_max}; it is 1 to {IDENTIFIERS}")
        if self.open:
            self.leave()
        self.box = outbox
        self.receive_max = receive_max

    def resume(self, double now):
        """Send once more what is not acknowledged, in order, then what waits [MQTT-4.4.0-1], [MQTT-4.6.0-1]."""
        cdef Flight flight
        self.open = True
        for flight in self.flights():
            if flight.state == AWAITING_PUBCOMP:
                self.box.write(flight.variant.format.release(flight.identifier))
                self.ledger.redelivered += 1
            else:
                if self.again is NOTHING:
                    self.again = unseen(deque())
                self.again.append(flight)
        self.pump(now)

    def leave(self):
        """The connection is gone. QoS 1 in flight of a queue group goes back to the group, also after an UNSUBSCRIBE, as
        long as it has members; QoS 2 never does (4.8.2). Returns the groups that have something to `feed` now.
        """
        cdef Flight flight, returned
        cdef Queue queue
        cdef list groups = []
        self.open = False
        self.again = NOTHING
        self.box.crowded = False
        for flight in reversed(self.flights()):
            flight.counted = False
            if flight.source is not None and flight.state == AWAITING_PUBACK and flight.source.queue.group is not None:
                queue = flight.source.queue
                returned = new_flight(flight.message, None, queue)
                self.remove(flight)
                queue.put_back(returned)
                if queue.group not in groups:
                    groups.append(queue.group)
        self.sent = 0
        return groups

    def stand_in(self):
        """A closed outbox, for what its owner publishes without a connection: until `detach`, messages of it are its own."""
        self.box = Outbox(self.ledger, 0, "drop_newest", self.owner)
        self.box.closed = True
        return self.box

    def detach(self):
        """There is no connection: `leave`, and let go of its outbox. Returns what `leave` does."""
        groups = self.leave()
        self.box = absent(self.ledger)
        return groups

    def restore(self, Message message not None, Variant variant not None, int identifier=0, bint received=False):
        """Take in a message of a session that is made anew: in flight with this identifier, or 0: waiting.

        received  PUBREC has come: of the message there is only the identifier. In the order in which they were sent;
        before the first connection. Raises ValueError if the identifier is in use.
        """
        cdef Flight flight = new_flight(message.kept(), variant, self.queue)
        if self.open:
            raise ValueError("a session that is connected is not restored")
        if not identifier:
            self.queue.put(flight)
            return
        if not 0 < identifier <= IDENTIFIERS or self.find(identifier) is not None:
            flight.message.drop_holder(self.ledger, self.queue.account)
            raise ValueError(f"packet identifier {identifier} is in use, or none")
        while 4 * self.in_flight >= 3 * self.mask or self.slots[identifier & self.mask] is not None:
            self.grow()
        flight.identifier = self.last = identifier
        flight.state = AWAITING_PUBACK if min(variant.qos, message.qos) == 1 else AWAITING_PUBREC
        self.slots[identifier & self.mask] = flight
        self.in_flight += 1
        self.order += 1
        flight.order = self.order
        if received:
            self.received(identifier)

    def flights(self):
        """Those with an identifier, in the order in which they are to be sent again."""
        cdef Flight flight
        found = [flight for flight in self.slots if flight is not None]
        found.sort(key=order_of)
        return found

    def rebind(self, variants, format):
        """The session speaks another format of the same family now."""
        cdef Flight flight
        for flight in [*self.flights(), *self.queue.flights]:
            flight.variant = variants.like(flight.variant, format)

    def end(self):
        """The session is over. Returns how many messages were not acknowledged, or not even sent."""
        cdef Flight flight
        cdef Py_ssize_t lost = 0
        self.ended = True
        self.leave()
        for flight in self.flights():
            lost += flight.message is not None
            self.remove(flight)
        self.pot.force(-self.grown())
        self.slots = [None] * FIRST_SLOTS
        self.mask = FIRST_SLOTS - 1
        self.ledger.dropped_session += lost
        self.sources.clear()
        return lost + self.queue.clear()


def order_of(Flight flight):
    return flight.order
