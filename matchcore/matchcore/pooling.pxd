# Which selectors of a screen are in its pool, and how they come there.
#
#     key that few messages have            stays under it: cost up to 1/32
#     other key, or none, and rows can      waits, under the key or in the row, until there are 256 of them;
#     stand for its tests                   then a pool is made of these, with the cells of their numbers
#     anything else                         stays under its key, or in the row
#
# A pool asks each message for its row of each attribute, which costs as much as some 100 glances: it is not worth it
# for fewer. Without memory for a first or a better pool all stays as it was.

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Allocator
from matchcore.program cimport Program
from matchcore.selections cimport LargeScreen, Selection

cdef enum:
    POOLED_AT_LEAST = 256


# Whether a selector is better in a pool than under the keys of its entries, if it has them, or in the row.
cdef bint belongs_to_pool(const LargeScreen* large, const Program* program, bint is_keyed) noexcept nogil

# Puts a new selector into the pool that is there; its place, or NONE: no memory.
cdef uint32_t put_into_pool(LargeScreen* large, Program* program, uint32_t id, uint32_t slot) noexcept nogil

# Makes the pool anew if it is time.
cdef void tidy_pool(Allocator* allocator, LargeScreen* large, Selection* selections) noexcept nogil

# Where there is no pool: a new selector, under keys or in the row, waits if it would be in one; makes it of enough.
cdef void wait_for_pool(
    Allocator* allocator, LargeScreen* large, Selection* selections, uint32_t slot
) noexcept nogil

# From under its keys, from the row or from the pool.
cdef void leave_place(Allocator* allocator, LargeScreen* large, Selection* selections, uint32_t slot) noexcept nogil

# With the screen.
cdef void free_pool(Allocator* allocator, LargeScreen* large) noexcept nogil
