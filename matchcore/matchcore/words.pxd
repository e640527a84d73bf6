# The dictionary: word <-> id, counted, so that a filter is a short row of numbers.
#
#     table   hash tag -> id
#     entries [0: "other"] [1: "forex" | size, positions | rows -> 40 | refs 3] [2: free -> 7] ...
#              32 bytes each: a word of up to 16 bytes lies in its entry
#     long     [ "a-word-of-more-than-16-bytes" | ... ]     the others: their blocks in an arena
#
# Nothing in it is an address, so that it can be copied as it is (frozen_layout.pxd).
#
# `positions` and `rows` belong to the class bitmap (classes.pxd): where, in the filters with wildcards, the word
# is a literal. They are here because a match that has found a word needs them next.
#
# Id 0 is no word: a topic's word that no filter names. An id is given again only when nothing refers to it
# any more (I7); whoever keeps something by word id (rows, edges) has dropped it by then, for it dropped its
# last reference.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

from matchcore.allocator cimport Allocator, prefetch
from matchcore.arena cimport Arena
from matchcore.table cimport NONE, Table

cdef enum:
    OTHER = 0          # the id of every word that is not in the dictionary
    INLINE_BYTES = 16
    SIZE_SHIFT = 56    # in Word.positions: the size of a word that lies in its entry, or LONG_WORD
    LONG_WORD = 31


cdef struct Word:
    uint64_t low       # the word, padded with zeros; of a long one its block in Words.long
    uint64_t high      #                              and its size
    uint64_t positions    # bits 0..48: positions; from bit 56 the size
    uint32_t rows
    uint32_t refs      # 0: free, and `rows` is the next free id


cdef struct Words:
    Allocator* allocator
    Table table
    Arena long
    Word* entries
    uint32_t count     # entries ever used; ids are below it
    uint32_t capacity
    uint32_t free      # first free id, 0 none
    uint32_t live      # words held


cdef inline uint32_t word_size(const Word* word) noexcept nogil:
    cdef uint64_t size = word.positions >> SIZE_SHIFT
    return <uint32_t> (word.high if size == LONG_WORD else size)


cdef inline const char* word_start(const Words* words, const Word* word) noexcept nogil:
    if word.positions >> SIZE_SHIFT == LONG_WORD:
        return <const char*> &words.long.units[word.low]
    return <const char*> &word.low


# The id of a word whose hash is known, and for one of up to 16 bytes the two numbers (see hashing.pxd). The
# dictionary is not empty.
cdef inline uint32_t words_seek(
    const Words* words, const char* start, uint32_t size, uint64_t hash, uint64_t low, uint64_t high
) noexcept nogil:
    cdef uint32_t tag = <uint32_t> (hash >> 32)
    cdef uint32_t i = tag & words.table.mask
    cdef uint64_t cell
    cdef const Word* word
    while True:
        cell = words.table.cells[i]
        if cell == 0:
            return OTHER
        if <uint32_t> (cell >> 32) == tag:
            word = &words.entries[<uint32_t> cell - 1]
            if size <= INLINE_BYTES:
                if word.low == low and word.high == high and word.positions >> SIZE_SHIFT == size:
                    return <uint32_t> cell - 1
            elif word.positions >> SIZE_SHIFT == LONG_WORD and word.high == size:
                if memcmp(&words.long.units[word.low], start, size) == 0:
                    return <uint32_t> cell - 1
        i = (i + 1) & words.table.mask


# Asks ahead of time for the word that this hash most likely leads to. The table was asked for by table_prefetch.
cdef inline void words_expect(const Words* words, uint64_t hash) noexcept nogil:
    cdef uint64_t cell = words.table.cells[<uint32_t> (hash >> 32) & words.table.mask]
    prefetch(&words.entries[<uint32_t> cell - <uint32_t> (cell != 0)])  # without a branch: it is as good as random


cdef void words_init(Words* words, Allocator* allocator) noexcept nogil

cdef uint32_t words_find(const Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil

# The id, with one more reference; OTHER when there is no memory.
cdef uint32_t words_intern(Words* words, const char* start, uint32_t size, uint64_t hash) noexcept nogil
cdef void words_release(Words* words, uint32_t id) noexcept nogil
cdef void words_free(Words* words) noexcept nogil
