# Entries by tags that count upwards, none twice: a row, oldest first. What CountingTags and AMQP's channels keep.
#
#   slots   [ . | . | 17 | 18 | x | 20 | 23 | . ]     x: taken out, its tag is still there to find the others by
#                     first               end
#
# Mostly the oldest are taken out first, and no tag is missing: then an entry is where its tag says. Else it is searched
# for by halves. The row is closed up, or doubled, when it has reached its end: so it has at most twice as many slots
# as there were entries, and each costs a few instructions.

from libc.stdint cimport uint32_t, uint64_t

cdef struct TagSlot:
    uint64_t tag
    uint64_t inner      # what the entry is, to its owner: another tag, and a number, or a thing
    void* thing
    uint32_t number
    bint here           # False: taken out

cdef struct TagRow:     # all 0: empty
    TagSlot* slots
    Py_ssize_t first, end       # of those in use; without entries both are 0
    Py_ssize_t capacity
    Py_ssize_t count            # entries

cdef TagSlot* append(TagRow* row, uint64_t tag) except NULL
cdef TagSlot* find(TagRow* row, uint64_t tag) noexcept
cdef int discard(TagRow* row) noexcept

cdef inline TagSlot* oldest(TagRow* row) noexcept:
    """Or NULL."""
    return &row.slots[row.first] if row.count else NULL

cdef inline TagSlot* following(TagRow* row, TagSlot* slot) noexcept:
    """The next entry behind one; NULL: it was the newest."""
    cdef TagSlot* end = row.slots + row.end
    slot += 1
    while slot < end and not slot.here:
        slot += 1
    return slot if slot < end else NULL

cdef inline void take_out(TagRow* row, TagSlot* slot) noexcept:
    slot.here = False
    row.count -= 1
    if row.count == 0:
        row.first = row.end = 0
        return
    while not row.slots[row.first].here:
        row.first += 1
