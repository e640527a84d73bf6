# The rules that a fact meets, in the order of their salience; `first` ends at the first of them.
#
#     tags      the keys of the fact's fields                 each is looked up for no filter, and for each that matches
#     cursors   [ bucket, position, rank there | ... ]        a heap by rank: the buckets that were found
#
# The buckets are in the order of the ranks. So they are merged: the rule of the best rank of all is verified next, and
# the first one that is true wins. A bucket whose best rule is worse than that is never opened, nor what is behind. A
# rule that is under several keys comes up several times in a row.
#
# Looking at memory in no order is most of the cost of large tables: all keys are asked for before the first is looked
# up, and so on with buckets, their items and the ranks of these.

from libc.stdint cimport uint16_t, uint32_t

from matchcore.access cimport Access, Rank
from matchcore.allocator cimport Allocator, Numbers
from matchcore.fields cimport Fields
from matchcore.glance cimport Glance
from matchcore.program cimport Program

cdef enum:
    REST_TAG = 0x5EC7      # of the key of rules that have no cheap one

cdef enum:
    # RuleRecord.place
    IN_THE_REST = 0
    UNDER_KEYS = 1


# A rule as a search sees it, beside its Rank: 16 bytes each, so four of either are in a cache line.
cdef struct RuleRecord:
    Program* program       # NULL: free, and the number of its rank is the next free slot
    Glance glance
    uint16_t place


# What is mixed into the keys of the rules of a filter.
cdef inline uint32_t salt_of(uint32_t filter) noexcept nogil:
    return (filter + 1) * <uint32_t> 2654435761  # 0 of NONE


cdef struct BucketCursor:
    const uint32_t* at     # the slot of this rank
    const uint32_t* end
    Rank rank              # but for the filter: that of the key


cdef class Scratch:
    cdef:
        Allocator allocator
        Fields fields
        Numbers tags
        Numbers filters        # that match the topic, and NONE
        Numbers alone          # slots that are under a key of their own
        Numbers found          # slots, in the order of their ranks
        BucketCursor* cursors
        uint32_t count
        uint32_t capacity
        size_t looked_at       # rules, by the last search

    cdef int reserve(self, size_t cursors) noexcept nogil


# Into `scratch.found`: the first `most` rules that are true of the fields. -1: no memory.
cdef int rules_find(const Access* access, const RuleRecord* records, Scratch scratch, size_t most) noexcept nogil
