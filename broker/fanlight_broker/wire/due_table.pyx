# cython: language_level=3
"""Times with an id each, in their order, without an object each: see due_table.pxd."""

from heapq import heappop, heappush

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.allocator cimport allocate, deallocate, reallocate

cdef enum:
    FIRST_PLACES = 64
    MOST_PLACES = 0x40000000
    NOWHERE = 0xFFFFFFFF


cdef inline uint32_t scattered(uint64_t id) noexcept:
    return <uint32_t> (id * <uint64_t> 0x9E3779B97F4A7C15ULL >> 32)    # 2^64 by the golden ratio


cdef class DueTable:
    """Ids are greater than 0, and given by the caller. An entry has what the caller is to know without reading it."""

    def __cinit__(self):
        self.free = NOWHERE

    def __dealloc__(self):
        self.clear()

    cdef int clear(self) noexcept:
        """Give the memory back: it is empty."""
        deallocate(self.entries)
        deallocate(self.heap)
        deallocate(self.index)
        self.entries, self.heap, self.index = NULL, NULL, NULL
        self.places = self.capacity = self.mask = 0
        self.free = NOWHERE
        return 0

    def __len__(self):
        return self.count

    def __contains__(self, uint64_t id):
        return self.count > 0 and self.index[self.slot_of(id)] != NOWHERE

    def add(self, uint64_t id, double due, uint32_t nbytes, uint32_t publisher):
        """ValueError if the id is 0, or there already."""
        cdef uint32_t place, slot
        cdef Due* entry
        if self.free == NOWHERE and self.places == self.capacity:
            self.grow()
        slot = self.slot_of(id)
        if id == 0 or self.index[slot] != NOWHERE:
            raise ValueError(f"{id} is there already")
        if self.free != NOWHERE:
            place = self.free
            self.free = self.entries[place].at
        else:
            place = self.places
            self.places += 1
        entry = &self.entries[place]
        entry.due, entry.id, entry.nbytes, entry.publisher, entry.late = due, id, nbytes, publisher, False
        self.index[slot] = place
        self.put_at(self.count, place)
        self.count += 1
        self.rise(self.count - 1)

    def put_off(self, uint64_t id, double due):
        """It was due, and is due again at a later time. KeyError if there is no such id."""
        cdef Due* entry = &self.entries[self.place_of(id)]
        self.late += not entry.late
        entry.due, entry.late = due, True
        self.rise(entry.at)
        self.sink(entry.at)

    def discard(self, uint64_t id):
        """Remove it, if it is there. Returns whether it was."""
        cdef uint32_t slot, place, at
        if self.count == 0:
            return False
        slot = self.slot_of(id)
        place = self.index[slot]
        if place == NOWHERE:
            return False
        self.remove_slot(slot)
        at = self.entries[place].at
        self.count -= 1
        self.late -= self.entries[place].late
        if at != self.count:
            self.put_at(at, self.heap[self.count])
            self.rise(at)
            self.sink(at)
        self.entries[place].id, self.entries[place].at = 0, self.free
        self.free = place
        if self.count == 0:
            self.clear()
        return True

    # -- looking at it ------------------------------------------------------------------------------------------------

    @property
    def first(self):
        """When the first is due; None if there is none."""
        return self.entries[self.heap[0]].due if self.count else None

    @property
    def first_id(self):
        """Which is due first; 0 if there is none."""
        return self.entries[self.heap[0]].id if self.count else 0

    def get(self, uint64_t id):
        """(when it is due, bytes, publisher), or None."""
        cdef uint32_t place = NOWHERE if self.count == 0 else self.index[self.slot_of(id)]
        cdef Due* entry
        if place == NOWHERE:
            return None
        entry = &self.entries[place]
        return entry.due, entry.nbytes, entry.publisher

    def at(self, uint32_t place):
        """The id at a place, one below `places`; 0 if it is free."""
        return self.entries[place].id if place < self.places else 0

    def ids(self, Py_ssize_t most, double until):
        """The first that are due up to a time, in the order of their times; `most` of them."""
        cdef list found = [], near = []
        cdef uint32_t at, child
        if self.count:
            heappush(near, (self.entries[self.heap[0]].due, self.entries[self.heap[0]].id, 0))
        while near and len(found) < most:
            due, id, at = heappop(near)
            if due > until:
                break
            found.append(id)
            for child in range(2 * at + 1, min(2 * at + 3, self.count)):
                heappush(near, (self.entries[self.heap[child]].due, self.entries[self.heap[child]].id, child))
        return found

    def __iter__(self):
        """(id, due, bytes, publisher) of each, in no order. Nothing may change meanwhile."""
        cdef uint32_t place
        for place in range(self.places):
            if self.entries[place].id:
                yield (self.entries[place].id, self.entries[place].due, self.entries[place].nbytes,
                       self.entries[place].publisher)

    # -- the index ----------------------------------------------------------------------------------------------------

    def place_of(self, uint64_t id):
        cdef uint32_t place = NOWHERE if self.count == 0 else self.index[self.slot_of(id)]
        if place == NOWHERE:
            raise KeyError(id)
        return place

    cdef uint32_t slot_of(self, uint64_t id) noexcept:
        """Where the index has an id, or would have it."""
        cdef uint32_t slot = scattered(id) & self.mask
        while self.index[slot] != NOWHERE and self.entries[self.index[slot]].id != id:
            slot = (slot + 1) & self.mask
        return slot

    cdef int remove_slot(self, uint32_t slot) noexcept:
        """Those behind it move up, so that each is found from where it belongs."""
        cdef uint32_t hole = slot, wanted
        while True:
            slot = (slot + 1) & self.mask
            if self.index[slot] == NOWHERE:
                break
            wanted = scattered(self.entries[self.index[slot]].id) & self.mask
            if ((slot - wanted) & self.mask) >= ((slot - hole) & self.mask):
                self.index[hole] = self.index[slot]
                hole = slot
        self.index[hole] = NOWHERE
        return 0

    cdef int grow(self) except -1:
        cdef uint32_t capacity = max(self.capacity + self.capacity // 2, <uint32_t> FIRST_PLACES)
        cdef void* grown
        if self.capacity >= MOST_PLACES:
            raise MemoryError()
        grown = reallocate(self.entries, capacity * sizeof(Due))
        if grown is NULL:
            raise MemoryError()
        self.entries = <Due*> grown
        grown = reallocate(self.heap, capacity * sizeof(uint32_t))
        if grown is NULL:
            raise MemoryError()
        self.heap = <uint32_t*> grown
        if self.index is NULL or 2 * <uint64_t> capacity > self.mask:
            self.reindex(capacity)
        self.capacity = capacity
        return 0

    cdef int reindex(self, uint32_t capacity) except -1:
        """An index that is at most half full with so many."""
        cdef uint32_t size = 2 * FIRST_PLACES, place, slot
        cdef uint32_t* index
        while size < 2 * <uint64_t> capacity:
            size *= 2
        index = <uint32_t*> allocate(size * sizeof(uint32_t))
        if index is NULL:
            raise MemoryError()
        deallocate(self.index)
        self.index, self.mask = index, size - 1
        for slot in range(size):
            index[slot] = NOWHERE
        for place in range(self.places):
            if self.entries[place].id:
                index[self.slot_of(self.entries[place].id)] = place
        return 0

    # -- the heap -----------------------------------------------------------------------------------------------------

    cdef bint before(self, uint32_t one, uint32_t other) noexcept:
        cdef Due* a = &self.entries[one]
        cdef Due* b = &self.entries[other]
        return a.due < b.due or (a.due == b.due and a.id < b.id)

    cdef int put_at(self, uint32_t at, uint32_t place) noexcept:
        self.heap[at] = place
        self.entries[place].at = at
        return 0

    cdef int rise(self, uint32_t at) noexcept:
        cdef uint32_t place = self.heap[at], above
        while at:
            above = (at - 1) // 2
            if not self.before(place, self.heap[above]):
                break
            self.put_at(at, self.heap[above])
            at = above
        return self.put_at(at, place)

    cdef int sink(self, uint32_t at) noexcept:
        cdef uint32_t place = self.heap[at], below
        while 2 * at + 1 < self.count:
            below = 2 * at + 1
            if below + 1 < self.count and self.before(self.heap[below + 1], self.heap[below]):
                below += 1
            if not self.before(self.heap[below], place):
                break
            self.put_at(at, self.heap[below])
            at = below
        return self.put_at(at, place)
