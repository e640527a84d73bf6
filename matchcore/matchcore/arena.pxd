# Blocks of 32-bit units, packed into one array and named by number: what malloc would spend on headers
# and alignment is a third of a small block, and eight bytes of address are twice a number.
#
#     units  [ block 0 ....... | block 9 .. | free -> 31 . | block 17 ........ |      unused      ]
#                                             ^ lists[size]                    top          capacity
#
# Who takes a block keeps its size. Blocks of up to 64 units have a list of free ones for each size, larger
# ones come in sizes an eighth apart. Free blocks are not joined, so what is free may be of sizes that nobody
# wants any more: whenever a change leaves more than half as much free as is in use, the owner, who knows where
# its numbers are kept, moves its blocks into a new arena (arena_is_sparse). So units in use and free are at most
# one and a half times those in use (and 64 kB), whatever came and went; and as a pack copies at most twice
# what was given back since the last one, a change pays for two units copied for each that it frees.

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Allocator

cdef enum:
    ARENA_EXACT = 64
    ARENA_LISTS = 64 + 8 * 26 + 2


cdef struct Arena:
    Allocator* allocator
    uint32_t* units
    uint32_t top           # units ever used
    uint32_t capacity
    uint32_t free          # units in the lists
    uint32_t[ARENA_LISTS] lists


cdef extern from *:
    """
    static inline int matchcore_highest(unsigned int bits) { return 31 - __builtin_clz(bits); }
    """
    int highest_bit "matchcore_highest" (uint32_t bits) noexcept nogil


# The units a block of `size` really takes.
cdef inline uint32_t arena_rounded(uint32_t size) noexcept nogil:
    cdef uint32_t step
    if size <= ARENA_EXACT:
        return size
    step = <uint32_t> 1 << (highest_bit(size) - 3)
    return (size + step - 1) & ~(step - 1)


# The size of the free blocks in list `at`.
cdef inline uint32_t arena_size_of_list(uint32_t at) noexcept nogil:
    if at <= ARENA_EXACT:
        return at
    at -= ARENA_EXACT + 1
    return (8 + (at & 7)) << (3 + at // 8)


cdef void arena_init(Arena* arena, Allocator* allocator) noexcept nogil
cdef void arena_free(Arena* arena) noexcept nogil

# Room for a block of `size` units (1 or more, and less than 2**31): after it, arena_take cannot fail.
cdef int arena_reserve(Arena* arena, uint32_t size) noexcept nogil
cdef uint32_t arena_take(Arena* arena, uint32_t size) noexcept nogil
cdef void arena_give_back(Arena* arena, uint32_t block, uint32_t size) noexcept nogil

# The block is `size` units from now on and was `old` before; it stays where it is.
cdef void arena_shrink(Arena* arena, uint32_t block, uint32_t old, uint32_t size) noexcept nogil

# An empty arena with room for what this one has in use.
cdef int arena_like(Arena* made, const Arena* arena) noexcept nogil


cdef inline bint arena_is_sparse(const Arena* arena) noexcept nogil:
    return arena.free > 16384 and arena.free > (arena.top - arena.free) // 2
