# cython: language_level=3, cdivision=True
"""The buckets: adding, removing, splitting. Drawn in buckets.pxd; a match reads them in probe.pyx.

All or nothing: an addition makes sure of its memory first. A split that finds none stops where it is: what
it has moved is well where it is, and so is what it has not.
"""

from libc.string cimport memcpy, memmove, memset

from matchcore.allocator cimport deallocate, allocate, prefetch
from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_rounded,
    arena_shrink, arena_take,
)
from matchcore.classes cimport (
    classes_bind, classes_find, classes_forget_if_empty, classes_make, classes_record, classes_reserve,
    classes_unbind,
)
from matchcore.keys cimport key_of, key_of_class, key_tag, pattern_depth, pattern_of, pattern_sort
from matchcore.line_table cimport (
    LINE_ENTRIES, Line, LineTable, entries_of, first_entry, line_after, line_home, line_table_drop, line_table_free,
    line_table_put, line_table_replace, line_table_reserve,
)
from matchcore.positions cimport HAS_MANY, NO_DOLLAR, TO_VERIFY, TOKEN_WILD
from matchcore.table cimport NONE, table_free, table_put, table_reserve, table_seek
from matchcore.topic cimport bloom_bit

cdef enum:
    AHEAD = 3            # lines of the table whose buckets are asked for ahead of time


cdef void buckets_init(Buckets* buckets, Allocator* allocator, Classes* classes, Slots* slots) noexcept nogil:
    memset(buckets, 0, sizeof(Buckets))
    buckets.allocator = allocator
    buckets.classes = classes
    buckets.slots = slots
    buckets.most = SPLIT
    arena_init(&buckets.arena, allocator)


cdef void buckets_free(Buckets* buckets) noexcept nogil:
    arena_free(&buckets.arena)
    line_table_free(buckets.allocator, &buckets.table)
    table_free(buckets.allocator, &buckets.split)


cdef inline bint _is_of(const Buckets* buckets, uint32_t block, const Key* key) noexcept nogil:
    cdef const uint32_t* units = &buckets.arena.units[block]
    cdef uint32_t i
    if buckets.classes.classes[bucket_class(units[0])].positions != key.positions:
        return False
    for i in range(key.literals):
        if units[1 + i] != key.ids[i]:
            return False
    return True


cdef uint32_t _find(const Buckets* buckets, const Key* key) noexcept nogil:
    """The block of the bucket with this key, or NONE."""
    cdef const LineTable* table = &buckets.table
    cdef uint32_t home, at, found, block
    if table.count == 0:
        return NONE
    at = home = line_home(table, key.tag)
    while True:
        found = entries_of(&table.lines[at], key.tag)
        while found != 0:
            block = table.lines[at].refs[first_entry(found)]
            if _is_of(buckets, block, key):
                return block
            found &= found - 1
        if table.lines[at].passed == 0:
            return NONE
        at = line_after(table, at)
        if at == home:
            return NONE  # every line passed something on once: see line_table.pxd


# ---- records ---------------------------------------------------------------------------------------

cdef inline uint32_t _residuals(const Pattern* pattern, uint64_t positions) noexcept nogil:
    cdef uint32_t n = 0
    cdef uint32_t i
    for i in range(pattern.literals):
        if not (positions >> pattern.position[i]) & 1:
            n += 1
    return n


cdef inline uint32_t _record_size(const Pattern* pattern, uint64_t positions) noexcept nogil:
    cdef uint32_t n
    if pattern.flags & TO_VERIFY:
        return VERIFIED_UNITS + pattern.count
    n = _residuals(pattern, positions)
    return 2 + n + (0 if n <= 2 else (n + 3) // 4)


cdef void _write(uint32_t* record, const Pattern* pattern, uint64_t positions) noexcept nogil:
    cdef uint32_t head = pattern.least << LEAST_SHIFT
    cdef uint32_t n = 0
    cdef uint32_t i
    cdef unsigned char* bytes
    cdef uint32_t* start = record
    record[0] = pattern.slot
    if pattern.flags & HAS_MANY:
        head |= RECORD_MANY
    if pattern.flags & NO_DOLLAR:
        head |= RECORD_NO_DOLLAR
    if pattern.flags & TO_VERIFY:
        record[1] = head | RECORD_VERIFY
        record[2] = pattern.count | pattern.prefix << 16
        record[3] = pattern.suffix
        record[4] = 0
        for i in range(pattern.count):
            if pattern.tokens[i] < TOKEN_WILD:
                record[4] |= bloom_bit(pattern.tokens[i])
        memcpy(&record[VERIFIED_UNITS], pattern.tokens, pattern.count * sizeof(uint32_t))
        return
    n = _residuals(pattern, positions)
    head |= n
    bytes = <unsigned char*> &record[2]
    record += 2
    if n > 2:
        memset(bytes, 0, (n + 3) // 4 * 4)
        record += (n + 3) // 4
    n = 0
    for i in range(pattern.literals):
        if (positions >> pattern.position[i]) & 1:
            continue
        record[n] = pattern.ids[i]
        if (head & RESIDUALS) > 2:
            bytes[n] = pattern.position[i]
        else:
            head |= <uint32_t> pattern.position[i] << (POSITION_SHIFT + 6 * n)
        n += 1
    start[1] = head


cdef void _read(Pattern* pattern, const Buckets* buckets, const Key* key, const uint32_t* record) noexcept nogil:
    """The pattern of a record that is not verified word by word, its literals by how rare they are now."""
    cdef uint32_t n = record[1] & RESIDUALS
    cdef const unsigned char* bytes = <const unsigned char*> &record[2]
    cdef uint32_t i
    pattern.slot = record[0]
    pattern.flags = (HAS_MANY if record[1] & RECORD_MANY else 0)
    pattern.flags |= (NO_DOLLAR if record[1] & RECORD_NO_DOLLAR else 0)
    pattern.least = (record[1] >> LEAST_SHIFT) & LEAST_BITS
    pattern.literals = pattern.anchored = key.literals + n
    pattern.tokens = NULL
    pattern.count = pattern.prefix = pattern.suffix = 0
    for i in range(key.literals):
        pattern.position[i] = key.position[i]
        pattern.ids[i] = key.ids[i]
    for i in range(n):
        if n > 2:
            pattern.position[key.literals + i] = bytes[i]
            pattern.ids[key.literals + i] = record[2 + (n + 3) // 4 + i]
        else:
            pattern.position[key.literals + i] = (record[1] >> (POSITION_SHIFT + 6 * i)) & 63
            pattern.ids[key.literals + i] = record[2 + i]
    pattern_sort(pattern, buckets.classes)


# ---- adding ----------------------------------------------------------------------------------------

cdef int _append(Buckets* buckets, const Key* key, const Pattern* pattern, uint32_t classes_most) noexcept nogil:
    """The record into the bucket of this key, which is made if need be."""
    cdef uint32_t size = _record_size(pattern, key.positions)
    cdef uint32_t block = _find(buckets, key)
    cdef uint32_t c, used, made, head
    cdef uint32_t* units
    if block == NONE:
        c = classes_find(buckets.classes, key.positions)
        if c == NONE:
            if buckets.classes.live >= classes_most:
                return NO_ROOM
            c = classes_make(buckets.classes, key.positions)
            if c == NONE:
                return NO_MEMORY
        used = 1 + key.literals
        if (
            line_table_reserve(buckets.allocator, &buckets.table) < 0
            or classes_reserve(buckets.classes, key.literals) < 0
            or arena_reserve(&buckets.arena, used + size) < 0
        ):
            classes_forget_if_empty(buckets.classes, c)
            return NO_MEMORY
        block = arena_take(&buckets.arena, used + size)
        units = &buckets.arena.units[block]
        memcpy(&units[1], key.ids, key.literals * sizeof(uint32_t))
        units[0] = c | 1 << RECORDS_SHIFT | (used + size) << UNITS_SHIFT
        line_table_put(&buckets.table, key.tag, block)
        classes_bind(buckets.classes, c, key.ids)
        buckets.live += 1
    else:
        head = buckets.arena.units[block]
        c = bucket_class(head)
        used = bucket_units(head)
        if used + size > UNITS_AT_MOST or bucket_records(head) >= 127:
            return NO_ROOM
        if arena_rounded(used + size) != arena_rounded(used):
            if arena_reserve(&buckets.arena, used + size) < 0:
                return NO_MEMORY
            made = arena_take(&buckets.arena, used + size)
            memcpy(&buckets.arena.units[made], &buckets.arena.units[block], used * sizeof(uint32_t))
            line_table_replace(&buckets.table, key.tag, block, made)
            arena_give_back(&buckets.arena, block, used)
            block = made
        units = &buckets.arena.units[block]
        units[0] = c | (bucket_records(head) + 1) << RECORDS_SHIFT | (used + size) << UNITS_SHIFT
    _write(&units[used], pattern, key.positions)
    classes_record(buckets.classes, c, pattern.least, pattern.flags & HAS_MANY, 1)
    buckets.slots.entries[pattern.slot].tier = <unsigned short> c
    buckets.records += 1
    return ADDED


cdef int buckets_add(Buckets* buckets, Pattern* pattern, uint32_t literals, uint32_t classes_most) noexcept nogil:
    cdef uint32_t depth = pattern_depth(pattern)
    cdef uint32_t block
    cdef Key key
    if literals > depth:
        literals = depth
    while True:
        key_of(&key, pattern, literals, buckets.classes.multipliers)
        if literals < depth:
            if table_seek(&buckets.split, key.tag) != NONE:
                literals += 1
                continue
            block = _find(buckets, &key)
            if block != NONE and bucket_records(buckets.arena.units[block]) >= buckets.most:
                if _split(buckets, &key, classes_most) < 0:
                    return NO_MEMORY
                literals += 1
                continue
        else:
            block = _find(buckets, &key)
            if block != NONE and bucket_records(buckets.arena.units[block]) >= RECORDS_AT_MOST:
                return NO_ROOM
        return _append(buckets, &key, pattern, classes_most)


cdef int _split(Buckets* buckets, const Key* key, uint32_t classes_most) noexcept nogil:
    """Takes those out of the bucket that have another literal for their key, and remembers that it was split."""
    cdef Pattern pattern
    cdef Key again = key[0]
    cdef uint32_t at = 1 + key.literals
    cdef uint32_t block, size, count
    cdef uint32_t* tokens = NULL
    cdef const uint32_t* record
    cdef int status
    if table_reserve(buckets.allocator, &buckets.split) < 0:
        return NO_MEMORY
    table_put(&buckets.split, key.tag, 0)
    while True:
        # Found anew each time: an addition may have moved it.
        block = _find(buckets, &again)
        if block == NONE or at >= bucket_units(buckets.arena.units[block]):
            return 0
        record = &buckets.arena.units[block + at]
        count = 0
        if record[1] & RECORD_VERIFY:
            count = record[2] & 0xFFFF
            tokens = <uint32_t*> allocate(buckets.allocator, count * sizeof(uint32_t))
            if tokens == NULL:
                return NO_MEMORY
            memcpy(tokens, &record[VERIFIED_UNITS], count * sizeof(uint32_t))
            pattern_of(
                &pattern, buckets.classes, record[0], tokens, count,
                NO_DOLLAR if record[1] & RECORD_NO_DOLLAR else 0,
            )
        else:
            _read(&pattern, buckets, key, record)
        size = record_units(record)
        status = NO_ROOM
        if pattern_depth(&pattern) > key.literals:
            status = buckets_add(buckets, &pattern, key.literals + 1, classes_most)
        if count != 0:
            deallocate(buckets.allocator, tokens, count * sizeof(uint32_t))
        if status == ADDED:
            block = _find(buckets, &again)
            _cut(buckets, &again, block, at, size, &pattern)
        elif status == NO_MEMORY:
            return NO_MEMORY
        else:
            at += size  # it stays


# ---- removing --------------------------------------------------------------------------------------

cdef void _cut(
    Buckets* buckets, const Key* key, uint32_t block, uint32_t at, uint32_t size, const Pattern* pattern
) noexcept nogil:
    """Takes the record at `at` out of the bucket, and the bucket away with its last record."""
    cdef uint32_t* units = &buckets.arena.units[block]
    cdef uint32_t head = units[0]
    cdef uint32_t used = bucket_units(head)
    cdef uint32_t c = bucket_class(head)
    buckets.records -= 1
    classes_record(buckets.classes, c, pattern.least, pattern.flags & HAS_MANY, -1)
    if bucket_records(head) == 1:
        line_table_drop(buckets.allocator, &buckets.table, key.tag, block)
        arena_give_back(&buckets.arena, block, used)
        buckets.live -= 1
        classes_unbind(buckets.classes, c, key.ids)
        if buckets.live == 0:
            buckets_free(buckets)
    else:
        memmove(&units[at], &units[at + size], (used - at - size) * sizeof(uint32_t))
        units[0] = c | (bucket_records(head) - 1) << RECORDS_SHIFT | (used - size) << UNITS_SHIFT
        if arena_rounded(used) != arena_rounded(used - size):
            arena_shrink(&buckets.arena, block, used, used - size)


cdef void _pack(Buckets* buckets) noexcept nogil:
    """All buckets into a new arena; without memory for it the holes stay."""
    cdef Arena made
    cdef size_t i
    cdef int j
    cdef uint32_t block, used
    cdef Line* line
    if arena_like(&made, &buckets.arena) < 0:
        return
    for i in range(buckets.table.count):
        if i + AHEAD < buckets.table.count:
            line = &buckets.table.lines[i + AHEAD]
            for j in range(LINE_ENTRIES):  # in no order, each a miss; an empty entry has an old one or 0: no harm
                prefetch(&buckets.arena.units[line.refs[j]])
                prefetch(&buckets.arena.units[line.refs[j] + 12])
        line = &buckets.table.lines[i]
        for j in range(LINE_ENTRIES):
            if line.tags[j] == 0:
                continue
            used = bucket_units(buckets.arena.units[line.refs[j]])
            block = arena_take(&made, used)
            memcpy(&made.units[block], &buckets.arena.units[line.refs[j]], used * sizeof(uint32_t))
            line.refs[j] = block
    arena_free(&buckets.arena)
    buckets.arena = made


cdef uint32_t _record_of(const Buckets* buckets, const Key* key, uint32_t slot, uint32_t* block) noexcept nogil:
    """Where in the bucket of this key the record of `slot` begins; 0: it is not there."""
    cdef uint32_t at = 1 + key.literals
    cdef const uint32_t* units
    block[0] = _find(buckets, key)
    if block[0] == NONE:
        return 0
    units = &buckets.arena.units[block[0]]
    while at < bucket_units(units[0]):
        if units[at] == slot:
            return at
        at += record_units(&units[at])
    return 0


cdef uint32_t buckets_locate(
    const Buckets* buckets, const Pattern* pattern, uint32_t c, Key* key, uint32_t* block
) noexcept nogil:
    cdef uint32_t i, at
    key_of_class(key, pattern, &buckets.classes.classes[c])
    if not buckets.classes.classes[c].any:
        key_tag(key, buckets.classes.multipliers)
        return _record_of(buckets, key, pattern.slot, block)
    # Which of the literals between MANYs is in the key was decided by what was rare then.
    for i in range(pattern.prefix, pattern.count - pattern.suffix):
        if pattern.tokens[i] < TOKEN_WILD:
            key.ids[key.literals - 1] = pattern.tokens[i]
            key_tag(key, buckets.classes.multipliers)
            at = _record_of(buckets, key, pattern.slot, block)
            if at != 0:
                return at
    return 0


cdef void buckets_remove(Buckets* buckets, const Pattern* pattern, uint32_t c) noexcept nogil:
    cdef Key key
    cdef uint32_t block
    cdef uint32_t at = buckets_locate(buckets, pattern, c, &key, &block)
    _cut(buckets, &key, block, at, record_units(&buckets.arena.units[block + at]), pattern)


cdef void buckets_tidy(Buckets* buckets) noexcept nogil:
    if arena_is_sparse(&buckets.arena):
        _pack(buckets)
    if buckets.split.used > buckets.live + 1024:
        table_free(buckets.allocator, &buckets.split)  # hints of times gone by
