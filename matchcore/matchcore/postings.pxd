# Postings: where each word stands in the trie, so that a filter that begins with wildcards starts at its
# rarest word instead of at the root.
#
#     first     word "4711" -> row 3
#     rows      [3: position 5, nodes {12, 80, 31} | next -> 9]   [9: position 1, nodes {4} | next: none]
#                          names with "4711" as sixth word              ... and as second
#
# A word has one row for each position it stands at, and one for all positions from DEEP on, so a chain is at most
# DEEP + 1 rows long.

from libc.stdint cimport uint16_t, uint32_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.bag cimport Bag

cdef enum:
    DEEP = 24


cdef struct PostingsRow:
    Bag nodes       # its `depth` is the position
    uint32_t next   # of the same word; of a free row: the next free one


cdef struct Postings:
    Allocator* allocator
    Arena* arena
    uint32_t* first      # by word id; NONE: it stands nowhere
    uint32_t words       # of them
    PostingsRow* rows
    uint32_t count       # rows ever used
    uint32_t capacity
    uint32_t free


cdef inline uint32_t row_place(uint32_t position) noexcept nogil:
    return position if position < DEEP else DEEP


cdef void postings_init(Postings* postings, Allocator* allocator, Arena* arena) noexcept nogil

# Gives back all but the blocks in the arena.
cdef void postings_free(Postings* postings) noexcept nogil

# The row of this word (of any id) at this position, or NONE.
cdef uint32_t postings_row(const Postings* postings, uint32_t word, uint32_t position) noexcept nogil

# How many nodes have this word, wherever it stands.
cdef size_t postings_total(const Postings* postings, uint32_t word) noexcept nogil

# Room for one more node: after it postings_add cannot fail.
cdef int postings_reserve(Postings* postings, uint32_t word, uint32_t position) noexcept nogil

# The new node's position in the row.
cdef uint32_t postings_add(Postings* postings, uint32_t word, uint32_t position, uint32_t node) noexcept nogil

# Takes out what lies at `posted`; which node lies there now.
cdef uint32_t postings_drop(Postings* postings, uint32_t word, uint32_t position, uint32_t posted) noexcept nogil
