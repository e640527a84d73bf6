# The dictionary: word <-> id, counted, so that a filter is a short row of numbers.
#
#     table   hash tag -> id
#     entries [0: "other"] [1: {hash, size 5, refs 3, "forex"}] [2: free -> 7] ...
#                           words of up to 16 bytes lie in the entry, longer ones in a block of their own
#
# Id 0 is no word: a topic's word that no filter names. An id is given again only when nothing refers
# to it any more; whoever keeps something by word id (rows, edges) has dropped it by then, for it
# dropped its last reference.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.heap cimport Heap
from matchcore.table cimport Table

cdef enum:
    OTHER = 0          # the id of every word that is not in the dictionary
    INLINE_BYTES = 16


cdef union WordBytes:
    char[INLINE_BYTES] inside
    char* outside


cdef struct Word:
    uint64_t hash
    uint32_t size
    uint32_t refs      # 0: free, and `size` is the next free id
    WordBytes bytes


cdef struct Words:
    Heap* heap
    Table table
    Word* entries
    uint32_t count     # entries ever used; ids are below it
    uint32_t capacity
    uint32_t free      # first free id, 0 none
    uint32_t live      # words held


cdef inline const char* word_start(const Word* word) noexcept nogil:
    if word.size <= INLINE_BYTES:
        return word.bytes.inside
    return word.bytes.outside


cdef uint32_t words_find(const Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil

# The id, with one more reference; OTHER when there is no memory.
cdef uint32_t words_intern(Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil
cdef void words_keep(Words* words, uint32_t id) noexcept nogil
cdef void words_release(Words* words, uint32_t id) noexcept nogil
cdef void words_free(Words* words) noexcept nogil
