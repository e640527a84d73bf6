# A topic or filter cut into words, each hashed on the way: what every compiled contender begins with.
#
# Sixteen bytes a step where the processor can. A word of up to 16 bytes is two numbers padded with zeros,
# compared and hashed as such; a longer one is compared byte by byte. The hash is a folded multiplication.
# Nobody hostile chooses the words of a benchmark, so the secret is fixed.

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    #define MATCHERS_WORDS 128  /* as matchcore's limit */

    typedef struct {
        const unsigned char *text;
        uint32_t size;
        uint32_t kind;      /* of a filter's word: literal, one word, any number of words */
        uint64_t low, high; /* its first 16 bytes, padded with zeros */
        uint64_t hash;
    } matchers_word;

    static inline uint64_t matchers_fold(uint64_t a, uint64_t b) {
    #ifdef __SIZEOF_INT128__
        unsigned __int128 product = (unsigned __int128) a * b;
        return (uint64_t) product ^ (uint64_t) (product >> 64);
    #else
        uint64_t x = (a ^ (b << 31 | b >> 33)) * 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull + b;
        return x ^ (x >> 29);
    #endif
    }

    /* The n <= 16 bytes at `text`. A load may run past them, but never onto another page. */
    static inline void matchers_load(const unsigned char *text, uint32_t n, uint64_t *low, uint64_t *high) {
        uint64_t pair[2] = {0, 0};
        if ((((uintptr_t) text) & 4095) <= 4096 - 16) {
            memcpy(pair, text, 16);
            if (n < 8) {
                pair[0] &= ((uint64_t) 1 << (8 * n)) - 1;
                pair[1] = 0;
            } else if (n < 16) {
                pair[1] &= ((uint64_t) 1 << (8 * (n - 8))) - 1;
            }
        } else {
            memcpy(pair, text, n);
        }
        *low = pair[0];
        *high = pair[1];
    }

    static inline uint64_t matchers_hash_long(const unsigned char *text, uint32_t size, uint64_t seed) {
        uint64_t low, high;
        while (size > 0) {
            uint32_t n = size < 16 ? size : 16;
            matchers_load(text, n, &low, &high);
            seed = matchers_fold(low ^ 0x9E3779B97F4A7C15ull ^ seed, high ^ 0xD6E8FEB86659FD93ull);
            text += n;
            size -= n;
        }
        return seed;
    }

    static inline void matchers_set(matchers_word *word, const unsigned char *text, uint32_t size) {
        word->text = text;
        word->size = size;
        matchers_load(text, size < 16 ? size : 16, &word->low, &word->high);
        word->hash = matchers_fold(
            word->low ^ 0x9E3779B97F4A7C15ull ^ size, word->high ^ 0xD6E8FEB86659FD93ull);
        if (size > 16)
            word->hash = matchers_hash_long(text + 16, size - 16, word->hash);
    }

    static inline uint64_t matchers_pair(uint64_t a, uint64_t b) {
        return matchers_fold(a ^ 0x9E3779B97F4A7C15ull, b ^ 0xD6E8FEB86659FD93ull);
    }

    static inline int matchers_same(const matchers_word *word, const unsigned char *text, uint32_t size) {
        return word->size == size && memcmp(word->text, text, size) == 0;
    }

    /* Cuts at `separator` into `words`: how many, -1 if more than MATCHERS_WORDS. An empty text is one empty
       word here; that an empty AMQP key has none is the caller's business. */
    static inline int matchers_split(
        const unsigned char *text, size_t size, unsigned char separator, matchers_word *words
    ) {
        int count = 0;
        size_t start = 0, at = 0;
    #if defined(__SSE2__)
        const __m128i wanted = _mm_set1_epi8((char) separator);
        for (; at < size; at += 16) {
            uint64_t pair[2];
            uint32_t n = size - at < 16 ? (uint32_t) (size - at) : 16, mask;
            if (n == 16)
                memcpy(pair, text + at, 16);
            else
                matchers_load(text + at, n, &pair[0], &pair[1]);
            mask = (uint32_t) _mm_movemask_epi8(
                _mm_cmpeq_epi8(_mm_set_epi64x((long long) pair[1], (long long) pair[0]), wanted));
            while (mask != 0) {
                size_t end = at + (uint32_t) __builtin_ctz(mask);
                if (count == MATCHERS_WORDS - 1)
                    return -1;
                matchers_set(&words[count++], text + start, (uint32_t) (end - start));
                start = end + 1;
                mask &= mask - 1;
            }
        }
    #else
        for (; at < size; at++) {
            if (text[at] == separator) {
                if (count == MATCHERS_WORDS - 1)
                    return -1;
                matchers_set(&words[count++], text + start, (uint32_t) (at - start));
                start = at + 1;
            }
        }
    #endif
        matchers_set(&words[count++], text + start, (uint32_t) (size - start));
        return count;
    }

    #if defined(__GNUC__)
    #define matchers_prefetch(at) __builtin_prefetch(at)
    #else
    #define matchers_prefetch(at) ((void) (at))
    #endif
    """
    enum:
        MOST_WORDS "MATCHERS_WORDS"
    ctypedef struct Word "matchers_word":
        const unsigned char* text
        uint32_t size
        uint32_t kind
        uint64_t low
        uint64_t high
        uint64_t hash
    uint64_t hash_pair "matchers_pair" (uint64_t a, uint64_t b) noexcept nogil
    uint64_t hash_bytes "matchers_hash_long" (const unsigned char* text, uint32_t size, uint64_t seed) noexcept nogil
    bint same_text "matchers_same" (const Word* word, const unsigned char* text, uint32_t size) noexcept nogil
    int split "matchers_split" (
        const unsigned char* text, size_t size, unsigned char separator, Word* words
    ) noexcept nogil
    void prefetch "matchers_prefetch" (const void* at) noexcept nogil

cdef enum Kind:
    LITERAL
    ONE   # `*` of AMQP, `+` of MQTT
    MANY  # `#`
