# cython: language_level=3
"""Word by word: whether a canonical filter matches a topic. Linear in time, without backtracking.

    a . # . b . * . # . c        prefix a | segment b.* | suffix c
    a x b y b z c                the prefix from the left, the suffix from the right, and each segment
    ^   ^-^     ^                between two MANYs at the first place it fits after the one before

Taking the first place is enough: whatever a later place leaves to the segments after it, the first
one leaves too.
"""

from matchcore.pool cimport HAS_MANY, TOKEN_MANY, TOKEN_ONE


cdef inline bint _agree(const uint32_t* tokens, const uint32_t* ids, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if tokens[i] != ids[i] and tokens[i] != TOKEN_ONE:
            return False
    return True


cdef bint column_takes(const Column* column, const uint32_t* ids, uint32_t count) noexcept nogil:
    cdef const uint32_t* tokens = column.tokens
    cdef uint32_t token, size, at, end, last
    if not column.flags & HAS_MANY:
        return column.count == count and _agree(tokens, ids, count)
    if <uint32_t> column.prefix + column.suffix > count:
        return False
    if not _agree(tokens, ids, column.prefix):
        return False
    if not _agree(&tokens[column.count - column.suffix], &ids[count - column.suffix], column.suffix):
        return False
    token = column.prefix + 1                    # after the first MANY
    last = column.count - column.suffix - 1      # the last MANY
    at = column.prefix
    end = count - column.suffix
    while token < last:
        size = 0
        while tokens[token + size] != TOKEN_MANY:
            size += 1
        while at + size <= end and not _agree(&tokens[token], &ids[at], size):
            at += 1
        if at + size > end:
            return False
        at += size
        token += size + 1
    return True
