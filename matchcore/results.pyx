# cython: language_level=3
"""From matched texts to distinct ids in ascending order: a merge of runs that are sorted already.

The picture is in results.pxd.
"""

from libc.string cimport memcpy

from matchcore.heap cimport numbers_free, numbers_push, numbers_reserve
from matchcore.slots cimport slot_ids
from matchcore.texts cimport Text, text_ids

cdef enum:
    FEW = 24  # up to so many ids, insertion is quicker than merging


cdef void _insertion_sort(uint32_t* ids, size_t count) noexcept nogil:
    cdef size_t i, j
    cdef uint32_t id
    for i in range(1, count):
        id = ids[i]
        j = i
        while j > 0 and ids[j - 1] > id:
            ids[j] = ids[j - 1]
            j -= 1
        ids[j] = id


cdef void _merge(
    const uint32_t* a, const uint32_t* a_end, const uint32_t* b, const uint32_t* b_end, uint32_t* out
) noexcept nogil:
    while a != a_end and b != b_end:
        if a[0] <= b[0]:
            out[0] = a[0]
            a += 1
        else:
            out[0] = b[0]
            b += 1
        out += 1
    if a != a_end:
        memcpy(out, a, (a_end - a) * sizeof(uint32_t))
    if b != b_end:
        memcpy(out, b, (b_end - b) * sizeof(uint32_t))


cdef int _merge_runs(Heap* heap, Results* results, size_t base) noexcept nogil:
    """Neighbouring runs merged in pairs until there is one: log2(runs) passes."""
    cdef uint32_t* ids = results.ids.items + base
    cdef size_t count = results.ids.size - base
    cdef uint32_t* ends = results.runs.items
    cdef size_t runs = results.runs.size
    cdef size_t i, start, middle, merged
    cdef uint32_t* other
    cdef uint32_t* source = ids
    if numbers_reserve(heap, &results.spare, count) < 0:
        return -1
    other = results.spare.items
    while runs > 1:
        start = merged = 0
        for i in range(0, runs, 2):
            if i + 1 < runs:
                middle = ends[i]
                _merge(
                    source + start, source + middle, source + middle, source + ends[i + 1], other + start
                )
                ends[merged] = ends[i + 1]
            else:
                memcpy(other + start, source + start, (ends[i] - start) * sizeof(uint32_t))
                ends[merged] = ends[i]
            start = ends[merged]
            merged += 1
        runs = merged
        source, other = other, source
    if source != ids:
        memcpy(ids, source, count * sizeof(uint32_t))
    return 0


cdef int _room(Heap* heap, Results* results, size_t more) noexcept nogil:
    if results.ids.capacity - results.ids.size < more:
        return numbers_reserve(heap, &results.ids, results.ids.size + more)
    return 0


cdef int _push_run(Heap* heap, Results* results, const uint32_t* ids, size_t count, size_t base) noexcept nogil:
    if _room(heap, results, count) < 0:
        return -1
    if count == 1:
        results.ids.items[results.ids.size] = ids[0]
    else:
        memcpy(results.ids.items + results.ids.size, ids, count * sizeof(uint32_t))
    results.ids.size += count
    return numbers_push(heap, &results.runs, <uint32_t> (results.ids.size - base))


cdef int _distinct(Heap* heap, Results* results, size_t base) noexcept nogil:
    """The runs made one, ascending, without duplicates."""
    cdef size_t count = results.ids.size - base
    cdef size_t kept = 1
    cdef size_t i
    cdef uint32_t* ids
    if count <= FEW:
        _insertion_sort(results.ids.items + base, count)
    elif _merge_runs(heap, results, base) < 0:
        return -1
    ids = results.ids.items + base
    for i in range(1, count):
        if ids[i] != ids[kept - 1]:
            ids[kept] = ids[i]
            kept += 1
    results.ids.size = base + kept
    return 0


cdef int results_ids(Heap* heap, Results* results, const Texts* texts, size_t base) noexcept nogil:
    cdef const Text* text
    cdef size_t i
    results.ids.size = base
    results.runs.size = 0
    for i in range(results.texts.size):
        text = &texts.entries[results.texts.items[i]]
        if _push_run(heap, results, text_ids(text), text.count, base) < 0:
            return -1
    return 0 if results.texts.size < 2 else _distinct(heap, results, base)


cdef int results_of_slots(Heap* heap, Results* results, const Slots* slots, size_t base) noexcept nogil:
    cdef const uint32_t* ids
    cdef size_t n = results.texts.size
    cdef size_t i, count
    results.ids.size = base
    results.runs.size = 0
    if slots.several == 0 and n <= FEW:
        # The usual case: few filters, each with one id.
        if _room(heap, results, n) < 0:
            return -1
        for i in range(n):
            results.ids.items[base + i] = slots.ids[results.texts.items[i]]
        results.ids.size = base + n
    else:
        for i in range(n):
            ids = slot_ids(slots, results.texts.items[i], &count)
            if _push_run(heap, results, ids, count, base) < 0:
                return -1
    return 0 if n < 2 else _distinct(heap, results, base)


cdef void results_free(Heap* heap, Results* results) noexcept nogil:
    numbers_free(heap, &results.texts)
    numbers_free(heap, &results.ids)
    numbers_free(heap, &results.runs)
    numbers_free(heap, &results.spare)
