# The selectors of one workload, compiled once: what all contenders hold, so that they differ in how they search alone.
#
#     selection      slot 3, id 7   program of matchcore, by which whatever is found is verified
#     conjunctions   region = 'eu' AND price > 100     region = 'us' AND price > 100      of (region = .. OR ..) AND ..
#     criteria       region: value #51 | price: range 100 to inf | the filter: value #3
#
# A criterion may be true more often than its test (integers beyond 2^53 are rounded, two values may share a hash),
# never less often. Behind the criteria of a conjunction stands one more, that the topic's filter is this one: for
# contenders that search all filters at once.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.fields cimport Attributes, Field, Fields
from matchcore.program cimport Program

cdef enum:
    # Criterion.kind
    BY_VALUE = 0           # equal to the value of this hash
    BY_RANGE               # a number from low to high, both included
    BY_TEST                # of a test that is evaluated: LIKE, <>, IS NULL, order of texts

cdef enum:
    # Criterion.domain
    OF_NUMBERS = 0
    OF_TEXTS               # their hashes
    OF_BOOLEANS
    DOMAINS

cdef enum:
    SLOTS_AT_MOST = 4


cdef struct Criterion:
    uint8_t kind
    uint8_t domain         # BY_VALUE, BY_RANGE: of what `low` and `high` are
    uint16_t attribute
    uint32_t constraint    # of several with one number any is enough: values of an IN
    uint64_t value         # BY_VALUE: the hash; BY_TEST: which test
    double low             # BY_VALUE: a point, the same as `high`
    double high


cdef struct Conjunction:
    uint32_t selection
    uint32_t constraints   # without that of the filter
    size_t first           # criterion
    size_t count           # without that of the filter


cdef struct Selection:
    Program* program
    uint32_t slot          # of the filter
    uint32_t id
    uint32_t first         # conjunction
    uint32_t conjunctions


cdef class Selections:
    cdef:
        readonly Attributes attributes
        Allocator allocator            # of the programs
        Allocator beside               # of what only building needs
        Selection* items
        readonly size_t count
        size_t capacity
        Conjunction* conjunctions
        size_t conjunction_count
        size_t conjunction_capacity
        Criterion* criteria
        size_t criterion_count
        size_t criterion_capacity
        Program** tests                # each a program of one step
        size_t test_count
        size_t test_capacity
        dict test_numbers
        list selectors                 # as they were given: for what compiles them in a way of its own
        readonly uint32_t wide         # filters below it are in one attribute, the others in another
        uint32_t[2] filter_attributes

    cdef Program* _copied(self, object normal) except NULL
    cdef void _free(self, Program* program) noexcept
    cdef int _push(self, const Criterion* criterion) except -1
    cdef int _conjunction(self, list leaves, uint32_t slot) except -1
    cdef int _leaf(self, object leaf, uint32_t constraint) except -1
    cdef int _value(self, object attribute, object value, uint32_t constraint) except -1
    cdef int _test(self, object leaf, uint32_t constraint) except -1


# The fields of a message, as compiled code reads them.
cdef struct Seen:
    Field* at              # by number of the attribute
    const uint32_t* numbers
    uint32_t count         # of attributes that are set


# A message to ask about: its fields, those with its filters among them, and its filters.
cdef class Asked:
    cdef:
        readonly Fields fields
        readonly Fields with_filters
        Seen[2] seen       # of the two
        uint32_t[SLOTS_AT_MOST] slots
        readonly uint32_t count
        readonly tuple filters # the slots
        readonly object mapping


# Whether this criterion belongs to the first constraint on its attribute that is not BY_TEST: for contenders that look at
# one for each attribute.
cdef inline bint is_first_of_attribute(const Criterion* criteria, size_t at) noexcept nogil:
    cdef size_t i
    if criteria[at].kind == BY_TEST:
        return False
    for i in range(at):
        if criteria[i].attribute == criteria[at].attribute and criteria[i].kind != BY_TEST \
                and criteria[i].constraint != criteria[at].constraint:
            return False
    return True


cdef inline bint is_asked(const uint32_t* slots, uint32_t count, uint32_t slot) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if slots[i] == slot:
            return True
    return False
