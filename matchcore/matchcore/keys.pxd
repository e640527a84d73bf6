# What a filter is to the buckets: its literals, the rarest first, and the key made of the first few.
#
#     site/17/+/+/dev/4711/#     literals  L5 "4711"  L1 "17"  L0 "site"  L4 "dev"       rarest first
#                                key of 1  {L5: 4711}
#                                key of 2  {L1: 17, L5: 4711}, class {L1, L5}
#
# One that MUST be verified word by word carries its tokens; of its literals between two MANYs the rarest may
# be in the key, at the position "any".

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from matchcore.classes cimport Class, Classes, KEY_LITERALS
from matchcore.positions cimport POSITIONS

cdef enum:
    RESIDUALS_AT_MOST = 31   # literals of a record; more are verified word by word


cdef struct Pattern:
    uint32_t slot
    uint32_t flags           # HAS_MANY, TO_VERIFY, NO_DOLLAR
    uint32_t least           # words it takes at least, or exactly
    uint32_t literals
    uint32_t anchored        # of them, those that are not at the position any
    uint8_t[POSITIONS] position
    uint32_t[POSITIONS] ids
    uint32_t[POSITIONS] counts  # filters with that literal there
    const uint32_t* tokens   # canonical; only used with TO_VERIFY
    uint32_t count
    uint32_t prefix
    uint32_t suffix


# A key as a bucket has it: words in the order of their positions.
cdef struct Key:
    uint64_t positions
    uint32_t literals
    uint32_t tag
    uint8_t[KEY_LITERALS] position
    uint32_t[KEY_LITERALS] ids


# `flags`: NO_DOLLAR or 0.
cdef void pattern_of(
    Pattern* pattern, const Classes* classes, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil

# How many literals its longest key has.
cdef uint32_t pattern_depth(const Pattern* pattern) noexcept nogil

# Sorts the literals by how frequent they are now.
cdef void pattern_sort(Pattern* pattern, const Classes* classes) noexcept nogil

# The key of the first `literals`.
cdef void key_of(
    Key* key, const Pattern* pattern, uint32_t literals, const uint64_t* multipliers
) noexcept nogil

# The key for the positions of a class, as far as the pattern has one literal for each; the any literal, if the
# class has one, is left to the caller (ids of POSITION_ANY is 0) and so is the tag: see key_tag.
cdef void key_of_class(Key* key, const Pattern* pattern, const Class* entry) noexcept nogil
cdef void key_tag(Key* key, const uint64_t* multipliers) noexcept nogil

# The probability that it matches a topic whose words are drawn like the filters' literals.
cdef double pattern_chance(const Pattern* pattern, const Classes* classes) noexcept nogil
