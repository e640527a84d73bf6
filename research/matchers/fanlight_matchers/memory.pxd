# Memory that is counted: each block as large as glibc's malloc makes it, so that contenders of many small
# blocks are charged for what they really take.

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset


cdef inline size_t block_size(size_t size) noexcept nogil:
    cdef size_t rounded = (size + 8 + 15) & ~(<size_t> 15)
    return rounded if rounded > 32 else 32


cdef inline void* take(size_t* counter, size_t size) noexcept nogil:
    cdef void* block = malloc(size)
    if block != NULL:
        counter[0] += block_size(size)
    return block


cdef inline void* take_zeros(size_t* counter, size_t size) noexcept nogil:
    cdef void* block = take(counter, size)
    if block != NULL:
        memset(block, 0, size)
    return block


cdef inline void give_back(size_t* counter, void* block, size_t size) noexcept nogil:
    if block != NULL:
        counter[0] -= block_size(size)
        free(block)


# A larger block with the old one's bytes; NULL, and the old one as it was: no memory.
cdef inline void* enlarge(size_t* counter, void* block, size_t old, size_t size) noexcept nogil:
    cdef void* larger = take(counter, size)
    if larger != NULL and block != NULL:
        memcpy(larger, block, old)
        give_back(counter, block, old)
    return larger
