# Making the bytes of a FrozenIndex, in two steps: what the index must be held for, and what it need not.
#
#     copy      index held: sizes added up, one allocation, arrays copied        O(bytes), a memcpy
#     finish    index free to change: frozen_finish.pxd

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.classes cimport WIDTH_AT_MOST
from matchcore.frozen_layout cimport Header, section_of
from matchcore.hashing cimport MULTIPLIERS
from matchcore.slots cimport Slots
from matchcore.syntax cimport Limits
from matchcore.tiers cimport Tiers

cdef enum:
    ARENAS = 6


cdef struct Draft:
    Allocator* allocator
    const Slots* slots               # of the index, while it is held
    const Tiers* tiers
    Limits limits
    uint64_t version
    uint64_t[4] secret               # the copy's own
    uint64_t[MULTIPLIERS] multipliers
    uint64_t[WIDTH_AT_MOST] likely   # taken with the GIL: match_any changes them beside other readers
    const char* selectors            # their bytes, to be copied; NULL: there are none
    size_t selectors_size
    void* block                      # the allocation
    size_t block_size
    Header* header                   # from the first multiple of 64 bytes in it
    uint32_t* buckets                # where each begins
    Arena[ARENAS] arenas             # which of their blocks were free


cdef inline void* draft_section(Draft* draft, int section) noexcept nogil:
    return <void*> section_of(draft.header, section)


# -1: no memory, and nothing is held.
cdef int draft_copy(Draft* draft) noexcept nogil

# Of one that was copied and will not be finished.
cdef void draft_free(Draft* draft) noexcept nogil
