# cython: language_level=3, cdivision=True
"""The filters of an index and their ids: dedupe, the exact tier, and what `filters()` gives back.

The layout is drawn in slots.pxd. Identity is (bytes, syntax); a `str` and the `bytes` it encodes to
are one text.
"""

from libc.string cimport memcmp, memcpy, memmove, memset

from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_take,
)
from matchcore.heap cimport heap_give_back, heap_resize, heap_take, numbers_free
from matchcore.syntax cimport AMQP, MQTT
from matchcore.table cimport table_drop, table_first, table_free, table_next, table_put, table_reserve

cdef enum:
    SLOTS_AT_MOST = 0xFFFFFFF0


cdef void slots_init(Slots* slots, Heap* heap) noexcept nogil:
    memset(slots, 0, sizeof(Slots))
    slots.heap = heap
    slots.free = slots.free_list = NONE
    arena_init(&slots.arena, heap)


cdef void slots_free(Slots* slots) noexcept nogil:
    cdef uint32_t i
    for i in range(slots.count):
        if slots.entries[i].flags & SLOT_LIST:
            numbers_free(slots.heap, &slots.lists[slots.ids[i]])
    heap_give_back(slots.heap, slots.entries, slots.capacity * sizeof(Slot))
    heap_give_back(slots.heap, slots.ids, slots.capacity * sizeof(uint32_t))
    heap_give_back(slots.heap, slots.lists, slots.list_capacity * sizeof(Numbers))
    arena_free(&slots.arena)
    table_free(slots.heap, &slots.table)
    slots_init(slots, slots.heap)


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
    ids = <uint32_t*> heap_take(slots.heap, capacity * sizeof(uint32_t))
    if ids == NULL:
        return -1
    entries = <Slot*> heap_resize(
        slots.heap, slots.entries, slots.capacity * sizeof(Slot), capacity * sizeof(Slot)
    )
    if entries == NULL:
        heap_give_back(slots.heap, ids, capacity * sizeof(uint32_t))
        return -1
    if slots.count != 0:
        memcpy(ids, slots.ids, slots.count * sizeof(uint32_t))
    heap_give_back(slots.heap, slots.ids, slots.capacity * sizeof(uint32_t))
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
        _reserve(slots) < 0 or table_reserve(slots.heap, &slots.table) < 0
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
    table_drop(slots.heap, &slots.table, <uint32_t> (hash >> 32), slot)
    arena_give_back(&slots.arena, entry.text, _units(slots.arena.units[entry.text]))
    slots.pairs -= count
    if entry.flags & SLOT_LIST:
        _free_list(slots, slots.ids[slot])
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

cdef inline size_t _seek(const uint32_t* ids, size_t count, uint32_t id) noexcept nogil:
    cdef size_t low = 0
    cdef size_t middle
    if count != 0 and ids[count - 1] < id:
        return count  # ids mostly come ascending
    while low < count:
        middle = low + (count - low) // 2
        if ids[middle] < id:
            low = middle + 1
        else:
            count = middle
    return low


cdef bint slots_has_id(const Slots* slots, uint32_t slot, uint32_t id) noexcept nogil:
    cdef size_t count
    cdef const uint32_t* ids = slot_ids(slots, slot, &count)
    cdef size_t at = _seek(ids, count, id)
    return at < count and ids[at] == id


cdef uint32_t _new_list(Slots* slots) noexcept nogil:
    cdef size_t capacity
    cdef uint32_t list
    cdef Numbers* lists
    if slots.free_list != NONE:
        list = slots.free_list
        slots.free_list = <uint32_t> slots.lists[list].size
        slots.lists[list].size = 0
        return list
    if slots.list_count == slots.list_capacity:
        capacity = <size_t> slots.list_capacity + slots.list_capacity // 2 + 4
        lists = <Numbers*> heap_resize(
            slots.heap, slots.lists, slots.list_capacity * sizeof(Numbers), capacity * sizeof(Numbers)
        )
        if lists == NULL:
            return NONE
        slots.lists = lists
        slots.list_capacity = <uint32_t> capacity
    list = slots.list_count
    slots.list_count += 1
    memset(&slots.lists[list], 0, sizeof(Numbers))
    return list


cdef void _free_list(Slots* slots, uint32_t list) noexcept nogil:
    numbers_free(slots.heap, &slots.lists[list])
    slots.lists[list].size = slots.free_list
    slots.free_list = list
    slots.several -= 1
    if slots.several == 0:
        heap_give_back(slots.heap, slots.lists, slots.list_capacity * sizeof(Numbers))
        slots.lists = NULL
        slots.list_count = slots.list_capacity = 0
        slots.free_list = NONE


cdef int slots_add_id(Slots* slots, uint32_t slot, uint32_t id) noexcept nogil:
    cdef size_t count, at, capacity
    cdef const uint32_t* ids = slot_ids(slots, slot, &count)
    cdef uint32_t list
    cdef Numbers* numbers
    at = _seek(ids, count, id)
    if at < count and ids[at] == id:
        return 0
    if not slots.entries[slot].flags & SLOT_LIST:
        list = _new_list(slots)
        if list == NONE:
            return -1
        slots.several += 1
        if _grow(slots, &slots.lists[list], 4) < 0:
            _free_list(slots, list)
            return -1
        slots.lists[list].items[0] = slots.ids[slot]
        slots.lists[list].size = 1
        slots.ids[slot] = list
        slots.entries[slot].flags |= SLOT_LIST
    numbers = &slots.lists[slots.ids[slot]]
    if numbers.size == numbers.capacity and _grow(slots, numbers, numbers.size + numbers.size // 2) < 0:
        return -1
    memmove(&numbers.items[at + 1], &numbers.items[at], (count - at) * sizeof(uint32_t))
    numbers.items[at] = id
    numbers.size += 1
    slots.pairs += 1
    return 1


cdef int _grow(Slots* slots, Numbers* numbers, size_t capacity) noexcept nogil:
    cdef uint32_t* items = <uint32_t*> heap_resize(
        slots.heap, numbers.items, numbers.capacity * sizeof(uint32_t), capacity * sizeof(uint32_t)
    )
    if items == NULL:
        return -1
    numbers.items = items
    numbers.capacity = capacity
    return 0


cdef void slots_drop_id(Slots* slots, uint32_t slot, uint32_t id) noexcept nogil:
    # Not for the last id: then the whole slot goes.
    cdef uint32_t list = slots.ids[slot]
    cdef Numbers* numbers = &slots.lists[list]
    cdef size_t at = _seek(numbers.items, numbers.size, id)
    cdef uint32_t one
    numbers.size -= 1
    slots.pairs -= 1
    memmove(&numbers.items[at], &numbers.items[at + 1], (numbers.size - at) * sizeof(uint32_t))
    if numbers.size == 1:
        one = numbers.items[0]
        slots.entries[slot].flags &= ~<uint8_t> SLOT_LIST
        slots.ids[slot] = one
        _free_list(slots, list)
    elif numbers.capacity > 8 and numbers.size * 4 < numbers.capacity:
        _grow(slots, numbers, numbers.capacity // 2)  # smaller; without memory for it it stays


cdef object slot_object(const Slots* slots, uint32_t slot):
    cdef size_t size
    cdef const char* start = slot_text(slots, slot, &size)
    cdef bytes raw = start[:size]
    return raw.decode("utf-8") if slots.entries[slot].flags & SLOT_STR else raw
