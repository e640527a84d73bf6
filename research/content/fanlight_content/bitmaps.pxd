# A bit for each conjunction of a filter, a row for each value.
#
#                     0 1 2 3     0: region = eu AND price < 50     1: region = us     2: price > 90     3: kind = a
#     region  'eu'    1 . . .
#             'us'    . 1 . .
#             rest    . . 1 1     no condition on it
#     price   to 50   1 . . .     cells between the bounds that there are: a bit where the range meets the cell
#             50-90   . . . .
#             over 90 . . 1 .
#             rest    . 1 . 1
#
# By AND: for each attribute (its value's row OR rest), all together. By counting: the rows of the values are added,
# bit by bit, in slices (a slice has one binary digit of all counters), and compared with how many there should be.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_content.contender cimport Contender
from fanlight_content.selections cimport Asked, Criterion
from matchcore.allocator cimport Numbers
from matchcore.screen cimport IdList
from matchcore.table cimport Table

cdef enum:
    BLOCK = 8              # words of 64 that are looked at together
    MOST_CELLS = 64
    SLICES = 6             # counters up to 63

cdef enum:
    NO_ROW = 0xFFFFFFFF


# An attribute on which there are conditions; numbers of rows.
cdef struct RowsOfOne:
    uint32_t attribute
    uint32_t rest
    uint32_t values        # conditions
    uint32_t cell          # the first one; NO_ROW: no range
    uint32_t cells
    double* bounds         # cells - 1 of them; what is equal to one is in the cell above


# The rows that a message has of one attribute; NULL: none.
cdef struct RowsMet:
    const uint64_t* rest
    const uint64_t* one
    const uint64_t* two
    const uint64_t* cell


cdef class Bitmap(Contender):
    cdef:
        readonly bint with_ranges
        readonly bint counts
        Numbers conjunctions   # by column; then their selections
        size_t words           # of a row
        uint64_t* rows
        size_t row_count
        size_t row_capacity
        Table table            # hash -> row
        uint64_t* hashes       # by row; 0: not of a value
        size_t hash_capacity
        RowsOfOne* attributes
        size_t attribute_count
        size_t attribute_capacity
        size_t slices          # in use
        size_t live            # row: columns that there are
        size_t needed          # the first of `slices` rows
        RowsMet* met

    cdef size_t _row(self, uint64_t hash) except? 0
    cdef void _set(self, size_t row, size_t column) noexcept nogil
    cdef RowsOfOne* _of(self, uint32_t attribute) except NULL
    cdef int _cells(self) except -1
    cdef int _fill(self, size_t column, uint64_t* used) except -1
    cdef size_t _meet(self, Asked asked) noexcept nogil
    cdef int _and(self, size_t count, Asked asked, IdList out) except -1 nogil
    cdef int _count(self, size_t count, Asked asked, IdList out) except -1 nogil
    cdef int _found(self, const uint64_t* block, size_t first, Asked asked, IdList out) except -1 nogil


cdef class RangeBitmap(Bitmap):
    pass


cdef class CountingBitmap(Bitmap):
    pass
