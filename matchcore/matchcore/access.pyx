# cython: language_level=3, cdivision=True
"""Access keys: which selectors are under which, and what was seen of each attribute. Drawn in access.pxd."""

from libc.math cimport log
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from matchcore.allocator cimport allocate, deallocate, reallocate
from matchcore.arena cimport arena_free, arena_init, arena_is_sparse, arena_like
from matchcore.bag cimport (
    bag_init, bag_insert_at, bag_items, bag_move, bag_push, bag_remove_at, bag_reserve, bag_seek, bag_take_out,
)
from matchcore.hashing cimport hash_secret, hash_word
from matchcore.program cimport (
    IN_FALSE, IN_TRUE, MASK_EQUAL, NEGATED, TEST_BOOLEAN, TEST_FLOAT, TEST_IN, TEST_INTEGER, TEST_TEXT, TESTS,
    ValueList, program_entries, program_steps, step_float, step_integer, step_text,
)
from matchcore.table cimport (
    NONE, table_drop, table_free, table_put, table_reserve, table_seek,
)
from matchcore.values cimport hash_boolean, hash_float, hash_integer, hash_of, hash_text, ordered_float


cdef void access_init(Access* access, Allocator* allocator) noexcept nogil:
    memset(access, 0, sizeof(Access))
    access.allocator = allocator
    access.free_bucket = NONE
    arena_init(&access.arena, allocator)


cdef void access_free(Access* access) noexcept nogil:
    cdef uint32_t i
    for i in range(access.column_count):
        deallocate(access.allocator, access.columns[i].ends, ENDS_SAMPLED * sizeof(uint64_t))
    deallocate(access.allocator, access.columns, access.column_capacity * sizeof(AccessColumn))
    deallocate(access.allocator, access.buckets, access.bucket_capacity * sizeof(Bag))
    table_free(access.allocator, &access.table)
    table_free(access.allocator, &access.numbers)
    arena_free(&access.arena)


# Tags

cdef uint32_t tag_of_hash(uint64_t hash) noexcept nogil:
    return <uint32_t> (hash >> 32)


cdef uint32_t tag_of_presence(uint32_t attribute) noexcept nogil:
    return tag_of_hash(hash_of(hash_secret(), attribute, 16 + KEY_PRESENT, 0))


cdef uint32_t tag_of_cell(uint32_t attribute, uint32_t cell) noexcept nogil:
    return tag_of_hash(hash_of(hash_secret(), attribute, 16 + KEY_RANGE, cell))


cdef uint32_t tag_of_affix(uint32_t attribute, uint32_t kind, const char* text, size_t size) noexcept nogil:
    return tag_of_hash(hash_of(hash_secret(), attribute, <uint8_t> (16 + kind), hash_word(hash_secret(), text, size)))


# Columns

cdef inline uint32_t _number_tag(uint32_t attribute) noexcept nogil:
    return attribute * <uint32_t> 2654435761


cdef AccessColumn* access_column(const Access* access, uint32_t attribute) noexcept nogil:
    cdef uint32_t at = table_seek(&access.numbers, _number_tag(attribute))
    return NULL if at == NONE else &access.columns[<uint32_t> access.numbers.cells[at] - 1]


cdef AccessColumn* access_make_column(Access* access, uint32_t attribute) noexcept nogil:
    """The column of an attribute; NULL: no memory."""
    cdef AccessColumn* column = access_column(access, attribute)
    cdef AccessColumn* columns
    cdef uint32_t capacity
    if column != NULL:
        return column
    if access.column_count == access.column_capacity:
        capacity = access.column_capacity + access.column_capacity // 2 + 4
        columns = <AccessColumn*> reallocate(
            access.allocator, access.columns, access.column_capacity * sizeof(AccessColumn),
            capacity * sizeof(AccessColumn),
        )
        if columns == NULL:
            return NULL
        access.columns = columns
        access.column_capacity = capacity
    if table_reserve(access.allocator, &access.numbers) < 0:
        return NULL
    column = &access.columns[access.column_count]
    memset(column, 0, sizeof(AccessColumn))
    column.attribute = attribute
    table_put(&access.numbers, _number_tag(attribute), access.column_count)
    access.column_count += 1
    return column


cdef void _drop_column(Access* access, AccessColumn* column) noexcept nogil:
    """The last one takes its position."""
    cdef uint32_t at = <uint32_t> (column - access.columns)
    cdef AccessColumn* last = &access.columns[access.column_count - 1]
    deallocate(access.allocator, column.ends, ENDS_SAMPLED * sizeof(uint64_t))
    table_drop(access.allocator, &access.numbers, _number_tag(column.attribute), at)
    access.column_count -= 1
    if column != last:
        access.numbers.cells[table_seek(&access.numbers, _number_tag(last.attribute))] = (
            <uint64_t> _number_tag(last.attribute) << 32 | (at + 1)
        )
        column[0] = last[0]


cdef void access_see(AccessColumn* column, uint64_t hash) noexcept nogil:
    column.sketch[(hash >> 6) % (SKETCH_WORDS)] |= <uint64_t> 1 << (hash & 63)


cdef double access_values(const AccessColumn* column) noexcept nogil:
    cdef uint32_t zeros = 0
    cdef uint64_t word
    cdef int i
    for i in range(SKETCH_WORDS):
        word = ~column.sketch[i]
        while word != 0:
            word &= word - 1
            zeros += 1
    return -SKETCH_BITS * log(<double> max(zeros, <uint32_t> 1) / SKETCH_BITS)


cdef uint32_t access_cell(const AccessColumn* column, uint64_t ordered) noexcept nogil:
    """0 to 63: how many bounds are not above the value."""
    cdef uint32_t at = 0
    cdef uint32_t step = CELLS // 2
    while step != 0:
        if column.ends[at + step - 1] <= ordered:
            at += step
        step //= 2
    return at


cdef bint access_has_cells(const AccessColumn* column) noexcept nogil:
    return column.sampled == ENDS_SAMPLED


cdef int access_sample(Access* access, AccessColumn* column, uint64_t end) noexcept nogil:
    """One end more, kept ascending; the last one makes the cells. -1: no memory."""
    cdef uint32_t at = column.sampled
    cdef uint32_t i
    if at == ENDS_SAMPLED:
        return 0
    if column.ends == NULL:
        column.ends = <uint64_t*> allocate(access.allocator, ENDS_SAMPLED * sizeof(uint64_t))
        if column.ends == NULL:
            return -1
    while at > 0 and column.ends[at - 1] > end:
        column.ends[at] = column.ends[at - 1]
        at -= 1
    column.ends[at] = end
    column.sampled += 1
    if column.sampled == ENDS_SAMPLED:
        for i in range(CELLS - 1):
            column.ends[i] = column.ends[(i + 1) * (ENDS_SAMPLED // CELLS)]
    return 0


# The entries of a selector

cdef uint32_t access_step_values(const Program* program, const Step* step) noexcept nogil:
    cdef const ValueList* sizes
    if step.code != TEST_IN:
        return 1
    sizes = <const ValueList*> (<const uint32_t*> program + step.low)
    return sizes.integers + sizes.floats + sizes.texts + (step.mask & IN_FALSE != 0) + (step.mask & IN_TRUE != 0)


cdef uint64_t _step_hash(const Program* program, const Step* step, uint32_t which) noexcept nogil:
    cdef const uint64_t* secret = hash_secret()
    cdef const uint32_t* units
    cdef const ValueList* sizes
    cdef int64_t integer
    cdef double real
    if step.code == TEST_INTEGER:
        return hash_integer(secret, step.attribute, step_integer(step))
    if step.code == TEST_FLOAT:
        return hash_float(secret, step.attribute, step_float(step))
    if step.code == TEST_BOOLEAN:  # which of the two is let through: FALSE is below TRUE
        return hash_boolean(secret, step.attribute, step.mask >> (2 - step.low) & 1)
    if step.code != TEST_IN:
        return hash_text(secret, step.attribute, step_text(program, step), step.high)
    units = <const uint32_t*> program + step.low
    sizes = <const ValueList*> units
    units += 3 + 2 * which
    if which < sizes.integers:
        memcpy(&integer, units, sizeof(integer))
        return hash_integer(secret, step.attribute, integer)
    if which < sizes.integers + sizes.floats:
        memcpy(&real, units, sizeof(real))
        return hash_float(secret, step.attribute, real)
    if which < sizes.integers + sizes.floats + sizes.texts:
        return hash_text(secret, step.attribute, <const char*> program + units[0], units[1])
    which -= sizes.integers + sizes.floats + sizes.texts
    return hash_boolean(secret, step.attribute, which != 0 or not step.mask & IN_FALSE)


cdef uint32_t access_step_tag(const Program* program, const Step* step, uint32_t which) noexcept nogil:
    return tag_of_hash(_step_hash(program, step, which))


cdef inline uint64_t _end(const Program* program, uint32_t at, uint64_t without) noexcept nogil:
    cdef const Step* step
    if at == NO_STEP:
        return without
    step = &program_steps(program)[at]
    return ordered_float(<double> step_integer(step) if step.code == TEST_INTEGER else step_float(step))


cdef void access_ends(const Program* program, const AccessEntry* entry, uint64_t* low, uint64_t* high) noexcept nogil:
    low[0] = _end(program, entry.step, 0)
    high[0] = _end(program, (<const AccessRange*> (entry + 1)).step, 0xFFFFFFFFFFFFFFFF)


cdef inline uint32_t _attribute(const Program* program, const AccessEntry* entry) noexcept nogil:
    if entry.kind == KEY_RANGE:
        return (<const AccessRange*> (entry + 1)).attribute
    return program_steps(program)[entry.step].attribute


cdef void access_drop(Access* access, uint32_t attribute, uint32_t tests) noexcept nogil:
    cdef AccessColumn* column = access_column(access, attribute)
    if column == NULL:
        return
    column.holders -= tests
    if column.holders == 0:
        _drop_column(access, column)


cdef int access_note(Access* access, const Program* program) noexcept nogil:
    cdef const Step* step
    cdef AccessColumn* column
    cdef uint32_t i, j
    for i in range(program.steps):
        step = &program_steps(program)[i]
        if step.code < TESTS:
            column = access_make_column(access, step.attribute)
            if column == NULL:
                return -1
            column.holders += 1
            if step.mask == MASK_EQUAL if step.code <= TEST_TEXT else step.code == TEST_IN and not step.mask & NEGATED:
                for j in range(access_step_values(program, step)):
                    access_see(column, _step_hash(program, step, j))
    return 0


cdef void access_forget(Access* access, const Program* program) noexcept nogil:
    cdef const Step* steps = program_steps(program)
    cdef uint32_t i
    for i in range(program.steps):
        if steps[i].code < TESTS:
            access_drop(access, steps[i].attribute, 1)


cdef uint32_t access_count(const Access* access, const Program* program) noexcept nogil:
    cdef const uint32_t* entries = program_entries(program)
    cdef const AccessEntry* entry
    cdef const AccessColumn* column
    cdef uint32_t at = 0
    cdef uint32_t count = 0
    cdef uint64_t low, high
    while at < program.entries:
        entry = <const AccessEntry*> &entries[at]
        if entry.kind == KEY_RANGE:
            column = access_column(access, _attribute(program, entry))
            access_ends(program, entry, &low, &high)
            count += access_cell(column, high) + 1 - access_cell(column, low)
        elif entry.kind == KEY_VALUE:
            count += access_step_values(program, &program_steps(program)[entry.step])
        else:
            count += 1
        at += access_units(entry.kind)
    return count


cdef inline void _refer(Access* access, uint32_t at, uint32_t tag, uint32_t to) noexcept nogil:
    access.table.cells[at] = <uint64_t> tag << 32 | (to + 1)


cdef int _make_bucket(Access* access) noexcept nogil:
    """Room for one more. -1: no memory."""
    cdef uint32_t capacity
    cdef Bag* buckets
    if access.free_bucket != NONE or access.bucket_count < access.bucket_capacity:
        return 0
    capacity = access.bucket_capacity + access.bucket_capacity // 4 + 8
    buckets = <Bag*> reallocate(
        access.allocator, access.buckets, access.bucket_capacity * sizeof(Bag), capacity * sizeof(Bag)
    )
    if buckets == NULL:
        return -1
    access.buckets = buckets
    access.bucket_capacity = capacity
    return 0


cdef uint32_t _take_bucket(Access* access, uint32_t slot) noexcept nogil:
    """A bucket with that slot; there is room."""
    cdef uint32_t bucket = access.free_bucket
    if bucket == NONE:
        bucket = access.bucket_count
        access.bucket_count += 1
    else:
        access.free_bucket = access.buckets[bucket].at
    bag_init(&access.buckets[bucket])
    bag_push(&access.arena, &access.buckets[bucket], slot)
    return bucket


cdef uint32_t _seek(const Access* access, const Bag* bag, uint32_t slot) noexcept nogil:
    """Where in a bucket the first is that does not come before this slot."""
    cdef const uint32_t* items
    cdef const Rank* rank
    cdef uint32_t low, high, middle
    if access.ranks == NULL:
        return bag_seek(&access.arena, bag, slot)
    items = bag_items(&access.arena, bag)
    rank = &access.ranks[slot]
    low, high = 0, bag.size
    if high != 0 and rank_before(&access.ranks[items[high - 1]], rank):
        return high  # rules mostly come in their order
    while low < high:
        middle = low + (high - low) // 2
        if rank_before(&access.ranks[items[middle]], rank):
            low = middle + 1
        else:
            high = middle
    return low


cdef int access_put_key(Access* access, uint32_t tag, uint32_t slot) noexcept nogil:
    cdef uint32_t at = table_seek(&access.table, tag)
    cdef uint32_t found, position
    cdef Bag* bag
    if at == NONE:
        if table_reserve(access.allocator, &access.table) < 0:
            return -1
        table_put(&access.table, tag, ALONE | slot)
        return 0
    found = <uint32_t> access.table.cells[at] - 1
    if found == ALONE | slot:
        return 1
    if found & ALONE:
        if _make_bucket(access) < 0:
            return -1
        found = _take_bucket(access, found & ~<uint32_t> ALONE)
        _refer(access, at, tag, found)
    bag = &access.buckets[found]
    position = _seek(access, bag, slot)
    if position < bag.size and bag_items(&access.arena, bag)[position] == slot:
        return 1
    if bag_reserve(&access.arena, bag) < 0:
        _leave_alone(access, at, tag)
        return -1
    bag_insert_at(&access.arena, bag, position, slot)
    return 0


cdef void _leave_alone(Access* access, uint32_t at, uint32_t tag) noexcept nogil:
    """No bucket for a slot that is the only one."""
    cdef uint32_t bucket = <uint32_t> access.table.cells[at] - 1
    cdef Bag* bag = &access.buckets[bucket]
    if bag.size == 1:
        _refer(access, at, tag, ALONE | bag_items(&access.arena, bag)[0])
        bag_take_out(&access.arena, bag, 0)
        bag.at = access.free_bucket
        access.free_bucket = bucket


cdef void access_take_key(Access* access, uint32_t tag, uint32_t slot) noexcept nogil:
    cdef uint32_t at = table_seek(&access.table, tag)
    cdef uint32_t found, position
    cdef Bag* bag
    if at == NONE:
        return
    found = <uint32_t> access.table.cells[at] - 1
    if found & ALONE:
        if found == ALONE | slot:
            table_drop(access.allocator, &access.table, tag, found)
        return
    bag = &access.buckets[found]
    position = _seek(access, bag, slot)
    if position < bag.size and bag_items(&access.arena, bag)[position] == slot:
        bag_remove_at(&access.arena, bag, position)
        _leave_alone(access, at, tag)


cdef void _count(AccessColumn* column, const uint32_t* units, int change) noexcept nogil:
    """One selector more, or less, under a key of this kind."""
    cdef uint32_t kind = (<const AccessEntry*> units).kind
    cdef uint64_t* affixes = &column.prefixes if kind == KEY_PREFIX else &column.suffixes
    column.keys[kind] += <uint32_t> change
    if kind >= KEY_PREFIX:
        if change > 0:
            affixes[0] |= <uint64_t> 1 << units[2]
        elif column.keys[kind] == 0:
            affixes[0] = 0


cdef int _change_key(Access* access, uint32_t tag, uint32_t slot, bint put) noexcept nogil:
    if put:
        return access_put_key(access, tag, slot)
    access_take_key(access, tag, slot)
    return 0


cdef int _change(
    Access* access, const Program* program, const uint32_t* units, uint32_t slot, uint32_t salt, bint put
) noexcept nogil:
    """Under the keys of one entry, or from under them. -1: no memory; it may be under some."""
    cdef const AccessEntry* entry = <const AccessEntry*> units
    cdef uint32_t attribute = _attribute(program, entry)
    cdef AccessColumn* column = access_column(access, attribute)
    cdef const Step* step
    cdef uint64_t low, high
    cdef uint32_t i
    cdef int done = 0
    _count(column, units, 1 if put else -1)
    if entry.kind == KEY_RANGE:
        access_ends(program, entry, &low, &high)
        for i in range(access_cell(column, low), access_cell(column, high) + 1):
            done |= _change_key(access, tag_of_cell(attribute, i) ^ salt, slot, put)
        return done
    if entry.kind == KEY_PRESENT:
        return _change_key(access, tag_of_presence(attribute) ^ salt, slot, put)
    if entry.kind >= KEY_PREFIX:
        return _change_key(access, units[1] ^ salt, slot, put)
    step = &program_steps(program)[entry.step]
    for i in range(access_step_values(program, step)):
        done |= _change_key(access, access_step_tag(program, step, i) ^ salt, slot, put)
    return done


cdef int access_put(Access* access, const Program* program, uint32_t slot, uint32_t salt) noexcept nogil:
    cdef const uint32_t* entries = program_entries(program)
    cdef uint32_t at = 0
    cdef uint32_t taken = 0
    cdef int done = 0
    while at < program.entries and done >= 0:
        done = _change(access, program, &entries[at], slot, salt, True)
        at += access_units((<const AccessEntry*> &entries[at]).kind)
    if done < 0:
        while taken < at:
            _change(access, program, &entries[taken], slot, salt, False)
            taken += access_units((<const AccessEntry*> &entries[taken]).kind)
        return -1
    return 0


cdef void access_take(Access* access, const Program* program, uint32_t slot, uint32_t salt) noexcept nogil:
    cdef const uint32_t* entries = program_entries(program)
    cdef uint32_t at = 0
    while at < program.entries:
        _change(access, program, &entries[at], slot, salt, False)
        at += access_units((<const AccessEntry*> &entries[at]).kind)


cdef uint32_t access_find(const Access* access, uint32_t tag) noexcept nogil:
    cdef uint32_t at = table_seek(&access.table, tag)
    return NONE if at == NONE else <uint32_t> access.table.cells[at] - 1


cdef void access_tidy(Access* access) noexcept nogil:
    """All bags into a new arena, when more than half as much is free as is in use (arena.pxd)."""
    cdef Arena made
    cdef uint32_t i
    if not arena_is_sparse(&access.arena):
        return
    if arena_like(&made, &access.arena) < 0:
        return  # without memory for it the holes stay
    for i in range(access.bucket_count):
        bag_move(&access.arena, &made, &access.buckets[i])
    arena_free(&access.arena)
    access.arena = made
