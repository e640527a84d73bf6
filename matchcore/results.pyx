# cython: language_level=3
"""From the slots that match to distinct ids in ascending order. The picture is in results.pxd."""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from matchcore.ascending cimport FEW_IDS, gather_few, make_ascending
from matchcore.heap cimport numbers_free, numbers_reserve
from matchcore.slots cimport slot_ids


cdef inline int _push_list(Heap* heap, Numbers* into, const uint32_t* ids, size_t count) noexcept nogil:
    if numbers_reserve(heap, into, into.size + count) < 0:
        return -1
    memcpy(into.items + into.size, ids, count * sizeof(uint32_t))
    into.size += count
    return 0


cdef int results_of_slots(Heap* heap, Results* results, const Slots* slots, size_t base) noexcept nogil:
    cdef const uint32_t* found = results.slots.items
    cdef size_t n = results.slots.size
    cdef const uint32_t* ids
    cdef size_t i, count
    results.ids.size = base
    if numbers_reserve(heap, &results.ids, base + (n if n > FEW_IDS else FEW_IDS)) < 0:
        return -1
    if slots.several == 0:
        # One id each: the usual case.
        if n <= FEW_IDS:
            results.ids.size += gather_few(results.ids.items + base, slots.ids, found, n)
            return 0
        for i in range(n):
            results.ids.items[base + i] = slots.ids[found[i]]
        results.ids.size += n
    else:
        for i in range(n):
            ids = slot_ids(slots, found[i], &count)
            if _push_list(heap, &results.ids, ids, count) < 0:
                return -1
        if n == 1:
            return 0  # a list is ascending as it is
    return make_ascending(heap, &results.ids, base, &results.spare)


cdef void results_free(Heap* heap, Results* results) noexcept nogil:
    numbers_free(heap, &results.slots)
    numbers_free(heap, &results.ids)
    numbers_free(heap, &results.spare)
