# cython: language_level=3
"""Messages in queues and in flight, as records: see stored_queue.pxd.

No method that a queue or window calls raises, for they are in the middle of a change. What could not be appended (there
is no memory) is kept as `error`: from then on nothing is acknowledged any more.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.records cimport (
    ASSIGNED, ENDED, GIVEN_UP, MESSAGE, MOVES, RETURNED, SLOT, SLOT_SET, SLOTS_INLINE, VARINT_MOST, make_room,
    message_size, put_varint, write_message, zigzag,
)
from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.journal cimport JournalPosition, QueueJournal
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message, Variant

import msgpack

cdef enum:
    WRITE_AT = 64 * 1024           # bytes of moves, or of ends, from which on they are written within a turn
    SETS_BYTES = 8 * 1024 * 1024   # of known sets; past it they are forgotten, and written again when they occur
    FIRST_SLOTS = 16

SOME_TIME_LEFT, AT_ONCE = SOME_TIME, THIS_TURN


cdef class QueueRecords:
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

    def append(self, int type, bytes body not None, Message message=None):
        """Append another record of this turn. message: whose octets it has."""
        try:
            self.log.append(type, body)
            if message is not None:
                message.log_more(self.ledger, PyBytes_GET_SIZE(body))
        except Exception as error:
            self.failed(error)
        self.position.appended += 1
        self.changed(THIS_TURN)

    def finish(self):
        """Write all that is gathered: the entry is to be sealed."""
        try:
            self.write_all()
        except Exception as error:
            self.failed(error)
        self.haste = NOTHING_TO_SEAL

    def take_in(self, Message message not None, Py_ssize_t octets):
        """A message that the log has from before a restart, and that is kept again."""
        message.log_more(self.ledger, octets)

    def drop_copies(self, uint64_t queue, numbers):
        """What a queue had before a restart, and cannot have any more."""
        cdef uint64_t number
        for number in numbers:
            self.end(queue, number)

    # -- changes ----------------------------------------------------------------------------------------------------

    cdef uint64_t add(self, StoredQueueJournal journal, Message message, Variant variant) noexcept:
        """A message is in a queue. Returns its number: the same as in the queue before, for the same message."""
        cdef uint32_t* slots
        cdef Py_ssize_t capacity
        try:
            if message is not self.pending or journal.newest == self.pending_number:
                self.write_pending()
                self.last_number += 1
                self.log.number = self.last_number + 1
                self.pending, self.pending_number = message, self.last_number
                self.position.appended += 1
                self.changed(THIS_TURN)
            if self.count == self.capacity:
                capacity = max(2 * self.capacity, <Py_ssize_t> FIRST_SLOTS)
                slots = <uint32_t*> reallocate(self.slots, capacity * sizeof(uint32_t))
                if slots is NULL:
                    raise MemoryError()
                self.slots, self.capacity = slots, capacity
            self.slots[self.count] = journal.slot_of(variant)
            self.count += 1
        except Exception as error:
            self.failed(error)
        journal.newest = self.pending_number
        return self.pending_number

    cdef int move(self, int kind, uint64_t queue, uint64_t number, uint32_t slot, uint64_t tag) noexcept:
        try:
            if self.moves.size >= WRITE_AT:
                self.write_all()
            make_room(&self.moves, 4 * VARINT_MOST)
            put_varint(&self.moves, queue << 2 | <uint64_t> kind)
            put_varint(&self.moves, zigzag(number, self.moved_last))
            if kind == ASSIGNED:
                put_varint(&self.moves, slot)
                put_varint(&self.moves, tag)
            self.moved_last = number
        except Exception as error:
            self.failed(error)
        self.changed(THIS_TURN)
        return 0

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

    cdef int changed(self, Haste haste) noexcept:
        if haste > self.haste:
            self.haste = haste
            self.begun(haste)
        return 0

    cdef int failed(self, error) noexcept:
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
        size = message_size(message, count)
        write_message(
            self.log.reserve(MESSAGE, size), message, self.pending_number, self.wall, self.slots, count, as_set
        )
        self.log.number = self.pending_number + 1    # an entry that begins now has the messages from this one on
        self.pending, self.count = None, 0
        self.messages += 1
        if message.holders:    # else it is done with in the same turn
            message.log_more(self.ledger, size)
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
        cdef uint64_t more = self.run_last - self.run_first
        if self.run_queue == 0:
            return 0
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

    cdef int write(self, int type, Growing* octets) except -1:
        if octets.size:
            memcpy(self.log.reserve(type, octets.size), octets.data, octets.size)
            octets.size = 0
        return 0


cdef class StoredQueueJournal(QueueJournal):
    """One queue. id: 0 for a new one, or that from before a restart."""

    def __cinit__(self, QueueRecords records not None, uint64_t id=0, *, bint of_group=False):
        self.records = records
        if id == 0:
            records.last_queue += 1
            id = records.last_queue
        self.id = id
        self.of_group = of_group
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

    def lost(self, uint64_t number):
        """A message of it cannot be read any more."""
        self.records.end(self.id, number)

    cdef uint32_t slot_of(self, Variant variant) except 0:
        if self.slot and (variant is self.variant or self.of_group):
            return self.slot
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

    # -- wire.QueueJournal ------------------------------------------------------------------------------------------

    cpdef enqueued(self, Flight flight):
        if self.active:
            flight.number = self.records.add(self, flight.message, flight.variant)

    cpdef returned(self, Flight flight):
        if flight.number == 0:
            self.enqueued(flight)
        else:
            self.records.move(RETURNED, self.id, flight.number, 0, 0)

    cpdef removed(self, Flight flight):
        if flight.number:
            self.records.end(self.id, flight.number)

    cpdef assigned(self, Flight flight, QueueJournal origin):
        cdef StoredQueueJournal queue = <StoredQueueJournal> origin
        cdef uint32_t slot
        if flight.number == 0:
            if not queue.active:
                return
            flight.number = self.records.add(queue, flight.message, flight.variant)
        try:
            slot = self.slot_of(flight.variant)
        except Exception as error:
            self.records.failed(error)
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
