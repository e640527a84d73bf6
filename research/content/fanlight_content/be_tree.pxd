# Conjunctions in a tree that is cut in two ways in turns: by attribute, then by value.
#
#     node       leaf: conjunctions that are looked at one by one       parts: price, region ...
#     part       price, from 0 to 1000: its buckets
#     bucket     0-1000  -> node of what fits in neither half      0-500 -> ...      500-1000 -> ...

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from fanlight_content.contender cimport Contender
from fanlight_content.selections cimport Asked, Criterion, Seen
from matchcore.allocator cimport Numbers
from matchcore.screen cimport IdList

cdef enum:
    LEAF = 16              # conjunctions that are not cut any further
    DEEPEST = 60           # halves of one range


cdef struct TreeNode:
    uint32_t first         # of `items`
    uint32_t count
    uint32_t part          # the first one, and so on by `next`


cdef struct TreePart:
    uint16_t attribute
    uint8_t domain
    uint32_t next
    uint32_t bucket
    double low
    double high


cdef struct TreeBucket:
    double middle
    uint32_t node
    uint32_t left
    uint32_t right


cdef class BETree(Contender):
    cdef:
        Numbers items          # conjunctions, cut in place; then their selections
        TreeNode* nodes
        size_t node_count
        size_t node_capacity
        TreePart* parts
        size_t part_count
        size_t part_capacity
        TreeBucket* buckets
        size_t bucket_count
        size_t bucket_capacity
        uint8_t* used          # by attribute and domain, while it is built
        uint32_t* popular
        uint32_t attributes

    cdef const Criterion* _of(self, uint32_t conjunction, uint32_t attribute, uint8_t domain) noexcept nogil
    cdef uint32_t _node(self, uint32_t first, uint32_t end) except? 0xFFFFFFFF
    cdef uint32_t _most(self, uint32_t first, uint32_t end) noexcept nogil
    cdef uint32_t _part(self, uint32_t first, uint32_t end, uint32_t which) except? 0xFFFFFFFF
    cdef uint32_t _bucket(
        self, uint32_t first, uint32_t end, uint32_t which, double low, double high, int depth
    ) except? 0xFFFFFFFF
    cdef int _find(self, uint32_t node, const Seen* seen, Asked asked, IdList out) except -1 nogil
    cdef int _walk(
        self, const TreePart* part, double value, const Seen* seen, Asked asked, IdList out
    ) except -1 nogil
