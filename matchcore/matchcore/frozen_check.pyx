# cython: language_level=3, cdivision=True
"""Whether the sections of a FrozenIndex hold together, before anything is searched in them.

The search believes what the index says: that a block is within its arena, a class within the bitmap, a record's
position within the topics it takes. Here each such belief is checked, once, in one pass over all. What it does not
check is whether the answers are right: rows may lie, and a filter may not be found.
"""

from libc.stdint cimport uint32_t, uint64_t

from matchcore.bag cimport Bag
from matchcore.bitmap cimport BLOCK_COLUMNS, BLOCK_WORDS, Block
from matchcore.buckets cimport (
    LEAST_BITS, LEAST_SHIFT, POSITION_SHIFT, RECORD_MANY, RECORD_VERIFY, RESIDUALS, VERIFIED_UNITS,
    bucket_class, bucket_records, bucket_units,
)
from matchcore.classes cimport KEY_LITERALS
from matchcore.frozen_layout cimport (
    BUCKETS, CLASS_IN_USE, CLASS_POSITIONS, COLUMNS, EXACT_TABLE, FREE_ROWS, IDS, IDS_OF_LISTS, LINES, LISTS,
    LONG_WORDS,
    PoolRow, PoolWord, ROW_BLOCKS, ROW_NUMBERS, ROW_WORDS, ROWS, SLOTS, TEXTS, TOKENS, WORD_ENTRIES, WORD_ROWS,
    WORD_TABLE, section_items, section_of,
)
from matchcore.line_table cimport LINE_ENTRIES, Line
from matchcore.pool cimport Column
from matchcore.positions cimport (
    HAS_MANY, POSITION_ANY, POSITION_RIGHT, POSITIONS, TO_VERIFY, TOKEN_MANY, count_positions,
)
from matchcore.slots cimport SLOT_FREE, SLOT_LIST, TIER_POOL, Slot
from matchcore.words cimport INLINE_BYTES, LONG_WORD, SIZE_SHIFT, Word


cdef const char* sections_fault(const Header* header) noexcept nogil:
    if not _table_holds(header, WORD_TABLE, header.words, section_items(header, WORD_ENTRIES, sizeof(Word))):
        return "its table of words leads elsewhere"
    if not _table_holds(header, EXACT_TABLE, header.exact, section_items(header, SLOTS, sizeof(Slot))):
        return "its table of exact filters leads elsewhere"
    if not _words_hold(header):
        return "a word ends beyond the words, or its rows beyond the rows"
    if not _slots_hold(header):
        return "a filter's text or ids lie elsewhere"
    if not _classes_hold(header):
        return "a class has invalid positions"
    if not _buckets_hold(header):
        return "a bucket does not hold together"
    if not _columns_hold(header):
        return "a column of the pool does not hold together"
    if not _rows_hold(header):
        return "a row of the pool has columns that are not there"
    return NULL


cdef bint _table_holds(const Header* header, int section, uint32_t used, size_t items) noexcept nogil:
    cdef const uint64_t* cells = <const uint64_t*> section_of(header, section)
    cdef size_t count = section_items(header, section, 8)
    cdef size_t found = 0
    cdef size_t i
    for i in range(count):
        if cells[i] != 0:
            found += 1
            if <uint32_t> (cells[i] - 1) >= items:
                return False
    return found == used and (found < count or count == 0)


cdef bint _words_hold(const Header* header) noexcept nogil:
    cdef const Word* words = <const Word*> section_of(header, WORD_ENTRIES)
    cdef uint64_t bytes_ = header.sections[LONG_WORDS].size
    cdef uint64_t units = section_items(header, WORD_ROWS, 4)
    cdef uint64_t size, positions
    cdef size_t i
    for i in range(section_items(header, WORD_ENTRIES, sizeof(Word))):
        size = words[i].positions >> SIZE_SHIFT
        positions = words[i].positions & ((<uint64_t> 1 << POSITIONS) - 1)
        if i == 0:
            if positions != 0 or words[i].high != 0:
                return False
        elif size == LONG_WORD:
            if words[i].high > bytes_ or words[i].low > (bytes_ - words[i].high) // 4:
                return False
        elif size > INLINE_BYTES:
            return False
        if positions != 0 and words[i].rows + count_positions(positions) * (2 * <uint64_t> header.width + 1) > units:
            return False
    return True


cdef bint _slots_hold(const Header* header) noexcept nogil:
    cdef const Slot* slots = <const Slot*> section_of(header, SLOTS)
    cdef const uint32_t* ids = <const uint32_t*> section_of(header, IDS)
    cdef const Bag* lists = <const Bag*> section_of(header, LISTS)
    cdef const uint32_t* texts = <const uint32_t*> section_of(header, TEXTS)
    cdef uint64_t units = section_items(header, TEXTS, 4)
    cdef size_t classes = section_items(header, CLASS_POSITIONS, 8)
    cdef uint64_t list_count = section_items(header, LISTS, sizeof(Bag))
    cdef uint64_t list_units = section_items(header, IDS_OF_LISTS, 4)
    cdef size_t i
    for i in range(section_items(header, SLOTS, sizeof(Slot))):
        if slots[i].flags & SLOT_FREE:
            if slots[i].flags & SLOT_LIST:
                return False
            continue
        if slots[i].text >= units or (texts[slots[i].text] + <uint64_t> 3) // 4 > units - slots[i].text - 1:
            return False
        if slots[i].tier < TIER_POOL and slots[i].tier >= classes:
            return False
        if slots[i].flags & SLOT_LIST and ~ids[i] >= list_count:
            return False
    for i in range(list_count):
        if lists[i].room > 30 or lists[i].size > <uint32_t> 1 << lists[i].room:
            return False
        if lists[i].room != 0 and lists[i].at + <uint64_t> lists[i].size > list_units:
            return False
    return True


cdef bint _classes_hold(const Header* header) noexcept nogil:
    """The row of free positions has each class without that position: else a topic too short is asked for a word."""
    cdef const uint64_t* positions = <const uint64_t*> section_of(header, CLASS_POSITIONS)
    cdef const uint64_t* rows = <const uint64_t*> section_of(header, FREE_ROWS)
    cdef size_t count = section_items(header, CLASS_POSITIONS, 8)
    cdef uint64_t own
    cdef size_t c
    cdef uint32_t position
    for c in range(count):
        own = positions[c] & ~(<uint64_t> 1 << CLASS_IN_USE)
        if own >> POSITIONS or count_positions(own) > KEY_LITERALS or (own != 0 and own == positions[c]):
            return False
        for position in range(POSITIONS):
            if (own >> position) & 1 and (rows[position * header.width + c // 64] >> (c % 64)) & 1:
                return False
    return True


# ---- buckets -----------------------------------------------------------------------------------------

cdef inline bint _position_holds(uint32_t position, uint32_t least) noexcept nogil:
    """Each topic of `least` words has one there."""
    return (position if position < POSITION_RIGHT else position - POSITION_RIGHT) < least and position < POSITION_ANY


cdef inline bint _tokens_hold(
    const uint32_t* tokens, uint32_t size, uint32_t prefix, uint32_t suffix, bint has_many
) noexcept nogil:
    if not has_many:
        return True
    if suffix >= size or prefix > size - suffix - 1:
        return False
    return tokens[prefix] == TOKEN_MANY and tokens[size - suffix - 1] == TOKEN_MANY


cdef inline uint32_t _record_holds(const uint32_t* record, uint32_t room) noexcept nogil:
    """Its units; 0: it does not."""
    cdef uint32_t head, least, n, i, size
    cdef const unsigned char* positions
    if room < 2:
        return 0
    head = record[1]
    least = (head >> LEAST_SHIFT) & LEAST_BITS
    n = head & RESIDUALS
    if head & RECORD_VERIFY:
        if n != 0 or room < VERIFIED_UNITS or (record[2] & 0xFFFF) > room - VERIFIED_UNITS:
            return 0
        size = VERIFIED_UNITS + (record[2] & 0xFFFF)
        if not _tokens_hold(
            &record[VERIFIED_UNITS], record[2] & 0xFFFF, record[2] >> 16, record[3], head & RECORD_MANY
        ):
            return 0
        return size
    size = 2 + n + (0 if n <= 2 else (n + 3) // 4)
    if size > room:
        return 0
    positions = <const unsigned char*> &record[2]
    for i in range(n):
        if not _position_holds(positions[i] if n > 2 else (head >> (POSITION_SHIFT + 6 * i)) & 63, least):
            return 0
    return size


cdef bint _bucket_holds(const Header* header, uint32_t block) noexcept nogil:
    cdef const uint32_t* units = <const uint32_t*> section_of(header, BUCKETS)
    cdef const uint64_t* classes = <const uint64_t*> section_of(header, CLASS_POSITIONS)
    cdef size_t count = section_items(header, BUCKETS, 4)
    cdef size_t slots = section_items(header, SLOTS, sizeof(Slot))
    cdef uint32_t c, used, size, at
    cdef uint32_t records = 0
    if block >= count:
        return False
    c = bucket_class(units[block])
    used = bucket_units(units[block])
    if c >= section_items(header, CLASS_POSITIONS, 8) or not classes[c] >> CLASS_IN_USE or used > count - block:
        return False
    at = 1 + <uint32_t> count_positions(classes[c] & ~(<uint64_t> 1 << CLASS_IN_USE))
    if at > used:
        return False
    while at < used:
        size = _record_holds(&units[block + at], used - at)
        if size == 0 or units[block + at] >= slots:
            return False
        at += size
        records += 1
    return records == bucket_records(units[block])


cdef bint _buckets_hold(const Header* header) noexcept nogil:
    cdef const Line* lines = <const Line*> section_of(header, LINES)
    cdef uint64_t found = 0
    cdef size_t i
    cdef int j
    for i in range(section_items(header, LINES, sizeof(Line))):
        for j in range(LINE_ENTRIES):
            if lines[i].tags[j] != 0:
                found += 1
                if not _bucket_holds(header, lines[i].refs[j]):
                    return False
    return found == header.buckets


# ---- the pool ----------------------------------------------------------------------------------------

cdef bint _columns_hold(const Header* header) noexcept nogil:
    cdef const Column* columns = <const Column*> section_of(header, COLUMNS)
    cdef const uint32_t* tokens = <const uint32_t*> section_of(header, TOKENS)
    cdef size_t units = section_items(header, TOKENS, 4)
    cdef size_t slots = section_items(header, SLOTS, sizeof(Slot))
    cdef size_t i
    for i in range(section_items(header, COLUMNS, sizeof(Column))):
        if columns[i].slot >= slots or columns[i].tokens > units or columns[i].count > units - columns[i].tokens:
            return False
        if columns[i].flags & TO_VERIFY and not _tokens_hold(
            &tokens[columns[i].tokens], columns[i].count, columns[i].prefix, columns[i].suffix,
            columns[i].flags & HAS_MANY,
        ):
            return False
    return True


cdef bint _block_holds(const Block* block, uint64_t first, uint64_t columns) noexcept nogil:
    """No bit beyond the columns; `first` is that of its first bit."""
    cdef uint64_t start
    cdef int i
    for i in range(BLOCK_WORDS):
        start = first + i * 64
        if block.words[i] != 0 and (
            start >= columns or (columns - start < 64 and block.words[i] >> (columns - start) != 0)
        ):
            return False
    return True


cdef bint _rows_hold(const Header* header) noexcept nogil:
    cdef const PoolRow* rows = <const PoolRow*> section_of(header, ROWS)
    cdef const PoolWord* words = <const PoolWord*> section_of(header, ROW_WORDS)
    cdef const uint32_t* numbers = <const uint32_t*> section_of(header, ROW_NUMBERS)
    cdef const Block* blocks = <const Block*> section_of(header, ROW_BLOCKS)
    cdef uint64_t columns = section_items(header, COLUMNS, sizeof(Column))
    cdef uint64_t row_count = section_items(header, ROWS, sizeof(PoolRow))
    cdef uint64_t block_count = section_items(header, ROW_BLOCKS, sizeof(Block))
    cdef size_t i
    cdef uint32_t j
    for i in range(block_count):
        if not _block_holds(&blocks[i], numbers[i] * <uint64_t> BLOCK_COLUMNS, columns):
            return False
    for i in range(row_count):
        if rows[i].first + <uint64_t> rows[i].size > block_count or (rows[i].size == 0 and rows[i].bits != 0):
            return False
        for j in range(1, rows[i].size):  # ascending: a row whose last number is its size less one has no gap
            if numbers[rows[i].first + j] <= numbers[rows[i].first + j - 1]:
                return False
    for i in range(section_items(header, ROW_WORDS, sizeof(PoolWord))):
        if words[i].word >= section_items(header, WORD_ENTRIES, sizeof(Word)) or words[i].positions >> POSITIONS:
            return False
        if words[i].first + <uint64_t> count_positions(words[i].positions) > row_count:
            return False
    return True
