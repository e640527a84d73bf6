# From the slots that match to their ids: gathered, put in order, each once.
#
#     slot 4  [ 7 | 9 ]
#     slot 1  [ 2 | 7 ]   ->  [ 7 | 9 | 2 | 7 ]   ->   [ 2 | 7 | 9 ]
#
# A match works in a Results that it has checked out of its index, so that whatever runs while Python
# makes the answer (a garbage collection, in 3.11) may use the index again.

from matchcore.allocator cimport Allocator, Numbers
from matchcore.slots cimport Slots


cdef struct Results:
    Numbers slots    # that match, each once
    Numbers ids
    Numbers spare    # scratch of the sort


# Sets ids[base:] to the ids of `slots`, ascending, each once. -1: no memory.
cdef int results_of_slots(Allocator* allocator, Results* results, const Slots* slots, size_t base) noexcept nogil
cdef void results_free(Allocator* allocator, Results* results) noexcept nogil
