# cython: language_level=3, cdivision=True
"""The filters of an index and their ids: dedupe, the exact tier, and what `filters()` gives back.

The layout is drawn in slots.pxd. Identity is (bytes, syntax); a `str` and the `bytes` it encodes to
are one text.
"""

from libc.string cimport memcmp, memcpy, memset

from matchcore.allocator cimport deallocate, reallocate, allocate
from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_take,
)
from matchcore.bag cimport (
    bag_has, bag_init, bag_insert, bag_items, bag_move, bag_push, bag_remove, bag_reserve, bag_settle,
)
from matchcore.syntax cimport AMQP, MQTT
from matchcore.table cimport table_drop, table_first, table_free, table_next, table_put, table_reserve

cdef enum:
    SLOTS_AT_MOST = 0xFFFFFFF0


cdef void slots_init(Slots* slots, Allocator* allocator) noexcept nogil:
    memset(slots, 0, sizeof(Slots))
    slots.allocator = allocator
    slots.free = slots.free_list = NONE
    arena_init(&slots.arena, allocator)
    arena_init(&slots.ids_of_lists, allocator)


cdef void slots_free(Slots* slots) noexcept nogil:
    deallocate(slots.allocator, slots.entries, slots.capacity * sizeof(Slot))
    deallocate(slots.allocator, slots.ids, slots.capacity * sizeof(uint32_t))
    deallocate(slots.allocator, slots.lists, slots.list_capacity * sizeof(Bag))
    arena_free(&slots.ids_of_lists)
    arena_free(&slots.arena)
    table_free(slots.allocator, &slots.table)
    slots_init(slots, slots.allocator)


cdef inline uint32_t _syntax(const Slots* slots, uint32_t slot) noexcept nogil:
    return MQTT if slots.entries[slot].flags & SLOT_MQTT else AMQP


cdef inline bint _equal(const Slots* slots, uint32_t slot, const char* start, size_t size) noexcept nogil:
    cdef size_t held
    cdef const char* text = slot_text(slots, slot, &held)
    return held == size and memcmp(text, start, size) == 0


cdef uint32_t slots_find(
    const Slots* slots, const char* start, size_t size, uint32_t syntax, uint64_t hash
) noexcept nogil:
    cdef uint32_t tag = <uint32_t> (hash >> 32)
    cdef uint32_t at
    cdef uint32_t i = table_first(&slots.table, tag, &at)
    while i != NONE:
        if _syntax(slots, i) == syntax and _equal(slots, i, start, size):
            return i
        i = table_next(&slots.table, tag, &at)
    return NONE


cdef bint _same_words(
    const Slots* slots, uint32_t slot, const char* start, size_t size, uint32_t syntax
) noexcept nogil:
    """Word by word: where one has its separator, so has the other, and all else is equal."""
    cdef char mine, theirs
    cdef const char* text
    cdef size_t held, i
    cdef uint32_t kind = _syntax(slots, slot)
    if kind == syntax:
        return _equal(slots, slot, start, size)
    text = slot_text(slots, slot, &held)
    if held != size:
        return False
    mine = c"." if kind == AMQP else c"/"
    theirs = c"." if syntax == AMQP else c"/"
    for i in range(size):
        if text[i] == mine:
            if start[i] != theirs:
                return False
        elif start[i] == theirs or text[i] != start[i]:
            return False
    return True


cdef int slots_exact(
    const Slots* slots, const char* start, size_t size, uint32_t syntax, uint64_t hash, uint32_t* found
) noexcept nogil:
    cdef uint32_t tag = <uint32_t> (hash >> 32)
    cdef uint32_t at
    cdef uint32_t i = table_first(&slots.table, tag, &at)
    cdef int count = 0
    while i != NONE:
        # A filter with wildcards may be spelled like a topic (`*` is a word an AMQP key may hold): another
        # tier answers for those.
        if slots.entries[i].tier == TIER_EXACT and _same_words(slots, i, start, size, syntax):
            found[count] = i
            count += 1
            if count == 2:
                break
        i = table_next(&slots.table, tag, &at)
    return count


cdef int _reserve(Slots* slots) noexcept nogil:
    cdef size_t capacity
    cdef Slot* entries
    cdef uint32_t* ids
    if slots.free != NONE or slots.count < slots.capacity:
        return 0
    # By a fifth once it is large, as in arena.pyx.
    capacity = <size_t> slots.capacity + 8
    capacity += slots.capacity // 2 if capacity < 65536 else slots.capacity // 5
    if capacity > SLOTS_AT_MOST:
        return -1
    # The ids in a new block: of two that grow in place the first could not always go back.
    ids = <uint32_t*> allocate(slots.allocator, capacity * sizeof(uint32_t))
    if ids == NULL:
        return -1
    entries = <Slot*> reallocate(
        slots.allocator, slots.entries, slots.capacity * sizeof(Slot), capacity * sizeof(Slot)
    )
    if entries == NULL:
        deallocate(slots.allocator, ids, capacity * sizeof(uint32_t))
        return -1
    if slots.count != 0:
        memcpy(ids, slots.ids, slots.count * sizeof(uint32_t))
    deallocate(slots.allocator, slots.ids, slots.capacity * sizeof(uint32_t))
    slots.entries = entries
    slots.ids = ids
    slots.capacity = <uint32_t> capacity
    return 0


cdef inline uint32_t _units(size_t size) noexcept nogil:
    return <uint32_t> (1 + (size + 3) // 4)


cdef uint32_t slots_add(
    Slots* slots, const char* start, size_t size, uint32_t syntax, uint64_t hash, bint is_str, uint32_t tier,
    uint32_t id
) noexcept nogil:
    cdef uint32_t i
    cdef Slot* entry
    cdef uint32_t* block
    if (
        _reserve(slots) < 0 or table_reserve(slots.allocator, &slots.table) < 0
        or arena_reserve(&slots.arena, _units(size)) < 0
    ):
        if slots.live == 0:
            slots_free(slots)
        return NONE
    if slots.free != NONE:
        i = slots.free
        slots.free = slots.ids[i]
    else:
        i = slots.count
        slots.count += 1
    entry = &slots.entries[i]
    entry.text = arena_take(&slots.arena, _units(size))
    block = &slots.arena.units[entry.text]
    block[_units(size) - 1] = 0
    block[0] = <uint32_t> size
    memcpy(block + 1, start, size)
    entry.tier = <uint16_t> tier
    entry.unused = 0
    entry.flags = (SLOT_MQTT if syntax == MQTT else 0) | (SLOT_STR if is_str else 0)
    slots.ids[i] = id
    table_put(&slots.table, <uint32_t> (hash >> 32), i)
    slots.live += 1
    slots.pairs += 1
    if tier == TIER_EXACT:
        slots.exact += 1
    return i


cdef void _pack(Slots* slots) noexcept nogil:
    """All texts into a new arena; without memory for it the holes stay."""
    cdef Arena made
    cdef uint32_t i, units, block
    if arena_like(&made, &slots.arena) < 0:
        return
    for i in range(slots.count):
        if slots.entries[i].flags & SLOT_FREE:
            continue
        units = _units(slots.arena.units[slots.entries[i].text])
        block = arena_take(&made, units)
        memcpy(&made.units[block], &slots.arena.units[slots.entries[i].text], units * sizeof(uint32_t))
        slots.entries[i].text = block
    arena_free(&slots.arena)
    slots.arena = made


cdef void slots_drop(Slots* slots, uint32_t slot, uint64_t hash) noexcept nogil:
    cdef Slot* entry = &slots.entries[slot]
    cdef size_t count
    slot_ids(slots, slot, &count)
    table_drop(slots.allocator, &slots.table, <uint32_t> (hash >> 32), slot)
    arena_give_back(&slots.arena, entry.text, _units(slots.arena.units[entry.text]))
    slots.pairs -= count
    if entry.flags & SLOT_LIST:
        _free_list(slots, ~slots.ids[slot])
    if entry.tier == TIER_EXACT:
        slots.exact -= 1
    entry.flags = SLOT_FREE
    slots.ids[slot] = slots.free
    slots.free = slot
    slots.live -= 1
    if slots.live == 0:
        slots_free(slots)
    elif arena_is_sparse(&slots.arena):
        _pack(slots)


# ---- ids -------------------------------------------------------------------------------------------

cdef bint slots_has_id(const Slots* slots, uint32_t slot, uint32_t id) noexcept nogil:
    if not slots.entries[slot].flags & SLOT_LIST:
        return slots.ids[slot] == id
    return bag_has(&slots.ids_of_lists, slot_list(slots, slot), id)


cdef uint32_t _new_list(Slots* slots) noexcept nogil:
    """An empty one."""
    cdef size_t capacity
    cdef uint32_t list
    cdef Bag* lists
    if slots.free_list != NONE:
        list = slots.free_list
        slots.free_list = slots.lists[list].at
    else:
        if slots.list_count == slots.list_capacity:
            capacity = <size_t> slots.list_capacity + slots.list_capacity // 2 + 4
            lists = <Bag*> reallocate(
                slots.allocator, slots.lists, slots.list_capacity * sizeof(Bag), capacity * sizeof(Bag)
            )
            if lists == NULL:
                return NONE
            slots.lists = lists
            slots.list_capacity = <uint32_t> capacity
        list = slots.list_count
        slots.list_count += 1
    bag_init(&slots.lists[list])
    slots.several += 1
    return list


cdef void _free_list(Slots* slots, uint32_t list) noexcept nogil:
    cdef Bag* bag = &slots.lists[list]
    bag.size = 0
    bag_settle(&slots.ids_of_lists, bag)
    bag.mark = True
    bag.at = slots.free_list
    slots.free_list = list
    slots.several -= 1
    if slots.several == 0:
        deallocate(slots.allocator, slots.lists, slots.list_capacity * sizeof(Bag))
        slots.lists = NULL
        slots.list_count = slots.list_capacity = 0
        slots.free_list = NONE
    elif arena_is_sparse(&slots.ids_of_lists):
        _pack_lists(slots)


cdef void _pack_lists(Slots* slots) noexcept nogil:
    """All lists into a new arena; without memory for it the holes stay."""
    cdef Arena made
    cdef Bag* bag
    cdef uint32_t i
    if arena_like(&made, &slots.ids_of_lists) < 0:
        return
    for i in range(slots.list_count):
        bag = &slots.lists[i]
        if not bag.mark:
            bag_move(&slots.ids_of_lists, &made, bag)
    arena_free(&slots.ids_of_lists)
    slots.ids_of_lists = made


cdef int slots_add_id(Slots* slots, uint32_t slot, uint32_t id) noexcept nogil:
    cdef uint32_t list
    cdef Bag* bag
    if slots_has_id(slots, slot, id):
        return 0
    if slots.entries[slot].flags & SLOT_LIST:
        bag = &slots.lists[~slots.ids[slot]]
        if bag_reserve(&slots.ids_of_lists, bag) < 0:
            return -1
    else:
        list = _new_list(slots)
        if list == NONE:
            return -1
        bag = &slots.lists[list]
        bag_push(&slots.ids_of_lists, bag, slots.ids[slot])
        if bag_reserve(&slots.ids_of_lists, bag) < 0:
            _free_list(slots, list)
            return -1
        slots.ids[slot] = ~list
        slots.entries[slot].flags |= SLOT_LIST
    bag_insert(&slots.ids_of_lists, bag, id)
    slots.pairs += 1
    if arena_is_sparse(&slots.ids_of_lists):
        _pack_lists(slots)
    return 1


cdef void slots_drop_id(Slots* slots, uint32_t slot, uint32_t id) noexcept nogil:
    # Not for the last id: then the whole slot goes.
    cdef uint32_t list = ~slots.ids[slot]
    cdef Bag* bag = &slots.lists[list]
    bag_remove(&slots.ids_of_lists, bag, id)
    slots.pairs -= 1
    if bag.size == 1:
        slots.entries[slot].flags &= ~<uint8_t> SLOT_LIST
        slots.ids[slot] = bag_items(&slots.ids_of_lists, bag)[0]
        _free_list(slots, list)
    elif arena_is_sparse(&slots.ids_of_lists):
        _pack_lists(slots)


cdef object slot_object(const Slots* slots, uint32_t slot):
    cdef size_t size
    cdef const char* start = slot_text(slots, slot, &size)
    cdef bytes raw = start[:size]
    return raw.decode("utf-8") if slots.entries[slot].flags & SLOT_STR else raw
