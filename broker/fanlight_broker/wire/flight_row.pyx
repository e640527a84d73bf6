# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""Flights that wait, in order: drawn in flight_row.pxd."""

cimport cython

from cpython.ref cimport Py_DECREF, Py_INCREF

from fanlight_broker.wire.allocator cimport allocate, deallocate
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message

cdef enum:
    FIRST_SLOTS = 8


@cython.no_gc
cdef class FlightRow:
    """A row of flights, from which those are taken that were put in first."""

    def __dealloc__(self):
        cdef Py_ssize_t nth
        for nth in range(self.count):
            Py_DECREF(<object> <void*> (self.slots[self.place(nth)].item & ~<size_t> 1))
        deallocate(self.slots)

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t nth):
        """The flight at a place, 0 for the first. Raises IndexError."""
        if not 0 <= nth < self.count:
            raise IndexError(f"place {nth} of {self.count}")
        return self.flight_at(nth)

    def __iter__(self):
        """Over those that are in it now."""
        cdef Py_ssize_t nth
        return iter([self.flight_at(nth) for nth in range(self.count)])

    cdef Flight flight_at(self, Py_ssize_t nth):
        cdef RowSlot* slot = &self.slots[self.place(nth)]
        cdef Flight flight
        if not slot.item & 1:
            return <Flight> <void*> slot.item
        flight = Flight.__new__(Flight)
        flight.message, flight.since = message_in(slot), slot.since
        Py_DECREF(flight.message)
        Py_INCREF(flight)
        slot.item = <size_t> <void*> flight
        return flight

    cpdef int append(self, Flight flight) except -1:
        """As the last."""
        if self.count == self.capacity:
            self.resize(2 * self.capacity)
        self.slots[self.place(self.count)].item = <size_t> <void*> flight
        Py_INCREF(flight)
        self.count += 1
        return 0

    cpdef int appendleft(self, Flight flight) except -1:
        """As the first."""
        if self.count == self.capacity:
            self.resize(2 * self.capacity)
        self.first = self.place(-1)
        self.slots[self.first].item = <size_t> <void*> flight
        Py_INCREF(flight)
        self.count += 1
        return 0

    cpdef Flight popleft(self):
        """The first, which is taken out. Raises IndexError if there is none."""
        cdef Flight flight
        if self.count == 0:
            raise IndexError("nothing waits")
        flight = self.flight_at(0)
        Py_DECREF(flight)
        self.first = self.place(1)
        self.count -= 1
        if self.capacity > KEPT_SLOTS and 4 * self.count <= self.capacity:
            self.resize(self.capacity // 2)
        return flight

    cpdef int rotate(self, Py_ssize_t places) except -1:
        """The last so many become the first; below 0: the first the last."""
        cdef Py_ssize_t moved
        if self.count == 0:
            return 0
        moved = places % self.count
        moved += self.count if moved < 0 else 0
        if 2 * moved <= self.count:
            for _ in range(moved):
                self.first = self.place(-1)
                self.slots[self.first] = self.slots[self.place(self.count)]
            return 0
        for _ in range(self.count - moved):
            self.slots[self.place(self.count)] = self.slots[self.first]
            self.first = self.place(1)
        return 0

    def append_plain(self, Message message not None, double since):
        """`append_message`, for Python."""
        self.append_message(message, since)

    cdef int resize(self, Py_ssize_t capacity) except -1:
        """Move to so many slots, at least `count`; 0: the first of all. Without memory for fewer it stays as it is."""
        cdef RowSlot* slots
        cdef Py_ssize_t nth
        capacity = capacity if capacity else FIRST_SLOTS
        slots = <RowSlot*> allocate(capacity * sizeof(RowSlot))
        if slots is NULL:
            if capacity < self.capacity:
                return 0
            raise MemoryError()
        for nth in range(self.count):
            slots[nth] = self.slots[self.place(nth)]
        deallocate(self.slots)
        self.slots, self.first, self.capacity = slots, 0, capacity
        return 0
