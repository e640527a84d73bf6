# cython: language_level=3, cdivision=True
"""Blocks of 32-bit units in one array, with lists of free ones by size. Drawn in arena.pxd."""

from libc.string cimport memset

from matchcore.allocator cimport deallocate, reallocate
from matchcore.table cimport NONE

cdef enum:
    UNITS_AT_MOST = 0xFFFFFF00  # a number and one more stay below 2**32


cdef inline uint32_t _list(uint32_t size) noexcept nogil:
    """Of a size that is rounded."""
    cdef int high
    if size <= ARENA_EXACT:
        return size
    high = highest_bit(size)
    return ARENA_EXACT + 1 + 8 * (high - 6) + ((size >> (high - 3)) & 7)


cdef void arena_init(Arena* arena, Allocator* allocator) noexcept nogil:
    arena.allocator = allocator
    arena.units = NULL
    arena.top = arena.capacity = arena.free = 0
    memset(arena.lists, 0xFF, sizeof(arena.lists))


cdef void arena_free(Arena* arena) noexcept nogil:
    deallocate(arena.allocator, arena.units, <size_t> arena.capacity * sizeof(uint32_t))
    arena_init(arena, arena.allocator)


cdef int _resize(Arena* arena, size_t capacity) noexcept nogil:
    cdef uint32_t* units
    if capacity > UNITS_AT_MOST:
        return -1
    units = <uint32_t*> reallocate(
        arena.allocator, arena.units, <size_t> arena.capacity * sizeof(uint32_t), capacity * sizeof(uint32_t)
    )
    if units == NULL:
        return -1
    arena.units = units
    arena.capacity = <uint32_t> capacity
    return 0


cdef int arena_reserve(Arena* arena, uint32_t size) noexcept nogil:
    cdef size_t capacity
    size = arena_rounded(size)
    if arena.lists[_list(size)] != NONE or arena.capacity - arena.top >= size:
        return 0
    # By a fifth, once it is large: half of that is what lies unused on average.
    capacity = <size_t> arena.capacity + size
    capacity += capacity // 2 if capacity < 65536 else capacity // 5
    return _resize(arena, capacity)


cdef uint32_t arena_take(Arena* arena, uint32_t size) noexcept nogil:
    cdef uint32_t block, at
    cdef uint32_t wanted = size
    size = arena_rounded(size)
    at = _list(size)
    block = arena.lists[at]
    if block != NONE:
        arena.lists[at] = arena.units[block]
        arena.free -= size
    else:
        block = arena.top
        arena.top += size
    if size != wanted:  # nobody writes there, and what malloc left must not go out with a copy
        memset(&arena.units[block + wanted], 0, (size - wanted) * sizeof(uint32_t))
    return block


cdef void arena_give_back(Arena* arena, uint32_t block, uint32_t size) noexcept nogil:
    cdef uint32_t at
    size = arena_rounded(size)
    at = _list(size)
    arena.units[block] = arena.lists[at]
    arena.lists[at] = block
    arena.free += size
    if arena.free == arena.top:
        arena_free(arena)


cdef inline uint32_t _largest(uint32_t size) noexcept nogil:
    """The largest size of a block within `size` units."""
    return size if size <= ARENA_EXACT else size & ~((<uint32_t> 1 << (highest_bit(size) - 3)) - 1)


cdef void arena_shrink(Arena* arena, uint32_t block, uint32_t old, uint32_t size) noexcept nogil:
    cdef uint32_t end = block + arena_rounded(old)
    cdef uint32_t part
    block += arena_rounded(size)
    while block < end:
        part = _largest(end - block)
        arena_give_back(arena, block, part)
        block += part


cdef int arena_like(Arena* made, const Arena* arena) noexcept nogil:
    cdef size_t live = arena.top - arena.free
    arena_init(made, arena.allocator)
    return _resize(made, live + live // 8 + 16)
