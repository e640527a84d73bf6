# cython: language_level=3
"""The dense pool: wildcard filters as columns of an inverted bitmap. The idea is drawn in pool.pxd.

Here a column is added and removed: its bits in the rows are set and cleared. One that could not be
finished for want of memory is cleared again. Which filters come here is decided in tiers.pyx; asking is in
search.pyx.
"""

from libc.string cimport memcpy, memset

from matchcore.allocator cimport deallocate, reallocate, allocate_zeros
from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_take,
)
from matchcore.bitmap cimport BLOCK_COLUMNS, row_clear, row_copy, row_free, row_set
from matchcore.hashing cimport fold, hash_secret
from matchcore.positions cimport Parts, length_row, parts_of
from matchcore.table cimport table_drop, table_first, table_free, table_next, table_put, table_reserve
from matchcore.words cimport OTHER

cdef enum:
    COLUMNS_AT_MOST = 0xFFFFFFF0

cdef const uint64_t* secret = hash_secret()


cdef void pool_init(Pool* pool, Allocator* allocator, Words* words) noexcept nogil:
    memset(pool, 0, sizeof(Pool))
    pool.allocator = allocator
    pool.words = words
    pool.free = NONE
    arena_init(&pool.tokens, allocator)


cdef void pool_free(Pool* pool) noexcept nogil:
    """Everything given back: the pool is as new."""
    cdef uint32_t i
    cdef int j
    arena_free(&pool.tokens)
    deallocate(pool.allocator, pool.columns, pool.capacity * sizeof(Column))
    deallocate(pool.allocator, pool.weights, blocks_of(pool.capacity) * sizeof(uint32_t))
    pool.columns = NULL
    pool.weights = NULL
    pool.count = pool.capacity = pool.likely = 0
    pool.free = NONE
    for i in range(pool.word_capacity):
        _forget_word(pool, i)
    deallocate(pool.allocator, pool.word_rows, pool.word_capacity * sizeof(WordRows))
    pool.word_rows = NULL
    pool.word_capacity = 0
    for j in range(DEPTH):
        row_free(pool.allocator, &pool.free_left[j])
        row_free(pool.allocator, &pool.free_right[j])
    for j in range(LENGTHS):
        row_free(pool.allocator, &pool.lengths[j])
    row_free(pool.allocator, &pool.free_any)
    row_free(pool.allocator, &pool.no_dollar)
    row_free(pool.allocator, &pool.live)
    pool.left_depth = pool.right_depth = 0
    table_free(pool.allocator, &pool.table)


cdef void _forget_word(Pool* pool, uint32_t id) noexcept nogil:
    cdef WordRows* entry = &pool.word_rows[id]
    cdef int count = count_positions(entry.positions)
    cdef int i
    for i in range(count):
        row_free(pool.allocator, &entry.rows[i])
    deallocate(pool.allocator, entry.rows, count * sizeof(Row))
    entry.rows = NULL
    entry.positions = 0


# ---- the rows of a word -------------------------------------------------------------------------

cdef int _set_word(Pool* pool, uint32_t id, int position, uint32_t column) noexcept nogil:
    cdef WordRows* entry = &pool.word_rows[id]
    cdef uint64_t bit = <uint64_t> 1 << position
    cdef int at = count_positions(entry.positions & (bit - 1))
    cdef int count = count_positions(entry.positions)
    cdef int i
    cdef Row row
    cdef Row* rows
    if entry.positions & bit:
        return row_set(pool.allocator, &entry.rows[at], column)
    memset(&row, 0, sizeof(Row))
    if row_set(pool.allocator, &row, column) < 0:
        return -1
    rows = <Row*> reallocate(pool.allocator, entry.rows, count * sizeof(Row), (count + 1) * sizeof(Row))
    if rows == NULL:
        row_free(pool.allocator, &row)
        return -1
    for i in range(count, at, -1):
        rows[i] = rows[i - 1]
    rows[at] = row
    entry.rows = rows
    entry.positions |= bit
    return 0


cdef void _clear_word(Pool* pool, uint32_t id, int position, uint32_t column) noexcept nogil:
    cdef WordRows* entry = &pool.word_rows[id]
    cdef uint64_t bit = <uint64_t> 1 << position
    cdef int at = count_positions(entry.positions & (bit - 1))
    cdef int count = count_positions(entry.positions)
    cdef int i
    if not entry.positions & bit:
        return
    row_clear(pool.allocator, &entry.rows[at], column)
    if entry.rows[at].bits != 0:
        return
    for i in range(at, count - 1):
        entry.rows[i] = entry.rows[i + 1]
    entry.rows = <Row*> reallocate(
        pool.allocator, entry.rows, count * sizeof(Row), (count - 1) * sizeof(Row)
    )
    entry.positions &= ~bit


# ---- adding and removing ------------------------------------------------------------------------

cdef inline uint32_t _tag(uint32_t slot) noexcept nogil:
    return <uint32_t> (fold(slot ^ secret[0], secret[1]) >> 32)


cdef uint32_t pool_find(const Pool* pool, uint32_t slot) noexcept nogil:
    cdef uint32_t tag = _tag(slot)
    cdef uint32_t at
    cdef uint32_t c = table_first(&pool.table, tag, &at)
    while c != NONE and pool.columns[c].slot != slot:
        c = table_next(&pool.table, tag, &at)
    return c


cdef int _reserve(Pool* pool, const uint32_t* tokens, uint32_t count) noexcept nogil:
    """Room for one more column with these words."""
    cdef size_t capacity
    cdef uint32_t i
    cdef uint32_t highest = 0
    cdef Column* columns
    cdef uint32_t* weights
    cdef WordRows* word_rows
    if table_reserve(pool.allocator, &pool.table) < 0:
        return -1
    if pool.free == NONE and pool.count == pool.capacity:
        capacity = 8 if pool.capacity == 0 else <size_t> pool.capacity + pool.capacity // 2
        if capacity > COLUMNS_AT_MOST:
            return -1
        weights = <uint32_t*> allocate_zeros(pool.allocator, blocks_of(<uint32_t> capacity) * sizeof(uint32_t))
        if weights == NULL:
            return -1
        columns = <Column*> reallocate(
            pool.allocator, pool.columns, pool.capacity * sizeof(Column), capacity * sizeof(Column)
        )
        if columns == NULL:
            deallocate(pool.allocator, weights, blocks_of(<uint32_t> capacity) * sizeof(uint32_t))
            return -1
        if pool.capacity != 0:
            memcpy(weights, pool.weights, blocks_of(pool.capacity) * sizeof(uint32_t))
            deallocate(pool.allocator, pool.weights, blocks_of(pool.capacity) * sizeof(uint32_t))
        pool.weights = weights
        pool.columns = columns
        pool.capacity = <uint32_t> capacity
    for i in range(count):
        if tokens[i] < TOKEN_WILD and tokens[i] > highest:
            highest = tokens[i]
    if highest != OTHER and highest >= pool.word_capacity:
        # In step with the dictionary, whose growth is geometric.
        capacity = pool.words.capacity
        word_rows = <WordRows*> reallocate(
            pool.allocator, pool.word_rows, pool.word_capacity * sizeof(WordRows), capacity * sizeof(WordRows)
        )
        if word_rows == NULL:
            return -1
        memset(&word_rows[pool.word_capacity], 0, (capacity - pool.word_capacity) * sizeof(WordRows))
        pool.word_rows = word_rows
        pool.word_capacity = <uint32_t> capacity
    return 0


cdef void _describe(Pool* pool, Column* column, const uint32_t* tokens, uint32_t count) noexcept nogil:
    """Fills in what follows from the tokens."""
    cdef Parts parts = parts_of(tokens, count)
    cdef uint32_t i
    cdef uint32_t fewest = 0xFFFFFFFF
    column.count = <uint16_t> count
    column.prefix = <uint16_t> parts.prefix
    column.suffix = <uint16_t> parts.suffix
    column.least = <uint16_t> parts.least
    column.flags |= parts.flags
    column.sought = 0
    if parts.least > DEPTH:
        column.flags |= TO_VERIFY  # its length row is that of all that is longer
    for i in range(parts.prefix, count - parts.suffix):
        if tokens[i] < TOKEN_WILD and pool.words.entries[tokens[i]].refs < fewest:
            fewest = pool.words.entries[tokens[i]].refs
            column.sought = <uint16_t> i


cdef int _deepen(Pool* pool, Row* free_rows, uint32_t* depth, uint32_t wanted) noexcept nogil:
    """Free rows for positions below `wanted`: so far nobody had a literal there."""
    while depth[0] < wanted:
        if row_copy(pool.allocator, &free_rows[depth[0]], &pool.live) < 0:
            return -1
        depth[0] += 1
    return 0


cdef int _put(Pool* pool, uint32_t c) noexcept nogil:
    """Sets every bit of the column; -1 with some of them set."""
    cdef const Column* column = &pool.columns[c]
    cdef const uint32_t* tokens = column_tokens(pool, column)
    cdef Allocator* allocator = pool.allocator
    cdef uint32_t prefix = column.prefix if column.prefix < DEPTH else DEPTH
    cdef uint32_t suffix = column.suffix if column.suffix < DEPTH else DEPTH
    cdef uint32_t i
    cdef int status
    if _deepen(pool, pool.free_left, &pool.left_depth, prefix) < 0:
        return -1
    if _deepen(pool, pool.free_right, &pool.right_depth, suffix) < 0:
        return -1
    for i in range(pool.left_depth):
        if i < prefix and tokens[i] < TOKEN_WILD:
            status = _set_word(pool, tokens[i], POSITION_LEFT + i, c)
        else:
            status = row_set(allocator, &pool.free_left[i], c)
        if status < 0:
            return -1
    for i in range(pool.right_depth):
        if i < suffix and tokens[column.count - 1 - i] < TOKEN_WILD:
            status = _set_word(pool, tokens[column.count - 1 - i], POSITION_RIGHT + i, c)
        else:
            status = row_set(allocator, &pool.free_right[i], c)
        if status < 0:
            return -1
    if column.sought != 0:
        status = _set_word(pool, tokens[column.sought], POSITION_ANY, c)
    else:
        status = row_set(allocator, &pool.free_any, c)
    if status < 0:
        return -1
    for i in range(length_row(column.least), LENGTHS):
        if row_set(allocator, &pool.lengths[i], c) < 0:
            return -1
        if not column.flags & HAS_MANY:
            break
    if column.flags & NO_DOLLAR and row_set(allocator, &pool.no_dollar, c) < 0:
        return -1
    return row_set(allocator, &pool.live, c)


cdef void _take_out(Pool* pool, uint32_t c) noexcept nogil:
    """Clears every bit of the column, set or not."""
    cdef const Column* column = &pool.columns[c]
    cdef const uint32_t* tokens = column_tokens(pool, column)
    cdef Allocator* allocator = pool.allocator
    cdef uint32_t prefix = column.prefix if column.prefix < DEPTH else DEPTH
    cdef uint32_t suffix = column.suffix if column.suffix < DEPTH else DEPTH
    cdef uint32_t i
    for i in range(pool.left_depth):
        if i < prefix and tokens[i] < TOKEN_WILD:
            _clear_word(pool, tokens[i], POSITION_LEFT + i, c)
        else:
            row_clear(allocator, &pool.free_left[i], c)
    for i in range(pool.right_depth):
        if i < suffix and tokens[column.count - 1 - i] < TOKEN_WILD:
            _clear_word(pool, tokens[column.count - 1 - i], POSITION_RIGHT + i, c)
        else:
            row_clear(allocator, &pool.free_right[i], c)
    if column.sought != 0:
        _clear_word(pool, tokens[column.sought], POSITION_ANY, c)
    else:
        row_clear(allocator, &pool.free_any, c)
    for i in range(LENGTHS):
        row_clear(allocator, &pool.lengths[i], c)
    row_clear(allocator, &pool.no_dollar, c)
    row_clear(allocator, &pool.live, c)


cdef void _free_column(Pool* pool, uint32_t c) noexcept nogil:
    cdef Column* column = &pool.columns[c]
    arena_give_back(&pool.tokens, column.tokens, column.count)
    column.tokens = NONE
    column.slot = pool.free
    pool.free = c
    if pool.live.bits == 0:
        pool_free(pool)
    elif arena_is_sparse(&pool.tokens):
        _pack(pool)


cdef void _pack(Pool* pool) noexcept nogil:
    """All tokens into a new arena; without memory for it the holes stay."""
    cdef Arena made
    cdef Column* column
    cdef uint32_t c, block
    if arena_like(&made, &pool.tokens) < 0:
        return
    for c in range(pool.count):
        column = &pool.columns[c]
        if column.tokens != NONE:
            block = arena_take(&made, column.count)
            memcpy(&made.units[block], &pool.tokens.units[column.tokens], column.count * sizeof(uint32_t))
            column.tokens = block
    arena_free(&pool.tokens)
    pool.tokens = made


cdef void _weigh(Pool* pool, uint32_t c, bint added) noexcept nogil:
    """Its block is heavier or lighter: a filter matches the more, the fewer literals it has."""
    cdef const uint32_t* tokens = column_tokens(pool, &pool.columns[c])
    cdef uint32_t block = c // BLOCK_COLUMNS
    cdef uint32_t literals = 0
    cdef uint32_t i, weight
    for i in range(pool.columns[c].count):
        literals += tokens[i] < TOKEN_WILD
    weight = <uint32_t> 1 << 2 * (WEIGHTY - min(literals, <uint32_t> WEIGHTY))
    if added:
        pool.weights[block] += weight
        if pool.weights[block] > pool.weights[pool.likely]:
            pool.likely = block
        return
    pool.weights[block] -= weight
    if block == pool.likely:
        for i in range(blocks_of(pool.count)):
            if pool.weights[i] > pool.weights[pool.likely]:
                pool.likely = i


cdef uint32_t pool_add(
    Pool* pool, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil:
    cdef Column* column
    cdef uint32_t c
    if _reserve(pool, tokens, count) < 0:
        return NONE
    if arena_reserve(&pool.tokens, count) < 0:
        return NONE
    if pool.free != NONE:
        c = pool.free
        pool.free = pool.columns[c].slot
    else:
        c = pool.count
        pool.count += 1
    column = &pool.columns[c]
    column.tokens = arena_take(&pool.tokens, count)
    memcpy(&pool.tokens.units[column.tokens], tokens, count * sizeof(uint32_t))
    column.flags = <uint8_t> flags
    column.unused = 0
    column.slot = slot
    _describe(pool, column, tokens, count)
    if _put(pool, c) < 0:
        _take_out(pool, c)
        _free_column(pool, c)
        return NONE
    table_put(&pool.table, _tag(slot), c)
    _weigh(pool, c, True)
    return c


cdef void pool_remove(Pool* pool, uint32_t c) noexcept nogil:
    table_drop(pool.allocator, &pool.table, _tag(pool.columns[c].slot), c)
    _weigh(pool, c, False)
    _take_out(pool, c)
    _free_column(pool, c)
