# Does a filter take a topic? Word by word, for those that rows, records and postings do not decide.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from *:
    """
    typedef unsigned __int128 matchcore_bits;
    static inline uint32_t matchcore_lowest(matchcore_bits bits) {
        uint64_t low = (uint64_t) bits;
        return low ? (uint32_t) __builtin_ctzll(low) : 64 + (uint32_t) __builtin_ctzll((uint64_t) (bits >> 64));
    }
    """
    ctypedef unsigned long long Bits "matchcore_bits"    # 128 of them
    uint32_t lowest "matchcore_lowest"(Bits bits) noexcept nogil    # the number of the lowest one; there is one

cdef enum:
    OCCURRENCES_WORDS = 128    # of a topic, at most: one bit each
    STEPS_FIRST = 256          # compared word by word before the table is made, which costs about as much


# Where each word of one topic stands, once many filters have been compared with the topic: then a segment of a filter
# is found by an AND for each of its words, wherever in the topic it is.
cdef struct Occurrences:
    uint32_t left              # comparisons until the table is made; 0: it is
    uint8_t[256] cells         # by the low byte of a word's id, or behind it: its line + 1; 0: none
    uint32_t[OCCURRENCES_WORDS] ids
    Bits[OCCURRENCES_WORDS] bits    # of the positions of a line's word


cdef inline void occurrences_forget(Occurrences* occurrences) noexcept nogil:
    occurrences.left = STEPS_FIRST


# `tokens`: canonical; `prefix` and `suffix` as in positions.pxd. `ids`: the topic's word ids, OTHER for words no
# filter names. `occurrences`: of this topic, or NULL. Everything but the `$` rule.
cdef bint tokens_take(
    const uint32_t* tokens, uint32_t size, uint32_t prefix, uint32_t suffix, bint has_many,
    const uint32_t* ids, uint32_t count, Occurrences* occurrences
) noexcept nogil
