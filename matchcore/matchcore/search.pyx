# cython: language_level=3
"""Asking the pool: a topic's rows, anded.

    length 3     . 1 1 1 . 1 1 1          each line a constraint: the or of the rows that meet it; the one with
    left 0       . 1 . 1 . . 1 .    <-    the fewest columns first. Of few blocks of 512 columns, or if no row
    left 1       1 1 . 1 1 . 1 .          has a gap, all are looked at, of others those where the rarest has a
    right 0      1 . 1 1 1 . 1 1          column; the others are anded to it until nothing is left
    ------------------------------
    alive        . . . 1 . . 1 .    ->    columns; those marked TO_VERIFY are checked word by word
"""

from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memset

from matchcore.allocator cimport numbers_reserve
from matchcore.bitmap cimport BLOCK_COLUMNS, Row
from matchcore.pool cimport Column, blocks_of, column_tokens, word_row
from matchcore.positions cimport HAS_MANY, POSITION_ANY, POSITION_LEFT, POSITION_RIGHT, TO_VERIFY, length_row
from matchcore.table cimport NONE
from matchcore.topic cimport Group
from matchcore.verify cimport tokens_take
from matchcore.wide cimport scan_blocks
from matchcore.words cimport OTHER

cdef enum:
    FEW_BLOCKS = 4       # up to this number all are looked at, in any order
    OVER = 4             # numbers that scan_blocks may write in excess


# The constraints of a topic as they are put together: their number, the group that is filled, and whether all rows so
# far have the blocks 0, 1, 2 ... without a gap.
cdef struct Gathered:
    uint32_t groups
    bint sorted
    bint gapless
    Group filling


cdef inline void _add_row(Topic* topic, Gathered* gathered, const Row* row) noexcept nogil:
    cdef Group* group = &gathered.filling
    if row != NULL and row.bits != 0:
        topic.rows_of_groups[group.first + group.count] = row
        group.count += 1
        group.weight += row.bits
        gathered.gapless &= row.numbers[row.size - 1] == row.size - 1


# Closes the group that was filled. Sorted in by weight, or the rarest exchanged to the front. False: it holds no
# column.
cdef inline bint _close_group(Topic* topic, Gathered* gathered) noexcept nogil:
    cdef Group* group = &gathered.filling
    cdef uint32_t i = gathered.groups
    if group.weight == 0:
        return False
    if gathered.sorted:
        while i > 0 and topic.groups[i - 1].weight > group.weight:
            topic.groups[i] = topic.groups[i - 1]
            i -= 1
    elif topic.groups[0].weight > group.weight:
        topic.groups[i] = topic.groups[0]
        i = 0
    topic.groups[i] = group[0]
    gathered.groups += 1
    group.first += group.count
    group.count = 0
    group.weight = 0
    return True


cdef bint _gather(const Pool* pool, Topic* topic, Gathered* gathered) noexcept nogil:
    """The constraints of a topic; False when one cannot be met."""
    cdef const uint32_t* ids = topic.ids
    cdef uint32_t count = topic.count
    cdef uint32_t columns = pool.live.bits
    cdef uint32_t i
    memset(gathered, 0, sizeof(Gathered))
    gathered.gapless = True
    gathered.sorted = pool.count > FEW_BLOCKS * BLOCK_COLUMNS
    topic.groups[0].weight = 0
    _add_row(topic, gathered, &pool.lengths[length_row(count)])
    if not _close_group(topic, gathered):
        return False
    for i in range(min(count, pool.left_depth)):
        if pool.free_left[i].bits != columns:
            _add_row(topic, gathered, &pool.free_left[i])
            if ids[i] != OTHER:
                _add_row(topic, gathered, word_row(pool, ids[i], POSITION_LEFT + i))
            if not _close_group(topic, gathered):
                return False
    for i in range(min(count, pool.right_depth)):
        if pool.free_right[i].bits != columns:
            _add_row(topic, gathered, &pool.free_right[i])
            if ids[count - 1 - i] != OTHER:
                _add_row(topic, gathered, word_row(pool, ids[count - 1 - i], POSITION_RIGHT + i))
            if not _close_group(topic, gathered):
                return False
    if pool.free_any.bits != columns:
        _add_row(topic, gathered, &pool.free_any)
        for i in range(count):
            if ids[i] != OTHER:
                _add_row(topic, gathered, word_row(pool, ids[i], POSITION_ANY))
        if not _close_group(topic, gathered):
            return False
    return True


cdef int _emit(
    const Pool* pool, const Topic* topic, const uint16_t* columns, uint32_t count, uint32_t number, bint first_only,
    Numbers* found, Allocator* allocator
) noexcept nogil:
    """The slots of these columns of a block; 1: found one, and that is enough; -1: no memory."""
    cdef const Column* of_block = &pool.columns[<size_t> number * BLOCK_COLUMNS]
    cdef const Column* column
    cdef size_t size = found.size
    cdef uint32_t i
    if found.capacity - size < count and numbers_reserve(allocator, found, size + count) < 0:
        return -1
    for i in range(count):
        column = &of_block[columns[i]]
        if column.flags & TO_VERIFY and not tokens_take(
            column_tokens(pool, column), column.count, column.prefix, column.suffix, column.flags & HAS_MANY,
            topic.ids, topic.count, topic.occurrences,
        ):
            continue
        found.items[size] = column.slot
        size += 1
        if first_only:
            found.size = size
            return 1
    found.size = size
    return 0


cdef inline uint32_t _next_block(const Topic* topic) noexcept nogil:
    """The next block in which the rarest constraint has a column, or NONE."""
    cdef const Group* rarest = &topic.groups[0]
    cdef const Row* row
    cdef uint32_t number = NONE
    cdef uint32_t i
    for i in range(rarest.count):
        row = topic.rows_of_groups[rarest.first + i]
        if topic.cursors[i] < row.size:
            number = min(number, row.numbers[topic.cursors[i]])
    for i in range(rarest.count):
        row = topic.rows_of_groups[rarest.first + i]
        topic.cursors[i] += topic.cursors[i] < row.size and row.numbers[topic.cursors[i]] == number
    return number


cdef int pool_match(
    const Pool* pool, Topic* topic, bint first_only, Numbers* found, Allocator* allocator
) noexcept nogil:
    cdef uint16_t[BLOCK_COLUMNS + OVER] columns
    cdef uint32_t end = blocks_of(pool.count)
    cdef uint32_t number = 0
    cdef uint32_t count
    cdef bint all_blocks
    cdef bint guessed = first_only and end > 1 and pool.likely < end
    cdef const Row* without = NULL
    cdef Gathered gathered
    cdef int status
    if pool.live.bits == 0 or not _gather(pool, topic, &gathered):
        return 0
    if topic.dollar:
        without = &pool.no_dollar
    all_blocks = gathered.gapless or end <= FEW_BLOCKS
    if not all_blocks:
        memset(topic.cursors, 0, topic.groups[0].count * sizeof(uint32_t))
    while True:
        if guessed:
            number = pool.likely
            end = number + 1
        elif not all_blocks:
            number = _next_block(topic)
            if number == NONE:
                return 0
            end = number + 1
        count = scan_blocks(
            topic.rows_of_groups, topic.groups, gathered.groups, without, &number, end, gathered.gapless, columns
        )
        if count != 0:
            status = _emit(pool, topic, columns, count, number, first_only, found, allocator)
            if status != 0:
                return -1 if status < 0 else 0
        if guessed:  # in vain: all of them, in their order
            guessed = False
            number = 0
            end = blocks_of(pool.count)
            continue
        if count == 0 and all_blocks:
            return 0
        number += 1
