# cython: language_level=3
"""The subscriptions of one client, each once, in a table that is a fraction of a dict. Drawn in subscriptions.pxd.

Hashes of filters are CPython's own, keyed at random per process, so hostile filters cannot be made to collide; numbers
are mixed with a secret for the same reason.
"""

import secrets

from cpython.object cimport PyObject_Hash
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate
from fanlight_broker.wire.target cimport Target

cdef enum:
    FIRST_SLOTS = 4
    NOWHERE = -1

cdef uint64_t SECRET = secrets.randbits(64) | 1


cdef inline uint32_t hash_of_number(uint32_t number) noexcept nogil:
    cdef uint64_t mixed = (number + 1) * SECRET
    mixed = (mixed ^ (mixed >> 32)) * <uint64_t> 0x9E3779B97F4A7C15
    return <uint32_t> (mixed >> 32)


cdef inline uint32_t hash_of_filter(bytes filter, object group) except? 0:
    cdef uint64_t mixed = <uint64_t> <Py_ssize_t> PyObject_Hash(filter)
    if group is not None:
        mixed ^= 3 * <uint64_t> <Py_ssize_t> PyObject_Hash(group)
    return <uint32_t> (mixed ^ (mixed >> 32))


cdef inline object group_name(Target target):
    return target.extras.group.name if target.grouped else None


cdef class Subscriptions:
    """by_filter  found by filter and group; else by number"""

    def __cinit__(self, bint by_filter):
        self.by_filter = by_filter
        self.mask = -1

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(self.mask + 1):
            if self.slots[at] is not NULL:
                Py_DECREF(<object> self.slots[at])
        deallocate(self.slots)
        deallocate(self.hashes)

    def __len__(self):
        return self.count

    def __iter__(self):
        """In no promised order. RuntimeError if it changes meanwhile."""
        cdef uint64_t version = self.version
        cdef Py_ssize_t at
        for at in range(self.mask + 1):
            if self.slots[at] is not NULL:
                yield <Target> self.slots[at]
                if self.version != version:
                    raise RuntimeError("the subscriptions changed while they were iterated over")

    def numbered(self, uint32_t number):
        """The one with this number, or None; if they are found by number."""
        cdef Py_ssize_t at
        if self.by_filter:
            raise TypeError("these subscriptions are found by filter")
        at = self.seek(hash_of_number(number), number, None, None)
        return <Target> self.slots[at] if at >= 0 else None

    def find(self, bytes filter not None, str group):
        """The one with this filter in this queue group (None: in none), or None; if they are found by filter."""
        cdef Py_ssize_t at
        if not self.by_filter:
            raise TypeError("these subscriptions are found by number")
        at = self.seek(hash_of_filter(filter, group), 0, filter, group)
        return <Target> self.slots[at] if at >= 0 else None

    def any_left(self):
        """One of them, or None. All are found in one pass if each is removed before the next is asked for."""
        if not self.count:
            return None
        if self.place > self.mask:    # the table is smaller now
            self.place = self.mask
        while self.slots[self.place] is NULL:
            self.place = (self.place - 1) & self.mask
        return <Target> self.slots[self.place]

    def __contains__(self, Target target not None):
        return self.place_of(target) >= 0

    def add(self, Target target not None):
        """Take one in. ValueError if there is one with the same key."""
        if not self.enter(target):
            raise ValueError(f"there is a subscription {target.number} to {target.filter!r}")

    cdef bint enter(self, Target target) except -1:
        """Take one in. False: there is one with the same key."""
        cdef uint32_t hash
        cdef object group = group_name(target)
        hash = hash_of_filter(target.filter, group) if self.by_filter else hash_of_number(target.number)
        if self.seek(hash, target.number, target.filter, group) >= 0:
            return False
        if 4 * (self.count + 1) > 3 * (self.mask + 1):
            if not self.resize(2 * (self.mask + 1) if self.mask >= 0 else FIRST_SLOTS):
                raise MemoryError()
        self.put(<void*> target, hash)
        Py_INCREF(target)
        self.count += 1
        self.version += 1
        return True

    def remove(self, Target target not None):
        """Let one go, while it is in its group yet. KeyError if it is not here."""
        if not self.take_out(target):
            raise KeyError(target.number)

    cdef bint take_out(self, Target target) except -1:
        """Let one go. False: it is not here."""
        cdef Py_ssize_t at = self.place_of(target)
        cdef Py_ssize_t hole, home
        if at < 0:
            return False
        # Backward shift, as in routes.pyx: no tombstones.
        hole = at
        while True:
            at = (at + 1) & self.mask
            if self.slots[at] is NULL:
                break
            home = self.hashes[at] & self.mask
            if ((at - home) & self.mask) >= ((at - hole) & self.mask):
                self.slots[hole] = self.slots[at]
                self.hashes[hole] = self.hashes[at]
                hole = at
        self.slots[hole] = NULL
        self.count -= 1
        self.version += 1
        if self.mask >= 4 * FIRST_SLOTS and 8 * self.count < self.mask:
            self.resize((self.mask + 1) // 4)    # without memory for that, it stays as large as it is
        Py_DECREF(target)
        return True

    cdef Py_ssize_t seek(self, uint32_t hash, uint32_t number, bytes filter, object group) except -2:
        """Where the one with a key is, or NOWHERE."""
        cdef Py_ssize_t at = hash & self.mask
        cdef Target target
        if self.mask < 0:
            return NOWHERE
        while self.slots[at] is not NULL:
            if self.hashes[at] == hash:
                target = <Target> self.slots[at]
                if not self.by_filter:
                    if target.number == number:
                        return at
                elif target.filter == filter and group_name(target) == group:
                    return at
            at = (at + 1) & self.mask
        return NOWHERE

    cdef Py_ssize_t place_of(self, Target target) except -2:
        cdef object group = group_name(target)
        cdef uint32_t hash = hash_of_filter(target.filter, group) if self.by_filter else hash_of_number(target.number)
        cdef Py_ssize_t at = self.seek(hash, target.number, target.filter, group)
        return at if at >= 0 and self.slots[at] == <void*> target else NOWHERE

    cdef void put(self, void* target, uint32_t hash) noexcept:
        cdef Py_ssize_t at = hash & self.mask
        while self.slots[at] is not NULL:
            at = (at + 1) & self.mask
        self.slots[at] = target
        self.hashes[at] = hash

    cdef bint resize(self, Py_ssize_t capacity) noexcept:
        """False: there is no memory, and nothing has changed."""
        cdef void** slots = self.slots
        cdef uint32_t* hashes = self.hashes
        cdef void** new_slots = <void**> allocate_zeros(capacity, sizeof(void*))
        cdef uint32_t* new_hashes = <uint32_t*> allocate_zeros(capacity, sizeof(uint32_t))
        cdef Py_ssize_t at, before = self.mask + 1
        if new_slots is NULL or new_hashes is NULL:
            deallocate(new_slots)
            deallocate(new_hashes)
            return False
        self.slots = new_slots
        self.hashes = new_hashes
        self.mask = capacity - 1
        for at in range(before):
            if slots[at] is not NULL:
                self.put(slots[at], hashes[at])
        deallocate(slots)
        deallocate(hashes)
        return True
