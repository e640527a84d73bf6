# cython: language_level=3
"""Acknowledgements that wait until what they acknowledge is stored: see receipts.pxd."""

from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate
from fanlight_broker.wire.journal cimport AS_BROKER, IN_MEMORY, ON_DISK, WRITTEN, JournalPosition

cdef enum:
    FIRST_ENTRIES = 64

DURABILITIES = {None: AS_BROKER, "memory": IN_MEMORY, "written": WRITTEN, "synced": ON_DISK}


cdef class Receiver:
    cdef int acknowledge(self, uint32_t number, uint32_t answer) except -1:
        """Write the acknowledgement with this number; what `answer` is, is the protocol's."""
        raise NotImplementedError("a receiver that acknowledges nothing")


cdef class Receipts:
    """The acknowledgements that wait for the archive and the store of a broker.

    most        that may wait; past it publishers are held back
    begun       called without arguments when the first begins to wait
    position    of the journal; None: there is no store
    durability  what they wait for: "synced", "written", "memory"; None: what the broker promises
    """

    def __cinit__(self, Py_ssize_t most, begun=None, JournalPosition position=None, durability=None):
        self.most, self.durability = most, DURABILITIES[durability]
        self.begun = begun
        self.position = position if position is not None else JournalPosition()
        self.entries = <PendingReceipt*> allocate_zeros(FIRST_ENTRIES, sizeof(PendingReceipt))
        if self.entries is NULL:
            raise MemoryError()
        self.mask = FIRST_ENTRIES - 1

    def __dealloc__(self):
        cdef PendingReceipt* entry
        while self.entries is not NULL and self.head != self.tail:
            entry = &self.entries[self.head & self.mask]
            Py_XDECREF(<PyObject*> entry.receiver)
            Py_XDECREF(<PyObject*> entry.then)
            self.head += 1
        deallocate(self.entries)

    def __len__(self):
        return self.count

    @property
    def full(self):
        return self.is_full()

    def reaches(self, uint64_t position):
        """Has the journal come so far, for what waits here?"""
        return position <= self.position.reached(self.durability)

    def call(self, then not None, uint64_t recorded, Receiver receiver=None, uint64_t synced=0):
        """Call `then` when the archive and the journal have come so far: now or later, in order.

        receiver  its connection's other acknowledgements wait behind this one, and it behind those; None: it waits
                  behind all
        """
        if recorded <= self.recorded and synced <= self.position.reached(self.durability) \
                and (self.count == 0 or (receiver is not None and receiver.pending_acks == 0)):
            then()
        else:
            self.append(recorded, synced, receiver, <void*> then, 0, 0)

    cdef int append(self, uint64_t recorded, uint64_t synced, Receiver receiver, void* then, uint32_t number,
                    uint32_t answer) except -1:
        cdef PendingReceipt* entry
        if self.tail - self.head > self.mask:
            self.grow()
        entry = &self.entries[self.tail & self.mask]
        entry.recorded = self.last_recorded = max(recorded, self.last_recorded)
        entry.synced = self.last_synced = max(synced, self.last_synced)
        entry.number, entry.answer = number, answer
        entry.then, entry.receiver, entry.before = then, NULL, 0
        if then is not NULL:
            Py_INCREF(<object> then)
        self.tail += 1
        if receiver is not None:
            Py_INCREF(receiver)
            entry.receiver = <void*> receiver
            entry.before = receiver.newest
            receiver.newest = self.tail
            receiver.pending_acks += 1
        self.count += 1
        if self.count == 1 and self.begun is not None:
            self.begun()
        return 0

    def release(self, uint64_t recorded=0):
        """The archive has all up to `recorded`, or the journal has come further: acknowledge what is stored.

        Those are not lost that stand behind one that raises.
        """
        cdef PendingReceipt entry
        cdef Receiver receiver
        self.recorded = max(recorded, self.recorded)
        while self.head != self.tail:
            entry = self.entries[self.head & self.mask]
            if entry.recorded > self.recorded or entry.synced > self.position.reached(self.durability):
                break
            self.head += 1
            if entry.receiver is NULL and entry.then is NULL:
                continue    # its connection has ended
            self.count -= 1
            receiver = None
            if entry.receiver is not NULL:
                receiver = <Receiver> entry.receiver
                Py_DECREF(receiver)
                receiver.pending_acks -= 1
                if receiver.newest == self.head:
                    receiver.newest = 0
            if entry.then is NULL:
                receiver.acknowledge(entry.number, entry.answer)
            else:
                then = <object> entry.then
                Py_DECREF(then)
                then()

    def forget(self, Receiver receiver not None):
        """Its connection has ended: nobody waits for its acknowledgements."""
        cdef PendingReceipt* entry
        cdef uint64_t at = receiver.newest
        while at > self.head:
            entry = &self.entries[(at - 1) & self.mask]
            at = entry.before
            then = <object> entry.then if entry.then is not NULL else None
            if entry.then is not NULL:
                Py_DECREF(then)
            entry.receiver = entry.then = NULL
            Py_DECREF(receiver)
            self.count -= 1
        receiver.pending_acks = 0
        receiver.newest = 0

    cdef int grow(self) except -1:
        cdef uint64_t mask = 2 * self.mask + 1, at
        cdef PendingReceipt* entries = <PendingReceipt*> allocate_zeros(mask + 1, sizeof(PendingReceipt))
        if entries is NULL:
            raise MemoryError()
        for at in range(self.head, self.tail):
            entries[at & mask] = self.entries[at & self.mask]
        deallocate(self.entries)
        self.entries = entries
        self.mask = mask
        return 0
