# cython: language_level=3, cdivision=True
"""Asking the access keys of a large screen. Drawn in key_search.pxd."""

from libc.stdint cimport uint32_t

from matchcore.access cimport ALONE, Access, access_find
from matchcore.allocator cimport numbers_push, prefetch
from matchcore.bag cimport Bag, bag_items
from matchcore.glance cimport glance_passes
from matchcore.message_keys cimport keys_of_message
from matchcore.program cimport program_holds
from matchcore.selections cimport UNDER_SEVERAL
from matchcore.table cimport NONE, table_prefetch

cdef enum:
    AHEAD = 8              # selections asked for before they are looked at
    CANDIDATES = 64        # that are verified together
    KEYS = 64              # that are looked up together


cdef struct KeyCandidates:
    uint32_t[CANDIDATES] slots
    uint32_t count


# Where the selectors under a key are. `reference`: what the table has.
cdef struct KeySlots:
    const uint32_t* slots
    uint32_t size
    uint32_t reference


cdef int _verify(
    const Selection* selections, Fields fields, KeyCandidates* candidates, KeyScratch* scratch
) noexcept nogil:
    cdef const Selection* selection
    cdef uint32_t i
    for i in range(candidates.count):
        selection = &selections[candidates.slots[i]]
        if program_holds(selection.program, fields.at):
            if numbers_push(scratch.allocator, scratch.ids, selection.id) < 0:
                return -1
    candidates.count = 0
    return 0


cdef int _look_at(
    const Selection* selections, const uint32_t* slots, uint32_t count, Fields fields, KeyCandidates* candidates,
    KeyScratch* scratch
) noexcept nogil:
    """What lies under one key."""
    cdef uint32_t i, slot, bit
    for i in range(count):
        slot = slots[i]
        if i + AHEAD < count:
            prefetch(&selections[slots[i + AHEAD]])
        if not glance_passes(&selections[slot].glance, fields.views):
            continue
        if selections[slot].place == UNDER_SEVERAL:
            bit = <uint32_t> 1 << (slot & 31)
            if scratch.marks.items[slot >> 5] & bit:
                continue
            if numbers_push(scratch.allocator, scratch.marked, slot) < 0:
                return -1
            scratch.marks.items[slot >> 5] |= bit
        prefetch(selections[slot].program)
        candidates.slots[candidates.count] = slot
        candidates.count += 1
        if candidates.count == CANDIDATES and _verify(selections, fields, candidates, scratch) < 0:
            return -1
    return 0


cdef int _look_up(
    const Access* access, const Selection* selections, const uint32_t* tags, uint32_t count, Fields fields,
    KeyCandidates* candidates, KeyScratch* scratch
) noexcept nogil:
    """Up to KEYS of them."""
    cdef KeySlots[KEYS] found
    cdef KeySlots* key
    cdef uint32_t keys = 0
    cdef uint32_t i, j
    cdef const Bag* bag
    for i in range(count):
        key = &found[keys]
        key.reference = access_find(access, tags[i])
        if key.reference == NONE:
            continue
        if key.reference & ALONE:
            key.reference &= ~<uint32_t> ALONE
            key.slots = &key.reference
            key.size = 1
        else:
            key.slots = NULL
            prefetch(&access.buckets[key.reference])
        keys += 1
    for i in range(keys):
        key = &found[i]
        if key.slots == NULL:
            bag = &access.buckets[key.reference]
            key.slots = bag_items(&access.arena, bag)
            key.size = bag.size
            prefetch(key.slots)
    for i in range(keys):
        for j in range(min(found[i].size, <uint32_t> AHEAD)):
            prefetch(&selections[found[i].slots[j]])
    for i in range(keys):
        if _look_at(selections, found[i].slots, found[i].size, fields, candidates, scratch) < 0:
            return -1
    return 0


cdef int find_under_keys(
    const LargeScreen* large, const Selection* selections, Fields fields, KeyScratch* scratch
) noexcept nogil:
    cdef const Access* access = &large.access
    cdef KeyCandidates candidates
    cdef uint32_t first = 0
    cdef uint32_t i, count
    if access.table.cells == NULL:
        return 0
    candidates.count = 0
    scratch.tags.size = 0
    if keys_of_message(access, fields, scratch.allocator, scratch.tags) < 0:
        return -1
    count = <uint32_t> scratch.tags.size
    for i in range(count):
        table_prefetch(&access.table, scratch.tags.items[i])
    while first < count:
        if _look_up(
            access, selections, &scratch.tags.items[first], min(count - first, <uint32_t> KEYS), fields, &candidates,
            scratch
        ) < 0:
            return -1
        first += KEYS
    return _verify(selections, fields, &candidates, scratch)
