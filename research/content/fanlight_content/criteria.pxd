# Which criteria are true of a message: an index of criteria, each with payloads (conjunctions, numbers of criteria).
#
#     values   hash -> payloads                         one look-up for each value of the message
#     at most  price:  | 3 | 7 | 12 | 90 |              sorted bounds: those from the message's value on are true
#     at least price:  | 1 | 5 | 80 |                   sorted bounds: those up to the message's value are true
#     tests    evaluated one by one, each once, however many conjunctions have it
#
# A range between two bounds is two entries, as Siena, OpIndex and Le Subscribe have it.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_content.selections cimport Criterion, Seen, Selections
from matchcore.allocator cimport Allocator
from matchcore.fields cimport Field
from matchcore.table cimport Table

cdef struct CriterionEntry:
    uint32_t group         # 0 values, 1 tests, 2 + 2 * attribute at least, 3 + 2 * attribute at most
    uint32_t payload
    uint64_t key


cdef struct Span:
    const uint32_t* items
    size_t count


# What there is of an attribute: whether values, and the places of its bounds in `keys` and `payloads`.
cdef struct BoundsOfOne:
    uint32_t least
    uint32_t least_end
    uint32_t most
    uint32_t most_end
    uint32_t values


cdef class CriteriaIndex:
    cdef:
        Selections selections
        Allocator* allocator   # the owner's
        CriterionEntry* entries  # until it is finished
        size_t count
        size_t capacity
        uint64_t* keys         # by place; those of bounds ascend
        uint32_t* payloads     # by place
        size_t places
        Table table            # hash of a value -> place of its first entry
        uint32_t* ends         # by place, of values and tests: behind the last entry with this key
        size_t valued          # places of values and tests
        size_t tested          # where tests begin
        BoundsOfOne* bounds    # by attribute
        uint32_t attributes
        Span* spans            # room for what one message may make true

    cdef int _entry(self, uint32_t group, uint64_t key, uint32_t payload) except -1
    cdef size_t _values(self, uint32_t attribute, Field* field, size_t count) noexcept nogil
    cdef size_t _bounds(self, const BoundsOfOne* one, double value, size_t count) noexcept nogil

    # How many entries a criterion is: two for a range between bounds.
    cdef int add(self, const Criterion* criterion, uint32_t payload) except -1
    cdef int finish(self) except -1

    # What is true, in `self.spans`; how many.
    cdef size_t ask(self, const Seen* seen) noexcept nogil
