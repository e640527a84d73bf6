# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""Messages in flight by tag, with two ways to choose tags: see inflight.pxd."""

cimport cython

from collections import OrderedDict
from itertools import islice

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Pot

cdef enum:
    TAGS = 65_535           # of 16 bits, without 0
    FIRST_SLOTS = 8
    ENTRY_BYTES = 200       # of one entry of an OrderedDict, its key included

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
        # Not a dict: to find the first key of one whose first keys were deleted is a walk over all of these.
        self.by_tag = unseen(OrderedDict())

    cdef int assign(self, Flight flight) except -1:
        return self.put(flight, self.counter.last + 1)

    cdef int put(self, Flight flight, uint64_t tag) except -1:
        if tag <= self.counter.last:
            raise ValueError(f"tag {tag} is not above the last one, {self.counter.last}")
        self.by_tag[tag] = flight
        self.counter.last = flight.tag = tag
        self.count += 1
        return self.charge(ENTRY_BYTES)

    cdef Flight find(self, uint64_t tag):
        return self.by_tag.get(tag)

    cdef int remove(self, Flight flight) except -1:
        del self.by_tag[flight.tag]
        self.count -= 1
        return self.charge(-ENTRY_BYTES)

    cdef list flights(self):
        return list(self.by_tag.values())

    cdef int clear(self) except -1:
        self.by_tag.clear()
        self.count = 0
        return self.charge(-self.nbytes)

    cdef list first(self, Py_ssize_t most):
        """The oldest flights, so many at most."""
        return list(islice(self.by_tag.values(), most))

    cdef list up_to(self, uint64_t tag):
        """The flights with this tag and all before it."""
        cdef list found = []
        cdef Flight flight
        for flight in self.by_tag.values():
            if flight.tag > tag:
                break
            found.append(flight)
        return found

    def all_up_to(self, uint64_t tag):
        """`up_to`, for Python."""
        return self.up_to(tag)
