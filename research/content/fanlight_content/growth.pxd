# Arrays that grow, in counted memory (matchcore.allocator): what they take is what a contender is charged for.

from matchcore.allocator cimport Allocator, reallocate


# The items with room for `wanted` of them, `each` bytes; MemoryError.
cdef inline void* grown(
    Allocator* allocator, void* items, size_t* capacity, size_t wanted, size_t each
) except? NULL nogil:
    cdef size_t room = capacity[0]
    cdef void* block
    if wanted <= room:
        return items
    while room < wanted:
        room = room + room // 2 + 8
    block = reallocate(allocator, items, capacity[0] * each, room * each)
    if block == NULL:
        with gil:
            raise MemoryError()
    capacity[0] = room
    return block


# The items without the room that is not used. Less memory is never refused (matchcore.allocator).
cdef inline void* trimmed(Allocator* allocator, void* items, size_t* capacity, size_t count, size_t each) noexcept nogil:
    cdef void* block = reallocate(allocator, items, capacity[0] * each, count * each)
    capacity[0] = count
    return block
