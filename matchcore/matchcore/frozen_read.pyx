# cython: language_level=3, cdivision=True
"""The bytes of a FrozenIndex taken as an index: pointers into them. Drawn in frozen_read.pxd."""

from libc.string cimport memcmp, memcpy, memset

from matchcore.allocator cimport deallocate, allocate, allocate_zeros
from matchcore.arena cimport Arena
from matchcore.bag cimport Bag
from matchcore.bitmap cimport Block
from matchcore.classes cimport class_spell
from matchcore.frozen_layout cimport (
    ALIGNED, BUCKETS, BYTE_ORDER, CLASS_IN_USE, CLASS_POSITIONS, COLUMNS, EXACT_TABLE, FORMAT,
    FORMAT_SELECTORS, FREE_ROWS, IDS,
    IDS_OF_LISTS, LENGTH_ROWS, LIKELY, LINES, LISTS, LONG_WORDS, PoolRow, PoolWord, ROW_BLOCKS, ROW_FREE_ANY,
    ROW_LIVE, ROW_NO_DOLLAR, ROW_NUMBERS, ROW_WORDS, ROWS, ROWS_FIXED, ROWS_FREE_LEFT, ROWS_FREE_RIGHT, ROWS_LENGTHS,
    SECTIONS, SLOTS, TEXTS, TOKENS, WORD_ENTRIES, WORD_ROWS, WORD_TABLE, section_items, section_of,
)
from matchcore.line_table cimport Line
from matchcore.pool cimport Column
from matchcore.positions cimport DEPTH, LENGTHS, POSITIONS
from matchcore.slots cimport Slot, slots_init
from matchcore.table cimport Table
from matchcore.tiers cimport tiers_init
from matchcore.words cimport Word


# ---- the header --------------------------------------------------------------------------------------

cdef size_t _item(int section) noexcept nogil:
    """Bytes of one item of a section."""
    if section == WORD_ENTRIES:
        return sizeof(Word)
    if section == LINES:
        return sizeof(Line)
    if section == LISTS:
        return sizeof(Bag)
    if section == COLUMNS:
        return sizeof(Column)
    if section == ROWS:
        return sizeof(PoolRow)
    if section == ROW_BLOCKS:
        return sizeof(Block)
    if section == ROW_WORDS:
        return sizeof(PoolWord)
    if section in (WORD_TABLE, EXACT_TABLE, CLASS_POSITIONS, FREE_ROWS, LENGTH_ROWS, LIKELY, SLOTS):
        return 8
    return 4


cdef const char* header_fault(const Header* header, size_t size) noexcept nogil:
    cdef uint64_t at = sizeof(Header)
    cdef int i
    if size >= 8 and memcmp(header.magic, b"mcfrozen", 8) != 0:
        return "it does not begin with 'mcfrozen'"
    if size < sizeof(Header):
        return "it ends within its header"
    if header.byte_order != BYTE_ORDER:
        return "its numbers are in another byte order"
    if header.format != FORMAT and header.format != FORMAT_SELECTORS:
        return "its format is another one than this version of matchcore reads"
    if header.size != size or size % ALIGNED != 0:
        return "it is shorter or longer than its header says"
    for i in range(SECTIONS):
        if header.sections[i].offset != (at + ALIGNED - 1) // ALIGNED * ALIGNED:
            return "its sections do not follow each other"
        at = header.sections[i].offset
        if header.sections[i].size > size - at or header.sections[i].size % _item(i) != 0:
            return "a section ends beyond the end, or within an item"
        at += header.sections[i].size
    if header.format == FORMAT_SELECTORS:
        if header.selectors.offset != (at + ALIGNED - 1) // ALIGNED * ALIGNED or header.selectors.size == 0:
            return "its selectors do not follow its sections"
        at = header.selectors.offset
        if at > size or header.selectors.size > size - at:
            return "its selectors end beyond the end"
        at += header.selectors.size
    elif header.selectors.offset != 0 or header.selectors.size != 0:
        return "it has selectors, which its format has not"
    if size != (at + ALIGNED - 1) // ALIGNED * ALIGNED:
        return "it does not end where its last section does"
    if not (_is_power(section_items(header, WORD_TABLE, 8)) and _is_power(section_items(header, EXACT_TABLE, 8))):
        return "a table has no power of two of cells"
    if not _agrees(header):
        return "its counts do not agree with its sections"
    return NULL


cdef bint _is_power(size_t cells) noexcept nogil:
    return cells & (cells - 1) == 0 and cells <= <size_t> 1 << 32


cdef bint _agrees(const Header* header) noexcept nogil:
    cdef size_t slots = section_items(header, SLOTS, sizeof(Slot))
    cdef size_t classes = section_items(header, CLASS_POSITIONS, 8)
    cdef uint64_t width = header.width
    cdef bint bucketed = header.buckets != 0
    cdef bint pooled = header.sections[COLUMNS].size != 0
    if width == 0 or width > WIDTH_AT_MOST or classes > width * 64:
        return False
    if header.words_most == 0 or header.words_most > 1024 or header.bytes_most == 0 or header.bytes_most > 1 << 30:
        return False
    if header.sections[FREE_ROWS].size != (width * POSITIONS * 8 if bucketed else 0):
        return False
    if header.sections[LENGTH_ROWS].size != (width * LENGTHS * 8 if bucketed else 0):
        return False
    if header.sections[LIKELY].size != (width * 8 if bucketed else 0):
        return False
    if bucketed != (header.sections[LINES].size != 0) or bucketed != (classes != 0):
        return False
    if (header.words != 0) != (header.sections[WORD_TABLE].size != 0):
        return False
    if header.words >= section_items(header, WORD_ENTRIES, sizeof(Word)) and header.words != 0:
        return False
    if header.words >= section_items(header, WORD_TABLE, 8) and header.words != 0:
        return False  # a search ends at an empty cell
    if (header.exact != 0) != (header.sections[EXACT_TABLE].size != 0):
        return False
    if header.exact >= section_items(header, EXACT_TABLE, 8) and header.exact != 0:
        return False
    if section_items(header, IDS, 4) != slots or header.texts > slots:
        return False
    if header.several > section_items(header, LISTS, sizeof(Bag)):
        return False
    if pooled and section_items(header, ROWS, sizeof(PoolRow)) < ROWS_FIXED:
        return False
    if header.left_depth > DEPTH or header.right_depth > DEPTH:
        return False
    return section_items(header, ROW_NUMBERS, 4) == section_items(header, ROW_BLOCKS, sizeof(Block))


# ---- pointers ----------------------------------------------------------------------------------------

cdef inline void* _at(const Header* header, int section) noexcept nogil:
    return <void*> section_of(header, section) if header.sections[section].size != 0 else NULL


cdef inline void _arena(Arena* arena, const Header* header, int section) noexcept nogil:
    arena.units = <uint32_t*> _at(header, section)
    arena.top = arena.capacity = <uint32_t> section_items(header, section, 4)


cdef inline void _table(Table* table, const Header* header, int section, uint32_t used) noexcept nogil:
    table.cells = <uint64_t*> _at(header, section)
    table.mask = <uint32_t> (section_items(header, section, 8) - 1)
    table.used = used


cdef void _open_classes(Opened* opened, const Header* header, Tiers* tiers) noexcept nogil:
    cdef const uint64_t* positions = <const uint64_t*> section_of(header, CLASS_POSITIONS)
    cdef uint32_t count = <uint32_t> section_items(header, CLASS_POSITIONS, 8)
    cdef uint32_t i
    tiers.classes.multipliers = header.multipliers
    _arena(&tiers.classes.rows, header, WORD_ROWS)
    tiers.classes.width = header.width
    if header.buckets == 0:
        return
    for i in range(count):
        class_spell(&opened.classes[i], positions[i] & ~(<uint64_t> 1 << CLASS_IN_USE))
        if positions[i] >> CLASS_IN_USE:
            opened.classes[i].buckets = 1  # some
            tiers.classes.used |= opened.classes[i].positions
            tiers.classes.live += 1
    memcpy(opened.likely, section_of(header, LIKELY), header.width * sizeof(uint64_t))
    tiers.classes.classes = opened.classes
    tiers.classes.count = count
    tiers.classes.free_rows = <uint64_t*> _at(header, FREE_ROWS)
    tiers.classes.lengths = <uint64_t*> _at(header, LENGTH_ROWS)
    tiers.classes.likely = opened.likely
    tiers.buckets.table.lines = <Line*> _at(header, LINES)
    tiers.buckets.table.count = <uint32_t> section_items(header, LINES, sizeof(Line))
    tiers.buckets.table.used = header.buckets
    _arena(&tiers.buckets.arena, header, BUCKETS)
    tiers.buckets.live = header.buckets
    tiers.buckets.records = header.records


cdef void _open_pool(Opened* opened, const Header* header, Tiers* tiers) noexcept nogil:
    cdef const PoolRow* rows = <const PoolRow*> section_of(header, ROWS)
    cdef const PoolWord* words = <const PoolWord*> section_of(header, ROW_WORDS)
    cdef uint32_t* numbers = <uint32_t*> section_of(header, ROW_NUMBERS)
    cdef Block* blocks = <Block*> section_of(header, ROW_BLOCKS)
    cdef uint32_t i
    for i in range(opened.row_count):
        opened.rows[i].numbers = &numbers[rows[i].first]
        opened.rows[i].blocks = &blocks[rows[i].first]
        opened.rows[i].size = opened.rows[i].capacity = rows[i].size
        opened.rows[i].bits = rows[i].bits
    for i in range(section_items(header, ROW_WORDS, sizeof(PoolWord))):
        opened.word_rows[words[i].word].positions = words[i].positions
        opened.word_rows[words[i].word].rows = &opened.rows[words[i].first]
    tiers.pool.columns = <Column*> _at(header, COLUMNS)
    tiers.pool.count = tiers.pool.capacity = <uint32_t> section_items(header, COLUMNS, sizeof(Column))
    _arena(&tiers.pool.tokens, header, TOKENS)
    tiers.pool.word_rows = opened.word_rows
    tiers.pool.word_capacity = opened.word_capacity
    tiers.pool.left_depth = header.left_depth
    tiers.pool.right_depth = header.right_depth
    tiers.pool.likely = header.likely_block  # wherever that is: it is compared with the number of blocks
    memcpy(tiers.pool.free_left, &opened.rows[ROWS_FREE_LEFT], sizeof(tiers.pool.free_left))
    memcpy(tiers.pool.free_right, &opened.rows[ROWS_FREE_RIGHT], sizeof(tiers.pool.free_right))
    memcpy(tiers.pool.lengths, &opened.rows[ROWS_LENGTHS], sizeof(tiers.pool.lengths))
    tiers.pool.free_any = opened.rows[ROW_FREE_ANY]
    tiers.pool.no_dollar = opened.rows[ROW_NO_DOLLAR]
    tiers.pool.live = opened.rows[ROW_LIVE]


cdef int _take(Opened* opened, const Header* header, Allocator* allocator) noexcept nogil:
    """Allocates its own memory; -1: no memory."""
    cdef const PoolWord* words = <const PoolWord*> section_of(header, ROW_WORDS)
    cdef size_t i
    memset(opened, 0, sizeof(Opened))
    if header.buckets != 0:
        opened.class_count = header.width * 64
        opened.classes = <Class*> allocate_zeros(allocator, opened.class_count * sizeof(Class))
        if opened.classes == NULL:
            return -1
    opened.row_count = <uint32_t> section_items(header, ROWS, sizeof(PoolRow))
    if opened.row_count != 0:
        opened.rows = <Row*> allocate(allocator, opened.row_count * sizeof(Row))
        if opened.rows == NULL:
            return -1
    for i in range(section_items(header, ROW_WORDS, sizeof(PoolWord))):
        opened.word_capacity = max(opened.word_capacity, words[i].word + 1)
    if opened.word_capacity != 0:
        opened.word_rows = <WordRows*> allocate_zeros(allocator, opened.word_capacity * sizeof(WordRows))
        if opened.word_rows == NULL:
            return -1
    return 0


cdef int opened_init(
    Opened* opened, const Header* header, Slots* slots, Tiers* tiers, Allocator* allocator
) noexcept nogil:
    if _take(opened, header, allocator) < 0:
        return -1
    tiers.secret = header.secret
    tiers.buckets.slots = slots
    tiers.wildcards = header.wildcards
    tiers.words.entries = <Word*> _at(header, WORD_ENTRIES)
    tiers.words.count = tiers.words.capacity = <uint32_t> section_items(header, WORD_ENTRIES, sizeof(Word))
    tiers.words.live = header.words
    _arena(&tiers.words.long, header, LONG_WORDS)
    _table(&tiers.words.table, header, WORD_TABLE, header.words)
    _open_classes(opened, header, tiers)
    if header.sections[COLUMNS].size != 0:
        _open_pool(opened, header, tiers)
    slots.entries = <Slot*> _at(header, SLOTS)
    slots.ids = <uint32_t*> _at(header, IDS)
    slots.count = slots.capacity = <uint32_t> section_items(header, SLOTS, sizeof(Slot))
    slots.lists = <Bag*> _at(header, LISTS)
    slots.list_count = slots.list_capacity = <uint32_t> section_items(header, LISTS, sizeof(Bag))
    _arena(&slots.ids_of_lists, header, IDS_OF_LISTS)
    _arena(&slots.arena, header, TEXTS)
    _table(&slots.table, header, EXACT_TABLE, header.exact)
    slots.live = header.texts
    slots.exact = header.exact
    slots.several = header.several
    slots.pairs = <size_t> header.pairs
    return 0


cdef void opened_free(Opened* opened, Slots* slots, Tiers* tiers, Allocator* allocator) noexcept nogil:
    deallocate(allocator, opened.classes, opened.class_count * sizeof(Class))
    deallocate(allocator, opened.rows, opened.row_count * sizeof(Row))
    deallocate(allocator, opened.word_rows, opened.word_capacity * sizeof(WordRows))
    # Empty, as the index they belong to is about to free them.
    slots_init(slots, allocator)
    tiers_init(tiers, allocator, slots)
