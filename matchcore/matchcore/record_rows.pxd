# Rows of a record index. The format and the programs are drawn in record_rows.pyx; record_writing.pyx writes rows.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef enum:
    LIST = 0
    CONTAINERS = 1

    ARRAY = 0
    BITS = 1
    RUNS = 2

    CHUNK = 65_536       # records
    WORDS = 1_024        # of a register
    BITS_BYTES = 8_192
    HEAD = 5             # bytes of a container before its numbers
    LIST_AT_MOST = 4_096  # numbers of a list: it takes longer to read than containers


cdef struct RowCursor:
    const uint8_t* at
    const uint8_t* end
    uint8_t form            # LIST, CONTAINERS
    bint has_next           # of a list: `next` was read and belongs to a later chunk
    uint64_t next
    int32_t key             # of a row of containers: the last one that was passed, -1 none


cdef class RowSection:
    cdef:
        const uint8_t[::1] data
        readonly uint32_t count

    cdef int open(self, uint32_t row, RowCursor* cursor) except -1
