# cython: language_level=3, cdivision=True
"""What a copied index needs to be a FrozenIndex, while the index it comes from may change again.

    hashes      the three tables of them (words, buckets, exact filters) under the copy's own secret
    holes       what removed filters and words have left is cleared, so that the same filters, whatever else was
                there once, give nothing else away
    checksum    of all that
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from matchcore.allocator cimport deallocate, allocate, prefetch
from matchcore.arena cimport ARENA_LISTS, Arena, arena_size_of_list
from matchcore.bag cimport Bag
from matchcore.buckets cimport bucket_class
from matchcore.classes cimport CLASSES_AT_MOST, Class, class_spell
from matchcore.frozen_layout cimport (
    BUCKETS, CHECKED_FROM, CLASS_IN_USE, CLASS_POSITIONS, COLUMNS, EXACT_TABLE, Header, IDS, IDS_OF_LISTS, LINES, LISTS,
    LONG_WORDS, SLOTS, TEXTS, TOKENS, WORD_ENTRIES, WORD_ROWS, WORD_TABLE, section_items,
)
from matchcore.frozen_write cimport draft_free, draft_section
from matchcore.hashing cimport fold, hash_word, load64
from matchcore.line_table cimport Line, LineTable, line_tag, line_table_prefetch, line_table_put
from matchcore.pool cimport Column
from matchcore.scan cimport hash_text
from matchcore.slots cimport SLOT_FREE, SLOT_MQTT, TIER_EXACT, Slot
from matchcore.syntax cimport AMQP, MQTT, separator_of
from matchcore.table cimport NONE, Table, table_put
from matchcore.words cimport Word, word_size

cdef enum:
    AHEAD = 32           # buckets whose cache lines are asked for together


# ---- hashes ----------------------------------------------------------------------------------------

cdef inline Table _table(Draft* draft, int section) noexcept nogil:
    cdef Table table
    table.cells = <uint64_t*> draft_section(draft, section)
    table.mask = <uint32_t> section_items(draft.header, section, 8) - 1
    table.used = 0
    return table


cdef inline const char* _word(Draft* draft, const Word* word, uint32_t* size) noexcept nogil:
    size[0] = word_size(word)
    if size[0] <= 16:
        return <const char*> &word.low
    return <const char*> &(<uint32_t*> draft_section(draft, LONG_WORDS))[word.low]


cdef void _hash_words(Draft* draft) noexcept nogil:
    cdef Word* words = <Word*> draft_section(draft, WORD_ENTRIES)
    cdef Table table = _table(draft, WORD_TABLE)
    cdef uint32_t i, size
    cdef const char* start
    for i in range(1, section_items(draft.header, WORD_ENTRIES, sizeof(Word))):
        if words[i].refs == 0:
            memset(&words[i], 0, sizeof(Word))
            continue
        start = _word(draft, &words[i], &size)
        table_put(&table, <uint32_t> (hash_word(draft.header.secret, start, size) >> 32), i)


cdef void _hash_exact(Draft* draft) noexcept nogil:
    cdef Slot* slots = <Slot*> draft_section(draft, SLOTS)
    cdef uint32_t* ids = <uint32_t*> draft_section(draft, IDS)
    cdef const uint32_t* texts = <const uint32_t*> draft_section(draft, TEXTS)
    cdef Table table = _table(draft, EXACT_TABLE)
    cdef uint64_t hash
    cdef size_t i
    for i in range(section_items(draft.header, SLOTS, sizeof(Slot))):
        if slots[i].flags & SLOT_FREE:
            memset(&slots[i], 0, sizeof(Slot))
            slots[i].flags = SLOT_FREE
            ids[i] = 0
        elif slots[i].tier == TIER_EXACT:
            hash = hash_text(
                <const char*> &texts[slots[i].text + 1], texts[slots[i].text],
                separator_of(MQTT if slots[i].flags & SLOT_MQTT else AMQP), draft.header.secret,
            )
            table_put(&table, <uint32_t> (hash >> 32), <uint32_t> i)


cdef void _hash_buckets(Draft* draft, Class* classes) noexcept nogil:
    """The header of each bucket is one miss and its line another: AHEAD of them at a time."""
    cdef const uint32_t* units = <const uint32_t*> draft_section(draft, BUCKETS)
    cdef const uint64_t* positions = <const uint64_t*> draft_section(draft, CLASS_POSITIONS)
    cdef const uint64_t* multipliers = draft.header.multipliers
    cdef uint32_t count = draft.header.buckets
    cdef uint32_t[AHEAD] tags
    cdef LineTable table
    cdef const Class* entry
    cdef const uint32_t* block
    cdef uint64_t sum
    cdef uint32_t j, k, n
    cdef size_t i
    for i in range(section_items(draft.header, CLASS_POSITIONS, 8)):
        class_spell(&classes[i], positions[i] & ~(<uint64_t> 1 << CLASS_IN_USE))
    table.lines = <Line*> draft_section(draft, LINES)
    table.count = <uint32_t> section_items(draft.header, LINES, sizeof(Line))
    table.used = 0
    table.sieve.bits = NULL
    i = 0
    while i < count:
        n = <uint32_t> min(<size_t> AHEAD, count - i)
        for j in range(n):
            if i + AHEAD + j < count:
                prefetch(&units[draft.buckets[i + AHEAD + j]])
            block = &units[draft.buckets[i + j]]
            entry = &classes[bucket_class(block[0])]
            sum = 0
            for k in range(entry.literals):
                sum += multipliers[entry.position[k]] * block[1 + k]
            tags[j] = line_tag(<uint32_t> (sum >> 32))
            line_table_prefetch(&table, tags[j])
        for j in range(n):
            line_table_put(&table, tags[j], draft.buckets[i + j])
        i += AHEAD


# ---- holes -----------------------------------------------------------------------------------------

cdef void _clear_holes(Draft* draft, int section, const Arena* arena) noexcept nogil:
    """The arena's free blocks, in the copy."""
    cdef uint32_t* units = <uint32_t*> draft_section(draft, section)
    cdef uint32_t block, after
    cdef uint32_t at
    if draft.header.sections[section].size == 0:
        return
    for at in range(ARENA_LISTS):
        block = arena.lists[at]
        while block != NONE:
            after = units[block]
            memset(&units[block], 0, arena_size_of_list(at) * sizeof(uint32_t))
            block = after


cdef void _clear_lists(Draft* draft) noexcept nogil:
    """Free lists, and what lies behind the ids of others."""
    cdef Bag* lists = <Bag*> draft_section(draft, LISTS)
    cdef uint32_t* units = <uint32_t*> draft_section(draft, IDS_OF_LISTS)
    cdef size_t i
    for i in range(section_items(draft.header, LISTS, sizeof(Bag))):
        if lists[i].mark:
            memset(&lists[i], 0, sizeof(Bag))
        elif lists[i].room != 0:
            memset(
                &units[lists[i].at + lists[i].size], 0,
                ((<size_t> 1 << lists[i].room) - lists[i].size) * sizeof(uint32_t),
            )


cdef void _clear_columns(Draft* draft) noexcept nogil:
    cdef Column* columns = <Column*> draft_section(draft, COLUMNS)
    cdef size_t i
    for i in range(section_items(draft.header, COLUMNS, sizeof(Column))):
        if columns[i].tokens == NONE:
            memset(&columns[i], 0, sizeof(Column))


cdef uint64_t checksum(const void* start, size_t size) noexcept nogil:
    cdef const char* at = <const char*> start
    cdef const char* end = at + size
    cdef uint64_t even = 0x9E3779B97F4A7C15ULL
    cdef uint64_t odd = 0xC2B2AE3D27D4EB4FULL
    while at < end:
        even = fold(load64(at) ^ 0xA0761D6478BD642FULL, load64(at + 8) ^ even)
        odd = fold(load64(at + 16) ^ 0xE7037ED1A0B428DBULL, load64(at + 24) ^ odd)
        at += 32
    return fold(even ^ 0x8EBC6AF09C88C6E3ULL, odd ^ size)


cdef int draft_finish(Draft* draft) noexcept nogil:
    """-1: no memory; the draft is then given back."""
    cdef Class* classes = NULL
    cdef Header* header = draft.header
    if header.buckets != 0:
        classes = <Class*> allocate(draft.allocator, CLASSES_AT_MOST * sizeof(Class))
        if classes == NULL:
            draft_free(draft)
            return -1
        _hash_buckets(draft, classes)
        deallocate(draft.allocator, classes, CLASSES_AT_MOST * sizeof(Class))
        deallocate(draft.allocator, draft.buckets, header.buckets * sizeof(uint32_t))
    if header.words != 0:
        _hash_words(draft)
    if header.texts != 0:
        _hash_exact(draft)
    _clear_holes(draft, LONG_WORDS, &draft.arenas[0])
    _clear_holes(draft, WORD_ROWS, &draft.arenas[1])
    _clear_holes(draft, BUCKETS, &draft.arenas[2])
    _clear_holes(draft, IDS_OF_LISTS, &draft.arenas[3])
    _clear_holes(draft, TEXTS, &draft.arenas[4])
    _clear_holes(draft, TOKENS, &draft.arenas[5])
    _clear_lists(draft)
    _clear_columns(draft)
    header.checksum = checksum(<const char*> header + CHECKED_FROM, <size_t> header.size - CHECKED_FROM)
    return 0
