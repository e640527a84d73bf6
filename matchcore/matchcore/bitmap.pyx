# cython: language_level=3
"""Rows of bits over numbered columns: set, clear, copy.

It knows nothing of topics. The layout is in bitmap.pxd; blocks are anded in wide.pxd.
"""

from libc.string cimport memcpy, memmove, memset

from matchcore.allocator cimport deallocate, allocate

cdef enum:
    ALIGNMENT = 64           # of blocks
    MALLOC_ALIGNMENT = 16    # what an allocation has without our doing


cdef inline size_t _bytes(size_t capacity) noexcept nogil:
    return capacity * (sizeof(Block) + sizeof(uint32_t)) + ALIGNMENT - MALLOC_ALIGNMENT


cdef inline void _give_back(Allocator* allocator, Row* row) noexcept nogil:
    if row.blocks != NULL:
        deallocate(allocator, <char*> row.blocks - row.before, _bytes(row.capacity))


# The row's blocks in an allocation of `capacity`, which holds them all.
cdef int _resize(Allocator* allocator, Row* row, uint32_t capacity) noexcept nogil:
    cdef char* room = <char*> allocate(allocator, _bytes(capacity))
    cdef uint32_t before
    cdef Block* blocks
    cdef uint32_t* numbers
    if room == NULL:
        return -1
    before = <uint32_t> (-<size_t> room % ALIGNMENT)
    blocks = <Block*> (room + before)
    numbers = <uint32_t*> (blocks + capacity)
    if row.size != 0:
        memcpy(blocks, row.blocks, row.size * sizeof(Block))
        memcpy(numbers, row.numbers, row.size * sizeof(uint32_t))
    _give_back(allocator, row)
    row.blocks = blocks
    row.numbers = numbers
    row.before = before
    row.capacity = capacity
    return 0


cdef int row_set(Allocator* allocator, Row* row, uint32_t column) noexcept nogil:
    cdef uint32_t number = column // BLOCK_COLUMNS
    cdef uint32_t at = row_seek(row, number)
    cdef uint64_t bit = <uint64_t> 1 << (column % 64)
    cdef uint64_t* word
    if at == row.size or row.numbers[at] != number:
        if row.size == row.capacity and _resize(allocator, row, row.capacity + row.capacity // 2 + 1) < 0:
            return -1
        memmove(&row.blocks[at + 1], &row.blocks[at], (row.size - at) * sizeof(Block))
        memmove(&row.numbers[at + 1], &row.numbers[at], (row.size - at) * sizeof(uint32_t))
        memset(&row.blocks[at], 0, sizeof(Block))
        row.numbers[at] = number
        row.size += 1
    word = &row.blocks[at].words[column % BLOCK_COLUMNS // 64]
    if not word[0] & bit:
        word[0] |= bit
        row.bits += 1
    return 0


cdef void row_clear(Allocator* allocator, Row* row, uint32_t column) noexcept nogil:
    cdef uint32_t number = column // BLOCK_COLUMNS
    cdef uint32_t at = row_seek(row, number)
    cdef uint64_t bit = <uint64_t> 1 << (column % 64)
    cdef uint64_t any = 0
    cdef uint64_t* word
    cdef int i
    if at == row.size or row.numbers[at] != number:
        return
    word = &row.blocks[at].words[column % BLOCK_COLUMNS // 64]
    if not word[0] & bit:
        return
    word[0] &= ~bit
    row.bits -= 1
    for i in range(BLOCK_WORDS):
        any |= row.blocks[at].words[i]
    if any != 0:
        return
    row.size -= 1
    if row.size == 0:
        row_free(allocator, row)
        return
    memmove(&row.blocks[at], &row.blocks[at + 1], (row.size - at) * sizeof(Block))
    memmove(&row.numbers[at], &row.numbers[at + 1], (row.size - at) * sizeof(uint32_t))
    if row.size * 4 < row.capacity:
        _resize(allocator, row, row.size * 2)  # without memory for the smaller one it stays large


cdef int row_copy(Allocator* allocator, Row* into, const Row* row) noexcept nogil:
    # `into` is empty.
    if row.size == 0:
        return 0
    if _resize(allocator, into, row.size) < 0:
        return -1
    memcpy(into.blocks, row.blocks, row.size * sizeof(Block))
    memcpy(into.numbers, row.numbers, row.size * sizeof(uint32_t))
    into.size = row.size
    into.bits = row.bits
    return 0


cdef void row_free(Allocator* allocator, Row* row) noexcept nogil:
    _give_back(allocator, row)
    memset(row, 0, sizeof(Row))
