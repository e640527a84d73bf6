# Conjunctions by size and key: a list of them for each key, in order.
#
#     size 2   region = 'eu'      3  9  12
#              price in cell 8-15 3  12 40        3 and 12 are in two lists: candidates
#
# A range is in the lists of the dyadic intervals that it is made of, of 64 cells; a number is in one of each length.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_content.contender cimport Contender
from fanlight_content.selections cimport Asked, Criterion, Seen
from matchcore.allocator cimport Numbers
from matchcore.fields cimport Field
from matchcore.screen cimport IdList
from matchcore.table cimport Table

cdef enum:
    LEVELS = 6
    GRID = 64              # cells, 1 << LEVELS
    LONGEST = 128          # constraints of a conjunction that have keys
    LISTS = 4096           # that one message may open


cdef struct Keyed:
    uint64_t key
    uint32_t conjunction


# Equal cells between the least and the greatest bound of an attribute.
cdef struct Domain:
    double low
    double high
    uint32_t ranges
    uint32_t values


cdef struct Cursor:
    const uint32_t* at
    const uint32_t* end


cdef class KIndex(Contender):
    cdef:
        Domain* domains        # by attribute
        uint32_t attributes
        Numbers waiting        # conjunctions
        Keyed* keyed           # until it is finished
        size_t keyed_count
        size_t keyed_capacity
        Table table            # key -> list
        uint64_t* keys         # by list
        uint32_t* begins       # by list: of `conjunctions`; one more at the end
        size_t lists
        Numbers conjunctions
        Numbers always         # conjunctions without a key
        uint32_t[LONGEST + 1] sizes  # conjunctions of each size
        Cursor* cursors        # LISTS of them

    cdef int _add(self, uint32_t conjunction) except -1
    cdef int _put(self, uint64_t key, uint32_t conjunction) except -1
    cdef size_t _open(self, uint64_t key, size_t count) noexcept nogil
    cdef size_t _lists_of(self, const Seen* seen, uint32_t size) noexcept nogil
    cdef int _merge(self, size_t count, uint32_t size, Asked asked, IdList out) except -1 nogil
