# cython: language_level=3, cdivision=True
"""Into the pool of a screen, and out of it. Drawn in pooling.pxd."""

from matchcore.access cimport (
    KEY_PREFIX, KEY_PRESENT, KEY_RANGE, KEY_VALUE, Access, AccessEntry, access_column, access_step_values,
    access_take, access_tidy, access_units, access_values,
)
from matchcore.allocator cimport allocate, deallocate, numbers_free, numbers_push
from matchcore.program cimport Program, Step, program_entries, program_steps
from matchcore.selections cimport IN_POOL, UNDER_SEVERAL
from matchcore.selector_pool cimport (
    PoolMember, SelectorPool, pool_column, pool_free, pool_make, pool_program, pool_put, pool_take, pool_takes,
    pool_wants_remaking,
)
from matchcore.table cimport NONE

cdef double CHEAP_ENOUGH = 1.0 / 32     # of the messages: a candidate under a key costs some 30 columns of a pool
cdef double NEVER_CHEAP = 2.0           # a range: the pool has the message's cell anyway
cdef double SHARE_OF_PRESENT = 0.25
cdef double SHARE_OF_AFFIX = 1.0 / 16   # of one byte, and half as much with each byte more


cdef uint32_t pooled_at_least = POOLED_AT_LEAST


def _pool_from(count: int) -> int:
    """For tests: how many selectors wait for a pool; the number before."""
    global pooled_at_least
    before = pooled_at_least
    pooled_at_least = count
    return before


cdef double _cost(const Access* access, const Program* program) noexcept nogil:
    """The share of the messages that have one of its keys, by what is known now."""
    cdef const uint32_t* entries = program_entries(program)
    cdef const AccessEntry* entry
    cdef const Step* step
    cdef double cost = 0
    cdef uint32_t at = 0
    while at < program.entries:
        entry = <const AccessEntry*> &entries[at]
        if entry.kind == KEY_RANGE:
            return NEVER_CHEAP
        step = &program_steps(program)[entry.step]
        if entry.kind == KEY_VALUE:
            cost += access_step_values(program, step) \
                / max(access_values(access_column(access, step.attribute)), 2.0)
        elif entry.kind == KEY_PRESENT:
            cost += SHARE_OF_PRESENT
        elif entry.kind >= KEY_PREFIX:
            cost += SHARE_OF_AFFIX / (1 << min(entries[at + 2], <uint32_t> 8) - 1)
        at += access_units(entry.kind)
    return cost


cdef bint belongs_to_pool(const LargeScreen* large, const Program* program, bint is_keyed) noexcept nogil:
    if is_keyed and _cost(&large.access, program) <= CHEAP_ENOUGH:
        return False
    return pool_takes(program)


cdef bint _belongs(const LargeScreen* large, const Selection* selection) noexcept nogil:
    return belongs_to_pool(large, selection.program, selection.place >= UNDER_SEVERAL)


cdef inline PoolMember _member(const Selection* selections, uint32_t slot) noexcept nogil:
    cdef PoolMember made
    made.program = selections[slot].program
    made.id = selections[slot].id
    made.slot = slot
    return made


cdef void leave_place(Allocator* allocator, LargeScreen* large, Selection* selections, uint32_t slot) noexcept nogil:
    cdef Selection* selection = &selections[slot]
    cdef uint32_t last, i
    if selection.place >= UNDER_SEVERAL:
        large.several -= selection.place == UNDER_SEVERAL
        access_take(&large.access, selection.program, slot, 0)
    elif selection.place & IN_POOL:
        pool_take(large.pool, selection.place & ~<uint32_t> IN_POOL)
        if large.pool.live == 0:
            pool_free(large.pool)
            large.pool = NULL
    else:
        large.row.size -= 1
        last = large.row.items[large.row.size]
        large.row.items[selection.place] = last
        selections[last].place = selection.place
    for i in range(<uint32_t> large.waiting.size):
        if large.waiting.items[i] == slot:
            large.waiting.size -= 1
            large.waiting.items[i] = large.waiting.items[large.waiting.size]
            break


cdef void free_pool(Allocator* allocator, LargeScreen* large) noexcept nogil:
    if large.pool != NULL:
        pool_free(large.pool)
        large.pool = NULL
    numbers_free(allocator, &large.waiting)


cdef void _reconsider(LargeScreen* large, const Selection* selections) noexcept nogil:
    """Of those that wait, leaves out the ones that have a cheap key by now: more of its kind were seen."""
    cdef uint32_t kept = 0
    cdef uint32_t i
    for i in range(<uint32_t> large.waiting.size):
        if _belongs(large, &selections[large.waiting.items[i]]):
            large.waiting.items[kept] = large.waiting.items[i]
            kept += 1
    large.waiting.size = kept


cdef void _make(Allocator* allocator, LargeScreen* large, Selection* selections) noexcept nogil:
    """A pool of those that wait."""
    cdef uint32_t count = <uint32_t> large.waiting.size
    cdef PoolMember* members = <PoolMember*> allocate(allocator, count * sizeof(PoolMember))
    cdef uint32_t i, slot
    large.waiting.size = 0  # without memory they stay where they are
    if members == NULL:
        return
    for i in range(count):
        members[i] = _member(selections, large.waiting.items[i])
    large.pool = pool_make(allocator, members, count)
    deallocate(allocator, members, count * sizeof(PoolMember))
    if large.pool == NULL:
        return
    numbers_free(allocator, &large.waiting)
    for i in range(count):
        slot = pool_column(large.pool, i).slot
        leave_place(allocator, large, selections, slot)
        selections[slot].place = IN_POOL | i


cdef void _remake(Allocator* allocator, LargeScreen* large, Selection* selections) noexcept nogil:
    """Another pool of all that are in this one."""
    cdef SelectorPool* old = large.pool
    cdef uint32_t live = old.live
    cdef PoolMember* members = <PoolMember*> allocate(allocator, live * sizeof(PoolMember))
    cdef SelectorPool* made
    cdef uint32_t count = 0
    cdef uint32_t i
    old.made_of = live  # without memory it is not tried again at once
    old.lacking = 0
    if members == NULL:
        return
    for i in range(old.count):
        if pool_program(old, i) != NULL:
            members[count] = _member(selections, pool_column(old, i).slot)
            count += 1
    made = pool_make(allocator, members, count)
    deallocate(allocator, members, live * sizeof(PoolMember))
    if made == NULL:
        return
    for i in range(count):
        selections[pool_column(made, i).slot].place = IN_POOL | i
    pool_free(old)
    large.pool = made


cdef uint32_t put_into_pool(LargeScreen* large, Program* program, uint32_t id, uint32_t slot) noexcept nogil:
    cdef PoolMember member
    cdef uint32_t column
    member.program = program
    member.id = id
    member.slot = slot
    column = pool_put(large.pool, &member)
    return NONE if column == NONE else IN_POOL | column


cdef void tidy_pool(Allocator* allocator, LargeScreen* large, Selection* selections) noexcept nogil:
    if pool_wants_remaking(large.pool):
        _remake(allocator, large, selections)


cdef void wait_for_pool(
    Allocator* allocator, LargeScreen* large, Selection* selections, uint32_t slot
) noexcept nogil:
    if not _belongs(large, &selections[slot]) or numbers_push(allocator, &large.waiting, slot) < 0:
        return
    if large.waiting.size < pooled_at_least:
        return
    _reconsider(large, selections)
    if large.waiting.size >= pooled_at_least - pooled_at_least // 4:
        _make(allocator, large, selections)
        access_tidy(&large.access)
