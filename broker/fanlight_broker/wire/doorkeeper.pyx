# cython: language_level=3
"""The doorkeeper of the route cache. Drawn in doorkeeper.pxd."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate

cdef enum:
    BITS = 23                # 2^23 bits twice, 2 MiB; memory that no topic has touched is not in use
    MARKED_MOST = 1 << 20    # topics in one of them: 5 in 100 new ones are taken for one of these


cdef inline bint has(const uint64_t* bits, uint64_t first, uint64_t second) noexcept nogil:
    return bits[first >> 6] >> (first & 63) & bits[second >> 6] >> (second & 63) & 1


cdef class Doorkeeper:
    """Two rotating sets of the hashes of topics."""

    def __dealloc__(self):
        deallocate(self.now)
        deallocate(self.before)

    cdef bint passes(self, Py_ssize_t hash) except -1:
        """Was this topic seen lately? From now on it was."""
        cdef uint64_t mixed = <uint64_t> hash * <uint64_t> 0x9E3779B97F4A7C15
        cdef uint64_t first = mixed >> (64 - BITS), second = mixed >> (64 - 2 * BITS) & ((1 << BITS) - 1)
        if self.before is NULL:
            self.now = <uint64_t*> allocate_zeros(1 << (BITS - 6), sizeof(uint64_t))
            if self.now is NULL:
                raise MemoryError()
            self.before = <uint64_t*> allocate_zeros(1 << (BITS - 6), sizeof(uint64_t))
            if self.before is NULL:
                deallocate(self.now)
                self.now = NULL
                raise MemoryError()
        if has(self.now, first, second):
            return True
        self.now[first >> 6] |= <uint64_t> 1 << (first & 63)
        self.now[second >> 6] |= <uint64_t> 1 << (second & 63)
        self.marked += 1
        if has(self.before, first, second):
            return True
        if self.marked > MARKED_MOST:
            self.now, self.before = self.before, self.now
            memset(self.now, 0, 1 << (BITS - 3))
            self.marked = 0
        return False
