# CRC-32C (Castagnoli): of the processor where it has SSE 4.2, else by a table. RFC 3720, B.4 has the vectors.
#
# It can be continued: extend_crc(extend_crc(0, a), b) == extend_crc(0, a + b).

from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #ifndef FANLIGHT_CRC32C
    #define FANLIGHT_CRC32C
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    static uint32_t fanlight_crc_table[256];

    static uint32_t fanlight_crc_by_table(uint32_t crc, const char *data, size_t size) {
        if (!fanlight_crc_table[1])  /* filled from behind: two threads write the same, and entry 1 is the last */
            for (uint32_t i = 255; i > 0; i--) {
                uint32_t c = i;
                for (int k = 0; k < 8; k++)
                    c = (c & 1) ? (c >> 1) ^ 0x82F63B78u : c >> 1;
                __atomic_store_n(&fanlight_crc_table[i], c, __ATOMIC_RELEASE);
            }
        crc = ~crc;
        while (size--)
            crc = (crc >> 8) ^ fanlight_crc_table[(crc ^ (unsigned char) *data++) & 0xFF];
        return ~crc;
    }

    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __attribute__((target("sse4.2")))
    static uint32_t fanlight_crc_by_processor(uint32_t crc, const char *data, size_t size) {
        uint64_t state = (uint32_t) ~crc, word;
        for (; size >= 8; size -= 8, data += 8) {
            memcpy(&word, data, 8);
            state = __builtin_ia32_crc32di(state, word);
        }
        crc = (uint32_t) state;
        while (size--)
            crc = __builtin_ia32_crc32qi(crc, (unsigned char) *data++);
        return ~crc;
    }
    static inline uint32_t fanlight_crc(uint32_t crc, const char *data, size_t size) {
        return __builtin_cpu_supports("sse4.2") ? fanlight_crc_by_processor(crc, data, size)
                                                : fanlight_crc_by_table(crc, data, size);
    }
    #else
    #define fanlight_crc fanlight_crc_by_table
    #endif
    #endif
    """
    uint32_t extend_crc "fanlight_crc" (uint32_t crc, const char* data, size_t size) noexcept nogil
    uint32_t extend_crc_by_table "fanlight_crc_by_table" (uint32_t crc, const char* data, size_t size) noexcept nogil
