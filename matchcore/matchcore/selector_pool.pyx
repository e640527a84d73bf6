# cython: language_level=3, cdivision=True
"""Selectors as columns of bits. Drawn in selector_pool.pxd."""

from libc.stdint cimport int16_t, uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from matchcore.allocator cimport allocate, allocate_zeros, deallocate, reallocate
from matchcore.condition_rows cimport (
    ATTRIBUTES_OF_POOL, OF_ANY, OF_NO_ROWS, OF_NUMBER, OF_SEVERAL, OF_TEXT, ROW_TEXTS, ROW_VALUE, PoolAttribute,
    condition_rows_free, condition_rows_init, rows_are_full, rows_attribute, rows_make_cells, rows_prepare, rows_seek,
    rows_unlist, type_of_test,
)
from matchcore.condition_tests cimport MIXED, NEVER_TRUE, end_of_test, test_in_row
from matchcore.program cimport ENDS_FALSE, ENDS_TRUE, TESTS, Step, program_steps
from matchcore.table cimport NONE

cdef enum:
    LINE = 64              # bytes of a row in a block
    FEW_ROWS = 8           # more than there are: room for the next ones
    STEPS_AT_MOST = 255    # of programs that are looked at
    REMADE_AT_MOST = 2_048  # columns: so that it takes some 2 ms
    LACKING_AT_LEAST = 64
    SEARCHED_AT_MOST = 64  # blocks, for each of the texts of an attribute: in larger pools they stay listed


# The tests that must be true

cdef struct Conjunction:
    const Program* program
    const Step* step       # the test found last
    uint32_t next
    bint is_whole          # there is nothing else


cdef inline Conjunction _conjunction(const Program* program) noexcept nogil:
    cdef Conjunction walk
    walk.program = program
    walk.step = NULL
    walk.next = <uint16_t> <int16_t> program.first
    walk.is_whole = walk.next != ENDS_FALSE and program.steps <= STEPS_AT_MOST
    if not walk.is_whole:
        walk.next = ENDS_FALSE
    return walk


cdef uint32_t _behind(const Program* program, uint32_t first) noexcept nogil:
    """The step where all paths from an OR, or an AT LEAST, to TRUE meet again; or an end."""
    cdef const Step* steps = program_steps(program)
    cdef uint8_t[STEPS_AT_MOST] reached
    cdef uint32_t furthest = first
    cdef uint32_t at = first
    cdef uint32_t target
    cdef int way
    memset(reached, 0, sizeof(reached))
    reached[first] = 1
    while at < program.steps:
        if at > first and at == furthest:
            return at
        if reached[at]:
            for way in range(2):
                target = steps[at].on_true if way == 0 else steps[at].on_false
                if target != ENDS_FALSE:
                    if target == ENDS_TRUE:
                        return ENDS_TRUE
                    reached[target] = 1
                    furthest = max(furthest, target)
        at += 1
    return ENDS_FALSE


cdef bint _next_test(Conjunction* walk) noexcept nogil:
    """To the next of the tests that must all be true; False: there is no more."""
    cdef const Step* step
    while walk.next < ENDS_FALSE:
        step = &program_steps(walk.program)[walk.next]
        if step.code < TESTS and step.on_false == ENDS_FALSE:
            walk.step = step
            walk.next = step.on_true
            return True
        walk.is_whole = False
        walk.next = _behind(walk.program, walk.next)
    return False


cdef bint pool_takes(const Program* program) noexcept nogil:
    cdef Conjunction walk = _conjunction(program)
    cdef bint sharp
    while _next_test(&walk):
        if type_of_test(program, walk.step, &sharp) != OF_NO_ROWS and sharp:
            return True
    return False


# Rows and blocks

cdef inline size_t _bytes_of(uint32_t rows) noexcept nogil:
    return (<size_t> rows + 1) * LINE


cdef int _extend(SelectorPool* pool, PoolBlock* block) noexcept nogil:
    """All rows that there are. -1: no memory, and it is as it was."""
    cdef uint32_t wanted = pool.rows.row_count
    cdef uint32_t capacity
    cdef char* memory
    cdef uint64_t* bits
    if wanted > block.capacity:
        capacity = wanted + FEW_ROWS
        memory = <char*> allocate(pool.allocator, _bytes_of(capacity))
        if memory == NULL:
            return -1
        bits = <uint64_t*> (memory + (-<size_t> memory) % LINE)
        if block.rows != 0:
            memcpy(bits, block.bits, <size_t> block.rows * LINE)
        deallocate(pool.allocator, block.memory, _bytes_of(block.capacity))
        block.memory = memory
        block.bits = bits
        block.capacity = capacity
    if block.rows == 0:
        memset(pool_line(block, 0), 0xFF, LINE)
        block.rows = 1
    while block.rows < wanted:
        if pool.rows.rows[block.rows].fallback == 0:
            memset(pool_line(block, block.rows), 0, LINE)
        else:
            memcpy(pool_line(block, block.rows), pool_line(block, pool.rows.rows[block.rows].fallback), LINE)
        block.rows += 1
    return 0


cdef bint _is_unused(const SelectorPool* pool, uint32_t row) noexcept nogil:
    """Does the row of a listed text say what that of the other texts says?"""
    cdef uint32_t fallback = pool.rows.rows[row].fallback
    cdef const PoolBlock* block
    cdef uint32_t i
    if pool.block_count > SEARCHED_AT_MOST:
        return False
    for i in range(pool.block_count):
        block = &pool.blocks[i]
        if block.rows > row and memcmp(pool_line(block, row), pool_line(block, fallback), LINE) != 0:
            return False
    return True


cdef void _unlist(SelectorPool* pool, uint32_t at) noexcept nogil:
    """Gives up the listed texts of an attribute that no column distinguishes from others."""
    cdef uint32_t row = pool.rows.attributes[at].first
    while row != 0:
        if pool.rows.rows[row].text != NULL and _is_unused(pool, row):
            rows_unlist(&pool.rows, at, row)
        row = pool.rows.rows[row].next


# Columns

cdef int _prepare(SelectorPool* pool, const Program* program, uint8_t* types) noexcept nogil:
    """All rows that its tests need. `types` by attribute; where it is OF_NO_ROWS there are none. -1: no memory."""
    cdef Conjunction walk = _conjunction(program)
    cdef bint sharp
    cdef int type, at, done
    while _next_test(&walk):
        type = type_of_test(program, walk.step, &sharp)
        if type == OF_NO_ROWS:
            continue
        at = rows_attribute(&pool.rows, walk.step.attribute)
        if at == -2:
            return -1
        if at < 0:
            pool.lacking += 1
            continue
        if type >= OF_TEXT and rows_are_full(&pool.rows, at):
            _unlist(pool, at)
            pool.lacking += rows_are_full(&pool.rows, at)
        if type == OF_NUMBER and pool.rows.attributes[at].first_cell == 0:
            pool.lacking += 1
        done = rows_prepare(&pool.rows, at, program, walk.step)
        if done < 0:
            return -1
        if done == 1:
            types[at] = OF_NO_ROWS
    return 0


cdef inline bint _stands_for(uint8_t* types, int at, int type) noexcept nogil:
    """Whether the rows of an attribute can stand for another test of it, beside those that they stand for."""
    if at < 0 or type == OF_NO_ROWS or types[at] == OF_NO_ROWS:
        return False
    if type == OF_ANY:
        return True
    if types[at] != OF_ANY:
        return types[at] == type and type != OF_SEVERAL
    types[at] = <uint8_t> type
    return True


cdef void _mark(PoolColumn* column, uint32_t row) noexcept nogil:
    cdef uint32_t i
    for i in range(MARKS):
        if column.marks[i] == 0 or column.marks[i] == row:
            column.marks[i] = <uint16_t> row
            return
    column.marks[0] = ALWAYS_MARKED


cdef void _set_bits(SelectorPool* pool, uint32_t number, uint8_t* types) noexcept nogil:
    """Of a column without bits, in a block that has all rows."""
    cdef PoolColumn* column = pool_column(pool, number)
    cdef PoolBlock* block = &pool.blocks[number // POOL_BLOCK]
    cdef uint64_t bit = <uint64_t> 1 << (number % 64)
    cdef uint32_t word = number % POOL_BLOCK // 64
    cdef Conjunction walk = _conjunction(pool_program(pool, number))
    cdef const PoolAttribute* one
    cdef uint32_t row
    cdef int at, verdict, type
    cdef bint sharp
    memset(column.marks, 0, sizeof(column.marks))
    while _next_test(&walk):
        at = rows_seek(&pool.rows, walk.step.attribute)
        type = type_of_test(walk.program, walk.step, &sharp)
        if not _stands_for(types, at, type):
            walk.is_whole = False
            continue
        one = &pool.rows.attributes[at]
        row = one.first
        while row != 0:
            verdict = test_in_row(&pool.rows, one, &pool.rows.rows[row], walk.program, walk.step)
            if verdict == NEVER_TRUE:
                pool_line(block, row)[word] |= bit
            elif verdict == MIXED:
                # A free row is as the other texts, also once it has a text again.
                _mark(column, row if pool.rows.rows[row].kind != ROW_VALUE else one.kinds[ROW_TEXTS])
            row = pool.rows.rows[row].next
    if not walk.is_whole:
        column.marks[0] = ALWAYS_MARKED


cdef int _add_block(SelectorPool* pool) noexcept nogil:
    """-1: no memory."""
    cdef uint32_t capacity
    cdef PoolBlock* blocks
    cdef PoolBlock* made
    if pool.block_count == pool.block_capacity:
        capacity = pool.block_capacity + pool.block_capacity // 4 + 2
        blocks = <PoolBlock*> reallocate(
            pool.allocator, pool.blocks, pool.block_capacity * sizeof(PoolBlock), capacity * sizeof(PoolBlock)
        )
        if blocks == NULL:
            return -1
        pool.blocks = blocks
        pool.block_capacity = capacity
    made = &pool.blocks[pool.block_count]
    memset(made, 0, sizeof(PoolBlock))
    made.columns = <PoolColumn*> allocate(pool.allocator, POOL_BLOCK * (sizeof(PoolColumn) + sizeof(void*)))
    if made.columns == NULL:
        return -1
    made.programs = <Program**> (made.columns + POOL_BLOCK)
    if _extend(pool, made) < 0:
        deallocate(pool.allocator, made.columns, POOL_BLOCK * (sizeof(PoolColumn) + sizeof(void*)))
        return -1
    pool.block_count += 1
    return 0


cdef int _reserve(SelectorPool* pool) noexcept nogil:
    """Room for one column more, in a block that has all rows. -1: no memory."""
    cdef uint32_t number = pool.free if pool.free != NONE else pool.count
    if number == pool.block_count * POOL_BLOCK:
        return _add_block(pool)
    return _extend(pool, &pool.blocks[number // POOL_BLOCK])


cdef uint32_t pool_put(SelectorPool* pool, const PoolMember* member) noexcept nogil:
    cdef uint8_t[ATTRIBUTES_OF_POOL] types
    cdef PoolColumn* column
    cdef PoolBlock* block
    cdef uint32_t number
    memset(types, OF_ANY, sizeof(types))
    if _prepare(pool, member.program, types) < 0 or _reserve(pool) < 0:
        return NONE
    number = pool.free if pool.free != NONE else pool.count
    block = &pool.blocks[number // POOL_BLOCK]
    column = pool_column(pool, number)
    if number == pool.count:
        pool.count += 1
    else:
        pool.free = column.id
    block.programs[number % POOL_BLOCK] = member.program
    column.id = member.id
    column.slot = member.slot
    _set_bits(pool, number, types)
    pool_line(block, 0)[number % POOL_BLOCK // 64] &= ~(<uint64_t> 1 << (number % 64))
    pool.live += 1
    return number


cdef void pool_take(SelectorPool* pool, uint32_t column) noexcept nogil:
    cdef PoolBlock* block = &pool.blocks[column // POOL_BLOCK]
    cdef uint64_t bit = <uint64_t> 1 << (column % 64)
    cdef uint32_t word = column % POOL_BLOCK // 64
    cdef uint32_t row
    pool_line(block, 0)[word] |= bit
    for row in range(1, block.rows):
        pool_line(block, row)[word] &= ~bit
    block.programs[column % POOL_BLOCK] = NULL
    pool_column(pool, column).id = pool.free
    pool.free = column
    pool.live -= 1


# The whole pool

cdef struct NumberEnd:
    uint64_t end
    uint32_t at


cdef int _by_attribute(const void* one, const void* other) noexcept nogil:
    cdef const NumberEnd* a = <const NumberEnd*> one
    cdef const NumberEnd* b = <const NumberEnd*> other
    if a.at != b.at:
        return (a.at > b.at) - (a.at < b.at)
    return (a.end > b.end) - (a.end < b.end)


cdef int _collect_ends(SelectorPool* pool, const Program* program, NumberEnd* ends, uint32_t* count) noexcept nogil:
    """Adds the ends of its tests of numbers, if `ends` is there; counts them. -1: no memory."""
    cdef Conjunction walk = _conjunction(program)
    cdef uint64_t end
    cdef int at
    while _next_test(&walk):
        if not end_of_test(walk.step, &end):
            continue
        at = rows_attribute(&pool.rows, walk.step.attribute)
        if at == -2:
            return -1
        if at >= 0:
            if ends != NULL:
                ends[count[0]].end = end
                ends[count[0]].at = <uint32_t> at
            count[0] += 1
    return 0


cdef int _make_cells(SelectorPool* pool, NumberEnd* ends, uint32_t count) noexcept nogil:
    """Of all attributes that have ends. Their bounds are put where these were. -1: no memory."""
    cdef uint64_t* values = <uint64_t*> ends
    cdef uint32_t first = 0
    cdef uint32_t i, at
    qsort(ends, count, sizeof(NumberEnd), _by_attribute)
    while first < count:
        at = ends[first].at
        i = first
        while i < count and ends[i].at == at:
            values[first + i] = ends[i].end  # in front of what is not read yet, as ends are twice as large
            i += 1
        if rows_make_cells(&pool.rows, at, &values[2 * first], i - first) < 0:
            return -1
        first = i
    return 0


cdef int _make_rows(SelectorPool* pool, const PoolMember* members, uint32_t count) noexcept nogil:
    """Cells, and all that the members need. -1: no memory."""
    cdef uint8_t[ATTRIBUTES_OF_POOL] types
    cdef NumberEnd* ends
    cdef uint32_t room = 0
    cdef uint32_t filled = 0
    cdef int done = 0
    cdef uint32_t i
    for i in range(count):
        if _collect_ends(pool, members[i].program, NULL, &room) < 0:
            return -1
    if room != 0:
        ends = <NumberEnd*> allocate(pool.allocator, room * sizeof(NumberEnd))
        if ends == NULL:
            return -1
        for i in range(count):
            done |= _collect_ends(pool, members[i].program, ends, &filled)
        if done == 0:
            done = _make_cells(pool, ends, filled)
        deallocate(pool.allocator, ends, room * sizeof(NumberEnd))
    for i in range(count):
        memset(types, OF_ANY, sizeof(types))
        if done == 0:
            done = _prepare(pool, members[i].program, types)
    return done


cdef SelectorPool* pool_make(Allocator* allocator, const PoolMember* members, uint32_t count) noexcept nogil:
    cdef SelectorPool* pool = <SelectorPool*> allocate_zeros(allocator, sizeof(SelectorPool))
    cdef uint32_t i
    if pool == NULL:
        return NULL
    pool.allocator = allocator
    pool.free = NONE
    pool.made_of = count
    if condition_rows_init(&pool.rows, allocator) < 0 or _make_rows(pool, members, count) < 0:
        pool_free(pool)
        return NULL
    pool.lacking = 0
    for i in range(count):
        if pool_put(pool, &members[i]) == NONE:
            pool_free(pool)
            return NULL
    pool.lacking = 0
    return pool


cdef void pool_free(SelectorPool* pool) noexcept nogil:
    cdef Allocator* allocator = pool.allocator
    cdef uint32_t i
    for i in range(pool.block_count):
        deallocate(allocator, pool.blocks[i].memory, _bytes_of(pool.blocks[i].capacity))
        deallocate(allocator, pool.blocks[i].columns, POOL_BLOCK * (sizeof(PoolColumn) + sizeof(void*)))
    deallocate(allocator, pool.blocks, pool.block_capacity * sizeof(PoolBlock))
    condition_rows_free(&pool.rows)
    deallocate(allocator, pool, sizeof(SelectorPool))


cdef bint pool_wants_remaking(const SelectorPool* pool) noexcept nogil:
    if pool.live > REMADE_AT_MOST:
        return False
    return pool.live >= 4 * pool.made_of or pool.lacking > pool.live // 2 + LACKING_AT_LEAST
