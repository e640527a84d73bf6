# The keyed hash of a word, of a sequence of words, and of a few word ids at their positions.
#
#     word of up to 16 bytes   |f o r e x 0 0 0|0 0 0 0 0 0 0 0|    two numbers, padded with zeros:
#                                    low              high          one multiplication, and one compare
#
# Folded multiplication (64 x 64 -> 128 bits, halves xor-ed), as in wyhash. The secret is drawn at random
# when the process starts, so that nobody outside can choose words that collide. A hash only steers:
# whatever it finds is compared.

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    MULTIPLIERS = 64

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t matchcore_fold(uint64_t a, uint64_t b) {
    #ifdef __SIZEOF_INT128__
        unsigned __int128 product = (unsigned __int128) a * b;
        return (uint64_t) product ^ (uint64_t) (product >> 64);
    #else
        uint64_t al = (uint32_t) a, ah = a >> 32, bl = (uint32_t) b, bh = b >> 32;
        uint64_t low = al * bl, mid1 = ah * bl, mid2 = al * bh, high = ah * bh;
        uint64_t carry = (low >> 32) + (uint32_t) mid1 + (uint32_t) mid2;
        low = (uint32_t) low | (carry << 32);
        high += (mid1 >> 32) + (mid2 >> 32) + (carry >> 32);
        return low ^ high;
    #endif
    }

    static inline uint64_t matchcore_load64(const void *at) {
        uint64_t value;
        memcpy(&value, at, 8);
        return value;
    }

    static inline void matchcore_store64(void *at, uint64_t value) { memcpy(at, &value, 8); }

    static inline uint64_t matchcore_load32(const void *at) {
        uint32_t value;
        memcpy(&value, at, 4);
        return value;
    }

    /* Words are compared as they are loaded; only equality matters, so the byte order does not. */
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #error "the masks below are written for little-endian processors"
    #endif

    /* 0 to 16 bytes into two numbers, padded with zeros: loads that overlap and agree where they do. */
    static inline void matchcore_load_word(const char *start, size_t size, uint64_t *low, uint64_t *high) {
        *high = 0;
        if (size >= 8) {
            *low = matchcore_load64(start);
            if (size > 8)
                *high = matchcore_load64(start + size - 8) >> (8 * (16 - size));
        } else if (size >= 4) {
            *low = matchcore_load32(start) | matchcore_load32(start + size - 4) << (8 * (size - 4));
        } else if (size > 0) {
            *low = (uint64_t) (unsigned char) start[0]
                 | (uint64_t) (unsigned char) start[size >> 1] << (8 * (size >> 1))
                 | (uint64_t) (unsigned char) start[size - 1] << (8 * (size - 1));
        } else {
            *low = 0;
        }
    }

    static inline uint64_t matchcore_hash_short(
        const uint64_t *secret, uint64_t low, uint64_t high, size_t size
    ) {
        return matchcore_fold(low ^ secret[1], high ^ secret[2] ^ size);
    }

    static inline uint64_t matchcore_hash_long(const uint64_t *secret, const char *start, size_t size) {
        uint64_t state = secret[0] ^ size;
        const char *last = start + size - 16;
        while (start < last) {
            state = matchcore_fold(matchcore_load64(start) ^ secret[1], matchcore_load64(start + 8) ^ state);
            start += 16;
        }
        return matchcore_fold(matchcore_load64(last) ^ secret[2], matchcore_load64(last + 8) ^ state);
    }

    static inline uint64_t matchcore_hash_word(const uint64_t *secret, const char *start, size_t size) {
        uint64_t low, high;
        if (size > 16)
            return matchcore_hash_long(secret, start, size);
        matchcore_load_word(start, size, &low, &high);
        return matchcore_hash_short(secret, low, high, size);
    }

    static inline uint64_t matchcore_hash_add(const uint64_t *secret, uint64_t state, uint64_t item) {
        return matchcore_fold(state ^ item, secret[3]);
    }
    """
    uint64_t fold "matchcore_fold" (uint64_t a, uint64_t b) noexcept nogil
    uint64_t load64 "matchcore_load64" (const void* at) noexcept nogil
    void store64 "matchcore_store64" (void* at, uint64_t value) noexcept nogil
    void load_word "matchcore_load_word" (
        const char* start, size_t size, uint64_t* low, uint64_t* high
    ) noexcept nogil
    uint64_t hash_short "matchcore_hash_short" (
        const uint64_t* secret, uint64_t low, uint64_t high, size_t size
    ) noexcept nogil
    uint64_t hash_long "matchcore_hash_long" (const uint64_t* secret, const char* start, size_t size) noexcept nogil
    uint64_t hash_word "matchcore_hash_word" (const uint64_t* secret, const char* start, size_t size) noexcept nogil
    uint64_t hash_add "matchcore_hash_add" (const uint64_t* secret, uint64_t state, uint64_t item) noexcept nogil


# Four odd random numbers, the same for the whole process.
cdef const uint64_t* hash_secret() noexcept nogil

# MULTIPLIERS more of them, one a position: the sum of multiplier x word id over the positions of a key is its
# hash, of which the upper half is used. So the products of a topic serve all its keys.
cdef const uint64_t* hash_multipliers() noexcept nogil
