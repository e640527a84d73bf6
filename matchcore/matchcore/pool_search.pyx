# cython: language_level=3, cdivision=True
"""Which selectors of a pool are true of a message. Drawn in selector_pool.pxd."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from matchcore.allocator cimport numbers_reserve, prefetch
from matchcore.condition_rows cimport ATTRIBUTES_OF_POOL, ConditionRow, PoolAttribute, RowsOfValue, rows_of_value
from matchcore.program cimport program_holds
from matchcore.selector_pool cimport ALWAYS_MARKED, POOL_BLOCK, PoolBlock, PoolColumn, pool_line

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #ifndef MATCHCORE_WIDE
    #if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) \\
        && !defined(__SANITIZE_ADDRESS__)
    #define MATCHCORE_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define MATCHCORE_WIDE
    #endif
    #endif

    typedef uint64_t matchcore_columns __attribute__((vector_size(64), aligned(8), may_alias));

    /* The columns of a block that none of `rows` rules out, nor all three of one of the `alike`; how many. */
    MATCHCORE_WIDE static uint32_t matchcore_left(
        const uint64_t *bits, const uint16_t *rows, uint32_t count, const uint16_t *alike, uint32_t alike_count,
        uint16_t *columns
    ) {
        const matchcore_columns *lines = (const matchcore_columns *) bits;
        matchcore_columns out = lines[0];
        uint64_t words[8], left;
        uint32_t found = 0, i, j;
        for (i = 0; i < count; i++) {
            out |= lines[rows[i]];
            if (i % 4 == 3) {   /* not each time: it costs as much as a row */
                memcpy(words, &out, 64);
                left = words[0] & words[1] & words[2] & words[3] & words[4] & words[5] & words[6] & words[7];
                if (left == ~(uint64_t) 0)
                    return 0;
            }
        }
        for (i = 0; i < alike_count; i++)
            out |= lines[alike[3 * i]] & lines[alike[3 * i + 1]] & lines[alike[3 * i + 2]];
        memcpy(words, &out, 64);
        for (i = 0; i < 8; i++) {
            uint64_t in = ~words[i];
            uint32_t in_word = (uint32_t) __builtin_popcountll(in);
            for (j = 0; j < in_word; j += 4) {
    #define MATCHCORE_LEFT(k) \\
                columns[found + j + k] = (uint16_t) (64 * i + (uint32_t) __builtin_ctzll(in | 1ull << 63)); \\
                in &= in - 1;
                MATCHCORE_LEFT(0) MATCHCORE_LEFT(1) MATCHCORE_LEFT(2) MATCHCORE_LEFT(3)
            }
            found += in_word;
        }
        return found;
    }
    """
    uint32_t columns_left "matchcore_left" (
        const uint64_t* bits, const uint16_t* rows, uint32_t count, const uint16_t* alike, uint32_t alike_count,
        uint16_t* columns
    ) noexcept nogil

cdef enum:
    AHEAD = 32             # columns asked for before they are looked at


cdef struct RowsOfMessage:
    uint16_t[ATTRIBUTES_OF_POOL] rows
    uint32_t count
    uint16_t[3 * ATTRIBUTES_OF_POOL] alike   # of text without a type: three each
    uint32_t alike_count
    uint16_t highest
    uint8_t[ALWAYS_MARKED + 1] marked        # by row


cdef void _ask_rows(const SelectorPool* pool, Fields fields, RowsOfMessage* asked) noexcept nogil:
    cdef const PoolAttribute* one
    cdef RowsOfValue found
    cdef uint32_t i, j
    asked.count = asked.alike_count = asked.highest = 0
    memset(asked.marked, 0, sizeof(asked.marked))
    for i in range(pool.rows.attribute_count):
        one = &pool.rows.attributes[i]
        if one.attribute >= fields.capacity:
            continue  # a number that is not in use: of an attribute that no selector asks for any more
        rows_of_value(&pool.rows, one, &fields.at[one.attribute], &fields.views[one.attribute], &found)
        for j in range(found.count):
            asked.marked[found.rows[j]] = 1
            asked.marked[found.marked[j]] = 1
            asked.highest = max(asked.highest, found.rows[j])
        if found.count == 1:
            asked.rows[asked.count] = found.rows[0]
            asked.count += 1
            prefetch(pool_line(&pool.blocks[0], found.rows[0]))
        else:
            for j in range(3):
                asked.alike[3 * asked.alike_count + j] = found.rows[j if j < found.count else 0]
            asked.alike_count += 1
    asked.marked[0] = 0
    asked.marked[ALWAYS_MARKED] = 1


cdef void _fall_back(
    const SelectorPool* pool, const PoolBlock* block, const RowsOfMessage* asked, RowsOfMessage* made
) noexcept nogil:
    """The rows for a block that has not all of them."""
    cdef const ConditionRow* rows = pool.rows.rows
    cdef uint32_t i
    cdef uint16_t row
    made.count, made.alike_count = asked.count, asked.alike_count
    for i in range(asked.count):
        row = asked.rows[i]
        while row >= block.rows:
            row = rows[row].fallback
        made.rows[i] = row
    for i in range(3 * asked.alike_count):
        row = asked.alike[i]
        while row >= block.rows:
            row = rows[row].fallback
        made.alike[i] = row


cdef int _report(
    const PoolBlock* block, const uint16_t* left, uint32_t count, const RowsOfMessage* asked, Fields fields,
    Allocator* allocator, Numbers* found
) noexcept nogil:
    """The ids of the columns that are left of a block. -1: no memory."""
    cdef const PoolColumn* column
    cdef uint16_t[POOL_BLOCK] doubtful
    cdef uint32_t doubts = 0
    cdef uint32_t i
    cdef size_t size = found.size
    cdef const uint8_t* marked = &asked.marked[0]
    if found.capacity < size + count and numbers_reserve(allocator, found, size + count) < 0:
        return -1
    for i in range(min(count, <uint32_t> AHEAD)):
        prefetch(&block.columns[left[i]])
    for i in range(count):
        if i + AHEAD < count:
            prefetch(&block.columns[left[i + AHEAD]])
        column = &block.columns[left[i]]
        if marked[column.marks[0]] | marked[column.marks[1]] | marked[column.marks[2]] | marked[column.marks[3]]:
            prefetch(&block.programs[left[i]])
            doubtful[doubts] = left[i]
            doubts += 1
        else:
            found.items[size] = column.id
            size += 1
    for i in range(doubts):
        prefetch(block.programs[doubtful[i]])
    for i in range(doubts):
        if program_holds(block.programs[doubtful[i]], fields.at):
            found.items[size] = block.columns[doubtful[i]].id
            size += 1
    found.size = size
    return 0


cdef int pool_find(
    const SelectorPool* pool, Fields fields, Allocator* allocator, Numbers* found
) noexcept nogil:
    cdef RowsOfMessage asked
    cdef RowsOfMessage made
    cdef const RowsOfMessage* rows
    cdef uint16_t[POOL_BLOCK + 4] left
    cdef const PoolBlock* block
    cdef uint32_t number, count, i
    _ask_rows(pool, fields, &asked)
    for number in range(pool.block_count):
        block = &pool.blocks[number]
        rows = &asked
        if asked.highest >= block.rows:
            _fall_back(pool, block, &asked, &made)
            rows = &made
        if number + 1 < pool.block_count:
            for i in range(asked.count):
                prefetch(pool_line(&pool.blocks[number + 1], asked.rows[i]))
        count = columns_left(block.bits, rows.rows, rows.count, rows.alike, rows.alike_count, left)
        if count != 0 and _report(block, left, count, &asked, fields, allocator, found) < 0:
            return -1
    return 0
