# What is due one day, in the order of its times: a heap over entries that stay where they are, and an index by id.
#
#   entries  [{due, id, ...}, {...}, ...]   a place each, used again when its entry is gone
#   heap     [place, place, ...]            the first is due first; of the same time, the lowest id
#   index    {id: place}                    open addressing, at most half full
#
# About 60 to 100 bytes each, and no object: there may be a million.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

cdef struct Due:
    double due
    uint64_t id              # 0: the place is free, and `at` has the next free one
    uint32_t nbytes
    bint late                # it was due, and could not be routed
    uint32_t publisher
    uint32_t at              # in the heap

@cython.final
cdef class DueTable:
    cdef:
        Due* entries
        uint32_t* heap
        uint32_t* index
        readonly uint32_t places      # that were used so far: entries have lower ones
        readonly uint32_t late        # entries that were due already
        uint32_t capacity, count, free, mask

    cdef int clear(self) noexcept
    cdef uint32_t slot_of(self, uint64_t id) noexcept
    cdef int grow(self) except -1
    cdef int reindex(self, uint32_t size) except -1
    cdef int remove_slot(self, uint32_t slot) noexcept
    cdef bint before(self, uint32_t one, uint32_t other) noexcept
    cdef int rise(self, uint32_t at) noexcept
    cdef int sink(self, uint32_t at) noexcept
    cdef int put_at(self, uint32_t at, uint32_t place) noexcept
