# The buckets: filters by their access key.
#
#     table   tag of the key -> block           13 bytes a bucket and more: line_table.pxd
#     arena   a block a bucket, of 32-bit units:
#
#       | head | key words ... | record | record | ...
#         |
#         class 10 bits, records 7, units in use 15
#
#       record:  | slot | head | residual words ... |                                up to two of them
#                | slot | head | positions, a byte each ... | residual words ... |      more
#                | slot | head | count, prefix | suffix | bloom | tokens ... |       TO_VERIFY
#                         |
#                         residuals 5 bits, HAS_MANY, NO_DOLLAR, TO_VERIFY, fewest words 11, position 6, position 6
#
# A record is read in one pass where it lies, and checks all that its key does not (I4): the length, `$`, and
# the residual literals, the rarest first; or all tokens (verify.pyx), if the topic has a word for each of the 32
# bits its words set (`bloom`): nine in ten need no more.
#
# A filter goes under its rarest literal. When SPLIT filters are there already and it has another literal, the
# bucket is split: those that have more literals are taken out and put under keys of one literal more, each
# chosen anew by what is rare today. `split` remembers the tags of such keys, so that later filters pass them by;
# it is a hint and may be forgotten (its tags may also be those of words long gone: I7 does not matter to it).
#
#     "4711" [site/17/+/+/dev/4711/#, ... eight of them]  ->  {17, 4711} [...]  {3, 4711} [...]  ...

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.classes cimport Classes
from matchcore.keys cimport Key, Pattern
from matchcore.line_table cimport LineTable
from matchcore.slots cimport Slots
from matchcore.table cimport NONE, Table

cdef enum:
    SPLIT = 8                # records; 4 to 8 measured alike, 16 and more worse
    RECORDS_AT_MOST = 64     # of a bucket that cannot be split: more go to the pool
    UNITS_AT_MOST = 32767

    # bucket_add
    ADDED = 0
    NO_MEMORY = -1
    NO_ROOM = -2             # no class for it, or its bucket is full and cannot be split

    CLASS_BITS = 10
    RECORDS_SHIFT = 10
    UNITS_SHIFT = 17

    # The head of a record
    RESIDUALS = 31
    RECORD_MANY = 1 << 5
    RECORD_NO_DOLLAR = 1 << 6
    RECORD_VERIFY = 1 << 7
    LEAST_SHIFT = 8
    LEAST_BITS = 2047
    POSITION_SHIFT = 20
    VERIFIED_UNITS = 5       # of a record, before its tokens


cdef struct Buckets:
    Allocator* allocator
    Classes* classes
    Slots* slots
    LineTable table
    Arena arena
    Table split
    uint32_t live          # buckets
    uint32_t records
    uint32_t most          # SPLIT, or what a test says


cdef void buckets_init(Buckets* buckets, Allocator* allocator, Classes* classes, Slots* slots) noexcept nogil
cdef void buckets_free(Buckets* buckets) noexcept nogil

# Takes a filter in, with a key of `literals` or more, and sets its slot's tier. `classes_most`: no new class
# beyond that number.
cdef int buckets_add(Buckets* buckets, Pattern* pattern, uint32_t literals, uint32_t classes_most) noexcept nogil
cdef void buckets_remove(Buckets* buckets, const Pattern* pattern, uint32_t c) noexcept nogil

# Call after each of these: frees the room of removed records. (Not inside them: a split holds blocks.)
cdef void buckets_tidy(Buckets* buckets) noexcept nogil

# Where the record of a filter is that is in class c: its bucket's key and block, and the unit in the block.
cdef uint32_t buckets_locate(
    const Buckets* buckets, const Pattern* pattern, uint32_t c, Key* key, uint32_t* block
) noexcept nogil


cdef inline uint32_t bucket_class(uint32_t head) noexcept nogil:
    return head & ((1 << CLASS_BITS) - 1)


cdef inline uint32_t bucket_records(uint32_t head) noexcept nogil:
    return (head >> RECORDS_SHIFT) & 127


cdef inline uint32_t bucket_units(uint32_t head) noexcept nogil:
    return head >> UNITS_SHIFT


cdef inline uint32_t record_units(const uint32_t* record) noexcept nogil:
    cdef uint32_t n = record[1] & RESIDUALS
    if record[1] & RECORD_VERIFY:
        return VERIFIED_UNITS + (record[2] & 0xFFFF)
    return 2 + n + (0 if n <= 2 else (n + 3) // 4)
