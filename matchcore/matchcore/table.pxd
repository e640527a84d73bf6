# An open-addressing hash table from a 32-bit tag to a 32-bit reference; what is referred to, and
# whether it is equal, is the caller's business.
#
#     cells   [ 0 | tag,ref+1 | tag,ref+1 | 0 | ... ]      0: empty
#               home = tag & mask, then the next cell, and so on up to an empty one
#
# One cell is 8 bytes, at most 5/8 of them are in use. The tag in the cell is the whole hash the table
# knows, so growing and the backward shift of a removal need nothing but the cells: no tombstones, and
# a table that shrinks again.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, deallocate, allocate_zeros, prefetch

cdef enum:
    NONE = 0xFFFFFFFF  # no such reference; also the end of a chain of them


cdef struct Table:
    uint64_t* cells
    uint32_t mask   # number of cells - 1; cells are a power of two
    uint32_t used


# The references put under `tag`, one a call: table_first, then table_next until NONE.
cdef inline uint32_t table_first(const Table* table, uint32_t tag, uint32_t* at) noexcept nogil:
    if table.cells == NULL:
        return NONE
    at[0] = tag - 1
    return table_next(table, tag, at)


cdef inline uint32_t table_next(const Table* table, uint32_t tag, uint32_t* at) noexcept nogil:
    cdef uint64_t cell
    cdef uint32_t i = at[0]
    while True:
        i = (i + 1) & table.mask
        cell = table.cells[i]
        if cell == 0:
            return NONE
        if <uint32_t> (cell >> 32) == tag:
            at[0] = i
            return <uint32_t> cell - 1


cdef inline void table_put(Table* table, uint32_t tag, uint32_t ref) noexcept nogil:
    # Room was made before (table_reserve), so that this cannot fail.
    cdef uint32_t i = tag & table.mask
    while table.cells[i] != 0:
        i = (i + 1) & table.mask
    table.cells[i] = (<uint64_t> tag << 32) | (ref + 1)
    table.used += 1


cdef inline int table_resize(Allocator* allocator, Table* table, size_t size) noexcept nogil:
    cdef uint64_t* old = table.cells
    cdef size_t old_size = 0 if old == NULL else <size_t> table.mask + 1
    cdef uint64_t* cells = <uint64_t*> allocate_zeros(allocator, size * sizeof(uint64_t))
    cdef size_t i
    if cells == NULL:
        return -1
    table.cells = cells
    table.mask = <uint32_t> (size - 1)
    table.used = 0
    for i in range(old_size):
        if old[i] != 0:
            table_put(table, <uint32_t> (old[i] >> 32), <uint32_t> old[i] - 1)
    deallocate(allocator, old, old_size * sizeof(uint64_t))
    return 0


# Asks for the cell of `tag` ahead of time.
cdef inline void table_prefetch(const Table* table, uint32_t tag) noexcept nogil:
    prefetch(&table.cells[tag & table.mask])


# Where the cell with this tag is; NONE: no such cell. For tables with one cell per tag.
cdef inline uint32_t table_seek(const Table* table, uint32_t tag) noexcept nogil:
    cdef uint32_t i
    if table.cells == NULL:
        return NONE
    i = tag & table.mask
    while table.cells[i] != 0:
        if <uint32_t> (table.cells[i] >> 32) == tag:
            return i
        i = (i + 1) & table.mask
    return NONE


# Room for `more`.
cdef inline int table_reserve_many(Allocator* allocator, Table* table, size_t more) noexcept nogil:
    cdef size_t size = 8 if table.cells == NULL else <size_t> table.mask + 1
    cdef size_t old = size
    while (<size_t> table.used + more) * 8 > size * 5:
        size *= 2
    if table.cells != NULL and size == old:
        return 0
    return table_resize(allocator, table, size)


# Room for one more.
cdef inline int table_reserve(Allocator* allocator, Table* table) noexcept nogil:
    cdef size_t size
    if table.cells == NULL:
        return table_resize(allocator, table, 8)
    size = <size_t> table.mask + 1
    if (<size_t> table.used + 1) * 8 <= size * 5:
        return 0
    return table_resize(allocator, table, size * 2)


cdef inline void table_drop(Allocator* allocator, Table* table, uint32_t tag, uint32_t ref) noexcept nogil:
    cdef uint64_t wanted = (<uint64_t> tag << 32) | (ref + 1)
    cdef uint32_t hole = tag & table.mask
    cdef uint32_t i, home
    while table.cells[hole] != wanted:
        hole = (hole + 1) & table.mask
    # Move back whatever the hole would cut off from its home.
    i = hole
    while True:
        i = (i + 1) & table.mask
        if table.cells[i] == 0:
            break
        home = <uint32_t> (table.cells[i] >> 32) & table.mask
        if ((i - home) & table.mask) >= ((i - hole) & table.mask):
            table.cells[hole] = table.cells[i]
            hole = i
    table.cells[hole] = 0
    table.used -= 1
    if table.used == 0:
        table_free(allocator, table)
    elif table.mask >= 63 and <size_t> table.used * 8 < <size_t> table.mask:
        table_resize(allocator, table, (<size_t> table.mask + 1) // 2)  # without memory it stays large


cdef inline void table_free(Allocator* allocator, Table* table) noexcept nogil:
    if table.cells != NULL:
        deallocate(allocator, table.cells, (<size_t> table.mask + 1) * sizeof(uint64_t))
    table.cells = NULL
    table.mask = table.used = 0
