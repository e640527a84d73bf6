# Access keys: selectors under tests of which at least one must be true if the selector is.
#
#     region = 'eu' AND id = 7          under (id = 7), if ids are of more kinds than regions
#     region = 'eu' OR id = 7           under both
#     AT LEAST 2 OF (a, b, c)           under the two of them that are true least often
#
#     key        hash of attribute, kind and value; 32 bits of it are its tag
#     table      tag -> slot, or bucket of several     two keys of one tag are as one: what is found is verified
#     buckets    [ 3 | 4, 9, 12 | . | ... ]           slots, ascending or by rank: bags (bag.pxd) in an arena
#     columns    [ region: 2 kinds of values seen, 0 keys | id: 200, 190 keys | ... ]      one for each attribute
#
# Which tests of a selector are its keys is noted behind its program, as they were chosen: costs change, and to remove
# it they must be found again. One entry:
#
#     KEY_VALUE, KEY_PRESENT     step                    what the step compares with; of IN each value
#     KEY_RANGE                  step, other step        a key in each cell between the numbers of the two
#     KEY_PREFIX, KEY_SUFFIX     step, tag, size
#
# Where the slots have ranks, those under a key are in the order of these: the best of a bucket is its first. `salt` is
# mixed into the keys of a selector: so one Access has the keys of several topic filters apart.
#
# A range of numbers overlaps cells: 64 of them a column, between the quantiles of the ends of its first ranges. A range
# that overlaps more than 8 is no key.

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.bag cimport Bag
from matchcore.program cimport Program, Step
from matchcore.table cimport Table

cdef enum:
    # of an AccessEntry
    KEY_RANGE = 0
    KEY_VALUE              # equal to a number, a text or a boolean
    KEY_PRESENT
    KEY_PREFIX             # of text, up to 63 bytes
    KEY_SUFFIX
    KEY_KINDS

cdef enum:
    CELLS = 64
    CELLS_AT_MOST = 8      # under which a range is put
    ENDS_SAMPLED = 64      # of ranges, before the cells are made
    SKETCH_BITS = 256      # of the values seen: linear counting (Whang et al., 1990)
    SKETCH_WORDS = 4
    AFFIX_AT_MOST = 63     # bytes

cdef enum:
    NO_STEP = 0xFFFF

cdef enum:
    ALONE = 0x80000000     # in the table: the rest is the only slot under the key, and no bucket


cdef struct AccessEntry:
    uint16_t step          # of the program; of a range the lower end, NO_STEP: it has none
    uint16_t kind


# What follows the entry of a range.
cdef struct AccessRange:
    uint16_t step          # of the upper end, or NO_STEP
    uint16_t attribute


# How many units of 4 bytes an entry takes.
cdef inline uint32_t access_units(uint32_t kind) noexcept nogil:
    if kind == KEY_RANGE:
        return 2
    return 3 if kind >= KEY_PREFIX else 1


# Of a slot: the smaller `order` first, of equals the smaller `number`. Rules have them (rule_table.pxd).
cdef struct Rank:
    uint64_t order
    uint32_t number
    uint32_t filter                   # the owner's


cdef inline bint rank_before(const Rank* one, const Rank* other) noexcept nogil:
    return one.order < other.order or (one.order == other.order and one.number < other.number)


cdef struct AccessColumn:
    uint32_t attribute
    uint32_t holders                  # tests of this attribute
    uint32_t[KEY_KINDS] keys          # selectors under keys of each kind
    uint64_t prefixes                 # bit n: there is, or was, a prefix of n bytes
    uint64_t suffixes
    uint64_t[SKETCH_WORDS] sketch
    uint64_t* ends                    # ENDS_SAMPLED of them, then 63 ascending bounds of the cells; NULL: no range yet
    uint32_t sampled                  # ends so far


cdef struct Access:
    Allocator* allocator
    const Rank* ranks                 # by slot, the owner's; NULL: slots are in ascending order
    Table table
    Bag* buckets
    uint32_t bucket_count             # ever used
    uint32_t bucket_capacity
    uint32_t free_bucket              # NONE: none
    Arena arena
    Table numbers                     # attribute -> column
    AccessColumn* columns
    uint32_t column_count
    uint32_t column_capacity


cdef void access_init(Access* access, Allocator* allocator) noexcept nogil
cdef void access_free(Access* access) noexcept nogil

cdef AccessColumn* access_column(const Access* access, uint32_t attribute) noexcept nogil

# The same, made if need be. NULL: no memory.
cdef AccessColumn* access_make_column(Access* access, uint32_t attribute) noexcept nogil

# A selector has this value; about how many of them were seen.
cdef void access_see(AccessColumn* column, uint64_t hash) noexcept nogil
cdef double access_values(const AccessColumn* column) noexcept nogil

# A selector has a range with this end. -1: no memory. After ENDS_SAMPLED of them there are cells.
cdef int access_sample(Access* access, AccessColumn* column, uint64_t end) noexcept nogil
cdef bint access_has_cells(const AccessColumn* column) noexcept nogil
cdef uint32_t access_cell(const AccessColumn* column, uint64_t ordered) noexcept nogil

# Counts the tests of a program that was made without an Access, and the values that it is equal to. -1: no memory, and
# some of them are counted.
cdef int access_note(Access* access, const Program* program) noexcept nogil

# Forgets the tests of a program: of a selector that is removed, or was not inserted after all. The column of the last
# one goes. access_drop does this for so many tests of one attribute.
cdef void access_forget(Access* access, const Program* program) noexcept nogil
cdef void access_drop(Access* access, uint32_t attribute, uint32_t tests) noexcept nogil

# Puts a slot under the keys of the entries behind its program. -1: no memory, and it is under none. `salt`: 0 without.
cdef int access_put(Access* access, const Program* program, uint32_t slot, uint32_t salt) noexcept nogil
cdef void access_take(Access* access, const Program* program, uint32_t slot, uint32_t salt) noexcept nogil

# Under one key, and from under it. 1: it was there; -1: no memory.
cdef int access_put_key(Access* access, uint32_t tag, uint32_t slot) noexcept nogil
cdef void access_take_key(Access* access, uint32_t tag, uint32_t slot) noexcept nogil

# How many keys it has, a cell each.
cdef uint32_t access_count(const Access* access, const Program* program) noexcept nogil

# What a step is equal to: how many values, and the tag of each.
cdef uint32_t access_step_values(const Program* program, const Step* step) noexcept nogil
cdef uint32_t access_step_tag(const Program* program, const Step* step, uint32_t which) noexcept nogil

# The ends of a range, as `ordered_float` has them.
cdef void access_ends(const Program* program, const AccessEntry* entry, uint64_t* low, uint64_t* high) noexcept nogil

# What the table has of a key: ALONE and the slot, or a bucket; NONE: nothing is under it.
cdef uint32_t access_find(const Access* access, uint32_t tag) noexcept nogil

cdef void access_tidy(Access* access) noexcept nogil


# The tag of a key by its hash (values.pxd), and of those that have no value.
cdef uint32_t tag_of_hash(uint64_t hash) noexcept nogil
cdef uint32_t tag_of_presence(uint32_t attribute) noexcept nogil
cdef uint32_t tag_of_cell(uint32_t attribute, uint32_t cell) noexcept nogil
cdef uint32_t tag_of_affix(uint32_t attribute, uint32_t kind, const char* text, size_t size) noexcept nogil
