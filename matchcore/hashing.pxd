# The keyed hash of a word, and of a sequence of words.
#
# Folded multiplication (64 x 64 -> 128 bits, halves xor-ed), as in wyhash: a word of up to 16 bytes
# costs two of them. The secret is drawn at random when the process starts, so that nobody outside
# can choose words that collide. A hash only steers: whatever it finds is compared byte by byte.

from libc.stdint cimport uint32_t, uint64_t

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

    static inline uint64_t matchcore_load64(const char *at) {
        uint64_t value;
        memcpy(&value, at, 8);
        return value;
    }

    static inline uint64_t matchcore_load32(const char *at) {
        uint32_t value;
        memcpy(&value, at, 4);
        return value;
    }

    static inline uint64_t matchcore_hash_word(const uint64_t *secret, const char *start, size_t size) {
        uint64_t a = 0, b = 0, state = secret[0] ^ size;
        while (size > 16) {
            state = matchcore_fold(matchcore_load64(start) ^ secret[1],
                                   matchcore_load64(start + 8) ^ state);
            start += 16;
            size -= 16;
        }
        /* The rest, 0 to 16 bytes: two loads that overlap. With the size they say every byte. */
        if (size >= 8) {
            a = matchcore_load64(start);
            b = matchcore_load64(start + size - 8);
        } else if (size >= 4) {
            a = matchcore_load32(start);
            b = matchcore_load32(start + size - 4);
        } else if (size > 0) {
            a = (uint64_t) (unsigned char) start[0] << 16
              | (uint64_t) (unsigned char) start[size >> 1] << 8
              | (uint64_t) (unsigned char) start[size - 1];
        }
        return matchcore_fold(secret[2], matchcore_fold(a ^ secret[1], b ^ state));
    }

    static inline uint64_t matchcore_hash_add(const uint64_t *secret, uint64_t state, uint64_t item) {
        return matchcore_fold(state ^ item, secret[3]);
    }
    """
    uint64_t hash_word "matchcore_hash_word" (const uint64_t* secret, const char* start, size_t size) noexcept nogil
    uint64_t hash_add "matchcore_hash_add" (const uint64_t* secret, uint64_t state, uint64_t item) noexcept nogil


# Four odd random numbers, the same for the whole process.
cdef const uint64_t* hash_secret() noexcept nogil
