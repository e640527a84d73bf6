# cython: language_level=3
"""Word by word: whether a canonical filter matches a topic.

    a . # . b . * . # . c        prefix a | segment b.* | suffix c
    a x b y b z c                the prefix from the left, the suffix from the right, and each segment
    ^   ^-^     ^                between two MANYs at the first position it fits after the one before

Taking the first position is enough: whatever a later position leaves to the segments after it, the first
one leaves too. So nothing is tried twice, but a segment of n words that fits nearly everywhere costs n comparisons for
each position. Who subscribes to many such filters makes all topics dear. Once STEPS_FIRST comparisons are made for a
topic, it is turned over: a bitmap of positions for each of its words (Occurrences). A segment then costs an AND for
each of its words, for all positions together:

    topic      a b a b b     where a is    00101      segment  b . b    where b is         11010
               0 1 2 3 4     where b is    11010                        the same, one on   01101
                             (4 3 2 1 0)                                both               01000    first: 3

So a filter costs at most its number of words, for topics of up to OCCURRENCES_WORDS; longer ones, which an operator
must have allowed, are compared word by word.
"""

from libc.string cimport memset

from matchcore.positions cimport TOKEN_MANY, TOKEN_ONE
from matchcore.words cimport OTHER


cdef inline uint32_t _agreeing(const uint32_t* tokens, const uint32_t* ids, uint32_t count) noexcept nogil:
    """How many words agree before the first that does not."""
    cdef uint32_t i
    for i in range(count):
        if tokens[i] != ids[i] and tokens[i] != TOKEN_ONE:
            return i
    return count


cdef inline uint8_t _cell_of(const Occurrences* occurrences, uint32_t id) noexcept nogil:
    """The cell of a word, or the empty one that it would have."""
    cdef uint8_t cell = <uint8_t> id
    while occurrences.cells[cell] != 0 and occurrences.ids[occurrences.cells[cell] - 1] != id:
        cell = <uint8_t> (cell + 1)
    return cell


cdef void _turn_over(Occurrences* occurrences, const uint32_t* ids, uint32_t count) noexcept nogil:
    """Note where each word is."""
    cdef uint32_t lines = 0
    cdef uint32_t i, line
    cdef uint8_t cell
    memset(occurrences.cells, 0, sizeof(occurrences.cells))
    for i in range(count):
        if ids[i] == OTHER:
            continue
        cell = _cell_of(occurrences, ids[i])
        if occurrences.cells[cell] == 0:
            occurrences.ids[lines] = ids[i]
            occurrences.bits[lines] = 0
            lines += 1
            occurrences.cells[cell] = <uint8_t> lines
        line = occurrences.cells[cell] - 1
        occurrences.bits[line] |= <Bits> 1 << i


cdef inline uint32_t _first_of(
    const Occurrences* occurrences, const uint32_t* tokens, uint32_t length, uint32_t at, uint32_t end
) noexcept nogil:
    """The first position from `at` on where these words stand one after the other. They have to end before `end`, which
    is also the answer if they stand nowhere.
    """
    cdef Bits starts
    cdef uint32_t i
    cdef uint8_t cell
    if at + length > end:
        return end
    starts = ((<Bits> 1 << (end - length - at)) << 1) - 1 << at
    for i in range(length):
        if tokens[i] == TOKEN_ONE:
            continue
        cell = _cell_of(occurrences, tokens[i])
        if occurrences.cells[cell] == 0:
            return end
        starts &= occurrences.bits[occurrences.cells[cell] - 1] >> i
        if starts == 0:
            return end
    return lowest(starts)


cdef bint tokens_take(
    const uint32_t* tokens, uint32_t size, uint32_t prefix, uint32_t suffix, bint has_many,
    const uint32_t* ids, uint32_t count, Occurrences* occurrences
) noexcept nogil:
    cdef uint32_t token, length, at, end, last, agreeing
    if not has_many:
        return size == count and _agreeing(tokens, ids, count) == count
    if prefix + suffix > count:
        return False
    if _agreeing(tokens, ids, prefix) < prefix:
        return False
    if _agreeing(&tokens[size - suffix], &ids[count - suffix], suffix) < suffix:
        return False
    if count > OCCURRENCES_WORDS:
        occurrences = NULL
    token = prefix + 1          # after the first MANY
    last = size - suffix - 1    # the last MANY
    at = prefix
    end = count - suffix
    while token < last:
        length = 0
        while tokens[token + length] != TOKEN_MANY:
            length += 1
        while at + length <= end:
            if occurrences != NULL and occurrences.left == 0:
                at = _first_of(occurrences, &tokens[token], length, at, end)
                break
            agreeing = _agreeing(&tokens[token], &ids[at], length)
            if agreeing == length:
                break
            at += 1
            if occurrences != NULL:
                occurrences.left -= min(occurrences.left, agreeing + 1)
                if occurrences.left == 0:
                    _turn_over(occurrences, ids, count)
        if at + length > end:
            return False
        at += length
        token += length + 1
    return True
