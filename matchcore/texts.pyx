# cython: language_level=3
"""The texts of an index and their ids: dedupe, the exact tier, and what `filters()` gives back.

The layout is drawn in texts.pxd. Identity is (bytes, syntax); a `str` and the `bytes` it encodes to
are one text.
"""

from libc.string cimport memcmp, memcpy, memmove

from matchcore.heap cimport heap_give_back, heap_resize, heap_take
from matchcore.syntax cimport AMQP
from matchcore.table cimport (
    table_drop, table_first, table_free, table_next, table_put, table_reserve,
)

cdef enum:
    TEXTS_AT_MOST = 0xFFFFFFF0
    IDS_AT_MOST = 0xFFFFFFF0


cdef void texts_init(Texts* texts, Heap* heap) noexcept nogil:
    texts.heap = heap
    texts.table.cells = NULL
    texts.table.mask = texts.table.used = 0
    texts.entries = NULL
    texts.count = texts.capacity = texts.live = 0
    texts.free = NONE
    texts.pairs = 0


cdef void _free_text(Texts* texts, Text* text) noexcept nogil:
    heap_give_back(texts.heap, text.bytes, text.size)
    if text.capacity != 0:
        heap_give_back(texts.heap, text.ids.many, text.capacity * sizeof(uint32_t))


cdef void texts_free(Texts* texts) noexcept nogil:
    cdef uint32_t i
    for i in range(texts.count):
        if texts.entries[i].count != 0:
            _free_text(texts, &texts.entries[i])
    heap_give_back(texts.heap, texts.entries, texts.capacity * sizeof(Text))
    table_free(texts.heap, &texts.table)
    texts_init(texts, texts.heap)


cdef inline bint _equal(const Text* text, const char* start, size_t size) noexcept nogil:
    return text.size == size and (size == 0 or memcmp(text.bytes, start, size) == 0)


cdef uint32_t texts_find(
    const Texts* texts, const char* start, size_t size, uint32_t syntax, uint64_t hash
) noexcept nogil:
    cdef uint32_t tag = <uint32_t> (hash >> 32)
    cdef uint32_t at
    cdef uint32_t i = table_first(&texts.table, tag, &at)
    while i != NONE:
        if texts.entries[i].syntax == syntax and _equal(&texts.entries[i], start, size):
            return i
        i = table_next(&texts.table, tag, &at)
    return NONE


cdef bint _same_words(const Text* text, const char* start, size_t size, uint32_t syntax) noexcept nogil:
    """Word by word: where one has its separator, so has the other, and all else is equal."""
    cdef char mine, theirs
    cdef size_t i
    if text.syntax == syntax:
        return _equal(text, start, size)
    if text.size != size:
        return False
    mine = c"." if text.syntax == AMQP else c"/"
    theirs = c"." if syntax == AMQP else c"/"
    for i in range(size):
        if text.bytes[i] == mine:
            if start[i] != theirs:
                return False
        elif start[i] == theirs or text.bytes[i] != start[i]:
            return False
    return True


cdef int texts_exact(
    const Texts* texts, const char* start, size_t size, uint32_t syntax, uint64_t hash, uint32_t* found
) noexcept nogil:
    cdef uint32_t tag = <uint32_t> (hash >> 32)
    cdef uint32_t at
    cdef uint32_t i = table_first(&texts.table, tag, &at)
    cdef int count = 0
    while i != NONE:
        # A filter with wildcards may be spelled like a topic (`*` is a word an AMQP key may hold): the
        # pool answers for those.
        if texts.entries[i].is_exact and _same_words(&texts.entries[i], start, size, syntax):
            found[count] = i
            count += 1
            if count == 2:
                break
        i = table_next(&texts.table, tag, &at)
    return count


cdef int _reserve_entry(Texts* texts) noexcept nogil:
    cdef size_t capacity
    cdef Text* entries
    if texts.free != NONE or texts.count < texts.capacity:
        return 0
    capacity = 8 if texts.capacity == 0 else <size_t> texts.capacity + texts.capacity // 2
    if capacity > TEXTS_AT_MOST:
        return -1
    entries = <Text*> heap_resize(
        texts.heap, texts.entries, texts.capacity * sizeof(Text), capacity * sizeof(Text)
    )
    if entries == NULL:
        return -1
    texts.entries = entries
    texts.capacity = <uint32_t> capacity
    return 0


cdef uint32_t texts_add(
    Texts* texts, const char* start, size_t size, uint32_t syntax, uint64_t hash, bint is_str, bint is_exact,
    uint32_t id
) noexcept nogil:
    cdef char* bytes = NULL
    cdef uint32_t i
    cdef Text* text
    if _reserve_entry(texts) < 0 or table_reserve(texts.heap, &texts.table) < 0:
        return NONE
    if size != 0:
        bytes = <char*> heap_take(texts.heap, size)
        if bytes == NULL:
            return NONE
        memcpy(bytes, start, size)
    if texts.free != NONE:
        i = texts.free
        texts.free = texts.entries[i].next
    else:
        i = texts.count
        texts.count += 1
    text = &texts.entries[i]
    text.bytes = bytes
    text.size = <uint32_t> size
    text.tag = <uint32_t> (hash >> 32)
    text.ids.one = id
    text.count = 1
    text.capacity = 0
    text.target = text.next = NONE
    text.syntax = <uint8_t> syntax
    text.is_str = is_str
    text.is_exact = is_exact
    table_put(&texts.table, text.tag, i)
    texts.live += 1
    texts.pairs += 1
    return i


cdef void texts_drop(Texts* texts, uint32_t i) noexcept nogil:
    cdef Text* text = &texts.entries[i]
    table_drop(texts.heap, &texts.table, text.tag, i)
    _free_text(texts, text)
    texts.pairs -= text.count
    text.count = 0
    text.next = texts.free
    texts.free = i
    texts.live -= 1
    if texts.live == 0:
        texts_free(texts)


cdef inline uint32_t _seek(const uint32_t* ids, uint32_t count, uint32_t id) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t middle
    if count != 0 and ids[count - 1] < id:
        return count  # ids mostly come ascending
    while low < count:
        middle = low + (count - low) // 2
        if ids[middle] < id:
            low = middle + 1
        else:
            count = middle
    return low


cdef bint texts_has_id(const Texts* texts, uint32_t i, uint32_t id) noexcept nogil:
    cdef const Text* text = &texts.entries[i]
    cdef uint32_t at = _seek(text_ids(text), text.count, id)
    return at < text.count and text_ids(text)[at] == id


cdef int texts_add_id(Texts* texts, uint32_t i, uint32_t id) noexcept nogil:
    cdef Text* text = &texts.entries[i]
    cdef uint32_t at = _seek(text_ids(text), text.count, id)
    cdef size_t capacity
    cdef uint32_t* many
    if at < text.count and text_ids(text)[at] == id:
        return 0
    if text.capacity == 0 or text.count == text.capacity:
        capacity = 4 if text.capacity == 0 else <size_t> text.capacity + text.capacity // 2
        if capacity > IDS_AT_MOST:
            return -1
        many = <uint32_t*> heap_resize(
            texts.heap, NULL if text.capacity == 0 else text.ids.many,
            text.capacity * sizeof(uint32_t), capacity * sizeof(uint32_t),
        )
        if many == NULL:
            return -1
        if text.capacity == 0:
            many[0] = text.ids.one
        text.ids.many = many
        text.capacity = <uint32_t> capacity
    memmove(&text.ids.many[at + 1], &text.ids.many[at], (text.count - at) * sizeof(uint32_t))
    text.ids.many[at] = id
    text.count += 1
    texts.pairs += 1
    return 1


cdef int texts_drop_id(Texts* texts, uint32_t i, uint32_t id) noexcept nogil:
    # Not for the last id: then the whole text goes.
    cdef Text* text = &texts.entries[i]
    cdef uint32_t at = _seek(text_ids(text), text.count, id)
    cdef uint32_t* many
    cdef uint32_t one
    cdef size_t smaller
    if at == text.count or text_ids(text)[at] != id:
        return 0
    many = text.ids.many
    text.count -= 1
    texts.pairs -= 1
    memmove(&many[at], &many[at + 1], (text.count - at) * sizeof(uint32_t))
    if text.count == 1:
        one = many[0]
        heap_give_back(texts.heap, many, text.capacity * sizeof(uint32_t))
        text.ids.one = one
        text.capacity = 0
    elif text.capacity > 8 and text.count * 4 < text.capacity:
        smaller = text.capacity // 2
        text.ids.many = <uint32_t*> heap_resize(
            texts.heap, many, text.capacity * sizeof(uint32_t), smaller * sizeof(uint32_t)
        )
        text.capacity = <uint32_t> smaller
    return 1


cdef uint32_t texts_unlink(Texts* texts, uint32_t first, uint32_t i) noexcept nogil:
    cdef uint32_t at = first
    if first == i:
        return texts.entries[i].next
    while texts.entries[at].next != i:
        at = texts.entries[at].next
    texts.entries[at].next = texts.entries[i].next
    return first


cdef object text_object(const Text* text):
    cdef bytes raw = text.bytes[:text.size] if text.size != 0 else b""
    return raw.decode("utf-8") if text.is_str else raw
