"""Properties of MQTT 5 (2.2.2), as far as deliveries have them, and the integers that they are made of."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

cdef enum:
    SUBSCRIPTION_IDENTIFIER = 0x0b
    TOPIC_ALIAS = 0x23


cdef inline uint32_t load_u16(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[0] << 8) | p[1]


cdef inline int load_length(const uint8_t* p, const uint8_t* end, uint32_t* value) noexcept nogil:
    """A variable byte integer (1.5.5): its size in bytes, 0 if it is cut off, -1 if it is invalid."""
    cdef uint32_t v = 0
    cdef int i
    for i in range(4):
        if p + i >= end:
            return 0
        v |= <uint32_t>(p[i] & 0x7f) << (7 * i)
        if p[i] < 0x80:
            value[0] = v
            return i + 1
    return -1


cdef inline int64_t property_size(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The size of the property that begins at p, its identifier included; -1 if a PUBLISH may not have it (3.3.2.3)."""
    cdef int64_t left = end - p, size
    cdef uint32_t value = 0
    if p[0] == 0x01:                                            # payload format indicator: one byte
        size = 2
    elif p[0] == 0x02:                                          # message expiry interval: four bytes
        size = 5
    elif p[0] == TOPIC_ALIAS:
        size = 3
    elif p[0] == SUBSCRIPTION_IDENTIFIER:
        size = load_length(p + 1, end, &value) + 1
        if size < 2:
            return -1
    elif p[0] == 0x03 or p[0] == 0x08 or p[0] == 0x09:          # content type, response topic, correlation data
        if left < 3:
            return -1
        size = 3 + <int64_t>load_u16(p + 1)
    elif p[0] == 0x26:                                          # user property: two strings
        if left < 3:
            return -1
        size = 3 + <int64_t>load_u16(p + 1)
        if left < size + 2:
            return -1
        size += 2 + <int64_t>load_u16(p + size)
    else:
        return -1
    return size if size <= left else -1


cdef inline bint same_properties(
    const uint8_t* got, uint32_t got_size, const uint8_t* sent, uint32_t sent_size
) noexcept nogil:
    """Whether what came is what was sent, in any order; what is between broker and subscriber is left aside."""
    cdef const uint8_t* p = got
    cdef const uint8_t* end = got + got_size
    cdef const uint8_t* q
    cdef int64_t size, other, passed = 0
    cdef bint found
    if got_size == sent_size and memcmp(got, sent, got_size) == 0:
        return True
    while p < end:
        size = property_size(p, end)
        if size <= 0:
            return False
        if p[0] != TOPIC_ALIAS and p[0] != SUBSCRIPTION_IDENTIFIER:
            passed += size
            found = False
            q = sent
            while q < sent + sent_size and not found:
                other = property_size(q, sent + sent_size)
                found = other == size and memcmp(p, q, <size_t>size) == 0
                q += other
            if not found:
                return False
        p += size
    return passed == sent_size
