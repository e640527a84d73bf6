# cython: language_level=3
"""From the slots that match to distinct ids in ascending order. The picture is in results.pxd."""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from matchcore.allocator cimport numbers_free, numbers_reserve
from matchcore.ascending cimport FEW_IDS, gather_few, make_ascending
from matchcore.slots cimport slot_ids, slots_ids_end


cdef inline int _push_list(Allocator* allocator, Numbers* into, const uint32_t* ids, size_t count) noexcept nogil:
    if numbers_reserve(allocator, into, into.size + count) < 0:
        return -1
    memcpy(into.items + into.size, ids, count * sizeof(uint32_t))
    into.size += count
    return 0


cdef int results_of_slots(Allocator* allocator, Results* results, const Slots* slots, size_t base) noexcept nogil:
    cdef const uint32_t* found = results.slots.items
    cdef size_t n = results.slots.size
    cdef const uint32_t* ids
    cdef uint32_t* into
    cdef uint32_t highest = 0
    cdef size_t i, count
    results.ids.size = base
    if n == 0:
        return 0
    if numbers_reserve(allocator, &results.ids, base + (n if n > FEW_IDS else FEW_IDS)) < 0:
        return -1
    # One id each: the usual case.
    into = results.ids.items + base
    if n <= FEW_IDS:
        count = gather_few(into, slots.ids, found, n)
        if into[count - 1] < slots_ids_end(slots):
            results.ids.size += count
            return 0
    else:
        for i in range(n):
            into[i] = slots.ids[found[i]]
            highest = max(highest, into[i])
        if highest < slots_ids_end(slots):
            results.ids.size += n
            return make_ascending(allocator, &results.ids, base, &results.spare)
    for i in range(n):
        ids = slot_ids(slots, found[i], &count)
        if _push_list(allocator, &results.ids, ids, count) < 0:
            return -1
    if n == 1:
        return 0  # a list is ascending as it is
    return make_ascending(allocator, &results.ids, base, &results.spare)


cdef void results_free(Allocator* allocator, Results* results) noexcept nogil:
    numbers_free(allocator, &results.slots)
    numbers_free(allocator, &results.ids)
    numbers_free(allocator, &results.spare)
