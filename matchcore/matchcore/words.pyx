# cython: language_level=3
"""The word dictionary: each distinct word of all filters once, under a 32-bit id.

Found by keyed hash, compared by bytes, counted by reference; the layout is drawn in words.pxd.
"""

from libc.string cimport memcpy, memset

from matchcore.allocator cimport deallocate, reallocate
from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_take,
)
from matchcore.hashing cimport hash_secret, hash_word, load_word
from matchcore.table cimport table_drop, table_free, table_put, table_reserve

cdef enum:
    IDS_AT_MOST = 0xFFFFFFF0  # the last few numbers mean other things to those who keep ids


cdef const uint64_t* secret = hash_secret()


cdef void words_init(Words* words, Allocator* allocator) noexcept nogil:
    memset(words, 0, sizeof(Words))
    words.allocator = allocator
    arena_init(&words.long, allocator)


cdef inline uint32_t _units(size_t size) noexcept nogil:
    return <uint32_t> ((size + 3) // 4)


cdef uint32_t words_find(const Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil:
    cdef uint64_t low = 0
    cdef uint64_t high = 0
    if words.live == 0:
        return OTHER
    if size <= INLINE_BYTES:
        load_word(start, size, &low, &high)
    return words_seek(words, start, size, hash, low, high)


cdef int _reserve_entry(Words* words) noexcept nogil:
    cdef size_t capacity
    cdef Word* entries
    if words.free != OTHER or words.count < words.capacity:
        return 0
    capacity = 16 if words.capacity == 0 else <size_t> words.capacity + words.capacity // 2
    if capacity > IDS_AT_MOST:
        return -1
    entries = <Word*> reallocate(
        words.allocator, words.entries, words.capacity * sizeof(Word), capacity * sizeof(Word)
    )
    if entries == NULL:
        return -1
    words.entries = entries
    words.capacity = <uint32_t> capacity
    if words.count == 0:
        words.count = 1  # entry 0 is OTHER and holds nothing
        entries[0].low = entries[0].high = 0
        entries[0].positions = <uint64_t> LONG_WORD << SIZE_SHIFT
        entries[0].rows = entries[0].refs = 0
    return 0


cdef uint32_t words_intern(Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil:
    cdef uint32_t id = words_find(words, start, size, hash)
    cdef Word* word
    if id != OTHER:
        words.entries[id].refs += 1
        return id
    if _reserve_entry(words) < 0 or table_reserve(words.allocator, &words.table) < 0:
        return OTHER
    if size > INLINE_BYTES and arena_reserve(&words.long, _units(size)) < 0:
        return OTHER
    if words.free != OTHER:
        id = words.free
        words.free = words.entries[id].rows
    else:
        id = words.count
        words.count += 1
    word = &words.entries[id]
    word.refs = 1
    word.rows = 0
    if size > INLINE_BYTES:
        word.low = arena_take(&words.long, _units(size))
        words.long.units[word.low + _units(size) - 1] = 0
        memcpy(&words.long.units[word.low], start, size)
        word.high = size
        word.positions = <uint64_t> LONG_WORD << SIZE_SHIFT
    else:
        load_word(start, size, &word.low, &word.high)
        word.positions = <uint64_t> size << SIZE_SHIFT
    table_put(&words.table, <uint32_t> (hash >> 32), id)
    words.live += 1
    return id


cdef inline bint _is_long(const Word* word) noexcept nogil:
    return word.positions >> SIZE_SHIFT == LONG_WORD


cdef void _drop(Words* words, uint32_t id) noexcept nogil:
    cdef Word* word = &words.entries[id]
    cdef const char* start = word_start(words, word)
    cdef size_t size = word_size(word)
    table_drop(words.allocator, &words.table, <uint32_t> (hash_word(secret, start, size) >> 32), id)
    if _is_long(word):
        arena_give_back(&words.long, <uint32_t> word.low, _units(size))


cdef void words_release(Words* words, uint32_t id) noexcept nogil:
    cdef Word* word = &words.entries[id]
    word.refs -= 1
    if word.refs != 0:
        return
    _drop(words, id)
    word.rows = words.free
    words.free = id
    words.live -= 1
    if words.live == 0:
        words_free(words)  # nothing refers to any id: begin anew
    elif arena_is_sparse(&words.long):
        _pack(words)


cdef void _pack(Words* words) noexcept nogil:
    """All long words into a new arena; without memory for it the holes stay."""
    cdef Arena made
    cdef Word* word
    cdef uint32_t id, block
    if arena_like(&made, &words.long) < 0:
        return
    for id in range(1, words.count):
        word = &words.entries[id]
        if word.refs != 0 and _is_long(word):
            block = arena_take(&made, _units(word.high))
            memcpy(&made.units[block], &words.long.units[word.low], _units(word.high) * sizeof(uint32_t))
            word.low = block
    arena_free(&words.long)
    words.long = made


cdef void words_free(Words* words) noexcept nogil:
    deallocate(words.allocator, words.entries, words.capacity * sizeof(Word))
    words.entries = NULL
    words.count = words.capacity = words.free = words.live = 0
    table_free(words.allocator, &words.table)
    arena_free(&words.long)
