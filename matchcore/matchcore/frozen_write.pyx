# cython: language_level=3, cdivision=True
"""Copying an index into the bytes of a FrozenIndex: frozen_layout.pxd draws them.

Every array as it is: nothing in them is an address, so a memcpy each. Only the pool's rows are gathered one by one,
and the buckets' blocks noted; both are read in order. What must be made anew is left to frozen_finish.pyx.

Slots, words and blocks keep their numbers: no record is rewritten, and holes are copied along (an arena packs
itself before they are half of it).
"""

from libc.string cimport memcpy, memset

from matchcore.allocator cimport deallocate, allocate, allocate_zeros
from matchcore.bag cimport Bag
from matchcore.bitmap cimport Block, Row
from matchcore.frozen_layout cimport (
    ALIGNED, BUCKETS, BYTE_ORDER, CLASS_IN_USE, CLASS_POSITIONS, COLUMNS, EXACT_TABLE, FORMAT,
    FORMAT_SELECTORS, FREE_ROWS, IDS,
    IDS_OF_LISTS, LENGTH_ROWS, LIKELY, LINES, LISTS, LONG_WORDS, PoolRow, PoolWord, ROW_BLOCKS, ROW_FREE_ANY,
    ROW_NO_DOLLAR, ROW_NUMBERS, ROW_WORDS, ROWS, ROWS_FIXED, ROWS_FREE_LEFT, ROWS_FREE_RIGHT, ROWS_LENGTHS, SECTIONS,
    SLOTS, TEXTS, TOKENS, WORD_ENTRIES, WORD_ROWS, WORD_TABLE, section_items,
)
from matchcore.line_table cimport LINE_ENTRIES, Line, LineTable
from matchcore.pool cimport Column, Pool
from matchcore.positions cimport LENGTHS, POSITIONS, count_positions
from matchcore.slots cimport Slot
from matchcore.words cimport Word

cdef enum:
    A_LINE_FOR = 4       # buckets, of seven positions: few lines pass anything on


# ---- sizes -----------------------------------------------------------------------------------------

cdef uint64_t _cells(uint32_t used) noexcept nogil:
    """The size of a table (table.pxd) for this number of entries."""
    cdef uint64_t cells = 8
    if used == 0:
        return 0
    while <uint64_t> used * 8 > cells * 5:
        cells *= 2
    return cells


cdef void _count_rows(const Pool* pool, uint64_t* words, uint64_t* rows, uint64_t* blocks) noexcept nogil:
    cdef const Row* row
    cdef uint32_t i
    cdef int j
    for i in range(pool.word_capacity):
        if pool.word_rows[i].positions != 0:
            words[0] += 1
            for j in range(count_positions(pool.word_rows[i].positions)):
                rows[0] += 1
                blocks[0] += pool.word_rows[i].rows[j].size
    for i in range(ROWS_FIXED):
        row = _fixed_row(pool, i)
        rows[0] += 1
        blocks[0] += row.size


cdef const Row* _fixed_row(const Pool* pool, uint32_t i) noexcept nogil:
    if i < ROWS_FREE_RIGHT:
        return &pool.free_left[i - ROWS_FREE_LEFT]
    if i < ROWS_LENGTHS:
        return &pool.free_right[i - ROWS_FREE_RIGHT]
    if i < ROW_FREE_ANY:
        return &pool.lengths[i - ROWS_LENGTHS]
    if i == ROW_FREE_ANY:
        return &pool.free_any
    return &pool.no_dollar if i == ROW_NO_DOLLAR else &pool.live


cdef size_t _lay_out(const Draft* draft, Header* header) noexcept nogil:
    """Fills in the sections; the size of all."""
    cdef const Slots* slots = draft.slots
    cdef const Tiers* tiers = draft.tiers
    cdef uint64_t[SECTIONS] sizes
    cdef uint64_t words = 0
    cdef uint64_t rows = 0
    cdef uint64_t blocks = 0
    cdef uint64_t at = sizeof(Header)
    cdef int i
    cdef bint pooled = tiers.pool.live.bits != 0
    cdef bint bucketed = tiers.buckets.live != 0
    memset(sizes, 0, sizeof(sizes))
    if tiers.words.live != 0:
        sizes[WORD_ENTRIES] = tiers.words.count * <uint64_t> sizeof(Word)
        sizes[LONG_WORDS] = tiers.words.long.top * <uint64_t> 4
        sizes[WORD_TABLE] = _cells(tiers.words.live) * 8
        sizes[WORD_ROWS] = tiers.classes.rows.top * <uint64_t> 4
    if bucketed:
        sizes[CLASS_POSITIONS] = tiers.classes.count * <uint64_t> 8
        sizes[FREE_ROWS] = tiers.classes.width * <uint64_t> POSITIONS * 8
        sizes[LENGTH_ROWS] = tiers.classes.width * <uint64_t> LENGTHS * 8
        sizes[LIKELY] = tiers.classes.width * <uint64_t> 8
        sizes[LINES] = (tiers.buckets.live // A_LINE_FOR + 1) * <uint64_t> sizeof(Line)
        sizes[BUCKETS] = tiers.buckets.arena.top * <uint64_t> 4
    if slots.live != 0:
        sizes[SLOTS] = slots.count * <uint64_t> sizeof(Slot)
        sizes[IDS] = slots.count * <uint64_t> 4
        sizes[LISTS] = slots.list_count * <uint64_t> sizeof(Bag)
        sizes[IDS_OF_LISTS] = slots.ids_of_lists.top * <uint64_t> 4
        sizes[TEXTS] = slots.arena.top * <uint64_t> 4
        sizes[EXACT_TABLE] = _cells(slots.exact) * 8
    if pooled:
        _count_rows(&tiers.pool, &words, &rows, &blocks)
        sizes[COLUMNS] = tiers.pool.count * <uint64_t> sizeof(Column)
        sizes[TOKENS] = tiers.pool.tokens.top * <uint64_t> 4
        sizes[ROWS] = rows * sizeof(PoolRow)
        sizes[ROW_NUMBERS] = blocks * 4
        sizes[ROW_BLOCKS] = blocks * sizeof(Block)
        sizes[ROW_WORDS] = words * sizeof(PoolWord)
    for i in range(SECTIONS):
        at = (at + ALIGNED - 1) // ALIGNED * ALIGNED
        header.sections[i].offset = at
        header.sections[i].size = sizes[i]
        at += sizes[i]
    if draft.selectors != NULL:
        at = (at + ALIGNED - 1) // ALIGNED * ALIGNED
        header.selectors.offset = at
        header.selectors.size = draft.selectors_size
        at += draft.selectors_size
    return <size_t> ((at + ALIGNED - 1) // ALIGNED * ALIGNED)


# ---- copying ---------------------------------------------------------------------------------------

cdef inline void _put(Draft* draft, int section, const void* source) noexcept nogil:
    if draft.header.sections[section].size != 0:
        memcpy(draft_section(draft, section), source, <size_t> draft.header.sections[section].size)


cdef void _copy_row(Draft* draft, const Row* row, uint32_t i, uint32_t* blocks) noexcept nogil:
    cdef PoolRow* into = &(<PoolRow*> draft_section(draft, ROWS))[i]
    into.first = blocks[0]
    into.size = row.size
    into.bits = row.bits
    if row.size != 0:
        memcpy(&(<uint32_t*> draft_section(draft, ROW_NUMBERS))[blocks[0]], row.numbers, row.size * sizeof(uint32_t))
        memcpy(&(<Block*> draft_section(draft, ROW_BLOCKS))[blocks[0]], row.blocks, row.size * sizeof(Block))
    blocks[0] += row.size


cdef void _copy_rows(Draft* draft, const Pool* pool) noexcept nogil:
    cdef PoolWord* word = <PoolWord*> draft_section(draft, ROW_WORDS)
    cdef uint32_t rows = 0
    cdef uint32_t blocks = 0
    cdef uint32_t i
    cdef int j
    for i in range(ROWS_FIXED):
        _copy_row(draft, _fixed_row(pool, i), rows, &blocks)
        rows += 1
    for i in range(pool.word_capacity):
        if pool.word_rows[i].positions == 0:
            continue
        word.positions = pool.word_rows[i].positions
        word.word = i
        word.first = rows
        word += 1
        for j in range(count_positions(pool.word_rows[i].positions)):
            _copy_row(draft, &pool.word_rows[i].rows[j], rows, &blocks)
            rows += 1


cdef void _note_buckets(Draft* draft, const LineTable* table) noexcept nogil:
    cdef uint32_t n = 0
    cdef uint32_t i
    cdef int j
    for i in range(table.count):
        for j in range(LINE_ENTRIES):
            if table.lines[i].tags[j] != 0:
                draft.buckets[n] = table.lines[i].refs[j]
                n += 1


cdef int draft_copy(Draft* draft) noexcept nogil:
    cdef const Slots* slots = draft.slots
    cdef const Tiers* tiers = draft.tiers
    cdef Header header
    cdef uint64_t* positions
    cdef uint32_t i
    memset(&header, 0, sizeof(Header))
    header.size = _lay_out(draft, &header)
    draft.block_size = <size_t> header.size + ALIGNED
    draft.block = allocate_zeros(draft.allocator, draft.block_size)
    draft.buckets = NULL
    if draft.block == NULL:
        return -1
    if tiers.buckets.live != 0:
        draft.buckets = <uint32_t*> allocate(draft.allocator, tiers.buckets.live * sizeof(uint32_t))
        if draft.buckets == NULL:
            deallocate(draft.allocator, draft.block, draft.block_size)
            return -1
        _note_buckets(draft, &tiers.buckets.table)
    memcpy(header.magic, b"mcfrozen", 8)
    header.format = FORMAT if draft.selectors == NULL else FORMAT_SELECTORS
    header.byte_order = BYTE_ORDER
    header.version = draft.version
    header.pairs = slots.pairs
    header.words_most = draft.limits.words
    header.bytes_most = draft.limits.bytes
    header.texts = slots.live
    header.exact = slots.exact
    header.wildcards = tiers.wildcards
    header.several = slots.several
    header.words = tiers.words.live
    header.buckets = tiers.buckets.live
    header.records = tiers.buckets.records
    header.width = tiers.classes.width
    header.left_depth = tiers.pool.left_depth
    header.right_depth = tiers.pool.right_depth
    header.likely_block = tiers.pool.likely
    draft.header = <Header*> ((<size_t> draft.block + ALIGNED - 1) // ALIGNED * ALIGNED)
    memcpy(header.secret, draft.secret, sizeof(header.secret))
    memcpy(header.multipliers, draft.multipliers, sizeof(header.multipliers))
    draft.header[0] = header
    _put(draft, WORD_ENTRIES, tiers.words.entries)
    _put(draft, LONG_WORDS, tiers.words.long.units)
    _put(draft, FREE_ROWS, tiers.classes.free_rows)
    _put(draft, LENGTH_ROWS, tiers.classes.lengths)
    _put(draft, LIKELY, draft.likely)
    _put(draft, WORD_ROWS, tiers.classes.rows.units)
    _put(draft, BUCKETS, tiers.buckets.arena.units)
    _put(draft, SLOTS, slots.entries)
    _put(draft, IDS, slots.ids)
    _put(draft, LISTS, slots.lists)
    _put(draft, IDS_OF_LISTS, slots.ids_of_lists.units)
    _put(draft, TEXTS, slots.arena.units)
    _put(draft, COLUMNS, tiers.pool.columns)
    _put(draft, TOKENS, tiers.pool.tokens.units)
    positions = <uint64_t*> draft_section(draft, CLASS_POSITIONS)
    for i in range(section_items(draft.header, CLASS_POSITIONS, 8)):
        if tiers.classes.classes[i].buckets != 0:
            positions[i] = tiers.classes.classes[i].positions | <uint64_t> 1 << CLASS_IN_USE
    if header.sections[COLUMNS].size != 0:
        _copy_rows(draft, &tiers.pool)
    if draft.selectors != NULL:
        memcpy(<char*> draft.header + draft.header.selectors.offset, draft.selectors, draft.selectors_size)
    draft.arenas[0] = tiers.words.long
    draft.arenas[1] = tiers.classes.rows
    draft.arenas[2] = tiers.buckets.arena
    draft.arenas[3] = slots.ids_of_lists
    draft.arenas[4] = slots.arena
    draft.arenas[5] = tiers.pool.tokens
    draft.slots = NULL
    draft.tiers = NULL
    return 0


cdef void draft_free(Draft* draft) noexcept nogil:
    deallocate(draft.allocator, draft.buckets, draft.header.buckets * sizeof(uint32_t))
    deallocate(draft.allocator, draft.block, draft.block_size)
