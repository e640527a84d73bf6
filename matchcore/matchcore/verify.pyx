# cython: language_level=3
"""Word by word: whether a canonical filter matches a topic. Without backtracking: at most tokens x words steps.

    a . # . b . * . # . c        prefix a | segment b.* | suffix c
    a x b y b z c                the prefix from the left, the suffix from the right, and each segment
    ^   ^-^     ^                between two MANYs at the first position it fits after the one before

Taking the first position is enough: whatever a later position leaves to the segments after it, the first
one leaves too.
"""

from matchcore.positions cimport TOKEN_MANY, TOKEN_ONE


cdef inline bint _agree(const uint32_t* tokens, const uint32_t* ids, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if tokens[i] != ids[i] and tokens[i] != TOKEN_ONE:
            return False
    return True


cdef bint tokens_take(
    const uint32_t* tokens, uint32_t size, uint32_t prefix, uint32_t suffix, bint has_many,
    const uint32_t* ids, uint32_t count
) noexcept nogil:
    cdef uint32_t token, length, at, end, last
    if not has_many:
        return size == count and _agree(tokens, ids, count)
    if prefix + suffix > count:
        return False
    if not _agree(tokens, ids, prefix):
        return False
    if not _agree(&tokens[size - suffix], &ids[count - suffix], suffix):
        return False
    token = prefix + 1          # after the first MANY
    last = size - suffix - 1    # the last MANY
    at = prefix
    end = count - suffix
    while token < last:
        length = 0
        while tokens[token + length] != TOKEN_MANY:
            length += 1
        while at + length <= end and not _agree(&tokens[token], &ids[at], length):
            at += 1
        if at + length > end:
            return False
        at += length
        token += length + 1
    return True
