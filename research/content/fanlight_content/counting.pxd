# Counting: how many criteria of each conjunction are true.
#
#     price = 90, region = 'eu'    counters [ 1 | 2 | 0 | 1 | ... ]    needed [ 2 | 2 | 1 | 3 | ... ]

from libc.stdint cimport uint8_t, uint32_t

from fanlight_content.contender cimport Contender
from fanlight_content.criteria cimport CriteriaIndex
from fanlight_content.selections cimport Asked
from matchcore.allocator cimport Numbers
from matchcore.screen cimport IdList


cdef class Counting(Contender):
    cdef:
        CriteriaIndex index
        Numbers found          # by number here: the selection
        Numbers always         # selections with a conjunction without criteria
        uint8_t* needed        # by number here
        uint8_t* counters      # zero between two messages
        size_t needed_capacity

    cdef int add_conjunction(self, uint32_t conjunction) except -1

    # `find` without `begin` and `end`.
    cdef int count(self, Asked asked, IdList out) except -1 nogil
