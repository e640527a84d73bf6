# One pass over a topic: where its separators are, and the hash of the whole. Sixteen bytes a step where the processor
# can (every x86-64), one a step elsewhere. Nothing is read beyond the text: its last bytes are read by a load that
# ends with it.
#
#     site/17/floor   ->   separators 4 7   |s i t e 0 1 7 0|f l o o r|   separators as zeros, so that a text has one
#                                            low . high . low . high      hash in both syntaxes; folded in two lanes by
#                                                                         turns, so that no step waits for the last one

from libc.stdint cimport uint32_t, uint64_t

from matchcore.hashing cimport load64  # this C stands on that of hashing.pxd

from matchcore.hashing cimport hash_secret

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    /* The last 16 bytes of a text, or all of it: what words near its end are taken from, by shifting. */
    typedef struct { const char *start; uint64_t low, high; } matchcore_tail;

    static inline matchcore_tail matchcore_tail_of(const char *text, size_t size) {
        matchcore_tail tail;
        if (size >= 16) {
            tail.start = text + size - 16;
            tail.low = matchcore_load64(tail.start);
            tail.high = matchcore_load64(tail.start + 8);
        } else {
            tail.start = text;
            matchcore_load_word(text, size, &tail.low, &tail.high);
        }
        return tail;
    }

    typedef struct { uint64_t now, next; } matchcore_lanes;

    static inline void matchcore_add(matchcore_lanes *lanes, const uint64_t *secret, uint64_t low, uint64_t high) {
        uint64_t mixed = matchcore_fold(low ^ secret[1], high ^ lanes->now);
        lanes->now = lanes->next;
        lanes->next = mixed;
    }

    /* The offsets of `separator` in `text` into `found`, of which there are at most `most`; their number, -1
       when there are more, -2 when `strict` and a byte is there that an MQTT topic name may not hold. And the
       hash of the text. */
    static inline int matchcore_separators(
        const char *text, size_t size, char separator, int strict, uint32_t *found, uint32_t most,
        const uint64_t *secret, uint64_t *hash
    ) {
        uint32_t count = 0;
        size_t at = 0;
        matchcore_lanes lanes = {secret[0] ^ size, secret[3]};
    #if defined(__SSE2__)
        const __m128i wanted = _mm_set1_epi8(separator), plus = _mm_set1_epi8('+');
        const __m128i many = _mm_set1_epi8('#'), nul = _mm_setzero_si128();
        while (at < size) {
            __m128i bytes, ends;
            uint32_t mask, bad, keep = 0xFFFF;
            if (size - at >= 16) {
                bytes = _mm_loadu_si128((const __m128i *) (text + at));
            } else if (size >= 16) {
                at = size - 16;   /* again some bytes of the step before: their bits are left out */
                bytes = _mm_loadu_si128((const __m128i *) (text + at));
                keep = 0xFFFFu << (16 - (size & 15)) & 0xFFFFu;
            } else {
                uint64_t low, high;
                matchcore_load_word(text, size, &low, &high);
                bytes = _mm_set_epi64x((long long) high, (long long) low);
                keep = (1u << size) - 1;
            }
            ends = _mm_cmpeq_epi8(bytes, wanted);
            mask = (uint32_t) _mm_movemask_epi8(ends) & keep;
            if (strict) {
                bad = (uint32_t) _mm_movemask_epi8(_mm_or_si128(
                    _mm_cmpeq_epi8(bytes, plus),
                    _mm_or_si128(_mm_cmpeq_epi8(bytes, many), _mm_cmpeq_epi8(bytes, nul)))) & keep;
                if (bad != 0)
                    return -2;
            }
            bytes = _mm_andnot_si128(ends, bytes);
            matchcore_add(&lanes, secret, (uint64_t) _mm_cvtsi128_si64(bytes),
                          (uint64_t) _mm_cvtsi128_si64(_mm_unpackhi_epi64(bytes, bytes)));
            while (mask != 0) {
                if (count == most)
                    return -1;
                found[count++] = (uint32_t) at + (uint32_t) __builtin_ctz(mask);
                mask &= mask - 1;
            }
            at += 16;
        }
    #else
        while (at < size) {
            char step[16] = {0};
            size_t begin = size - at >= 16 || size < 16 ? at : size - 16, i;
            uint64_t low, high;
            memcpy(step, text + begin, size < 16 ? size : 16);
            for (i = 0; i < 16 && begin + i < size; i++) {
                if (step[i] == separator) {
                    step[i] = 0;
                    if (begin + i < at)
                        continue;   /* of the step before */
                    if (count == most)
                        return -1;
                    found[count++] = (uint32_t) (begin + i);
                } else if (strict && (step[i] == '+' || step[i] == '#' || step[i] == 0)) {
                    return -2;
                }
            }
            low = matchcore_load64(step);
            high = matchcore_load64(step + 8);
            matchcore_add(&lanes, secret, low, high);
            at = begin + 16;
        }
    #endif
        *hash = matchcore_fold(lanes.now ^ secret[2], lanes.next ^ secret[0]);
        return (int) count;
    }

    /* The same hash of a text of any kind. */
    static inline uint64_t matchcore_hash_text(
        const char *text, size_t size, char separator, const uint64_t *secret
    ) {
        matchcore_lanes lanes = {secret[0] ^ size, secret[3]};
        size_t at = 0;
        while (at < size) {
            char step[16] = {0};
            size_t i;
            if (size >= 16 && size - at < 16)
                at = size - 16;
            memcpy(step, text + at, size < 16 ? size : 16);
            for (i = 0; i < 16; i++)
                step[i] = step[i] == separator ? 0 : step[i];
            matchcore_add(&lanes, secret, matchcore_load64(step), matchcore_load64(step + 8));
            at += 16;
        }
        return matchcore_fold(lanes.now ^ secret[2], lanes.next ^ secret[0]);
    }

    static const uint64_t matchcore_masks[17][2] = {
        {0, 0}, {0xFF, 0}, {0xFFFF, 0}, {0xFFFFFF, 0}, {0xFFFFFFFF, 0}, {0xFFFFFFFFFF, 0},
        {0xFFFFFFFFFFFF, 0}, {0xFFFFFFFFFFFFFF, 0}, {~0ull, 0}, {~0ull, 0xFF}, {~0ull, 0xFFFF},
        {~0ull, 0xFFFFFF}, {~0ull, 0xFFFFFFFF}, {~0ull, 0xFFFFFFFFFF}, {~0ull, 0xFFFFFFFFFFFF},
        {~0ull, 0xFFFFFFFFFFFFFF}, {~0ull, ~0ull},
    };

    /* A word of up to 16 bytes of that text, as matchcore_load_word has it. */
    static inline void matchcore_cut(
        const matchcore_tail *tail, const char *start, uint32_t size, uint64_t *low, uint64_t *high
    ) {
        uint64_t l, h;
        if (start < tail->start) {
            l = matchcore_load64(start);
            h = matchcore_load64(start + 8);
        } else {
            unsigned shift = 8 * (unsigned) (start - tail->start);
            if (shift >= 128) {
                l = h = 0;
            } else if (shift >= 64) {
                l = tail->high >> (shift - 64);
                h = 0;
            } else if (shift != 0) {
                l = tail->low >> shift | tail->high << (64 - shift);
                h = tail->high >> shift;
            } else {
                l = tail->low;
                h = tail->high;
            }
        }
        *low = l & matchcore_masks[size][0];
        *high = h & matchcore_masks[size][1];
    }
    """
    ctypedef struct Tail "matchcore_tail":
        pass
    int separators "matchcore_separators" (
        const char* text, size_t size, char separator, bint strict, uint32_t* found, uint32_t most,
        const uint64_t* secret, uint64_t* hash
    ) noexcept nogil
    uint64_t hash_text "matchcore_hash_text" (
        const char* text, size_t size, char separator, const uint64_t* secret
    ) noexcept nogil
    Tail tail_of "matchcore_tail_of" (const char* text, size_t size) noexcept nogil
    void cut_word "matchcore_cut" (
        const Tail* tail, const char* start, uint32_t size, uint64_t* low, uint64_t* high
    ) noexcept nogil
