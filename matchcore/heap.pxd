# Counted memory: every byte an index holds is asked for here, so that `nbytes` is a sum and no guess.
#
# Sizes are what was asked for; the allocator's own rounding and headers are not in them. A call that
# cannot get memory returns NULL and leaves the old block as it was: the caller undoes its own steps
# and raises MemoryError, and the index is unchanged.
#
# `allowance` counts down the growths that still succeed (-1: no such limit). Only tests set it: that is
# how each allocation of an insert is made to fail once.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc


cdef struct Heap:
    size_t bytes
    int64_t allowance


# `old` (of `old_size` bytes, NULL when 0) made `new_size` bytes; new_size 0 gives it back.
cdef inline void* heap_resize(Heap* heap, void* old, size_t old_size, size_t new_size) noexcept nogil:
    cdef void* block
    if new_size == 0:
        free(old)
        heap.bytes -= old_size
        return NULL
    if new_size > old_size and heap.allowance >= 0:
        if heap.allowance == 0:
            return NULL
        heap.allowance -= 1
    block = realloc(old, new_size)
    if block == NULL:
        if new_size > old_size:
            return NULL
        block = old  # shrinking in place always succeeds: the block is merely larger than it need be
    heap.bytes += new_size
    heap.bytes -= old_size
    return block


cdef inline void* heap_take(Heap* heap, size_t size) noexcept nogil:
    return heap_resize(heap, NULL, 0, size)


cdef inline void heap_give_back(Heap* heap, void* block, size_t size) noexcept nogil:
    if block != NULL:
        heap_resize(heap, block, size, 0)


# A growable array of 32-bit numbers: ids, slots, nodes.
#
#     items [ 7 | 9 | 12 |  .  |  .  ]
#             <- size ->   capacity 5
cdef struct Numbers:
    uint32_t* items
    size_t size
    size_t capacity


cdef inline int numbers_reserve(Heap* heap, Numbers* numbers, size_t room) noexcept nogil:
    cdef size_t capacity = numbers.capacity
    cdef uint32_t* items
    if room <= capacity:
        return 0
    if capacity < 16:
        capacity = 16
    while capacity < room:
        capacity += capacity // 2
    items = <uint32_t*> heap_resize(
        heap, numbers.items, numbers.capacity * sizeof(uint32_t), capacity * sizeof(uint32_t)
    )
    if items == NULL:
        return -1
    numbers.items = items
    numbers.capacity = capacity
    return 0


cdef inline int numbers_push(Heap* heap, Numbers* numbers, uint32_t item) noexcept nogil:
    if numbers.size == numbers.capacity and numbers_reserve(heap, numbers, numbers.size + 1) < 0:
        return -1
    numbers.items[numbers.size] = item
    numbers.size += 1
    return 0


cdef inline void numbers_free(Heap* heap, Numbers* numbers) noexcept nogil:
    heap_give_back(heap, numbers.items, numbers.capacity * sizeof(uint32_t))
    numbers.items = NULL
    numbers.size = numbers.capacity = 0
