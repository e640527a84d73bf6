# cython: language_level=3
"""Asking the pool: a topic's rows, anded.

    length 3     . 1 1 1 . 1 1 1          each line a constraint: the or of the rows that meet it,
    left 0       . 1 . 1 . . 1 .    <-    sorted by how many columns it has;
    left 1       1 1 . 1 1 . 1 .          the rarest says which blocks of 512 columns are looked at,
    right 0      1 . 1 1 1 . 1 1          the others are anded to it until nothing is left
    ------------------------------
    alive        . . . 1 . . 1 .    ->    columns; those marked TO_VERIFY are checked word by word
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from matchcore.bitmap cimport (
    BLOCK_COLUMNS, BLOCK_WORDS, Block, Row, block_and_not, block_or, lowest_bit, row_block,
)
from matchcore.heap cimport numbers_reserve
from matchcore.places cimport DEPTH, HAS_MANY, PLACE_ANY, PLACE_LEFT, PLACE_RIGHT, TO_VERIFY, length_row
from matchcore.pool cimport Column, column_tokens, word_row
from matchcore.table cimport NONE
from matchcore.topic cimport Group
from matchcore.verify cimport tokens_take
from matchcore.wide cimport narrow_all
from matchcore.words cimport OTHER


cdef inline void _add_row(Topic* topic, Group* group, const Row* row) noexcept nogil:
    if row != NULL and row.bits != 0:
        topic.rows_of_groups[group.first + group.count] = row
        group.count += 1
        group.weight += row.bits


# Closes the group that was filled: sorted in by weight, the rarest first. False: it holds no column.
cdef inline bint _close_group(Topic* topic, uint32_t* groups, Group* group) noexcept nogil:
    cdef uint32_t i = groups[0]
    if group.weight == 0:
        return False
    while i > 0 and topic.groups[i - 1].weight > group.weight:
        topic.groups[i] = topic.groups[i - 1]
        i -= 1
    topic.groups[i] = group[0]
    groups[0] += 1
    group.first += group.count
    group.count = 0
    group.weight = 0
    return True


cdef uint32_t _gather(const Pool* pool, Topic* topic) noexcept nogil:
    """The constraints of a topic, rarest first; their number, 0 when one cannot be met."""
    cdef const uint32_t* ids = topic.ids
    cdef uint32_t count = topic.count
    cdef uint32_t columns = pool.live.bits
    cdef uint32_t groups = 0
    cdef uint32_t i
    cdef Group group
    group.first = group.count = 0
    group.weight = 0
    _add_row(topic, &group, &pool.lengths[length_row(count)])
    if not _close_group(topic, &groups, &group):
        return 0
    for i in range(min(count, pool.left_depth)):
        if pool.free_left[i].bits != columns:
            _add_row(topic, &group, &pool.free_left[i])
            if ids[i] != OTHER:
                _add_row(topic, &group, word_row(pool, ids[i], PLACE_LEFT + i))
            if not _close_group(topic, &groups, &group):
                return 0
    for i in range(min(count, pool.right_depth)):
        if pool.free_right[i].bits != columns:
            _add_row(topic, &group, &pool.free_right[i])
            if ids[count - 1 - i] != OTHER:
                _add_row(topic, &group, word_row(pool, ids[count - 1 - i], PLACE_RIGHT + i))
            if not _close_group(topic, &groups, &group):
                return 0
    if pool.free_any.bits != columns:
        _add_row(topic, &group, &pool.free_any)
        for i in range(count):
            if ids[i] != OTHER:
                _add_row(topic, &group, word_row(pool, ids[i], PLACE_ANY))
        if not _close_group(topic, &groups, &group):
            return 0
    return groups


cdef int pool_match(
    const Pool* pool, Topic* topic, bint first_only, Numbers* found, Heap* heap
) noexcept nogil:
    cdef uint32_t groups = 0 if pool.live.bits == 0 else _gather(pool, topic)
    cdef const Group* rarest
    cdef const Row** rows
    cdef const Row* row
    cdef uint32_t* cursors = topic.cursors
    cdef uint32_t number, i, c
    cdef uint64_t bits
    cdef Block alive
    cdef const Block* block
    cdef const Column* column
    cdef size_t size
    if groups == 0:
        return 0
    rarest = &topic.groups[0]
    rows = &topic.rows_of_groups[rarest.first]
    memset(cursors, 0, rarest.count * sizeof(uint32_t))
    while True:
        # The next block in which the rarest constraint has a column, and its columns there.
        number = NONE
        for i in range(rarest.count):
            row = rows[i]
            if cursors[i] < row.size and row.numbers[cursors[i]] < number:
                number = row.numbers[cursors[i]]
        if number == NONE:
            return 0
        memset(&alive, 0, sizeof(Block))
        for i in range(rarest.count):
            row = rows[i]
            if cursors[i] < row.size and row.numbers[cursors[i]] == number:
                block_or(&alive, &row.blocks[cursors[i]])
                cursors[i] += 1
        if groups > 1 and not narrow_all(
            topic.rows_of_groups, &topic.groups[1], &topic.groups[groups], number, &alive
        ):
            continue
        if topic.dollar:
            block = row_block(&pool.no_dollar, number)
            if block != NULL:
                block_and_not(&alive, block)
        if found.capacity - found.size < BLOCK_COLUMNS:
            if numbers_reserve(heap, found, found.size + BLOCK_COLUMNS) < 0:
                return -1
        size = found.size
        for i in range(BLOCK_WORDS):
            bits = alive.words[i]
            while bits != 0:
                c = number * BLOCK_COLUMNS + i * 64 + <uint32_t> lowest_bit(bits)
                bits &= bits - 1
                column = &pool.columns[c]
                if column.flags & TO_VERIFY and not tokens_take(
                    column_tokens(pool, column), column.count, column.prefix, column.suffix, column.flags & HAS_MANY,
                    topic.ids, topic.count,
                ):
                    continue
                found.items[size] = column.slot
                size += 1
                if first_only:
                    found.size = size
                    return 0
        found.size = size
