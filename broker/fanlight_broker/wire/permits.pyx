# cython: language_level=3
"""Permits of classes beyond those that a route has room for. Drawn in permits.pxd."""

from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate

cdef enum:
    LINE = 64                # bytes of a line of the processor's cache, and of a set
    FIRST_ENTRIES = 1 << 10  # 16 KiB
    MOST_ENTRIES = 1 << 20   # 16 MiB: 1,000 classes on 1,000 topics
    GROWTH = 4               # where a set has one entry on average: few are full then

cdef PermitSets now          # what is kept goes here
cdef PermitSets before       # the smaller table that it was, or NULL
cdef uint64_t serials        # given so far
cdef uint64_t evicted        # permits that made room for others
cdef uint64_t FACTOR = 0x9E3779B97F4A7C15, SPREAD = 0xD6E8FEB86659FD93
cdef uint64_t STEP = 6364136223846793005
cdef uint64_t dice = FACTOR
memset(&now, 0, sizeof(PermitSets))
memset(&before, 0, sizeof(PermitSets))


cdef inline PermitEntry* set_of(PermitSets* table, uint64_t serial, uint32_t permit) noexcept:
    """The first entry of the only set that a permit may stand in."""
    cdef uint64_t mixed = serial * FACTOR + permit * SPREAD
    mixed = (mixed ^ mixed >> 32) * FACTOR
    return table.entries + WAYS * (mixed >> 32 & (table.sets - 1))


cdef uint64_t permit_serial() noexcept:
    """One that no route has had."""
    global serials
    serials += 1
    return serials


cdef bint permit_known(uint64_t serial, uint32_t permit) noexcept:
    """Was a permit kept, and is still there?"""
    cdef PermitEntry* entry
    cdef int i
    if now.entries is not NULL:
        entry = set_of(&now, serial, permit)
        for i in range(WAYS):
            if entry[i].serial == serial and entry[i].permit == permit:
                return True
    if before.entries is not NULL:
        entry = set_of(&before, serial, permit)
        for i in range(WAYS):
            if entry[i].serial == serial and entry[i].permit == permit:
                entry[i].serial = 0
                before.used -= 1
                permit_keep(serial, permit)
                return True
    return False


cdef int permit_keep(uint64_t serial, uint32_t permit) noexcept:
    """Keep a permit that is not known. Without the memory for it, it is asked for again."""
    global evicted, dice
    cdef PermitEntry* entry
    cdef int i
    if now.used >= now.sets and WAYS * now.sets < MOST_ENTRIES:
        grow()
    if now.entries is NULL:
        return 0
    entry = set_of(&now, serial, permit)
    for i in range(WAYS):
        if entry[i].serial == 0:
            now.used += 1
            break
    else:
        dice = dice * STEP + FACTOR    # Knuth's MMIX
        i = <int> (dice >> 62)
        evicted += 1
    entry[i].serial = serial
    entry[i].permit = permit
    return 0


cdef int grow() noexcept:
    """A larger table in place of this one; without the memory for it, this one stays."""
    global before, evicted
    cdef uint64_t entries = FIRST_ENTRIES if now.entries is NULL else GROWTH * WAYS * now.sets
    cdef void* block = allocate_zeros(entries * sizeof(PermitEntry) + LINE, 1)
    if block is NULL:
        return 0
    evicted += before.used
    let_go(&before)
    before = now
    now.block = block
    now.entries = <PermitEntry*> ((<uintptr_t> block + LINE - 1) & ~<uintptr_t> (LINE - 1))
    now.sets = entries // WAYS
    now.used = 0
    return 0


cdef int let_go(PermitSets* table) noexcept:
    deallocate(table.block)
    memset(table, 0, sizeof(PermitSets))
    return 0


def forget_permits():
    """Give the memory back. What was kept is asked for again."""
    let_go(&now)
    let_go(&before)


def counts():
    """Permits in the table, those of routes that are gone as well; its bytes; and how many made room for others."""
    cdef uint64_t entries = WAYS * (now.sets + before.sets)
    return now.used, entries * sizeof(PermitEntry), evicted


def new_serial():
    """`permit_serial`, for tests."""
    return permit_serial()


def is_known(uint64_t serial, uint32_t permit):
    """`permit_known`, for tests."""
    return permit_known(serial, permit)


def keep(uint64_t serial, uint32_t permit):
    """`permit_keep`, for tests."""
    permit_keep(serial, permit)
