# Selectors as columns of bits: those of a screen that have no selective access key.
#
#     region = 'eu' AND price > 100    column 0           row              0 1 2 3 ...
#     region <> 'us'                   column 1           region default   1 1 . .
#     price BETWEEN 10 AND 20          column 2           region 'eu'      . . . .
#     urgent IS NULL                   column 3           price cell 2     1 . . .
#
# A row says which selectors its values rule out (condition_rows.pxd). A message has one row of each attribute; what
# none of them rules out is left: 512 selectors are decided by a cache line for each attribute.
#
#     blocks    [ 512 columns: row 0 | row 1 | row 2 | ... ]      64 bytes a row, beside each other
#     columns   [ id, marks | ... ]                              and their programs
#
# A column stands for the tests that must all be true: the parts of an AND, and a test that is alone. Where these are
# the whole selector, and no row is MIXED for it, the ids are read from the bits. `marks` are the rows that are MIXED;
# where a message has one of them, the program decides. So it does for what has more marks, other parts (OR, AT LEAST),
# and tests of one attribute that compare with values of different types: text without a type is several rows at once.
#
# Row 0 is of the columns that are free: they are ruled out. A block has the rows that there were when a column was put
# into it last; instead of later ones it has their fallbacks. So neither a new column nor a new row moves more than one
# block.

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.condition_rows cimport ROWS_AT_MOST, ConditionRows
from matchcore.program cimport Program

cdef enum:
    POOL_BLOCK = 512
    MARKS = 4              # of a column
    ALWAYS_MARKED = ROWS_AT_MOST  # the program decides


cdef struct PoolColumn:
    uint32_t id            # of a free one the next free column
    uint32_t slot
    uint16_t[MARKS] marks  # 0: none


cdef struct PoolBlock:
    char* memory           # of `bits`, which are at a multiple of 64
    uint64_t* bits
    uint32_t rows
    uint32_t capacity
    PoolColumn* columns    # POOL_BLOCK of them, and their programs behind
    Program** programs     # NULL: the column is free


# Of a row that the block has.
cdef inline uint64_t* pool_line(const PoolBlock* block, uint32_t row) noexcept nogil:
    return block.bits + <size_t> row * (POOL_BLOCK // 64)


cdef struct PoolMember:
    Program* program
    uint32_t id
    uint32_t slot


cdef struct SelectorPool:
    Allocator* allocator
    ConditionRows rows
    PoolBlock* blocks
    uint32_t block_count
    uint32_t block_capacity
    uint32_t count         # of columns ever used
    uint32_t free          # NONE: none
    uint32_t live
    uint32_t made_of       # columns that the rows were made for
    uint32_t lacking       # tests put in since that had no room for their rows, or no cells


cdef inline PoolColumn* pool_column(const SelectorPool* pool, uint32_t number) noexcept nogil:
    return &pool.blocks[number // POOL_BLOCK].columns[number % POOL_BLOCK]


cdef inline Program* pool_program(const SelectorPool* pool, uint32_t number) noexcept nogil:
    return pool.blocks[number // POOL_BLOCK].programs[number % POOL_BLOCK]


# Whether rows can stand for some of a selector's tests, and may rule something out.
cdef bint pool_takes(const Program* program) noexcept nogil

# A pool with these columns, from 0 on, and rows for them. NULL: no memory.
cdef SelectorPool* pool_make(Allocator* allocator, const PoolMember* members, uint32_t count) noexcept nogil
cdef void pool_free(SelectorPool* pool) noexcept nogil

# A column for a selector; NONE: no memory. Removing one needs none.
cdef uint32_t pool_put(SelectorPool* pool, const PoolMember* member) noexcept nogil
cdef void pool_take(SelectorPool* pool, uint32_t column) noexcept nogil

# Whether a new pool of the same columns would have better rows, and is made without a long pause.
cdef bint pool_wants_remaking(const SelectorPool* pool) noexcept nogil
