# The and of a topic's constraints in one block of 512 columns, with the widest instructions there are: the
# compiler makes it three times (AVX-512, AVX2, the baseline) and the first call chooses, where the C library can
# do that; elsewhere there is the baseline alone.

from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) \\
        && !defined(__SANITIZE_ADDRESS__)
    #define MATCHCORE_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define MATCHCORE_WIDE
    #endif

    /* As bitmap.pxd and topic.pxd have them. */
    typedef struct { const uint64_t *blocks; const uint32_t *numbers; uint32_t size, capacity, bits; } matchcore_row;
    typedef struct { uint32_t first, count; uint64_t weight; } matchcore_group;

    static inline const uint64_t *matchcore_block_of(const matchcore_row *row, uint32_t number) {
        uint32_t low = 0, high = row->size;
        if (number < high) {
            if (row->numbers[number] == number)
                return row->blocks + 8 * (size_t) number;
            high = number;
        }
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (row->numbers[middle] < number)
                low = middle + 1;
            else
                high = middle;
        }
        return low < row->size && row->numbers[low] == number ? row->blocks + 8 * (size_t) low : NULL;
    }

    /* alive &= the or of each group's rows; whether a bit is left. */
    MATCHCORE_WIDE static int matchcore_narrow(
        const void *all_rows, const void *first, const void *last_group, uint32_t number, void *alive
    ) {
        const matchcore_row *const *rows = (const matchcore_row *const *) all_rows;
        const matchcore_group *group = (const matchcore_group *) first;
        const matchcore_group *end = (const matchcore_group *) last_group;
        uint64_t now[8];
        int i;
        memcpy(now, alive, 64);
        for (; group < end; group++) {
            const matchcore_row *const *row = rows + group->first;
            const matchcore_row *const *last = row + group->count;
            uint64_t together[8] = {0}, any = 0;
            for (; row < last; row++) {
                const uint64_t *block = matchcore_block_of(*row, number);
                if (block != NULL)
                    for (i = 0; i < 8; i++)
                        together[i] |= block[i];
            }
            for (i = 0; i < 8; i++) {
                now[i] &= together[i];
                any |= now[i];
            }
            if (any == 0)
                return 0;
        }
        memcpy(alive, now, 64);
        return 1;
    }
    """
    bint narrow_all "matchcore_narrow" (
        const void* rows, const void* first, const void* end, uint32_t number, void* alive
    ) noexcept nogil
