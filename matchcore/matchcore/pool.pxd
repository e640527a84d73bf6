# The dense pool: the inverted bitmap over wildcard filters, a column each.
#
#     column          0     1     2     3         filters, canonical:  0  forex.*
#     left 0  forex   1     .     .     1                              1  #.eur
#             free    .     1     1     .                              2  #.eur.#
#     left 1  free    1     1     1     1                              3  forex.#.eur.*
#     right 0 eur     .     1     .     .
#             free    1     .     1     1
#     right 1 eur     .     .     .     1
#             free    1     1     1     .
#     any     eur     .     .     1     .
#             free    1     1     .     1
#     length  2       1     1     1     .         as they take topics of 2 words
#     `$`             .     .     .     .         as they refuse a first word that begins with `$`
#
# Literals before the first MANY (all, if there is none) are found by position from the left, those after
# the last MANY by position from the right; of those between two MANYs the rarest is in the any row.
# A topic's columns: (its words' rows or the free row) of each position, anded, with the length row.
#
# Rows are kept for DEPTH positions from either end and lengths up to DEPTH, so that one filter of many
# words cannot make every topic and every insert dear. A column they do not decide (deeper literals,
# longer lengths, several MANYs) is marked TO_VERIFY and checked word by word.
#
# A position at which no column has a literal is recognised by its free row holding every column, and
# is passed over.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.bitmap cimport BLOCK_COLUMNS, Row
from matchcore.positions cimport (
    DEPTH, HAS_MANY, LENGTHS, NO_DOLLAR, POSITION_ANY, POSITION_LEFT, POSITION_RIGHT, TO_VERIFY, TOKEN_WILD,
    count_positions,
)
from matchcore.table cimport NONE, Table
from matchcore.words cimport Words


cdef enum:
    WEIGHTY = 10       # literals; a column of more weighs as if it had 10


cdef struct Column:
    uint32_t tokens    # block in Pool.tokens: word ids, TOKEN_ONE, TOKEN_MANY, the canonical filter; NONE when free
    uint32_t slot      # whose filter it is; of a free column: the next free one
    uint16_t count     # tokens
    uint16_t prefix    # tokens before the first MANY, or all
    uint16_t suffix    # tokens after the last MANY, or none
    uint16_t least     # words it takes at least, or exactly
    uint16_t sought    # index of the token in the any row, 0 none
    uint8_t flags
    uint8_t unused


# The rows of one word: bit p of `positions` is set when it has a row for position p, and rows lie in the
# order of their positions.
cdef struct WordRows:
    uint64_t positions
    Row* rows


cdef struct Pool:
    Allocator* allocator
    Words* words
    Table table            # slot -> column
    Column* columns
    Arena tokens
    uint32_t count         # columns ever used
    uint32_t capacity
    uint32_t free          # first free column, NONE none
    uint32_t* weights      # of a block of columns: 4 ** (10 - literals), summed up; blocks_of(capacity) of them
    uint32_t likely        # the heaviest, which a search for a first match begins with
    WordRows* word_rows    # by word id
    uint32_t word_capacity
    uint32_t left_depth    # free_left[i] is kept for i below this
    uint32_t right_depth
    Row live               # all columns in use
    Row[DEPTH] free_left
    Row[DEPTH] free_right
    Row free_any
    Row[LENGTHS] lengths
    Row no_dollar


cdef void pool_init(Pool* pool, Allocator* allocator, Words* words) noexcept nogil
cdef void pool_free(Pool* pool) noexcept nogil

# The column of a slot that is in the pool.
cdef uint32_t pool_find(const Pool* pool, uint32_t slot) noexcept nogil

# A new column for a canonical filter, or NONE when there is no memory. `flags` is NO_DOLLAR or 0. The words'
# references are the slot's.
cdef uint32_t pool_add(
    Pool* pool, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil
cdef void pool_remove(Pool* pool, uint32_t column) noexcept nogil


cdef inline uint32_t blocks_of(uint32_t columns) noexcept nogil:
    return (columns + BLOCK_COLUMNS - 1) // BLOCK_COLUMNS


cdef inline const uint32_t* column_tokens(const Pool* pool, const Column* column) noexcept nogil:
    return &pool.tokens.units[column.tokens]


# The row of a word for a position, or NULL.
cdef inline const Row* word_row(const Pool* pool, uint32_t id, int position) noexcept nogil:
    cdef const WordRows* entry
    cdef uint64_t bit = <uint64_t> 1 << position
    if id >= pool.word_capacity:  # interned for a text that has no column yet
        return NULL
    entry = &pool.word_rows[id]
    if not entry.positions & bit:
        return NULL
    return &entry.rows[count_positions(entry.positions & (bit - 1))]
