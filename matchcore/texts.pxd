# The texts an index was given, each (text, syntax) once, with its ids: what `remove` finds again and
# what `filters()` gives back. It is also the exact tier: a filter without wildcards is found here by
# the words of the topic, in whichever syntax either is written.
#
#     table    hash of the words -> text
#     entries  [0: "forex.*" amqp, ids {7, 9}, target 3, next -> 5] [1: free -> 4] ...
#                                                \         \
#                                                 \         the next text of the same target
#                                                  what matches it: a column of the pool, a node of the
#                                                  trie; none for an exact filter, which is its own

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from matchcore.heap cimport Heap, Numbers
from matchcore.table cimport NONE, Table


cdef union TextIds:
    uint32_t one       # count <= 1
    uint32_t* many     # ascending


cdef struct Text:
    char* bytes        # NULL: the empty text
    TextIds ids
    uint32_t count     # ids; 0: the entry is free, and `next` is the next free one
    uint32_t capacity  # of ids.many; 0: ids.one is in use
    uint32_t size      # of bytes
    uint32_t tag
    uint32_t target
    uint32_t next
    uint8_t syntax
    uint8_t is_str     # what filters() gives back: str or bytes
    uint8_t is_exact


cdef struct Texts:
    Heap* heap
    Table table
    Text* entries
    uint32_t count     # entries ever used
    uint32_t capacity
    uint32_t free      # first free entry, NONE none
    uint32_t live      # texts held
    size_t pairs       # (text, id) pairs held


cdef void texts_init(Texts* texts, Heap* heap) noexcept nogil
cdef void texts_free(Texts* texts) noexcept nogil

# The text with these bytes in this syntax, or NONE. `hash` is that of its words.
cdef uint32_t texts_find(
    const Texts* texts, const char* start, size_t size, uint32_t syntax, uint64_t hash
) noexcept nogil

# Exact texts of the same words as this topic: at most one a syntax, so at most two. Their number.
cdef int texts_exact(
    const Texts* texts, const char* start, size_t size, uint32_t syntax, uint64_t hash, uint32_t* found
) noexcept nogil

# A new text with one id, or NONE when there is no memory.
cdef uint32_t texts_add(
    Texts* texts, const char* start, size_t size, uint32_t syntax, uint64_t hash, bint is_str, bint is_exact,
    uint32_t id
) noexcept nogil
cdef void texts_drop(Texts* texts, uint32_t text) noexcept nogil

# 1 done, 0 nothing to do, -1 no memory (adding only). The last id goes with the text: texts_drop.
cdef int texts_add_id(Texts* texts, uint32_t text, uint32_t id) noexcept nogil
cdef int texts_drop_id(Texts* texts, uint32_t text, uint32_t id) noexcept nogil
cdef bint texts_has_id(const Texts* texts, uint32_t text, uint32_t id) noexcept nogil

# Takes `text` out of the chain that begins with `first`; the new first.
cdef uint32_t texts_unlink(Texts* texts, uint32_t first, uint32_t text) noexcept nogil

cdef inline const uint32_t* text_ids(const Text* text) noexcept nogil:
    return &text.ids.one if text.capacity == 0 else text.ids.many

# (text as first given, syntax, id) of every pair: see texts.pyx.
cdef object text_object(const Text* text)
