# A selector, compiled: its tests in one block without addresses, each with the step that comes after it.
#
#     region IN ('eu', 'us') AND (price > 100 OR urgent)
#
#     header   units, 3 steps, first 0, 1 unit of entries
#     0        price   INTEGER 100, mask >       true: 2        false: 1
#     1        urgent  BOOLEAN TRUE, mask =      true: 2        false: ENDS_FALSE
#     2        region  IN -> data                true: ENDS_TRUE   false: ENDS_FALSE
#     data     'eu', 'us', sorted
#     entries  which of these tests are access keys (access.pxd): behind the program, and not counted in its units
#
# It is made of the form without NOT (normal_form.py), so each test is true or not, and unknown is not. Jumps go forward
# only: a step is taken at most once. AT LEAST has a counter: HITS_RESET before its parts, HITS_COUNT behind each that
# is true. Cheap parts come first.
#
# A test of order is a mask of the orders for which it is true: 1 below, 2 equal, 4 above.

from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from matchcore.fields cimport Attributes, Field

cdef enum:
    # Step.code
    TEST_INTEGER = 0       # mask; low and high: the number
    TEST_FLOAT
    TEST_BOOLEAN           # mask; low
    TEST_TEXT              # mask; low: where the text begins, in bytes of the program; high: its size
    TEST_PREFIX            # mask: NEGATED; low, high as before
    TEST_SUFFIX
    TEST_LIKE              #   of a pattern: LIKE_ONE, LIKE_ANY and bytes that mean themselves
    TEST_IN                # mask: NEGATED, IN_FALSE, IN_TRUE; low: where its lists are, in units of the program
    TEST_PRESENT           # mask: NEGATED
    TEST_TOPIC             # mask: NEGATED, IN_MQTT; low, high as of a text: the filter
    TESTS
    HITS_RESET = TESTS     # mask: the counter
    HITS_COUNT             #   low: how many make it true

cdef enum:
    MASK_BELOW = 1
    MASK_EQUAL = 2
    MASK_ABOVE = 4
    MASK_ALL = 7

cdef enum:
    NEGATED = 1
    IN_FALSE = 2
    IN_TRUE = 4
    IN_MQTT = 2            # the syntax of a filter

cdef enum:
    ENDS_TRUE = 0xFFFF
    ENDS_FALSE = 0xFFFE

cdef enum:
    LIKE_ONE = 0xFE        # neither is a byte of UTF-8
    LIKE_ANY = 0xFF

cdef enum:
    TESTS_AT_MOST = 64
    COUNTERS = 32          # AT LEAST has three parts or more: 31 of them among 64 tests


cdef struct Program:
    uint32_t units         # of four bytes, with this header
    uint16_t steps
    int8_t first           # step 0; or the lower byte of ENDS_TRUE, ENDS_FALSE: it is always or never true
    uint8_t entries        # units behind the program: three a test at most


cdef struct Step:
    uint8_t code
    uint8_t mask
    uint16_t attribute
    uint16_t on_true
    uint16_t on_false
    uint32_t low           # four bytes each: blocks of an arena are not at multiples of eight
    uint32_t high


# The lists of a TEST_IN, each ascending: integers, floats that are none (eight bytes each), texts (where, size).
cdef struct ValueList:
    uint32_t integers
    uint32_t floats
    uint32_t texts


cdef inline const Step* program_steps(const Program* program) noexcept nogil:
    return <const Step*> (program + 1)


cdef inline const uint32_t* program_entries(const Program* program) noexcept nogil:
    return <const uint32_t*> program + program.units


cdef inline size_t program_bytes(const Program* program) noexcept nogil:
    # With its entries.
    return (<size_t> program.units + program.entries) * sizeof(uint32_t)


cdef inline int64_t step_integer(const Step* step) noexcept nogil:
    cdef int64_t value
    memcpy(&value, &step.low, 8)
    return value


cdef inline double step_float(const Step* step) noexcept nogil:
    cdef double value
    memcpy(&value, &step.low, 8)
    return value


cdef inline const char* step_text(const Program* program, const Step* step) noexcept nogil:
    return <const char*> program + step.low


# Whether the selector is true of these fields (Fields.at). It may note in an untyped text which number it is.
cdef bint program_holds(const Program* program, Field* at) noexcept nogil

# Whether one test is.
cdef bint step_holds(const Program* program, const Step* step, Field* at) noexcept nogil

# Linear in the text for each character of the pattern; adds to `steps` the comparisons made.
cdef bint text_is_like(
    const uint8_t* text, size_t size, const uint8_t* pattern, size_t pattern_size, uint64_t* steps
) noexcept nogil

# A program holds its attributes once for each test.
cdef void program_release(const Program* program, Attributes attributes) noexcept nogil
