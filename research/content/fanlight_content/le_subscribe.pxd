# Conjunctions in clusters: those with the same access predicate, a value, and the same number of other criteria.
#
#     bits       [ 1 | 0 | 1 | 1 | ... ]             by number of a criterion: whether it is true of the message
#     cluster    2 others, 3 conjunctions   c 7 9 12   | 31 40 8 | 5 5 77 |      a column for each other criterion
#     clusters   by number of the access predicate -> where its clusters begin; the last one has 0 conjunctions

from libc.stdint cimport uint32_t, uint64_t

from fanlight_content.contender cimport Contender
from fanlight_content.criteria cimport CriteriaIndex
from fanlight_content.selections cimport Asked, Criterion
from matchcore.allocator cimport Numbers
from matchcore.screen cimport IdList
from matchcore.table cimport Table


# A conjunction, until the clusters are made.
cdef struct Clustered:
    uint32_t access        # number of a value; 0: none
    uint32_t others
    uint32_t conjunction
    uint32_t first         # of `numbers`: all its criteria


cdef class LeSubscribe(Contender):
    cdef:
        CriteriaIndex index
        Table table            # hash of a value -> its number
        Numbers popular        # by number: conjunctions that have this value, 0 of others
        uint64_t* hashes       # by number
        size_t hash_capacity
        Clustered* waiting     # until it is finished, with `numbers`
        size_t waiting_count
        size_t waiting_capacity
        Numbers numbers
        Numbers clusters
        Numbers begins         # by number: where its clusters begin and 1; 0: it has none
        Numbers bits

    cdef uint32_t _fresh(self, uint64_t hash) except? 0
    cdef int _push(self, Numbers* numbers, uint32_t item) except -1
    cdef uint32_t _value(self, const Criterion* criterion) except 0
    cdef int _add(self, uint32_t conjunction) except -1
    cdef int _alone(self, const Criterion* criteria, size_t count) except -1
    cdef int _scan(self, uint32_t place, Asked asked, IdList out) except -1 nogil
