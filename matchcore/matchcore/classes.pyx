# cython: language_level=3, cdivision=True
"""The class bitmap and the counts of literals: columns are classes of filters. Drawn in classes.pxd.

Here it changes; a match reads it in probe.pyx.
"""

from libc.string cimport memcpy, memmove, memset

from matchcore.allocator cimport deallocate, allocate_zeros
from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_rounded,
    arena_shrink, arena_take,
)
from matchcore.hashing cimport fold, hash_multipliers, hash_secret, store64
from matchcore.positions cimport length_row
from matchcore.table cimport NONE, table_drop, table_free, table_put, table_reserve_many, table_seek

cdef const uint64_t* secret = hash_secret()


cdef void classes_init(Classes* classes, Allocator* allocator, Words* words) noexcept nogil:
    memset(classes, 0, sizeof(Classes))
    classes.allocator = allocator
    classes.words = words
    classes.multipliers = hash_multipliers()
    classes.width = 1
    arena_init(&classes.rows, allocator)


cdef void classes_free(Classes* classes) noexcept nogil:
    _free_bitmap(classes)
    arena_free(&classes.rows)
    table_free(classes.allocator, &classes.shared)


cdef void _free_bitmap(Classes* classes) noexcept nogil:
    cdef size_t width = classes.width
    deallocate(classes.allocator, classes.classes, width * 64 * sizeof(Class))
    deallocate(classes.allocator, classes.free_rows, width * POSITIONS * sizeof(uint64_t))
    deallocate(classes.allocator, classes.lengths, width * LENGTHS * sizeof(uint64_t))
    deallocate(classes.allocator, classes.likely, width * sizeof(uint64_t))
    classes.classes = NULL
    classes.free_rows = classes.lengths = classes.likely = NULL
    classes.count = classes.live = 0
    classes.used = 0


# ---- literals: how often, and where --------------------------------------------------------------

cdef inline uint32_t _places(const Classes* classes, uint32_t word) noexcept nogil:
    return <uint32_t> count_positions(classes.words.entries[word].positions & ((<uint64_t> 1 << POSITIONS) - 1))


cdef int classes_count(Classes* classes, uint32_t word, int position) noexcept nogil:
    cdef uint64_t bit = <uint64_t> 1 << position
    cdef uint32_t wide = 2 * classes.width
    cdef uint32_t n = _places(classes, word)
    cdef uint32_t rank = <uint32_t> count_positions(classes.words.entries[word].positions & (bit - 1))
    cdef uint32_t old = classes.words.entries[word].rows
    cdef uint32_t made
    cdef uint32_t* units
    cdef uint32_t* source
    if classes.words.entries[word].positions & bit:
        classes.rows.units[old + n * wide + rank] += 1
        classes.totals[position] += 1
        return 0
    if arena_reserve(&classes.rows, (n + 1) * (wide + 1)) < 0:
        return -1
    made = arena_take(&classes.rows, (n + 1) * (wide + 1))
    units = &classes.rows.units[made]
    source = &classes.rows.units[old]
    memset(&units[rank * wide], 0, wide * sizeof(uint32_t))
    units[(n + 1) * wide + rank] = 1
    if n != 0:
        memcpy(units, source, rank * wide * sizeof(uint32_t))
        memcpy(&units[(rank + 1) * wide], &source[rank * wide], (n - rank) * wide * sizeof(uint32_t))
        memcpy(&units[(n + 1) * wide], &source[n * wide], rank * sizeof(uint32_t))
        memcpy(&units[(n + 1) * wide + rank + 1], &source[n * wide + rank], (n - rank) * sizeof(uint32_t))
        arena_give_back(&classes.rows, old, n * (wide + 1))
    classes.words.entries[word].positions |= bit
    classes.words.entries[word].rows = made
    classes.totals[position] += 1
    _pack_if_sparse(classes)
    return 0


cdef void classes_uncount(Classes* classes, uint32_t word, int position) noexcept nogil:
    cdef uint64_t bit = <uint64_t> 1 << position
    cdef uint32_t wide = 2 * classes.width
    cdef uint32_t n = _places(classes, word)
    cdef uint32_t rank = <uint32_t> count_positions(classes.words.entries[word].positions & (bit - 1))
    cdef uint32_t rows = classes.words.entries[word].rows
    cdef uint32_t* units = &classes.rows.units[rows]
    classes.totals[position] -= 1
    units[n * wide + rank] -= 1
    if units[n * wide + rank] != 0:
        return
    # Its row goes, whatever bits it still has: no filter has the literal there.
    memmove(&units[rank * wide], &units[(rank + 1) * wide],
            ((n - rank - 1) * wide + rank) * sizeof(uint32_t))
    memmove(&units[(n - 1) * wide + rank], &units[n * wide + rank + 1], (n - rank - 1) * sizeof(uint32_t))
    classes.words.entries[word].positions &= ~bit
    if n == 1:
        arena_give_back(&classes.rows, rows, wide + 1)
    else:
        arena_shrink(&classes.rows, rows, n * (wide + 1), (n - 1) * (wide + 1))
    _pack_if_sparse(classes)


cdef void _pack_if_sparse(Classes* classes) noexcept nogil:
    if arena_is_sparse(&classes.rows):
        _pack(classes, classes.width)  # without memory for it the holes stay


cdef int _pack(Classes* classes, uint32_t width) noexcept nogil:
    """All rows into a new arena, each `width` words wide."""
    cdef Arena made
    cdef uint32_t id, n, i, rows, size
    cdef uint32_t* into
    cdef uint32_t* source
    cdef uint32_t old = classes.width
    if width == old:
        if arena_like(&made, &classes.rows) < 0:
            return -1
    else:
        arena_init(&made, classes.allocator)
    for id in range(1, classes.words.count):
        n = _places(classes, id) if classes.words.entries[id].refs != 0 else 0
        if n == 0:
            continue
        size = n * (2 * width + 1)
        if arena_reserve(&made, size) < 0:
            arena_free(&made)
            return -1
        rows = arena_take(&made, size)
        into = &made.units[rows]
        source = &classes.rows.units[classes.words.entries[id].rows]
        memset(into, 0, size * sizeof(uint32_t))
        for i in range(n):
            memcpy(&into[i * 2 * width], &source[i * 2 * old], 2 * old * sizeof(uint32_t))
        memcpy(&into[n * 2 * width], &source[n * 2 * old], n * sizeof(uint32_t))
    # Only now, when nothing can fail: the same numbers again, for they are given out in order.
    rows = 0
    for id in range(1, classes.words.count):
        n = _places(classes, id) if classes.words.entries[id].refs != 0 else 0
        if n != 0:
            classes.words.entries[id].rows = rows
            rows += arena_rounded(n * (2 * width + 1))
    arena_free(&classes.rows)
    classes.rows = made
    return 0


# ---- classes ---------------------------------------------------------------------------------------

cdef uint32_t classes_find(const Classes* classes, uint64_t positions) noexcept nogil:
    cdef uint32_t c
    for c in range(classes.count):
        if classes.classes[c].positions == positions and classes.classes[c].buckets != 0:
            return c
    return NONE


cdef inline void _set(uint64_t* row, uint32_t c) noexcept nogil:
    row[c // 64] |= <uint64_t> 1 << (c % 64)


cdef inline void _clear(uint64_t* row, uint32_t c) noexcept nogil:
    row[c // 64] &= ~(<uint64_t> 1 << (c % 64))


cdef int _widen(Classes* classes, uint32_t width) noexcept nogil:
    """Rows of `width` words, and as many classes as they have bits; from NULL too."""
    cdef Classes wider = classes[0]
    cdef uint32_t i
    cdef uint32_t old = classes.width
    cdef bint had = classes.classes != NULL
    cdef Class* made = <Class*> allocate_zeros(classes.allocator, <size_t> width * 64 * sizeof(Class))
    wider.free_rows = <uint64_t*> allocate_zeros(classes.allocator, <size_t> width * POSITIONS * sizeof(uint64_t))
    wider.lengths = <uint64_t*> allocate_zeros(classes.allocator, <size_t> width * LENGTHS * sizeof(uint64_t))
    wider.likely = <uint64_t*> allocate_zeros(classes.allocator, <size_t> width * sizeof(uint64_t))
    wider.classes = made
    wider.width = width
    if (
        made == NULL or wider.free_rows == NULL or wider.lengths == NULL or wider.likely == NULL
        or (width != old and _pack(classes, width) < 0)
    ):
        _free_bitmap(&wider)
        return -1
    wider.rows = classes.rows
    if had:
        memcpy(made, classes.classes, old * 64 * sizeof(Class))
        for i in range(POSITIONS):
            memcpy(&wider.free_rows[i * width], &classes.free_rows[i * old], old * sizeof(uint64_t))
        for i in range(LENGTHS):
            memcpy(&wider.lengths[i * width], &classes.lengths[i * old], old * sizeof(uint64_t))
        _free_bitmap(classes)
    classes[0] = wider
    return 0


cdef uint32_t classes_make(Classes* classes, uint64_t positions) noexcept nogil:
    cdef uint32_t c = classes_find(classes, positions)
    cdef uint32_t i
    cdef Class* made
    if c != NONE:
        return c
    c = 0
    while c < classes.count and classes.classes[c].buckets != 0:
        c += 1
    if c == CLASSES_AT_MOST:
        return NONE
    if classes.classes == NULL or c >= classes.width * 64:
        if _widen(classes, classes.width if classes.classes == NULL else classes.width * 2) < 0:
            return NONE
    made = &classes.classes[c]
    memset(made, 0, sizeof(Class))
    class_spell(made, positions)
    for i in range(POSITIONS):
        if (positions >> i) & 1:
            _clear(&classes.free_rows[i * classes.width], c)
        else:
            _set(&classes.free_rows[i * classes.width], c)
    for i in range(LENGTHS):
        _clear(&classes.lengths[i * classes.width], c)
    classes.used |= positions
    if c == classes.count:
        classes.count += 1
    return c


cdef void classes_forget_if_empty(Classes* classes, uint32_t c) noexcept nogil:
    cdef uint32_t i
    if classes.classes[c].buckets != 0:
        return
    classes.classes[c].positions = 0
    _clear(classes.likely, c)
    while classes.count != 0 and classes.classes[classes.count - 1].buckets == 0:
        classes.count -= 1
    classes.used = 0
    for i in range(classes.count):
        classes.used |= classes.classes[i].positions
    if classes.count == 0:
        _free_bitmap(classes)
        table_free(classes.allocator, &classes.shared)


# ---- buckets and records -----------------------------------------------------------------------------

cdef inline uint32_t _shared_tag(uint32_t word, uint32_t position, uint32_t c) noexcept nogil:
    return <uint32_t> (fold(
        (<uint64_t> word << 32 | position << 16 | c) ^ secret[2], secret[0]
    ) >> 32)


cdef int classes_reserve(Classes* classes, uint32_t literals) noexcept nogil:
    if literals < 2:
        return 0
    return table_reserve_many(classes.allocator, &classes.shared, literals)


cdef inline void _flip(Classes* classes, uint32_t word, uint32_t position, uint32_t c, bint on) noexcept nogil:
    cdef uint64_t positions = classes.words.entries[word].positions
    cdef uint64_t bit = <uint64_t> 1 << position
    cdef uint32_t* at
    cdef uint64_t bits
    if not positions & bit:
        return
    at = &classes.rows.units[
        classes.words.entries[word].rows
        + 2 * (classes.width * <uint32_t> count_positions(positions & (bit - 1)) + c // 64)
    ]
    bits = load64(at)
    if on:
        bits |= <uint64_t> 1 << (c % 64)
    else:
        bits &= ~(<uint64_t> 1 << (c % 64))
    store64(at, bits)


cdef void classes_bind(Classes* classes, uint32_t c, const uint32_t* ids) noexcept nogil:
    cdef Class* entry = &classes.classes[c]
    cdef uint32_t i, tag, at
    if entry.buckets == 0:
        classes.live += 1
    entry.buckets += 1
    for i in range(entry.literals):
        _flip(classes, ids[i], entry.position[i], c, True)
        if entry.literals > 1:
            tag = _shared_tag(ids[i], entry.position[i], c)
            at = table_seek(&classes.shared, tag)
            if at == NONE:
                table_put(&classes.shared, tag, 0)
            else:
                classes.shared.cells[at] += 1


cdef void classes_unbind(Classes* classes, uint32_t c, const uint32_t* ids) noexcept nogil:
    cdef Class* entry = &classes.classes[c]
    cdef uint32_t i, tag, at
    entry.buckets -= 1
    for i in range(entry.literals):
        if entry.literals > 1:
            tag = _shared_tag(ids[i], entry.position[i], c)
            at = table_seek(&classes.shared, tag)
            if <uint32_t> classes.shared.cells[at] != 1:
                classes.shared.cells[at] -= 1
                continue
            table_drop(classes.allocator, &classes.shared, tag, 0)
        _flip(classes, ids[i], entry.position[i], c, False)
    if entry.buckets == 0:
        classes.live -= 1
        classes_forget_if_empty(classes, c)


cdef void classes_record(Classes* classes, uint32_t c, uint32_t least, bint many, int by) noexcept nogil:
    cdef Class* entry = &classes.classes[c]
    cdef uint32_t n = length_row(least)
    cdef uint32_t open = 0
    cdef uint32_t i
    if many:
        entry.at_least[n] += by
        if entry.at_least[n] > 1 or (entry.at_least[n] == 1 and by < 0):
            return
    else:
        entry.exactly[n] += by
        if entry.exactly[n] > 1 or (entry.exactly[n] == 1 and by < 0):
            return
    for i in range(LENGTHS):
        open += entry.at_least[i]
        if open != 0 or entry.exactly[i] != 0:
            _set(&classes.lengths[i * classes.width], c)
        else:
            _clear(&classes.lengths[i * classes.width], c)


cdef void classes_hit(Classes* classes, uint32_t c) noexcept nogil:
    """The likely ones are those above the mean; now and then all hits are halved, so that it may change."""
    cdef uint64_t all = 0
    cdef uint32_t i
    classes.classes[c].hits += 1
    if classes.classes[c].hits & 255:
        return
    for i in range(classes.count):
        all += classes.classes[i].hits
    for i in range(classes.count):
        if classes.classes[i].buckets != 0 and <uint64_t> classes.classes[i].hits * classes.count > all:
            _set(classes.likely, i)
        else:
            _clear(classes.likely, i)
        if all > 1 << 16:
            classes.classes[i].hits //= 2
