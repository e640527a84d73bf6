# Conjunctions by one of their attributes, the pivot, and counted there.
#
#     by pivot    device: counting of the conjunctions that have it     site: ...     none: always asked

from libc.stdint cimport uint32_t

from fanlight_content.contender cimport Contender
from fanlight_content.counting cimport Counting
from matchcore.allocator cimport Numbers


cdef class OpIndex(Contender):
    cdef:
        list held              # Counting
        void** by_pivot        # by attribute; NULL: no conjunction has this pivot
        uint32_t attributes
        Counting rest
        Numbers waiting        # conjunctions, until it is finished
        Numbers popular        # by attribute: conjunctions that have it

    cdef uint32_t _pivot(self, uint32_t conjunction) noexcept nogil
