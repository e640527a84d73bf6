# The class bitmap: which sets of key positions need a probe for a topic.
#
# A filter in the buckets is found by a key, some of its literals; the set of their positions is its class. So
# the columns of this bitmap are classes, not filters: some dozens for a million filters, a word of 64 bits a
# row, and the and of the topic's rows says which keys to look up.
#
#     class             0      1      2      3
#     key positions    {L1}  {L5}  {L1,L5}  {L3,R0}
#     L1  word "17"     1      .      1      .       rows of words: bit c is set while a bucket of class c has
#     L5  word "4711"   .      1      1      .       the word at that position in its key, perhaps longer (I3)
#     L1  free          .      1      .      1       rows of positions: classes without that position
#     L5  free          1      .      .      1
#     length 7          1      1      1      .       classes with a record that takes 7 words
#     -------------------------------------------
#     site/17/floor/2/dev/4711/x  ->  0, 1, 2: three probes
#
# The rows of a word lie together, found by the rank of the position among the word's positions, and with each
# how many filters have the literal there (in any tier: what is rare is decided by it):
#
#     Word.positions  L1, L5   Word.rows -> [ row L1 | row L5 | count L1 | count L5 ]      in `rows`
#
# A row's bit must go when its last bucket does. A bucket of one key literal is alone on its bit; of the
# others `shared` counts how many are on (word, position, class), under a hash of the three: two that share a hash
# share a count, and then a bit stays longer than necessary.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.hashing cimport load64
from matchcore.positions cimport LENGTHS, POSITION_ANY, POSITIONS, count_positions, lowest_position
from matchcore.table cimport Table
from matchcore.words cimport Words

cdef enum:
    KEY_LITERALS = 6         # at most, in a key
    CLASSES_AT_MOST = 512    # beyond it filters of new classes go to the pool
    WIDTH_AT_MOST = 8        # words of 64 classes


cdef struct Class:
    uint64_t positions             # 0 and no buckets: the number is free
    uint8_t[KEY_LITERALS] position  # the same, ascending
    uint8_t literals
    uint8_t any                    # POSITION_ANY is one of them; then it is the last
    uint32_t buckets
    uint32_t hits                  # of match_any, halved now and then
    uint32_t[LENGTHS] exactly      # records that take exactly this number of words
    uint32_t[LENGTHS] at_least     # records with a MANY, by the fewest words they take


cdef struct Classes:
    Allocator* allocator
    Words* words
    const uint64_t* multipliers  # of the keys' hashes: hashing.pxd
    Arena rows
    Table shared
    Class* classes
    uint32_t count         # numbers ever used
    uint32_t live
    uint32_t width         # 64-bit words of a row; grows and never shrinks until all is gone
    uint64_t used          # positions some class has
    uint64_t* free_rows    # POSITIONS x width
    uint64_t* lengths      # LENGTHS x width
    uint64_t* likely       # width: the classes match_any has found most in
    uint32_t[POSITIONS] totals  # literals at each position, of all filters with wildcards


# The positions of a class one by one.
cdef inline void class_spell(Class* made, uint64_t positions) noexcept nogil:
    made.positions = positions
    made.any = (positions >> POSITION_ANY) & 1
    made.literals = 0
    while positions != 0 and made.literals < KEY_LITERALS:
        made.position[made.literals] = <uint8_t> lowest_position(positions)
        made.literals += 1
        positions &= positions - 1


cdef void classes_init(Classes* classes, Allocator* allocator, Words* words) noexcept nogil
cdef void classes_free(Classes* classes) noexcept nogil

# Counts a literal of a filter. -1: no memory.
cdef int classes_count(Classes* classes, uint32_t word, int position) noexcept nogil
cdef void classes_uncount(Classes* classes, uint32_t word, int position) noexcept nogil

# The class of these positions or NONE; made if need be, and then NONE means no memory or CLASSES_AT_MOST.
cdef uint32_t classes_find(const Classes* classes, uint64_t positions) noexcept nogil
cdef uint32_t classes_make(Classes* classes, uint64_t positions) noexcept nogil
cdef void classes_forget_if_empty(Classes* classes, uint32_t c) noexcept nogil

# A bucket with these key words (in the order of Class.position) comes and goes; first room for it (-1: no memory).
cdef int classes_reserve(Classes* classes, uint32_t literals) noexcept nogil
cdef void classes_bind(Classes* classes, uint32_t c, const uint32_t* ids) noexcept nogil
cdef void classes_unbind(Classes* classes, uint32_t c, const uint32_t* ids) noexcept nogil

# A record comes (by 1) or goes (by -1).
cdef void classes_record(Classes* classes, uint32_t c, uint32_t least, bint many, int by) noexcept nogil

# match_any found something in class c.
cdef void classes_hit(Classes* classes, uint32_t c) noexcept nogil


# How many filters have `word` as a literal at `position`.
cdef inline uint32_t classes_frequency(const Classes* classes, uint32_t word, int position) noexcept nogil:
    cdef uint64_t positions = classes.words.entries[word].positions
    cdef uint64_t bit = <uint64_t> 1 << position
    cdef uint32_t n
    if not positions & bit:
        return 0
    n = <uint32_t> count_positions(positions & ((<uint64_t> 1 << POSITIONS) - 1))
    return classes.rows.units[
        classes.words.entries[word].rows + n * 2 * classes.width + <uint32_t> count_positions(positions & (bit - 1))
    ]


# 64 bits of the row of a word: `positions` and `rows` are its Word's.
cdef inline uint64_t word_row_bits(
    const Classes* classes, uint64_t positions, uint32_t rows, int position, uint32_t w
) noexcept nogil:
    cdef uint64_t bit = <uint64_t> 1 << position
    if not positions & bit:
        return 0
    return load64(
        &classes.rows.units[rows + 2 * (classes.width * <uint32_t> count_positions(positions & (bit - 1)) + w)]
    )
