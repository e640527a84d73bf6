# Which selectors of a screen are in its pool, and how they come there.
#
#     key that few messages have            stays under it: cost up to 1/32
#     other key, or none, and rows can      waits, under the key or in the row, until there are 256 of them;
#     stand for its tests                   then a pool is made of these, with the cells of their numbers
#     anything else                         stays under its key, or in the row
#
# A pool asks each message for its row of each attribute, which costs as much as some 100 glances: it is not worth it
# for fewer. No insert fails for a pool: without memory for it a selector stays where it was.

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Allocator
from matchcore.selections cimport LargeScreen, Selection

cdef enum:
    POOLED_AT_LEAST = 256


# Moves a selector that has its place, under keys or in the row, into the pool if that is better.
cdef void consider_pool(
    Allocator* allocator, LargeScreen* large, Selection* selections, uint32_t slot
) noexcept nogil

# From under its keys, from the row or from the pool.
cdef void leave_place(Allocator* allocator, LargeScreen* large, Selection* selections, uint32_t slot) noexcept nogil

# With the screen.
cdef void free_pool(Allocator* allocator, LargeScreen* large) noexcept nogil
