# Ids put in ascending order, each once: what an answer promises.
#
#     up to 8    a network of comparisons: the same steps whatever the ids and their number, with no branch to guess
#     up to 32   the same, and the others inserted
#     more       by digits of eight bits from the lowest, as often as the ids differ there: for a thousand
#                ids ten times as quick as comparing, and with no bad case

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from matchcore.allocator cimport Allocator, Numbers, numbers_reserve

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #define MATCHCORE_PAIR(a, b)                            \
        do {                                                \
            uint32_t less = a < b ? a : b;                  \
            b = a < b ? b : a;                              \
            a = less;                                       \
        } while (0)

    /* Beyond the last, the highest. */
    #define MATCHCORE_ID(n) (table[at[count > (n) ? (n) : 0]] | (count > (n) ? 0 : UINT32_MAX))

    /* One to eight ids into ids[0:8], by a network of comparisons. Nonzero: there are equal ones. */
    static inline uint32_t matchcore_gather_8(
        uint32_t *ids, const uint32_t *table, const uint32_t *at, size_t count
    ) {
        uint32_t a = MATCHCORE_ID(0), b = MATCHCORE_ID(1), c = MATCHCORE_ID(2), d = MATCHCORE_ID(3);
        uint32_t e = MATCHCORE_ID(4), f = MATCHCORE_ID(5), g = MATCHCORE_ID(6), h = MATCHCORE_ID(7);
        MATCHCORE_PAIR(a, c); MATCHCORE_PAIR(b, d); MATCHCORE_PAIR(e, g); MATCHCORE_PAIR(f, h);
        MATCHCORE_PAIR(a, e); MATCHCORE_PAIR(b, f); MATCHCORE_PAIR(c, g); MATCHCORE_PAIR(d, h);
        MATCHCORE_PAIR(a, b); MATCHCORE_PAIR(c, d); MATCHCORE_PAIR(e, f); MATCHCORE_PAIR(g, h);
        MATCHCORE_PAIR(c, e); MATCHCORE_PAIR(d, f);
        MATCHCORE_PAIR(b, e); MATCHCORE_PAIR(d, g);
        MATCHCORE_PAIR(b, c); MATCHCORE_PAIR(d, e); MATCHCORE_PAIR(f, g);
        ids[0] = a, ids[1] = b, ids[2] = c, ids[3] = d, ids[4] = e, ids[5] = f, ids[6] = g, ids[7] = h;
        return ((a == b) | (b == c) << 1 | (c == d) << 2 | (d == e) << 3 | (e == f) << 4 | (f == g) << 5
                | (g == h) << 6) & ((1u << (count - 1)) - 1);
    }
    """
    uint32_t gather_8 "matchcore_gather_8" (
        uint32_t* ids, const uint32_t* table, const uint32_t* at, size_t count
    ) noexcept nogil

cdef enum:
    FEW_IDS = 32


# By insertion; the first `done` are in order.
cdef inline void sort_few(uint32_t* ids, size_t done, size_t count) noexcept nogil:
    cdef size_t i, j
    cdef uint32_t id
    for i in range(done, count):
        id = ids[i]
        j = i
        while j > 0 and ids[j - 1] > id:
            ids[j] = ids[j - 1]
            j -= 1
        ids[j] = id


cdef inline size_t drop_doubles(uint32_t* ids, size_t count) noexcept nogil:
    cdef uint32_t equal = 0
    cdef size_t kept = 1
    cdef size_t i
    for i in range(1, count):  # a loop of vectors, and the usual end
        equal |= ids[i] == ids[i - 1]
    if not equal:
        return count
    for i in range(1, count):
        if ids[i] != ids[kept - 1]:
            ids[kept] = ids[i]
            kept += 1
    return kept


# ids = table[at[0:count]], count up to FEW_IDS, for which there must be room; how many are left.
cdef inline size_t gather_few(
    uint32_t* ids, const uint32_t* table, const uint32_t* at, size_t count
) noexcept nogil:
    cdef size_t i
    if count == 0:
        return 0
    if gather_8(ids, table, at, count if count < 8 else 8) == 0 and count <= 8:
        return count
    if count > 8:
        for i in range(8, count):
            ids[i] = table[at[i]]
        sort_few(ids, 8, count)
    return drop_doubles(ids, count)


cdef inline void sort_by_digit(
    const uint32_t* ids, uint32_t* out, size_t count, int shift
) noexcept nogil:
    cdef uint32_t[256] starts
    cdef uint32_t start = 0
    cdef uint32_t n
    cdef size_t i
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


# numbers[base:], with `spare` as scratch. -1: no memory.
cdef inline int make_ascending(Allocator* allocator, Numbers* numbers, size_t base, Numbers* spare) noexcept nogil:
    cdef size_t count = numbers.size - base
    cdef uint32_t* ids = numbers.items + base
    cdef uint32_t* source = ids
    cdef uint32_t* out
    cdef uint32_t differing = 0
    cdef size_t falls = 0
    cdef size_t fall = 0
    cdef int shift = 0
    cdef size_t i
    for i in range(1, count):
        differing |= ids[i] ^ ids[0]
        if ids[i] < ids[i - 1]:
            falls += 1
            fall = i
    if falls != 0 and count <= FEW_IDS:
        sort_few(ids, 1, count)
    elif falls != 0:
        if numbers_reserve(allocator, spare, count) < 0:
            return -1
        out = spare.items
        if falls == 1 and ids[count - 1] <= ids[0]:
            # As the pool answers when it began in the middle.
            memcpy(out, ids + fall, (count - fall) * sizeof(uint32_t))
            memcpy(out + count - fall, ids, fall * sizeof(uint32_t))
            source = out
            shift = 32
        while shift < 32:
            if differing >> shift & 255:
                sort_by_digit(source, out, count, shift)
                source, out = out, source
            shift += 8
        if source != ids:
            memcpy(ids, source, count * sizeof(uint32_t))
    numbers.size = base + drop_doubles(ids, count)
    return 0
