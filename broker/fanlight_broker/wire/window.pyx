# cython: language_level=3
"""The window of a session: what is in flight to its client, and the sending of what waits.

A message is sent when the client's maximum and the outbox have room, else it waits in the queue; an acknowledgement
makes room for the next. A window outlives its connection: while the client is away everything waits. With nothing in
flight one message is always sent, however full the outbox is, so that an acknowledgement follows and delivery goes on.

Which acknowledgements there are is the protocol's. It finds a flight by its tag and calls `acknowledged` (the flight
ends), `give_up_message` (the message has arrived, its tag stays in use until `acknowledged`) or `refused`.
"""

from collections import deque

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.debug cimport check
from fanlight_broker.wire.flight cimport ENDED, SENT, TAG_ONLY, Flight
from fanlight_broker.wire.flight_row cimport FlightRow, RowSlot, message_in
from fanlight_broker.wire.frames cimport FIRM, MESSAGE
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.inflight cimport CountingTags, ReusedTags, TagCounter
from fanlight_broker.wire.journal cimport QueueJournal
from fanlight_broker.wire.ledger cimport CONVERSION, Pot
from fanlight_broker.wire.message cimport HOLDER, Format, Message, Variant
from fanlight_broker.wire.outbox cimport Outbox, Owner, absent
from fanlight_broker.wire.publication cimport FanoutState, begin, converted, encode, finish, kept, prepare
from fanlight_broker.wire.consumers cimport UNDELIVERABLE, Consumers
from fanlight_broker.wire.queue cimport Consumer, Queue, new_flight

cdef enum:
    INFLIGHT_MOST = 65_535    # messages that a client may take unacknowledged
    SENDING = 4               # what sending one counts as, in copies: it is entered in the table, too


cdef class Window:
    """What is on its way to one session. It is closed until `resume`.

    counting  tags count upwards and are never used again; else they are of 16 bits and reused
    hub       the named queue that it is a consumer of, with `variant`, `number` and `counter`: see named_queue.pyx
    """

    def __cinit__(self, Outbox outbox, Queue queue not None, Pot pot=None, Owner owner=None, *, bint counting=False,
                  Consumers hub=None, Variant variant=None, uint32_t number=0, TagCounter counter=None):
        cdef Pot tables = pot if pot is not None else queue.ledger.sessions
        self.ledger = queue.ledger
        self.box = outbox if outbox is not None else absent(self.ledger)
        self.queue = queue
        self.queue.idle = True
        self.owner = owner
        if counting:
            self.inflight = CountingTags(tables)
        else:
            self.inflight = self.reused = ReusedTags(tables)
        if counter is not None:
            (<CountingTags?> self.inflight).counter = counter
        self.hub, self.variant, self.number = hub, variant, number
        self.format = variant.format if variant is not None else None
        self.ack_wait = self.next_due = INFINITY
        self.consumers = unseen([])

    @property
    def outbox(self):
        """Of the present connection, or None."""
        return self.box if self.box is not self.ledger.absent else None

    @property
    def in_flight(self):
        """Tags in use."""
        return self.inflight.count

    @property
    def nbytes(self):
        """What its table takes, without the first size of it."""
        return self.inflight.nbytes

    # -- a message comes --------------------------------------------------------------------------------------------

    cdef int offer(self, FanoutState* publication, Variant variant, Consumer consumer) except -1:
        """Send a message of QoS 1 or 2, or let it wait: if it is a queue group's (`consumer`), in the group's queue."""
        cdef Flight flight
        if self.full():
            return self.enqueue(publication, variant, consumer)
        if not prepare(publication, variant):
            self.ledger.dropped_unspellable += 1
            return 0
        if variant.head_size + variant.body_size > self.box.frame_max:
            self.ledger.dropped_too_large += 1
            return 0
        if self.sent and not self.box.has_room(variant.head_size + variant.body_size):
            return self.enqueue(publication, variant, consumer)
        flight = new_flight(kept(publication), variant, self.queue)
        flight.source = consumer
        check(variant.serial == publication.serial, b"a template of another publication is copied")
        self.assign(flight)
        if self.unsent or (variant.qos == 2 and self.queue.journal is not None):
            return self.launch_synced(flight)
        return self.launch(flight)

    cdef int enqueue(self, FanoutState* publication, Variant variant, Consumer consumer) except -1:
        if consumer is not None:
            consumer.queue.put(new_flight(kept(publication), None, consumer.queue))
            return 0
        cdef uint64_t dropped = self.queue.dropped
        self.queue.enter(kept(publication), variant)
        if not self.open:
            return 0
        if self.queue.dropped != dropped:
            self.box.notice()
        if self.box.patient and self.queue.over(2):
            # The client is there, and falls behind: its publishers wait, as they do for a full outbox.
            self.box.crowded = True
            self.box.begin_pause()
        return 0

    cdef int launch_synced(self, Flight flight) except -1:
        """Send it when the journal has its tag, if that matters, and behind those that wait for that."""
        cdef uint64_t synced = 0
        if self.queue.journal is not None and min(flight.variant.qos, flight.message.qos) == 2 \
                and self.position is not None:
            synced = self.position.appended
        if self.unsent == 0 and (synced == 0 or synced <= self.position.synced):
            return self.launch(flight)
        if self.unsynced is None:
            self.unsynced = unseen(deque())
        self.unsynced.append((flight, synced))
        self.unsent += 1
        if not self.listed:
            self.listed = True
            self.position.windows.append(self)
        return 0

    cdef int launch(self, Flight flight) except -1:
        """Put it into the outbox; its variant's template is made for it."""
        flight.counted = True
        flight.state = SENT
        flight.qos = min(flight.variant.qos, flight.message.qos)
        self.sent += 1
        return self.put(flight)

    cdef int assign(self, Flight flight) except -1:
        """Give it a tag that is not in use."""
        cdef QueueJournal journal
        self.inflight.assign(flight)
        self.order += 1
        flight.order = self.order
        if self.queue.journal is not None:
            self.queue.journal.assigned(flight, self.origin(flight))
        elif flight.source is not None:
            journal = self.origin(flight)
            if journal is not None:
                self.lend(flight, journal)
        return 0

    cdef int lend(self, Flight flight, QueueJournal journal) except -1:
        """It is a durable group's, and this session is not durable. See journal.pxd."""
        if min(flight.variant.qos, flight.message.qos) == 1:
            if flight.number == 0:
                journal.enqueued(flight)
        elif flight.number:
            journal.removed(flight)    # it may not arrive twice
            flight.number = 0
        return 0

    # -- an acknowledgement comes -----------------------------------------------------------------------------------

    cdef int acknowledged(self, Flight flight, double now) except -1:
        """It ends, and what waits may follow."""
        self.end_flight(flight)
        self.count_acknowledged(1)
        return self.pump(now)

    cdef int give_up_message(self, Flight flight) except -1:
        """Its message has arrived and is not sent again; the tag stays in use until `acknowledged`."""
        self.become_tag_only(flight)
        if self.queue.journal is not None:
            self.queue.journal.given_up(flight, self.origin(flight))
        return 0

    cdef int become_tag_only(self, Flight flight) except -1:
        flight.message.drop_holder(self.ledger, self.queue.account)
        flight.message = None
        self.keep(HOLDER)    # the flight itself remains
        flight.state = TAG_ONLY
        self.order += 1
        flight.order = self.order
        return 0

    cdef int refused(self, Flight flight, double now) except -1:
        """The client has refused it: it is discarded, for a queue group too."""
        self.end_flight(flight)
        self.ledger.refused += 1
        return self.pump(now)

    cdef int end_flight(self, Flight flight) except -1:
        cdef QueueJournal journal
        if self.queue.journal is not None:
            self.queue.journal.ended(flight, self.origin(flight))
        elif flight.number:
            journal = self.origin(flight)
            if journal is not None:
                journal.removed(flight)
        self.inflight.remove(flight)
        if flight.counted:
            self.sent -= 1
            flight.counted = False
        flight.state = ENDED
        self.ended_flights += 1
        if flight.message is not None:
            flight.message.drop_holder(self.ledger, self.queue.account)
            flight.message = None
        else:
            self.keep(-HOLDER)
        return 0

    def acknowledge(self, uint64_t tag, double now):
        """The flight with this tag ends, if its message is not given up. False if there is none."""
        cdef Flight flight = self.find(tag)
        if flight is None or flight.state != SENT:
            return False
        self.acknowledged(flight, now)
        return True

    def acknowledge_up_to(self, uint64_t tag, double now):
        """The flights with this tag and all before it end, where tags count upwards. Returns how many."""
        return self.acknowledged_up_to(tag, now)

    cdef Py_ssize_t acknowledged_up_to(self, uint64_t tag, double now) except -1:
        cdef CountingTags inflight = <CountingTags?> self.inflight
        cdef Flight flight = inflight.oldest()
        cdef Py_ssize_t before = inflight.count
        while flight is not None and flight.tag <= tag:
            self.end_flight(flight)
            flight = inflight.oldest()
        before -= inflight.count
        self.count_acknowledged(before)
        self.pump(now)
        return before

    # -- room for more ----------------------------------------------------------------------------------------------

    cdef Flight following(self, double now):
        """The next to send: sent on an earlier connection, synced now, of the queue, of the groups' queues."""
        cdef Flight flight
        cdef Consumer consumer
        while self.again is not None:
            flight = self.again.popleft()
            if not self.again:
                self.again = None
            if flight.state != ENDED and flight.message is not None:
                return flight
        while self.unsent and self.unsynced[0][1] <= self.position.synced:
            self.unsent -= 1
            flight = self.unsynced.popleft()[0]
            if flight.state != ENDED:
                return flight
        if self.sent + self.unsent >= self.inflight_max or self.inflight.count >= self.inflight.most:
            return None
        flight = self.queue.pop(now)
        if flight is not None:
            if self.hub is not None:
                flight.variant = self.variant
            return flight
        for consumer in self.consumers:
            flight = consumer.queue.pop(now)
            if flight is not None:
                flight.source = consumer
                flight.variant = consumer.variant
                return flight
        return None

    cdef int pump(self, double now) except -1:
        """Send what waits, as far as there is room and the turn is not over; one at least, if nothing is in flight."""
        cdef Flight flight
        cdef FanoutState publication
        cdef bint sent
        cdef Py_ssize_t work = SENDING
        self.resting = False
        if self.automatic and self.queue.length and self.pour(now):
            return 0
        while self.open and self.waits() and self.sent < self.inflight_max and not (self.automatic and self.box.closed):
            flight = self.following(now)
            if flight is None:
                break
            begin(&publication, flight.message)
            try:
                sent = self.send(&publication, flight, now)
                work = CONVERSION if converted(&publication) else SENDING
            finally:
                finish(&publication)
            if not sent:
                break
            if not self.ledger.worked(work):
                continue
            if self.hub is None and self.sent:
                self.resting = True
                break
            if self.automatic and self.box.size:    # nothing else bounds it: no acknowledgement is to come
                self.box.refill = True
                break
        if self.box.crowded and not self.queue.over(1):
            self.box.crowded = False
            if not self.box.dirty:
                self.box.mark_dirty()    # its flush finds that it has drained
        return 0

    cdef bint pour(self, double now) except -1:
        """`pump`, of what waits without flights: from where it lies into the outbox. True if the turn is over."""
        cdef Queue queue = self.queue
        cdef Outbox box = self.box
        cdef Format format = self.format
        cdef Message message
        cdef RowSlot* slot
        cdef Py_ssize_t size
        while self.open and not box.closed and queue.length and queue.all_plain() and not queue.wanting:
            if queue.runs_low():
                queue.fetch(now)
            slot = (<FlightRow> queue.flights).first_message()
            if slot is NULL or slot.since + queue.ttl <= now:
                return False
            message = message_in(slot)
            size = format.delivery_size(message) if message.format.family is format.family else -1
            if size < 0 or size > box.frame_max or message.expires_at <= now:
                return False
            if box.size and not box.admits(size):
                if not box.has_room(size):
                    return False
                continue    # what it has sent may have changed everything
            format.write_delivery(message, box.place_for(size), self.number, 0)
            box.placed(size, 0, MESSAGE | FIRM)
            queue.remove_plain(message)
            message.let_go(self.ledger, queue.account)
            self.ledger.payload_out += message.payload_size
            self.hub.deliveries += 1
            self.delivered += 1
            self.ended_flights += 1
            self.count_acknowledged(1)
            if self.ledger.worked(SENDING):
                box.refill = True    # no acknowledgement is to come, and what drains fetches the next
                return True
        return False

    cdef bint send(self, FanoutState* publication, Flight flight, double now) except -1:
        """Send what `following` has found, or drop it. False if there is no room: it waits again, as the first."""
        cdef Message message = flight.message
        cdef Variant variant = flight.variant
        cdef Consumer consumer = <Consumer> flight.source
        cdef Py_ssize_t size = -1
        cdef bint tagged = flight.tag != 0, again = flight.state == SENT
        try:
            if encode(publication, variant, again, now):
                size = variant.head_size + variant.body_size
            else:
                self.ledger.dropped_unspellable += 1
        except Exception as error:
            # It is dropped, too: else it would end each further connection of this session.
            self.box.note_fault(error)
        if size > self.box.frame_max:
            # As if it had been sent and acknowledged.
            self.ledger.dropped_too_large += 1
            size = -1
        if size < 0:
            if tagged:
                self.end_flight(flight)
            else:
                (self.queue if consumer is None else consumer.queue).lose(flight, UNDELIVERABLE)
        elif (self.sent or (self.automatic and self.box.size)) and not self.box.has_room(size):
            if tagged:
                if self.again is None:
                    self.again = unseen(deque())
                self.again.appendleft(flight)
            elif consumer is not None:
                consumer.queue.put_back(flight)
                flight.source = None
            else:
                self.queue.put_back(flight)
                if self.hub is not None:
                    flight.variant = None       # another consumer may take it
                    self.box.refill = True      # what is in flight may take long, and need not be waited for
            return False
        elif tagged:
            check(variant.serial == publication.serial, b"a template of another publication is copied")
            self.ledger.redelivered += again
            self.launch(flight)
        else:
            if consumer is not None:
                consumer.taken += 1
                message.add_holder(self.ledger, self.queue.account)
                message.drop_holder(self.ledger, consumer.queue.account)
            check(variant.serial == publication.serial, b"a template of another publication is copied")
            if self.automatic:
                self.send_off(flight)
            else:
                self.assign(flight)
                self.launch_synced(flight)
        return True

    def advance(self, double now):
        """Send what waits, as far as there is room."""
        self.pump(now)

    # -- connections come and go ------------------------------------------------------------------------------------

    def attach(self, Outbox outbox not None, Py_ssize_t inflight_max):
        """A connection for this session; nothing is sent to it before `resume`."""
        if not 1 <= inflight_max <= INFLIGHT_MOST:
            raise ValueError(f"{inflight_max} messages in flight at most; it is 1 to {INFLIGHT_MOST}")
        if self.open:
            self.leave()
        self.box = outbox
        self.inflight_max = inflight_max

    def resume(self, double now):
        """Send once more what is not acknowledged, in order, then what waits.

        With a journal all that was reported until now is synced by then: an answer to the client has waited for it.
        """
        cdef Flight flight
        self.open = True
        self.queue.idle = False
        for flight in self.flights():
            if flight.state == TAG_ONLY:
                self.box.write(flight.variant.format.tag_frame(flight.tag))
                self.ledger.redelivered += 1
            else:
                if self.again is None:
                    self.again = unseen(deque())
                self.again.append(flight)
        self.pump(now)

    def leave(self):
        """The connection is gone. What may arrive twice (QoS 1), or was not sent, and is of a queue group goes back to
        the group, as long as that has members, also after the subscription has ended. Returns the groups that have
        something to `feed` now.
        """
        cdef Flight flight, returned
        cdef Queue queue
        cdef list groups = []
        self.open = False
        self.queue.idle = True
        self.again = self.unsynced = None
        self.unsent = 0
        self.box.crowded = False
        for flight in reversed(self.flights()):
            flight.counted = False
            if flight.source is None or flight.state == TAG_ONLY or (flight.state == SENT and flight.qos != 1):
                continue
            queue = (<Consumer> flight.source).queue
            if queue.group is not None:
                returned = new_flight(flight.message, None, queue)
                returned.number = flight.number
                flight.number = 0    # the copy goes on: what ends here is the flight
                self.end_flight(flight)
                queue.put_in_front(returned)
                if queue.group not in groups:
                    groups.append(queue.group)
        self.sent = 0
        return groups

    def stand_in(self):
        """A closed outbox that the owner publishes with while it has no connection, until `detach`."""
        self.box = Outbox(self.ledger, 0, "drop_newest", self.owner)
        self.box.closed = True
        return self.box

    def detach(self):
        """The connection has ended: `leave`, and drop its outbox. Returns what `leave` does."""
        groups = self.leave()
        self.box = absent(self.ledger)
        return groups

    def flights(self):
        """Those with a tag, in the order in which they are to be sent again."""
        cdef list found = self.inflight.flights()
        found.sort(key=order_of)
        return found

    def rebind(self, variants, format):
        """The session uses another format of the same family now."""
        cdef Flight flight
        for flight in [*self.flights(), *self.queue.flights]:
            flight.variant = variants.like(flight.variant, format)

    def end(self):
        """The session is over; `Queue.drop` follows. Returns how many messages were not acknowledged, or not sent."""
        cdef Flight flight
        cdef Py_ssize_t lost = 0
        self.ended = True
        self.leave()
        for flight in self.flights():
            lost += flight.message is not None
            self.end_flight(flight)
        self.inflight.clear()
        self.ledger.dropped_session += lost
        self.consumers.clear()
        return lost + self.queue.length


def order_of(Flight flight):
    return flight.order
