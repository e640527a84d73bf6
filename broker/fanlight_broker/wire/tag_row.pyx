# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""A row of entries by tags that count upwards: drawn in tag_row.pxd."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fanlight_broker.wire.allocator cimport deallocate, reallocate

cdef enum:
    FIRST_SLOTS = 8


cdef TagSlot* append(TagRow* row, uint64_t tag) except NULL:
    """A new entry, all of it but the tag 0. tag: above all that the row has had."""
    cdef TagSlot* slot
    if row.end == row.capacity:
        make_room(row)
    slot = &row.slots[row.end]
    memset(slot, 0, sizeof(TagSlot))
    slot.tag = tag
    slot.here = True
    row.end += 1
    row.count += 1
    return slot


cdef int make_room(TagRow* row) except -1:
    """Close the row up, if that frees half of it, else double it, too."""
    cdef Py_ssize_t at, to = 0, wanted = max(<Py_ssize_t> FIRST_SLOTS, 2 * row.capacity)
    cdef TagSlot* slots = row.slots
    if 2 * row.count > row.capacity or row.capacity == 0:
        slots = <TagSlot*> reallocate(row.slots, wanted * sizeof(TagSlot))
        if slots is NULL:
            raise MemoryError()
        row.slots, row.capacity = slots, wanted
    for at in range(row.first, row.end):
        if slots[at].here:
            if at != to:
                slots[to] = slots[at]
            to += 1
    row.first, row.end = 0, to
    return 0


cdef TagSlot* find(TagRow* row, uint64_t tag) noexcept:
    """The entry with this tag, or NULL."""
    cdef TagSlot* slots = row.slots + row.first
    cdef Py_ssize_t low = 0, high = row.end - row.first - 1, middle
    if row.count == 0 or tag < slots[0].tag:
        return NULL
    if tag - slots[0].tag <= <uint64_t> high:
        high = <Py_ssize_t> (tag - slots[0].tag)    # no further on: each tag is above the one before it
        if slots[high].tag == tag:
            return &slots[high] if slots[high].here else NULL
    while low < high:
        middle = (low + high) // 2
        if slots[middle].tag < tag:
            low = middle + 1
        else:
            high = middle
    return &slots[low] if slots[low].tag == tag and slots[low].here else NULL


cdef int discard(TagRow* row) noexcept:
    """Give its memory back; it is empty then."""
    deallocate(row.slots)
    memset(row, 0, sizeof(TagRow))
    return 0
