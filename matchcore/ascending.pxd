# Ids put in ascending order, each once: what an answer promises.
#
#     up to 8 and 16   each id's place is how many are less: counted for all at once, without a branch to guess
#     up to 32         insertion
#     more             by digits of eight bits from the lowest, as often as the ids differ there: for a thousand
#                      ids ten times as quick as comparing, and with no bad case

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from matchcore.heap cimport Heap, Numbers, numbers_reserve

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* Up to LANES ids in their order; 0 and nothing done: two are equal. Biased, for vectors compare signed. */
    #define MATCHCORE_RANK(LANES)                                                                   \
        static inline int matchcore_rank_##LANES(uint32_t *ids, size_t count) {                     \
            int32_t biased[LANES], rank[LANES];                                                     \
            size_t i, j, sum = 0;                                                                   \
            for (i = 0; i < LANES; i++) {                                                           \
                biased[i] = i < count ? (int32_t) (ids[i] ^ 0x80000000u) : INT32_MAX;               \
                rank[i] = 0;                                                                        \
            }                                                                                       \
            for (j = 0; j < count; j++) {                                                           \
                int32_t one = biased[j];                                                            \
                for (i = 0; i < LANES; i++)                                                         \
                    rank[i] += biased[i] > one;                                                     \
            }                                                                                       \
            for (i = 0; i < count; i++)                                                             \
                sum += (size_t) rank[i];                                                            \
            if (sum != count * (count - 1) / 2)                                                     \
                return 0;                                                                           \
            for (i = 0; i < count; i++)                                                             \
                ids[rank[i]] = (uint32_t) biased[i] ^ 0x80000000u;                                  \
            return 1;                                                                               \
        }

    MATCHCORE_RANK(8)
    MATCHCORE_RANK(16)
    """
    bint rank_8 "matchcore_rank_8" (uint32_t* ids, size_t count) noexcept nogil
    bint rank_16 "matchcore_rank_16" (uint32_t* ids, size_t count) noexcept nogil

cdef enum:
    FEW_IDS = 32


cdef inline void sort_few(uint32_t* ids, size_t count) noexcept nogil:
    cdef size_t i, j
    cdef uint32_t id
    for i in range(1, count):
        id = ids[i]
        j = i
        while j > 0 and ids[j - 1] > id:
            ids[j] = ids[j - 1]
            j -= 1
        ids[j] = id


cdef inline size_t drop_doubles(uint32_t* ids, size_t count) noexcept nogil:
    cdef size_t kept = 0
    cdef size_t i
    for i in range(count):
        if kept == 0 or ids[i] != ids[kept - 1]:
            ids[kept] = ids[i]
            kept += 1
    return kept


# Up to FEW_IDS of them; how many are left.
cdef inline size_t make_few_ascending(uint32_t* ids, size_t count) noexcept nogil:
    cdef uint32_t first
    if count < 2:
        return count
    if count == 2:
        first = ids[0]
        ids[0] = first if first < ids[1] else ids[1]
        ids[1] = ids[1] if first < ids[1] else first
        return 2 if ids[0] != ids[1] else 1
    if (count <= 8 and rank_8(ids, count)) or (8 < count <= 16 and rank_16(ids, count)):
        return count
    sort_few(ids, count)
    return drop_doubles(ids, count)


cdef inline void sort_by_digit(
    const uint32_t* ids, uint32_t* out, size_t count, int shift
) noexcept nogil:
    cdef size_t[256] starts
    cdef size_t i, n
    cdef size_t start = 0
    memset(starts, 0, sizeof(starts))
    for i in range(count):
        starts[ids[i] >> shift & 255] += 1
    for i in range(256):
        n = starts[i]
        starts[i] = start
        start += n
    for i in range(count):
        out[starts[ids[i] >> shift & 255]] = ids[i]
        starts[ids[i] >> shift & 255] += 1


# ids[base:], with `spare` as scratch. -1: no memory.
cdef inline int make_ascending(Heap* heap, Numbers* numbers, size_t base, Numbers* spare) noexcept nogil:
    cdef size_t count = numbers.size - base
    cdef uint32_t* ids = numbers.items + base
    cdef uint32_t* source = ids
    cdef uint32_t* out
    cdef uint32_t differing = 0
    cdef bint ascending = True
    cdef int shift = 0
    cdef size_t i
    if count <= FEW_IDS:
        numbers.size = base + make_few_ascending(ids, count)
        return 0
    for i in range(1, count):
        differing |= ids[i] ^ ids[0]
        ascending = ascending and ids[i - 1] <= ids[i]
    if not ascending:
        if numbers_reserve(heap, spare, count) < 0:
            return -1
        out = spare.items
        while shift < 32:
            if differing >> shift & 255:
                sort_by_digit(source, out, count, shift)
                source, out = out, source
            shift += 8
        if source != ids:
            memcpy(ids, source, count * sizeof(uint32_t))
    numbers.size = base + drop_doubles(ids, count)
    return 0
