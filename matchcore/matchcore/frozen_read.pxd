# The bytes of a FrozenIndex as the search takes them: the structs of a FilterIndex, their pointers into the bytes.
#
#     Slots, Tiers   ---- pointers ---->   sections          nothing is copied, and nothing rebuilt,
#            \------- of their own ----->   Opened           but what cannot be without addresses:
#                                             classes        the positions of each, one by one; at most 512
#                                             likely         one bit a class: match_any learns anew here
#                                             rows           of the pool: an address of bits each
#                                             word_rows      by word id, of the pool's words

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.bitmap cimport Row
from matchcore.classes cimport Class, WIDTH_AT_MOST
from matchcore.frozen_layout cimport Header
from matchcore.pool cimport WordRows
from matchcore.slots cimport Slots
from matchcore.tiers cimport Tiers


cdef struct Opened:
    Class* classes
    uint32_t class_count
    uint64_t[WIDTH_AT_MOST] likely
    Row* rows
    uint32_t row_count
    WordRows* word_rows
    uint32_t word_capacity


# The fault in the header of bytes of this size, as text for an InvalidFrozenIndex; NULL: no fault.
# It looks at the header alone.
cdef const char* header_fault(const Header* header, size_t size) noexcept nogil

# Sets `slots` and `tiers`, of which nothing may be freed or changed; -1: no memory.
cdef int opened_init(
    Opened* opened, const Header* header, Slots* slots, Tiers* tiers, Allocator* allocator
) noexcept nogil
cdef void opened_free(Opened* opened, Slots* slots, Tiers* tiers, Allocator* allocator) noexcept nogil
