# Rows of bits: sparse, in blocks of 512 columns.
#
#     a row    numbers [ 0 | 3 | 4 ]            which blocks are there, ascending
#              blocks  [512 | 512 | 512 bits]   their bits; a block without a bit is not kept
#
# A row costs 68 bytes for each block that has a bit in it, so a million filters of distinct words take
# memory in proportion, while a dense row is scanned at 512 columns a step. `numbers` lies behind
# `blocks` in the same allocation, and the blocks at multiples of 64 bytes: each is one cache line, not two.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator

cdef enum:
    BLOCK_WORDS = 8
    BLOCK_COLUMNS = 512


cdef struct Block:
    uint64_t[BLOCK_WORDS] words


# wide.pxd has these fields once more, in C.
cdef struct Row:
    Block* blocks
    uint32_t* numbers
    uint32_t size        # blocks
    uint32_t capacity
    uint32_t bits        # columns set
    uint32_t before      # bytes of the allocation that lie before `blocks`


# Where block `number` lies, or would: the first entry whose number is not below it.
cdef inline uint32_t row_seek(const Row* row, uint32_t number) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = row.size
    cdef uint32_t middle
    if number < high:
        if row.numbers[number] == number:
            return number      # no gap before it: the usual state of a dense row
        high = number          # numbers[i] >= i, so it can only be before
    while low < high:
        middle = low + (high - low) // 2
        if row.numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


# 0, or -1 when there is no memory: the row is then as it was. Clearing cannot fail, nor does it
# matter whether the bit was set.
cdef int row_set(Allocator* allocator, Row* row, uint32_t column) noexcept nogil
cdef void row_clear(Allocator* allocator, Row* row, uint32_t column) noexcept nogil
cdef int row_copy(Allocator* allocator, Row* into, const Row* row) noexcept nogil
cdef void row_free(Allocator* allocator, Row* row) noexcept nogil
