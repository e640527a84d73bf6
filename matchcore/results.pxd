# From matched texts to their ids: gathered, sorted, each once.
#
#     text 4  [ 7 | 9 ]      runs, each ascending        [ 2 | 7 | 9 ]
#     text 1  [ 2 | 7 ]   ->  [ 7 | 9 | 2 | 7 ]   ->      merged, duplicates dropped
#
# A match works in a Results that it has checked out of its index, so that whatever runs while Python
# makes the answer (a garbage collection, in 3.11) may use the index again.

from libc.stdint cimport uint32_t

from matchcore.heap cimport Heap, Numbers
from matchcore.slots cimport Slots
from matchcore.texts cimport Texts


cdef struct Results:
    Numbers texts    # matched texts (or slots), each once
    Numbers ids
    Numbers runs     # where each text's ids end
    Numbers spare    # the other half of the merge


# Sets ids[base:] to the ids of `texts`, ascending, each once. -1: no memory.
cdef int results_ids(Heap* heap, Results* results, const Texts* texts, size_t base) noexcept nogil
cdef int results_of_slots(Heap* heap, Results* results, const Slots* slots, size_t base) noexcept nogil
cdef void results_free(Heap* heap, Results* results) noexcept nogil
