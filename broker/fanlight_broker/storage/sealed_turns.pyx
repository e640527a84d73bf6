# cython: language_level=3
"""What a store has sealed, and how durable it is by now: see sealed_turns.pxd."""

from libc.stdint cimport uint64_t

from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.stored_queue cimport QueueRecords
from fanlight_broker.wire.allocator cimport allocate, deallocate
from fanlight_broker.wire.journal cimport IN_MEMORY, WRITTEN, JournalPosition
from fanlight_broker.wire.receipts import DURABILITIES

cdef enum:
    FIRST_TURNS = 16


cdef class SealedTurns:
    """Those of one store.

    durability  what an acknowledgement waits for: "memory", "written" or "synced"
    changed     called without arguments when `position` has come further, is full or refusing, or is so no longer
    failed      called once, when a record could not be written
    """

    def __cinit__(self, Log log not None, QueueRecords records not None, JournalPosition position not None,
                  str durability not None, *, changed, failed):
        self.log, self.records, self.position = log, records, position
        self.durability, self.changed, self.failed = DURABILITIES[durability], changed, failed
        self.turns = <SealedTurn*> allocate(FIRST_TURNS * sizeof(SealedTurn))
        if self.turns is NULL:
            raise MemoryError()
        self.mask = FIRST_TURNS - 1

    def __dealloc__(self):
        deallocate(self.turns)

    cpdef int seal(self) except -1:
        """The turn is over: hand what was reported to the log's writer."""
        cdef SealedTurn* last = &self.turns[(self.tail - 1) & self.mask]
        if self.records.closed:
            return 0    # what is reported now is in no entry
        self.records.finish()
        if self.records.error is not None:
            if not self.has_failed:
                self.has_failed = True
                self.failed()
            return 0
        self.log.seal()
        if self.tail and last.entry == self.log.appended and last.changes == self.position.appended:
            return 0    # it was begun early, and there is nothing new
        self.add(self.log.appended, self.position.appended, self.records.last_number)
        return self.progress()

    cdef int add(self, uint64_t entry, uint64_t changes, uint64_t number) except -1:
        cdef SealedTurn* turn
        if self.tail - min(self.read, min(self.written, self.synced)) > self.mask:
            self.grow()
        turn = &self.turns[self.tail & self.mask]
        turn.entry, turn.changes, turn.number = entry, changes, number
        self.tail += 1
        return 0

    cdef int grow(self) except -1:
        cdef uint64_t mask = 2 * self.mask + 1, at
        cdef SealedTurn* turns = <SealedTurn*> allocate((mask + 1) * sizeof(SealedTurn))
        if turns is NULL:
            raise MemoryError()
        for at in range(min(self.read, min(self.written, self.synced)), self.tail):
            turns[at & mask] = self.turns[at & self.mask]
        deallocate(self.turns)
        self.turns, self.mask = turns, mask
        return 0

    cpdef int progress(self) except -1:
        """The log is further, or has failed: say so in `position`."""
        cdef JournalPosition position = self.position
        cdef Log log = self.log
        cdef uint64_t synced = position.synced, written = position.written, on_disk = position.on_disk
        cdef bint full = position.full, refusing = position.refusing
        while self.written != self.tail and self.turns[self.written & self.mask].entry <= log.written:
            position.written = self.turns[self.written & self.mask].changes
            self.written += 1
        while self.synced != self.tail and self.turns[self.synced & self.mask].entry <= log.synced:
            position.on_disk = self.turns[self.synced & self.mask].changes
            self.synced += 1
        position.synced = self.reached()
        position.full = log.is_full()
        position.refusing = (
            self.low is not None or log.trouble is not None or log.short is not None or self.records.error is not None
        )
        self.page()
        if (synced != position.synced or written != position.written or on_disk != position.on_disk
                or full != position.full or refusing != position.refusing):
            self.changed()
        return 0

    cdef uint64_t reached(self) noexcept:
        """How far the journal is as durable as an acknowledgement promises."""
        if self.durability == IN_MEMORY:
            return self.position.appended
        return self.position.written if self.durability == WRITTEN else self.position.on_disk

    cdef int page(self) except -1:
        """Read what queues have asked for, if it is synced by now; written, if syncs are rare."""
        cdef uint64_t readable = self.log.synced if self.syncing else self.log.written, before = self.read
        while self.read != self.tail and self.turns[self.read & self.mask].entry <= readable:
            self.read += 1
        if self.pager is not None and self.read != before:
            self.pager.synced_number = self.turns[(self.read - 1) & self.mask].number
            self.pager.work()
        return 0
