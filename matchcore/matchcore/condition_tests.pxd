# What one test of a selector is of the values that a row stands for (condition_rows.pxd).
#
#     price > 100     cell 50 to 90: NEVER_TRUE     cell 90 to 120: MIXED     cell 120 to 200: ALWAYS_TRUE
#     region <> 'eu'  'eu': NEVER_TRUE              other texts: ALWAYS_TRUE, as 'eu' is not one of them
#     name LIKE 'a%'  listed texts: as they are     other texts: MIXED

from libc.stdint cimport uint64_t

from matchcore.condition_rows cimport ConditionRow, ConditionRows, PoolAttribute
from matchcore.program cimport Program, Step

cdef enum:
    # what a test is of the values of a row
    NEVER_TRUE = 0
    ALWAYS_TRUE
    MIXED

# Where the numbers begin or end that pass a test; False: it is no test of that.
cdef bint end_of_test(const Step* step, uint64_t* end) noexcept nogil

# NEVER_TRUE, ALWAYS_TRUE or MIXED, of all values of a row.
cdef int test_in_row(
    const ConditionRows* rows, const PoolAttribute* one, const ConditionRow* row, const Program* program,
    const Step* step
) noexcept nogil
