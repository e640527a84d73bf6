# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""Messages in flight by tag, with two ways to choose tags: see inflight.pxd."""

cimport cython

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Pot
from fanlight_broker.wire.tag_row cimport (
    TagSlot, append, discard, find as find_slot, following, oldest as oldest_slot, take_out,
)

cdef enum:
    TAGS = 65_535           # of 16 bits, without 0
    FIRST_SLOTS = 8         # of either table
    KEPT_SLOTS = 32         # CountingTags keeps up to so many when it is empty

TAGS_MAX = TAGS


@cython.no_gc
cdef class Inflight:
    """Flights by tag. What the table takes is counted in a pot."""

    def __cinit__(self, Pot pot not None):
        self.pot = pot

    def __dealloc__(self):
        if self.pot is not None:
            self.pot.force(-self.nbytes)

    def __len__(self):
        return self.count

    def get(self, uint64_t tag):
        """The flight with this tag, or None."""
        return self.find(tag)

    def give(self, Flight flight not None):
        """Put a flight into the table. Returns the tag that it gets."""
        self.assign(flight)
        return flight.tag

    def discard(self, Flight flight not None):
        """Remove a flight that is in the table."""
        self.remove(flight)

    def in_order(self):
        """The flights, as the table has them (a list of its own)."""
        return self.flights()

    cdef int assign(self, Flight flight) except -1:
        """Give a flight the next tag. There is one: `count` is less than `most`."""
        raise NotImplementedError("Inflight is abstract")

    cdef int put(self, Flight flight, uint64_t tag) except -1:
        """Put in a flight that has its tag from before a restart. ValueError: the tag is invalid, or in use."""
        raise NotImplementedError("Inflight is abstract")

    cdef Flight find(self, uint64_t tag):
        raise NotImplementedError("Inflight is abstract")

    cdef int remove(self, Flight flight) except -1:
        raise NotImplementedError("Inflight is abstract")

    cdef list flights(self):
        raise NotImplementedError("Inflight is abstract")

    cdef int clear(self) except -1:
        """Remove all, and give back what the table takes."""
        raise NotImplementedError("Inflight is abstract")

    cdef int charge(self, Py_ssize_t octets) except -1:
        self.nbytes += octets
        self.pot.force(octets)
        return 0


@cython.no_gc
cdef class ReusedTags(Inflight):
    """Tags of 16 bits: the next that is free, counted upwards and around."""

    def __cinit__(self, Pot pot not None):
        self.most = TAGS
        self.slots = unseen([None] * FIRST_SLOTS)
        self.mask = FIRST_SLOTS - 1

    cdef int assign(self, Flight flight) except -1:
        cdef uint64_t tag = self.last
        if 4 * self.count >= 3 * self.mask:
            self.grow()
        while True:
            tag = 1 if tag >= TAGS else tag + 1
            if <object> PyList_GET_ITEM(self.slots, self.at(tag)) is None:
                break
        self.last = flight.tag = tag
        self.slots[self.at(tag)] = flight
        self.count += 1
        return 0

    cdef int put(self, Flight flight, uint64_t tag) except -1:
        if not 0 < tag <= TAGS or self.find(tag) is not None:
            raise ValueError(f"tag {tag} is in use, or not from 1 to {TAGS}")
        while 4 * self.count >= 3 * self.mask or self.slots[self.at(tag)] is not None:
            self.grow()
        self.last = flight.tag = tag
        self.slots[self.at(tag)] = flight
        self.count += 1
        return 0

    cdef Flight find(self, uint64_t tag):
        return self.look_up(tag)

    cdef int remove(self, Flight flight) except -1:
        self.slots[self.at(flight.tag)] = None
        self.count -= 1
        return 0

    cdef list flights(self):
        cdef Flight flight
        return [flight for flight in self.slots if flight is not None]

    cdef int clear(self) except -1:
        self.slots = unseen([None] * FIRST_SLOTS)
        self.mask = FIRST_SLOTS - 1
        self.count = 0
        return self.charge(-self.nbytes)

    cdef int grow(self) except -1:
        cdef list slots = [None] * (2 * (self.mask + 1))
        cdef Flight flight
        self.charge(8 * (self.mask + 1))
        self.mask = 2 * self.mask + 1
        for flight in self.slots:
            if flight is not None:
                slots[self.at(flight.tag)] = flight
        self.slots = unseen(slots)
        return 0


@cython.no_gc
cdef class TagCounter:
    """The tables of one queue share it."""


@cython.no_gc
cdef class CountingTags(Inflight):
    """Tags of 64 bits, given once each and in order. The counter may be shared with other tables."""

    def __cinit__(self, Pot pot not None):
        self.most = 1 << 62
        self.counter = TagCounter()

    def __dealloc__(self):
        self.drop_flights()
        discard(&self.row)

    cdef int assign(self, Flight flight) except -1:
        return self.put(flight, self.counter.last + 1)

    cdef int put(self, Flight flight, uint64_t tag) except -1:
        if tag <= self.counter.last:
            raise ValueError(f"tag {tag} is not above the last one, {self.counter.last}")
        cdef Py_ssize_t capacity = self.row.capacity
        append(&self.row, tag).thing = <void*> flight
        Py_INCREF(flight)
        self.counter.last = flight.tag = tag
        self.count += 1
        if self.row.capacity != capacity:
            self.charge_slots()
        return 0

    cdef Flight find(self, uint64_t tag):
        cdef TagSlot* slot = find_slot(&self.row, tag)
        return <Flight> slot.thing if slot is not NULL else None

    cdef int remove(self, Flight flight) except -1:
        cdef TagSlot* slot = find_slot(&self.row, flight.tag)
        if slot is NULL:
            raise KeyError(flight.tag)
        take_out(&self.row, slot)
        self.count -= 1
        if self.count == 0 and self.row.capacity > KEPT_SLOTS:
            discard(&self.row)
            self.charge_slots()
        Py_DECREF(flight)
        return 0

    cdef int charge_slots(self) except -1:
        """Enter in the pot what the row takes now, above its first size."""
        cdef Py_ssize_t taken = max(self.row.capacity - FIRST_SLOTS, 0) * <Py_ssize_t> sizeof(TagSlot)
        return self.charge(taken - self.nbytes)

    cdef list flights(self):
        return self.first(self.count)

    cdef int drop_flights(self) noexcept:
        cdef TagSlot* slot = oldest_slot(&self.row)
        while slot is not NULL:
            Py_DECREF(<object> slot.thing)
            slot = following(&self.row, slot)
        return 0

    cdef int clear(self) except -1:
        self.drop_flights()
        discard(&self.row)
        self.count = 0
        return self.charge_slots()

    cdef Flight oldest(self):
        """Or None."""
        cdef TagSlot* slot = oldest_slot(&self.row)
        return <Flight> slot.thing if slot is not NULL else None

    cdef list first(self, Py_ssize_t most):
        """The oldest flights, so many at most."""
        cdef list found = []
        cdef TagSlot* slot = oldest_slot(&self.row)
        while slot is not NULL and PyList_GET_SIZE(found) < most:
            found.append(<Flight> slot.thing)
            slot = following(&self.row, slot)
        return found

    def all_up_to(self, uint64_t tag):
        """The flights with this tag and all before it, oldest first."""
        cdef list found = []
        cdef TagSlot* slot = oldest_slot(&self.row)
        while slot is not NULL and slot.tag <= tag:
            found.append(<Flight> slot.thing)
            slot = following(&self.row, slot)
        return found
