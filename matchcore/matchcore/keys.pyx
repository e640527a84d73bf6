# cython: language_level=3, cdivision=True
"""A filter's literals by rarity, and the access keys made of them. Drawn in keys.pxd."""

from matchcore.classes cimport classes_frequency
from matchcore.line_table cimport line_tag
from matchcore.positions cimport (
    DEPTH, POSITION_ANY, POSITION_RIGHT, TOKEN_WILD, TO_VERIFY, Parts, parts_of,
)
from matchcore.table cimport NONE


cdef inline void _literal(Pattern* pattern, uint32_t id, uint32_t position) noexcept nogil:
    pattern.position[pattern.literals] = <uint8_t> position
    pattern.ids[pattern.literals] = id
    pattern.literals += 1


cdef void pattern_of(
    Pattern* pattern, const Classes* classes, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil:
    cdef Parts parts = parts_of(tokens, count)
    cdef uint32_t fewest = NONE
    cdef uint32_t any = 0
    cdef uint32_t i, n
    pattern.slot = slot
    pattern.flags = flags | parts.flags
    pattern.least = parts.least
    pattern.tokens = tokens
    pattern.count = count
    pattern.prefix = parts.prefix
    pattern.suffix = parts.suffix
    pattern.literals = 0
    for i in range(min(parts.prefix, <uint32_t> DEPTH)):
        if tokens[i] < TOKEN_WILD:
            _literal(pattern, tokens[i], i)
    for i in range(min(parts.suffix, <uint32_t> DEPTH)):
        if tokens[count - 1 - i] < TOKEN_WILD:
            _literal(pattern, tokens[count - 1 - i], POSITION_RIGHT + i)
    pattern.anchored = pattern.literals
    for i in range(parts.prefix, count - parts.suffix):
        if tokens[i] < TOKEN_WILD:
            n = classes_frequency(classes, tokens[i], POSITION_ANY)
            if n < fewest:
                fewest = n
                any = tokens[i]
    if fewest != NONE:
        _literal(pattern, any, POSITION_ANY)
    if pattern.anchored > RESIDUALS_AT_MOST:
        pattern.flags |= TO_VERIFY
    pattern_sort(pattern, classes)


cdef void pattern_sort(Pattern* pattern, const Classes* classes) noexcept nogil:
    cdef uint32_t i, j, id, n
    cdef uint8_t position
    for i in range(pattern.literals):
        id = pattern.ids[i]
        position = pattern.position[i]
        n = classes_frequency(classes, id, position)
        j = i
        while j > 0 and pattern.counts[j - 1] > n:
            pattern.counts[j] = pattern.counts[j - 1]
            pattern.ids[j] = pattern.ids[j - 1]
            pattern.position[j] = pattern.position[j - 1]
            j -= 1
        pattern.counts[j] = n
        pattern.ids[j] = id
        pattern.position[j] = position


cdef uint32_t pattern_depth(const Pattern* pattern) noexcept nogil:
    return min(pattern.literals, <uint32_t> KEY_LITERALS)


cdef void key_tag(Key* key, const uint64_t* multipliers) noexcept nogil:
    cdef uint64_t sum = 0
    cdef uint32_t i
    for i in range(key.literals):
        sum += multipliers[key.position[i]] * key.ids[i]
    key.tag = line_tag(<uint32_t> (sum >> 32))


cdef void key_of(
    Key* key, const Pattern* pattern, uint32_t literals, const uint64_t* multipliers
) noexcept nogil:
    cdef uint32_t i, j
    key.positions = 0
    key.literals = literals
    for i in range(literals):
        j = i
        while j > 0 and key.position[j - 1] > pattern.position[i]:
            key.position[j] = key.position[j - 1]
            key.ids[j] = key.ids[j - 1]
            j -= 1
        key.position[j] = pattern.position[i]
        key.ids[j] = pattern.ids[i]
        key.positions |= <uint64_t> 1 << pattern.position[i]
    key_tag(key, multipliers)


cdef void key_of_class(Key* key, const Pattern* pattern, const Class* entry) noexcept nogil:
    cdef uint32_t i, j
    key.positions = entry.positions
    key.literals = entry.literals
    for i in range(entry.literals):
        key.position[i] = entry.position[i]
        key.ids[i] = 0
        for j in range(pattern.anchored + 1):
            if j < pattern.literals and pattern.position[j] == entry.position[i] and entry.position[i] != POSITION_ANY:
                key.ids[i] = pattern.ids[j]


cdef double pattern_chance(const Pattern* pattern, const Classes* classes) noexcept nogil:
    cdef double chance = 1
    cdef uint32_t i
    for i in range(pattern.literals):
        chance *= <double> pattern.counts[i] / classes.totals[pattern.position[i]]
    return chance
