# Positions: where a literal stands in a filter, and a word in a topic. What the tiers share.
#
#     a . b . # . c . d        left 0 a, left 1 b; right 0 d, right 1 c
#     a . # . b . # . c        left 0 a; right 0 c; any b
#
# Literals before the first MANY (all, if there is none) are counted from the left, those after the last MANY
# from the right; one between two MANYs may stand anywhere. Positions are kept to DEPTH from either end: deeper
# literals are only verified.

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    DEPTH = 24               # as deep as nearly every topic; the positions of a word fit in 49 bits
    LENGTHS = DEPTH + 2      # 0..DEPTH words, and one for all that is longer
    POSITION_LEFT = 0           # left 0..23, right 24..47, any 48
    POSITION_RIGHT = DEPTH
    POSITION_ANY = 2 * DEPTH
    POSITIONS = 2 * DEPTH + 1

    # Tokens of a canonical filter that are not word ids
    TOKEN_ONE = 0xFFFFFFFF
    TOKEN_MANY = 0xFFFFFFFE
    TOKEN_WILD = 0xFFFFFFFE  # not less than this: a wildcard

    # Flags of a filter
    HAS_MANY = 1
    TO_VERIFY = 2            # its rows or its record do not decide: check it word by word
    NO_DOLLAR = 4            # refuses a first word that begins with `$` (MQTT 5, 4.7.2)


cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    /* The instruction is newer than x86-64: tested once, then a branch that is always the same. */
    static int matchcore_counts = -1;
    static inline int matchcore_count(unsigned long long bits) {
        if (__builtin_expect(matchcore_counts > 0, 1)) {
            unsigned long long count;
            __asm__("popcntq %1, %0" : "=r"(count) : "rm"(bits) : "cc");
            return (int) count;
        }
        if (matchcore_counts < 0) {
            __builtin_cpu_init();
            matchcore_counts = __builtin_cpu_supports("popcnt") != 0;
        }
        return __builtin_popcountll(bits);
    }
    #else
    static inline int matchcore_count(unsigned long long bits) { return __builtin_popcountll(bits); }
    #endif
    static inline int matchcore_lowest_position(unsigned long long bits) { return __builtin_ctzll(bits); }
    """
    int count_positions "matchcore_count" (uint64_t bits) noexcept nogil
    int lowest_position "matchcore_lowest_position" (uint64_t bits) noexcept nogil


# The length row of topics with this number of words.
cdef inline uint32_t length_row(uint32_t words) noexcept nogil:
    return words if words <= DEPTH else DEPTH + 1


# The parts of a canonical filter: tokens before the first MANY and after the last one, words at least,
# and the flags HAS_MANY and TO_VERIFY (two MANYs or more, or a literal deeper than DEPTH).
cdef struct Parts:
    uint32_t prefix
    uint32_t suffix
    uint32_t least
    uint32_t flags


cdef inline Parts parts_of(const uint32_t* tokens, uint32_t count) noexcept nogil:
    cdef Parts parts
    cdef uint32_t i
    cdef uint32_t many = 0
    parts.prefix = count
    parts.suffix = parts.flags = 0
    for i in range(count):
        if tokens[i] == TOKEN_MANY:
            if many == 0:
                parts.prefix = i
            parts.suffix = count - 1 - i
            many += 1
    parts.least = count - many
    if many != 0:
        parts.flags = HAS_MANY
    if many > 1 or parts.prefix > DEPTH or parts.suffix > DEPTH:
        parts.flags |= TO_VERIFY
    return parts
