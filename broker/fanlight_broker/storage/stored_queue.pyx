# cython: language_level=3
"""Messages in queues and in flight, as records: see stored_queue.pxd.

No method that a queue or window calls raises, for they are in the middle of a change. What could not be appended (there
is no memory) is kept as `error`: from then on nothing is acknowledged any more.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.message_records cimport message_size, write_message
from fanlight_broker.storage.records cimport (
    ASSIGNED, CAME_OCTETS, ENDED, GIVEN_UP, MESSAGE, MOVES, RETURNED, SLOT, SLOT_SET, SLOTS_INLINE, TRIED, VARINT_MOST,
    make_room, put_varint, zigzag,
)
from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.journal cimport JournalPosition, QueueJournal
from fanlight_broker.wire.ledger cimport JournalHead, Ledger
from fanlight_broker.wire.message cimport Message, Variant

import msgpack

cdef enum:
    WRITE_AT = 64 * 1024           # bytes of moves, or of ends, from which on they are written within a turn
    MOVE_MOST = 4 * VARINT_MOST    # bytes of one move
    SETS_BYTES = 8 * 1024 * 1024   # of known sets; past it they are forgotten, and written again when they occur
    FIRST_SLOTS = 16
    NO_QUEUE = 0                   # in place of a slot: these begin at 1
    FEW_CHANGES = 4                # that somebody waits for: their sync begins at once. More of them share a sync
    SYNC_BYTES = 128 * 1024        # in a turn that waits for an idle disk, from which on its sync begins at once
    CUT_BYTES = 8 * 1024           # of an entry, from which on another begins between two frames

SOME_TIME_LEFT, AT_ONCE = SOME_TIME, THIS_TURN


cdef class QueueRecords(JournalHead):
    """What the queues of one broker report.

    begun  called with SOME_TIME_LEFT or AT_ONCE when there is something to seal by then
    """

    def __cinit__(self, Log log not None, JournalPosition position not None, Ledger ledger not None, begun):
        self.log, self.position, self.ledger, self.begun = log, position, ledger, begun
        self.sets = {}

    def __dealloc__(self):
        deallocate(self.slots)
        deallocate(self.moves.data)
        deallocate(self.ended.data)

    def append(self, int type, bytes body not None):
        """Append another record of this turn."""
        try:
            self.log.append(type, body)
        except Exception as error:
            self.failed(error)
        self.position.appended += 1
        self.changed(THIS_TURN)

    def expect(self):
        """An acknowledgement waits for all that was reported until now, also for ends."""
        self.position.appended += 1
        self.changed(THIS_TURN)

    def restate(self, int type, bytes body not None):
        """Append a record of what the log has, too. Nobody waits for it. `flush` comes first in a turn."""
        try:
            self.log.append(type, body)
            self.restated += PyBytes_GET_SIZE(body)
        except Exception as error:
            self.failed(error)
        self.changed(SOME_TIME)

    cpdef int flush(self) except -1:
        """Write what is gathered: what is restated next says what is true after it."""
        try:
            self.write_all()
        except Exception as error:
            self.failed(error)

    def forget_sets(self):
        """The sets of slots are written anew when they occur."""
        self.flush()
        self.sets.clear()
        self.sets_bytes = 0

    cpdef int finish(self) except -1:
        """Write all that is gathered: the entry is to be sealed."""
        self.flush()
        self.haste = NOTHING_TO_SEAL
        return 0

    def close(self):
        """The log is about to be closed: what is reported from now on is not kept, and that is no error."""
        self.closed = True

    cdef int begin_writing(self) except -1:
        return self.between_frames()

    cpdef int between_frames(self) except -1:
        """What `begin_writing` does: send what waited for what the disk has done, and give it what came meanwhile."""
        # Between two frames: what one of them has changed is in one entry. A writer that is busy takes all at the end,
        # but not as one entry: to read one message takes its whole entry, because of the checksum. Under load a turn is
        # much longer than a sync: what came before its middle can be acknowledged at its end.
        cdef Log log = self.log
        if log.has_come_further():
            log.collect()
        if self.haste != THIS_TURN:
            return 0
        if log.idle and self.seal_now is not None and (
            self.position.appended - self.position.synced <= FEW_CHANGES
            or log.buffered + (log.at - log.entry) >= SYNC_BYTES
        ):
            self.seal_now()
        elif self.log.at - self.log.entry >= CUT_BYTES:
            self.log.more_comes = True
            try:
                self.write_all()
                self.log.seal()
            except Exception as error:
                self.failed(error)
            self.log.more_comes = False
        return 0

    def settle(self):
        """Something waits for all changes until now."""
        self.position.appended += 1
        self.changed(THIS_TURN)

    def drop_copies(self, uint64_t queue, numbers):
        """What a queue had before a restart, and cannot have any more."""
        cdef uint64_t number
        for number in numbers:
            self.end(queue, number)

    # -- changes ----------------------------------------------------------------------------------------------------

    cdef uint64_t add(self, StoredQueueJournal journal, Message message, Variant variant) noexcept:
        """A message is in a queue. Returns its number: the same as in the queue before, for the same message."""
        try:
            if message is not self.pending or journal.newest == self.pending_number:
                self.begin_message(message)
            if self.count == self.capacity:
                self.more_slots()
            self.slots[self.count] = journal.slot_of(variant)
            self.count += 1
            if journal.named:
                self.pending_came = self.in_ms(self.ledger.now)
        except Exception as error:
            self.failed(error)
        journal.newest = self.pending_number
        return self.pending_number

    cdef int begin_message(self, Message message) except -1:
        """It has the next number, and is in no queue yet."""
        self.write_pending()
        self.last_number += 1
        self.log.number = self.last_number + 1
        self.pending, self.pending_number = message, self.last_number
        self.position.appended += 1
        return self.changed(THIS_TURN)

    def keep(self, Message message not None):
        """A message that is in no queue: it is live until `give_up`. Returns its number; 0 if it is not kept."""
        try:
            self.begin_message(message)
            if self.capacity == 0:
                self.more_slots()
            self.slots[0] = NO_QUEUE
            self.count = 1
        except Exception as error:
            self.failed(error)
            return 0
        return self.last_number

    def give_up(self, uint64_t number):
        """What was kept is not needed any more."""
        if self.error is None:
            self.log.live(number, -1)

    cdef int more_slots(self) except -1:
        cdef Py_ssize_t capacity = max(2 * self.capacity, <Py_ssize_t> FIRST_SLOTS)
        cdef uint32_t* slots = <uint32_t*> reallocate(self.slots, capacity * sizeof(uint32_t))
        if slots is NULL:
            raise MemoryError()
        self.slots, self.capacity = slots, capacity
        return 0

    cdef int move(self, int kind, uint64_t queue, uint64_t number, uint32_t slot, uint64_t tag) noexcept:
        """For TRIED: `slot` deliveries so far; `tag`: when it may be delivered again, in ms since 1970, or 0."""
        if self.marking is not None:
            self.marking.mark(number)
        if (self.moves.size < WRITE_AT and self.moves.capacity - self.moves.size >= MOVE_MOST) or self.room_for_move():
            put_varint(&self.moves, queue << 2 | <uint64_t> kind)
            put_varint(&self.moves, zigzag(number, self.moved_last))
            if kind == ASSIGNED or kind == TRIED:
                put_varint(&self.moves, slot)
                put_varint(&self.moves, tag)
            self.moved_last = number
        return self.changed(SOME_TIME if kind == TRIED else THIS_TURN)

    cdef bint room_for_move(self) noexcept:
        """False: there is no memory. Apart from `move`, for a `try` is not free."""
        try:
            if self.moves.size >= WRITE_AT:
                self.write_all()
            make_room(&self.moves, MOVE_MOST)
        except Exception as error:
            self.failed(error)
            return False
        return True

    cdef int end(self, uint64_t queue, uint64_t number) noexcept:
        """A copy is done with."""
        if queue == self.run_queue and number == self.run_last + 1:
            self.run_last = number
            return 0
        try:
            if self.ended.size >= WRITE_AT:
                self.write_all()
            self.end_run()
        except Exception as error:
            self.failed(error)
        self.run_queue, self.run_first, self.run_last = queue, number, number
        return self.changed(SOME_TIME)

    cdef uint64_t in_ms(self, double when) noexcept:
        """A time of `now`, in ms since 1970."""
        return <uint64_t> max(1.0, (when + self.wall) * 1000)

    cdef int changed(self, Haste haste) noexcept:
        if haste > self.haste:
            self.haste = haste
            self.begun(haste)
        return 0

    cdef int failed(self, error) noexcept:
        if self.closed:
            return 0
        if self.error is None:
            self.error = error
        self.position.refusing = True
        self.changed(THIS_TURN)
        return 0

    # -- records ----------------------------------------------------------------------------------------------------

    cdef int write_all(self) except -1:
        self.write_pending()
        self.write(MOVES, &self.moves)
        self.moved_last = 0
        self.end_run()
        self.write(ENDED, &self.ended)
        self.ended_last = self.ended_queue = 0
        return 0

    cdef int write_pending(self) except -1:
        """Write the MESSAGE that queues were still added to."""
        cdef Message message = self.pending
        cdef Py_ssize_t size, count = self.count
        cdef bint as_set = count > SLOTS_INLINE
        if message is None:
            return 0
        if as_set:
            self.slots[0] = self.set_of()
            count = 1
        self.log.live(self.pending_number, self.count)
        size = message_size(message, count) + (CAME_OCTETS if self.pending_came else 0)
        write_message(
            self.log.reserve(MESSAGE, size), message, self.pending_number, self.wall, self.slots, count, as_set,
            self.pending_came,
        )
        self.log.number = self.pending_number + 1    # an entry that begins now has the messages from this one on
        self.pending, self.count, self.pending_came = None, 0, 0
        self.messages += 1
        return 0

    cdef uint32_t set_of(self) except 0:
        """The number of the set of slots."""
        cdef bytes members = PyBytes_FromStringAndSize(<char*> self.slots, self.count * sizeof(uint32_t))
        number = self.sets.get(members)
        if number is None:
            if self.sets_bytes + PyBytes_GET_SIZE(members) > SETS_BYTES:
                self.sets.clear()
                self.sets_bytes = 0
            self.last_set += 1
            number = self.sets[members] = self.last_set
            self.sets_bytes += PyBytes_GET_SIZE(members)
            self.log.append(SLOT_SET, (<uint32_t> number).to_bytes(4, "little") + members)
        return number

    cdef int end_run(self) except -1:
        """Write down the run of numbers that was not continued."""
        cdef uint64_t more = self.run_last - self.run_first, number
        if self.run_queue == 0:
            return 0
        for number in range(self.run_first, self.run_last + 1):
            self.log.live(number, -1)
        make_room(&self.ended, 3 * VARINT_MOST)
        if self.run_queue != self.ended_queue:
            put_varint(&self.ended, self.run_queue << 1 | 1)
            self.ended_queue = self.run_queue
        put_varint(&self.ended, zigzag(self.run_first, self.ended_last) << 2 | (2 if more else 0))
        if more:
            put_varint(&self.ended, more)
        self.ended_last = self.run_last
        self.run_queue = 0
        return 0

    cdef int restate_octets(self, int type, Growing* octets) except -1:
        self.restated += octets.size
        self.write(type, octets)
        return self.changed(SOME_TIME)

    cdef int write(self, int type, Growing* octets) except -1:
        if octets.size:
            memcpy(self.log.reserve(type, octets.size), octets.data, octets.size)
            octets.size = 0
        return 0


cdef class StoredQueueJournal(QueueJournal):
    """One queue. id: 0 for a new one, or that from before a restart."""

    def __cinit__(self, QueueRecords records not None, uint64_t id=0, *, bint of_group=False, bint named=False):
        self.records = records
        if id == 0:
            records.last_queue += 1
            id = records.last_queue
        self.id = id
        self.of_group, self.named = of_group or named, named
        self.active = not of_group

    def slots_were(self, slots):
        """The slots from before a restart: (number, quality, retain rule, identifiers); the rule of a group's is 0."""
        for number, quality, retain, identifiers in slots:
            if self.of_group:
                self.slot = number
            else:
                if self.slots is None:
                    self.slots = {}
                self.slots[quality, retain, identifiers] = number

    def options(self):
        """[(slot, (quality, retain rule, identifiers))] of its slots; empty for a group's queue."""
        return [] if self.of_group or self.slots is None else [(slot, key) for key, slot in self.slots.items()]

    def restate_slots(self):
        """Write its slots once more."""
        cdef dict slots = self.slots if self.slots is not None else {}
        if self.of_group and self.slot:
            slots = {None: self.slot}
        for key, number in slots.items():
            self.records.restate(SLOT, msgpack.packb((number, self.id, key)))

    def tried_before(self, uint64_t number, int deliveries):
        """A message that is in the backlog was delivered so often before a restart."""
        if self.tried is None:
            self.tried = {}
        self.tried[number] = deliveries

    cdef int forget(self, uint64_t number) except -1:
        """A message is not in the backlog any more."""
        if self.tried is not None:
            self.tried.pop(number, None)
        return 0

    cdef uint32_t other_slot(self, Variant variant) except 0:
        key = None if self.of_group else (variant.qos, <int> variant.retain, variant.identifiers)
        number = self.slots.get(key) if self.slots is not None else None
        if number is None:
            self.records.last_slot += 1
            number = self.records.last_slot
            self.records.log.append(SLOT, msgpack.packb((number, self.id, key)))
            if self.slots is None:
                self.slots = {}
            self.slots[key] = number
        self.variant, self.slot = variant, number
        return self.slot

    cdef uint32_t other_slot_or_none(self, Variant variant) noexcept:
        """0: there is no memory. Apart from `assigned`, for a `try` is not free."""
        try:
            return self.other_slot(variant)
        except Exception as error:
            self.records.failed(error)
            return 0

    # -- wire.QueueJournal ------------------------------------------------------------------------------------------

    cdef uint64_t entered(self, Message message, Variant variant) noexcept:
        return self.records.add(self, message, variant) if self.active else 0

    cpdef enqueued(self, Flight flight):
        if self.active:
            flight.number = self.records.add(self, flight.message, flight.variant)

    cpdef returned(self, Flight flight):
        if flight.number == 0:
            self.enqueued(flight)
        elif not self.named:
            self.records.move(RETURNED, self.id, flight.number, 0, 0)
        elif flight.due:    # not before that time
            self.records.move(TRIED, self.id, flight.number, flight.attempt, self.records.in_ms(flight.due))

    cpdef removed(self, Flight flight):
        if flight.number:
            self.records.end(self.id, flight.number)

    cpdef assigned(self, Flight flight, QueueJournal origin):
        cdef StoredQueueJournal queue = <StoredQueueJournal> origin
        cdef uint32_t slot
        if self.named:
            if flight.number:
                self.records.move(TRIED, self.id, flight.number, flight.attempt + 1, 0)
            return
        if flight.number == 0:
            if not queue.active:
                return
            flight.number = self.records.add(queue, flight.message, flight.variant)
        slot = self.slot
        if slot == 0 or not (self.of_group or flight.variant is self.variant):
            slot = self.other_slot_or_none(flight.variant)
        if slot == 0:
            return
        self.records.move(ASSIGNED, queue.id, flight.number, slot, flight.tag)
        if min(flight.variant.qos, flight.message.qos) == 2:
            self.records.position.appended += 1

    cpdef given_up(self, Flight flight, QueueJournal origin):
        if flight.number:
            self.records.move(GIVEN_UP, (<StoredQueueJournal> origin).id, flight.number, 0, 0)
            self.records.position.appended += 1

    cpdef ended(self, Flight flight, QueueJournal origin):
        if flight.number:
            self.records.end((<StoredQueueJournal> origin).id, flight.number)
