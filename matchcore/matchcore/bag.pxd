# A bag: a few or many 32-bit numbers in no order, added and removed at any position in constant time.
#
#     none    size 0
#     one     size 1, room 0      at = the number itself: no block for the usual only child
#     more    size 3, room 2      at -> [ 7 | 4 | 9 | . ]      a block of 2**room units of an arena
#
# The last number moves to the position of a removed one: the caller that keeps positions learns which moved. A block is
# halved when a quarter of it is in use, so that coming and going at an edge copies nothing.

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memmove

from matchcore.arena cimport ARENA_EXACT, Arena, arena_give_back, arena_reserve, arena_take
from matchcore.table cimport NONE


cdef struct Bag:
    uint32_t at
    uint32_t size
    uint8_t room
    uint8_t mark      # these two would be padding: they are the owner's
    uint16_t depth


cdef inline void bag_init(Bag* bag) noexcept nogil:
    bag.at = bag.size = 0
    bag.room = bag.mark = 0
    bag.depth = 0


# Valid until the arena's next arena_reserve.
cdef inline uint32_t* bag_items(const Arena* arena, const Bag* bag) noexcept nogil:
    return <uint32_t*> &bag.at if bag.room == 0 else &arena.units[bag.at]


# Room for one more: after it bag_push and bag_insert cannot fail.
cdef inline int bag_reserve(Arena* arena, Bag* bag) noexcept nogil:
    cdef uint32_t block, size
    if bag.size < (<uint32_t> 1 << bag.room):
        return 0
    if bag.room >= 30:
        return -1
    size = <uint32_t> 1 << (bag.room + 1)
    if arena_reserve(arena, size) < 0:
        return -1
    block = arena_take(arena, size)
    memcpy(&arena.units[block], bag_items(arena, bag), bag.size * sizeof(uint32_t))
    if bag.room != 0:
        arena_give_back(arena, bag.at, size // 2)
    bag.at = block
    bag.room += 1
    return 0


cdef inline void bag_push(Arena* arena, Bag* bag, uint32_t item) noexcept nogil:
    bag_items(arena, bag)[bag.size] = item
    bag.size += 1


cdef inline bint bag_block_lies_free(const Arena* arena, uint8_t room) noexcept nogil:
    # The arena's lists of sizes that are powers of two: to 64 by size, beyond eight lists an octave.
    return arena.lists[1 << room if room <= 6 else ARENA_EXACT + 1 + 8 * (room - 6)] != NONE


# Half of the block is given back. Into another block, if one lies free: were every block split, those of a
# large bag that comes and goes would all become small. Split, if not: removing never needs memory.
cdef inline void bag_halve(Arena* arena, Bag* bag) noexcept nogil:
    cdef uint32_t half = <uint32_t> 1 << (bag.room - 1)
    cdef uint32_t block
    if bag_block_lies_free(arena, <uint8_t> (bag.room - 1)):
        block = arena_take(arena, half)
        memcpy(&arena.units[block], &arena.units[bag.at], bag.size * sizeof(uint32_t))
        arena_give_back(arena, bag.at, 2 * half)
        bag.at = block
    else:
        arena_give_back(arena, bag.at + half, half)
    bag.room -= 1


cdef inline void bag_settle(Arena* arena, Bag* bag) noexcept nogil:
    if bag.room == 0:
        return
    if bag.size == 0:
        arena_give_back(arena, bag.at, <uint32_t> 1 << bag.room)
        bag.room = 0
    elif bag.room > 1 and bag.size * 4 <= <uint32_t> 1 << bag.room:
        bag_halve(arena, bag)


# Takes out the number at `position`; which one lies there now (itself, if it was the last).
cdef inline uint32_t bag_take_out(Arena* arena, Bag* bag, uint32_t position) noexcept nogil:
    cdef uint32_t* items = bag_items(arena, bag)
    cdef uint32_t last = items[bag.size - 1]
    items[position] = last
    bag.size -= 1
    bag_settle(arena, bag)
    return last


# Its block into another arena, which has room.
cdef inline void bag_move(const Arena* arena, Arena* into, Bag* bag) noexcept nogil:
    cdef uint32_t block
    if bag.room == 0:
        return
    block = arena_take(into, <uint32_t> 1 << bag.room)
    memcpy(&into.units[block], &arena.units[bag.at], bag.size * sizeof(uint32_t))
    bag.at = block


# The rest is for bags that are kept in order: the two of a position in any order, the others ascending.
cdef inline void bag_insert_at(Arena* arena, Bag* bag, uint32_t position, uint32_t item) noexcept nogil:
    cdef uint32_t* items = bag_items(arena, bag)
    memmove(&items[position + 1], &items[position], (bag.size - position) * sizeof(uint32_t))
    items[position] = item
    bag.size += 1


cdef inline void bag_remove_at(Arena* arena, Bag* bag, uint32_t position) noexcept nogil:
    cdef uint32_t* items = bag_items(arena, bag)
    bag.size -= 1
    memmove(&items[position], &items[position + 1], (bag.size - position) * sizeof(uint32_t))
    bag_settle(arena, bag)


# Where the first number not below `item` is:
cdef inline uint32_t bag_seek(const Arena* arena, const Bag* bag, uint32_t item) noexcept nogil:
    cdef const uint32_t* items = bag_items(arena, bag)
    cdef uint32_t low = 0
    cdef uint32_t high = bag.size
    cdef uint32_t middle
    if high != 0 and items[high - 1] < item:
        return high  # ids mostly come ascending
    while low < high:
        middle = low + (high - low) // 2
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint bag_has(const Arena* arena, const Bag* bag, uint32_t item) noexcept nogil:
    cdef uint32_t position = bag_seek(arena, bag, item)
    return position < bag.size and bag_items(arena, bag)[position] == item


cdef inline void bag_insert(Arena* arena, Bag* bag, uint32_t item) noexcept nogil:
    bag_insert_at(arena, bag, bag_seek(arena, bag, item), item)


cdef inline void bag_remove(Arena* arena, Bag* bag, uint32_t item) noexcept nogil:
    bag_remove_at(arena, bag, bag_seek(arena, bag, item))
