# The and of a topic's constraints over blocks of 512 columns, with the widest instructions there are: the
# compiler makes it three times (AVX-512, AVX2, the baseline) and the first call chooses, where the C library can
# do that; elsewhere there is the baseline alone.
#
#     alive  . . 1 . | 1 . 1 . | . . . .        8 words of 64 columns
#            ->  2, 4, 6                        their numbers: four a word whether it has as many or not, for how
#                                               many it has is as good as random, and a wrong guess costs more

from libc.stdint cimport uint16_t, uint32_t

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
    typedef uint64_t matchcore_block __attribute__((vector_size(64), aligned(8), may_alias));

    static inline const uint64_t *matchcore_block_of(const matchcore_row *row, uint32_t number, int gapless) {
        uint32_t low = 0, high = row->size;
        if (number < high) {
            if (gapless || row->numbers[number] == number)
                return row->blocks + 8 * (size_t) number;
            high = number;
        } else if (gapless) {
            return NULL;
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

    /* The columns of block `*number`, or of the next one below `end` that has any, as numbers within the block;
       how many. Each group's rows are or-ed, the groups anded, those of `without` left out. */
    MATCHCORE_WIDE static uint32_t matchcore_scan(
        const void *all_rows, const void *first, uint32_t count, const void *without, uint32_t *number, uint32_t end,
        int gapless, uint16_t *columns
    ) {
        const matchcore_row *const *rows = (const matchcore_row *const *) all_rows;
        const matchcore_group *groups = (const matchcore_group *) first;
        const uint64_t *block;
        uint32_t found = 0, i, j;
        for (; *number < end; ++*number) {
            matchcore_block alive = ~(matchcore_block) {0};
            uint64_t left = 0, words[8];
            for (i = 0; i < count; i++) {
                const matchcore_row *const *row = rows + groups[i].first;
                matchcore_block together = {0};
                for (j = 0; j < groups[i].count; j++) {
                    block = matchcore_block_of(row[j], *number, gapless);
                    if (block != NULL)
                        together |= *(const matchcore_block *) block;
                }
                alive &= together;
                if (i % 3 == 0) {   /* not each time: it costs as much as a row */
                    memcpy(words, &alive, 64);
                    left = words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7];
                    if (left == 0)
                        break;
                }
            }
            if (left == 0)
                continue;
            if (without != NULL) {
                block = matchcore_block_of((const matchcore_row *) without, *number, 0);
                if (block != NULL)
                    alive &= ~*(const matchcore_block *) block;
            }
            memcpy(words, &alive, 64);
            for (i = 0; i < 8; i++) {
                uint64_t bits = words[i];
                uint32_t in_word = (uint32_t) __builtin_popcountll(bits);
                for (j = 0; j < in_word; j += 4) {
    #define MATCHCORE_NEXT(k) \\
                    columns[found + j + k] = (uint16_t) (64 * i + (uint32_t) __builtin_ctzll(bits | 1ull << 63)); \\
                    bits &= bits - 1;
                    MATCHCORE_NEXT(0) MATCHCORE_NEXT(1) MATCHCORE_NEXT(2) MATCHCORE_NEXT(3)
                }
                found += in_word;
            }
            if (found != 0)
                break;
        }
        return found;
    }
    """
    uint32_t scan_blocks "matchcore_scan" (
        const void* rows, const void* groups, uint32_t count, const void* without, uint32_t* number, uint32_t end,
        bint gapless, uint16_t* columns
    ) noexcept nogil
