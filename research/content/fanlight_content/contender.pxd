# What a contender is: selections in, a message asked, the ids of those that are true out.
#
#     contest   filter 0 -> contender | filter 1 -> contender | ...     one contender for each filter of the topic, or
#               one contender for all filters, in which the filter is one criterion more ("over all")
#
# Contenders are filled once and then asked; nothing is removed. What one finds by its criteria it verifies by the
# program (`check`), so all of them answer exactly what the selector says.

from libc.stdint cimport uint32_t

from fanlight_content.selections cimport Asked, Criterion, Seen, Selections
from matchcore.allocator cimport Allocator, Numbers
from matchcore.screen cimport IdList


cdef class Contender:
    cdef:
        Selections selections
        Allocator allocator     # what it takes besides the programs
        readonly bint over_all

    # The fields that its criteria look at.
    cdef const Seen* seen(self, Asked asked) noexcept nogil

    cdef int add(self, uint32_t selection) except -1

    # The conjunctions of a selection, into a list of them.
    cdef int list_conjunctions(self, uint32_t selection, Numbers* into) except -1

    # After the last one; before a first question.
    cdef int finish(self) except -1

    # Adds the ids to `out`, each once.
    cdef int find(self, Asked asked, IdList out) except -1 nogil

    # The criteria of a conjunction, that of the filter included for those over all; how many.
    cdef const Criterion* criteria(self, uint32_t conjunction, size_t* count) noexcept nogil

    # A candidate: its id goes to `out` if the program holds, once.
    cdef int check(self, uint32_t selection, Asked asked, IdList out) except -1 nogil
    cdef int check_conjunction(self, uint32_t conjunction, Asked asked, IdList out) except -1 nogil

    # Before and after candidates that may come several times.
    cdef int begin(self, IdList out) except -1 nogil
    cdef void end(self, IdList out) noexcept nogil


cdef class Contest:
    cdef:
        readonly Selections selections
        list held               # the contenders
        void** by_slot          # NULL: no selector on it
        size_t slots
        readonly bint over_all
        IdList out

    cdef int _ask(self, Asked asked) except -1 nogil
