# The filters an index was given, each (text, syntax) once, in a numbered slot with its ids: what `remove`
# finds again and what `filters()` gives back. It is also the exact tier: a filter without wildcards is found
# here by the words of the topic, in whichever syntax either is written.
#
#     table     hash of the words -> slot                                                  8 bytes a cell
#     ids       [ 7 | 9 | ~0 | ... ]                the id, or ~ the list of several        4
#     entries   [ text -> 0, tier, flags | ... ]                                            8
#     arena     [ 7, "forex.*" | 4, "a.*b" | ... ]  sizes and bytes                         4 + the text
#     lists     [ at 0, size 3 | ... ]              of slots that have several: bags (bag.pxd), ascending
#               [ 3, 4, 12, . | ... ]               and their ids, in an arena of its own
#
# A match ends in slots; the ids lie by themselves, so that they are few cache lines. Lists are numbered from the
# highest id down: below slots_ids_end it is an id for sure, and the entries, each a miss, need not be asked.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator, prefetch
from matchcore.arena cimport Arena
from matchcore.bag cimport Bag, bag_items
from matchcore.table cimport NONE, Table, table_first

cdef enum:
    # Slot.tier; less: the class of the bucket it is in
    TIER_EXACT = 0xFFFF
    TIER_POOL = 0xFFFE

    # Slot.flags
    SLOT_MQTT = 1
    SLOT_STR = 2       # filters() gives back a str
    SLOT_LIST = 4      # several ids: ids[slot] is ~ a list
    SLOT_FREE = 8      # ids[slot] is the next free slot


cdef struct Slot:
    uint32_t text      # block in the arena: size in bytes, then the bytes
    uint16_t tier
    uint8_t flags
    uint8_t unused


cdef struct Slots:
    Allocator* allocator
    Table table
    Arena arena
    Slot* entries
    uint32_t* ids
    Bag* lists         # `mark`: free, and `at` is the next free one
    Arena ids_of_lists
    uint32_t count     # slots ever used
    uint32_t capacity
    uint32_t free      # first free slot, NONE none
    uint32_t live      # texts held
    uint32_t exact     # of them without wildcards
    uint32_t list_count
    uint32_t list_capacity
    uint32_t free_list   # first free list, NONE none
    uint32_t several   # slots with several ids
    size_t pairs       # (text, id) pairs held


cdef void slots_init(Slots* slots, Allocator* allocator) noexcept nogil
cdef void slots_free(Slots* slots) noexcept nogil

# The slot of these bytes in this syntax, or NONE. `hash` is that of the words.
cdef uint32_t slots_find(
    const Slots* slots, const char* start, size_t size, uint32_t syntax, uint64_t hash
) noexcept nogil

# Exact filters of the same words as this topic: at most one a syntax, so at most two. Their number.
cdef int slots_exact(
    const Slots* slots, const char* start, size_t size, uint32_t syntax, uint64_t hash, uint32_t* found
) noexcept nogil

# A new slot with one id, or NONE when there is no memory; `tier` is TIER_EXACT, or set by who takes it in.
cdef uint32_t slots_add(
    Slots* slots, const char* start, size_t size, uint32_t syntax, uint64_t hash, bint is_str, uint32_t tier,
    uint32_t id
) noexcept nogil
cdef void slots_drop(Slots* slots, uint32_t slot, uint64_t hash) noexcept nogil

# 1 done, 0 nothing to do, -1 no memory (adding only). The last id goes with the slot: slots_drop.
cdef int slots_add_id(Slots* slots, uint32_t slot, uint32_t id) noexcept nogil
cdef void slots_drop_id(Slots* slots, uint32_t slot, uint32_t id) noexcept nogil
cdef bint slots_has_id(const Slots* slots, uint32_t slot, uint32_t id) noexcept nogil

# Asks ahead of time for what slots_exact will look at: first for the slot that this hash leads to (NONE: nothing),
# some time later for its text. The table was asked for by table_prefetch.
cdef inline uint32_t slots_expect(const Slots* slots, uint64_t hash) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t slot = table_first(&slots.table, <uint32_t> (hash >> 32), &at)
    if slot != NONE:
        prefetch(&slots.entries[slot])
    return slot


cdef inline void slots_expect_text(const Slots* slots, uint32_t slot) noexcept nogil:
    if slot != NONE:
        prefetch(&slots.arena.units[slots.entries[slot].text])


# What is less in `ids`, the position of a slot in use, is an id; the rest an id or a list.
cdef inline uint64_t slots_ids_end(const Slots* slots) noexcept nogil:
    return (<uint64_t> 1 << 32) - slots.list_count


cdef inline const Bag* slot_list(const Slots* slots, uint32_t slot) noexcept nogil:
    return &slots.lists[~slots.ids[slot]]


cdef inline const uint32_t* slot_ids(const Slots* slots, uint32_t slot, size_t* count) noexcept nogil:
    if slots.ids[slot] < slots_ids_end(slots) or not slots.entries[slot].flags & SLOT_LIST:
        count[0] = 1
        return &slots.ids[slot]
    count[0] = slot_list(slots, slot).size
    return bag_items(&slots.ids_of_lists, slot_list(slots, slot))


cdef inline const char* slot_text(const Slots* slots, uint32_t slot, size_t* size) noexcept nogil:
    cdef const uint32_t* block = &slots.arena.units[slots.entries[slot].text]
    size[0] = block[0]
    return <const char*> (block + 1)


# The text as it was first given: str or bytes.
cdef object slot_object(const Slots* slots, uint32_t slot)
