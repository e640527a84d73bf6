# cython: language_level=3
"""The word dictionary: each distinct word of all filters once, under a 32-bit id.

Found by keyed hash, compared by bytes, counted by reference; the layout is drawn in words.pxd.
"""

from libc.string cimport memcmp, memcpy

from matchcore.heap cimport heap_give_back, heap_resize, heap_take
from matchcore.table cimport (
    NONE, table_drop, table_first, table_free, table_next, table_put, table_reserve,
)

cdef enum:
    IDS_AT_MOST = 0xFFFFFFF0  # the last few numbers mean other things to those who keep ids


cdef uint32_t words_find(const Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil:
    cdef uint32_t tag = <uint32_t> (hash >> 32)
    cdef uint32_t at
    cdef uint32_t id = table_first(&words.table, tag, &at)
    cdef const Word* word
    while id != NONE:
        word = &words.entries[id]
        if word.hash == hash and word.size == size and memcmp(word_start(word), start, size) == 0:
            return id
        id = table_next(&words.table, tag, &at)
    return OTHER


cdef int _reserve_entry(Words* words) noexcept nogil:
    cdef size_t capacity
    cdef Word* entries
    if words.free != OTHER or words.count < words.capacity:
        return 0
    capacity = 16 if words.capacity == 0 else <size_t> words.capacity + words.capacity // 2
    if capacity > IDS_AT_MOST:
        return -1
    entries = <Word*> heap_resize(
        words.heap, words.entries, words.capacity * sizeof(Word), capacity * sizeof(Word)
    )
    if entries == NULL:
        return -1
    words.entries = entries
    words.capacity = <uint32_t> capacity
    if words.count == 0:
        words.count = 1  # entry 0 is OTHER and holds nothing
        entries[0].refs = entries[0].size = 0
        entries[0].hash = 0
    return 0


cdef uint32_t words_intern(Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil:
    cdef uint32_t id = words_find(words, start, size, hash)
    cdef char* outside = NULL
    cdef Word* word
    if id != OTHER:
        words.entries[id].refs += 1
        return id
    if _reserve_entry(words) < 0 or table_reserve(words.heap, &words.table) < 0:
        return OTHER
    if size > INLINE_BYTES:
        outside = <char*> heap_take(words.heap, size)
        if outside == NULL:
            return OTHER
    if words.free != OTHER:
        id = words.free
        words.free = words.entries[id].size
    else:
        id = words.count
        words.count += 1
    word = &words.entries[id]
    word.hash = hash
    word.size = size
    word.refs = 1
    if outside != NULL:
        memcpy(outside, start, size)
        word.bytes.outside = outside
    else:
        memcpy(word.bytes.inside, start, size)
    table_put(&words.table, <uint32_t> (hash >> 32), id)
    words.live += 1
    return id


cdef void words_keep(Words* words, uint32_t id) noexcept nogil:
    words.entries[id].refs += 1


cdef void words_release(Words* words, uint32_t id) noexcept nogil:
    cdef Word* word = &words.entries[id]
    word.refs -= 1
    if word.refs != 0:
        return
    table_drop(words.heap, &words.table, <uint32_t> (word.hash >> 32), id)
    if word.size > INLINE_BYTES:
        heap_give_back(words.heap, word.bytes.outside, word.size)
    word.size = words.free
    words.free = id
    words.live -= 1
    if words.live == 0:
        words_free(words)  # nothing refers to any id: begin anew


cdef void words_free(Words* words) noexcept nogil:
    cdef uint32_t id
    for id in range(1, words.count):
        if words.entries[id].refs != 0 and words.entries[id].size > INLINE_BYTES:
            heap_give_back(words.heap, words.entries[id].bytes.outside, words.entries[id].size)
    heap_give_back(words.heap, words.entries, words.capacity * sizeof(Word))
    words.entries = NULL
    words.count = words.capacity = words.free = words.live = 0
    table_free(words.heap, &words.table)
