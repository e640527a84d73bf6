# An open-addressing hash table from an id to the slot that has it. The id is in the slot's record, not in the table, so
# a cell is four bytes: half of what a Table takes (table.pxd), which has the tag beside the reference.
#
#     cells   [ 0 | slot+1 | slot+1 | 0 | ... ]      0: empty; at most 3/4 of them are in use
#               home = hash of the slot's id & mask, then the next cell, and so on up to an empty one

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, allocate_zeros, deallocate
from matchcore.hashing cimport hash_add, hash_secret
from matchcore.table cimport NONE


cdef struct IdTable:
    uint32_t* cells
    uint32_t mask          # number of cells - 1; cells are a power of two
    uint32_t used


# Where the ids are: that of slot 0, and how many bytes lie between two.
cdef struct Ids:
    const char* first
    size_t stride


cdef inline uint32_t id_of(Ids ids, uint32_t slot) noexcept nogil:
    return (<const uint32_t*> (ids.first + slot * ids.stride))[0]


cdef inline uint32_t id_home(const IdTable* table, uint32_t id) noexcept nogil:
    cdef const uint64_t* secret = hash_secret()
    return <uint32_t> (hash_add(secret, secret[0], id) >> 32) & table.mask


# The slot of an id, or NONE.
cdef inline uint32_t id_find(const IdTable* table, Ids ids, uint32_t id) noexcept nogil:
    cdef uint32_t at
    if table.cells == NULL:
        return NONE
    at = id_home(table, id)
    while table.cells[at] != 0 and id_of(ids, table.cells[at] - 1) != id:
        at = (at + 1) & table.mask
    return table.cells[at] - 1  # NONE, where it is empty


# Room was made before (id_reserve), so that this cannot fail. Of two slots with one id the earlier one is found.
cdef inline void id_put(IdTable* table, uint32_t id, uint32_t slot) noexcept nogil:
    cdef uint32_t at = id_home(table, id)
    while table.cells[at] != 0:
        at = (at + 1) & table.mask
    table.cells[at] = slot + 1
    table.used += 1


cdef inline int id_resize(Allocator* allocator, IdTable* table, Ids ids, size_t size) noexcept nogil:
    cdef IdTable made
    cdef size_t i
    cdef size_t old = 0 if table.cells == NULL else <size_t> table.mask + 1
    made.cells = <uint32_t*> allocate_zeros(allocator, size * sizeof(uint32_t))
    if made.cells == NULL:
        return -1
    made.mask = <uint32_t> (size - 1)
    made.used = 0
    for i in range(old):
        if table.cells[i] != 0:
            id_put(&made, id_of(ids, table.cells[i] - 1), table.cells[i] - 1)
    deallocate(allocator, table.cells, old * sizeof(uint32_t))
    table[0] = made
    return 0


# Room for one more. -1: no memory.
cdef inline int id_reserve(Allocator* allocator, IdTable* table, Ids ids) noexcept nogil:
    cdef size_t size
    if table.cells == NULL:
        return id_resize(allocator, table, ids, 32)
    size = <size_t> table.mask + 1
    if (<size_t> table.used + 1) * 4 <= size * 3:
        return 0
    return id_resize(allocator, table, ids, size * 2)


cdef inline void id_free(Allocator* allocator, IdTable* table) noexcept nogil:
    if table.cells != NULL:
        deallocate(allocator, table.cells, (<size_t> table.mask + 1) * sizeof(uint32_t))
    table.cells = NULL
    table.mask = table.used = 0


# A slot that is there, and that still has its id.
cdef inline void id_drop(Allocator* allocator, IdTable* table, Ids ids, uint32_t slot) noexcept nogil:
    cdef uint32_t hole = id_home(table, id_of(ids, slot))
    cdef uint32_t i, home
    while table.cells[hole] != slot + 1:
        hole = (hole + 1) & table.mask
    # Move back whatever the hole would cut off from its home.
    i = hole
    while True:
        i = (i + 1) & table.mask
        if table.cells[i] == 0:
            break
        home = id_home(table, id_of(ids, table.cells[i] - 1))
        if ((i - home) & table.mask) >= ((i - hole) & table.mask):
            table.cells[hole] = table.cells[i]
            hole = i
    table.cells[hole] = 0
    table.used -= 1
    if table.used == 0:
        id_free(allocator, table)
    elif table.mask >= 63 and <size_t> table.used * 8 < <size_t> table.mask:
        id_resize(allocator, table, ids, (<size_t> table.mask + 1) // 2)  # without memory it stays large
