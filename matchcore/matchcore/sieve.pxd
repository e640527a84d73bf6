# A bit for each tag of a table (line_table.pxd), in front of it: half of the keys that are asked for at a million
# filters, and three in four where filters are half wildcards, are not there; a bit says so before their cache
# line is fetched.
#
#     bits   ..1....1..11....1...        tag x golden ratio / 2**shift -> a bit; 6 to 12 bits a tag
#
# A set bit may be another tag's, or one's that has gone: `gone` counts those, and when they are more than the table
# takes, all bits are made anew. A bit that is not set is always right. Without memory there is no sieve (NULL):
# everything seems to be there.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, deallocate, allocate_zeros

cdef enum:
    BITS_A_TAG = 6
    SHIFT_AT_MOST = 23   # 512 bits


cdef struct Sieve:
    uint64_t* bits
    uint32_t shift
    uint32_t gone


cdef inline size_t sieve_size(const Sieve* sieve) noexcept nogil:
    return <size_t> 1 << (29 - sieve.shift)


# For a table of at most `tags` tags.
cdef inline void sieve_make(Allocator* allocator, Sieve* sieve, size_t tags) noexcept nogil:
    sieve.gone = 0
    sieve.shift = SHIFT_AT_MOST
    while sieve.shift > 0 and (<size_t> 1 << (32 - sieve.shift)) < tags * BITS_A_TAG:
        sieve.shift -= 1
    sieve.bits = <uint64_t*> allocate_zeros(allocator, sieve_size(sieve))


cdef inline void sieve_free(Allocator* allocator, Sieve* sieve) noexcept nogil:
    if sieve.bits != NULL:
        deallocate(allocator, sieve.bits, sieve_size(sieve))
    sieve.bits = NULL


cdef inline void sieve_put(Sieve* sieve, uint32_t tag) noexcept nogil:
    cdef uint32_t bit
    if sieve.bits != NULL:
        bit = (tag * <uint32_t> 0x9E3779B1) >> sieve.shift
        sieve.bits[bit >> 6] |= <uint64_t> 1 << (bit & 63)


cdef inline bint sieve_has(const Sieve* sieve, uint32_t tag) noexcept nogil:
    cdef uint32_t bit
    if sieve.bits == NULL:
        return True
    bit = (tag * <uint32_t> 0x9E3779B1) >> sieve.shift
    return (sieve.bits[bit >> 6] >> (bit & 63)) & 1
