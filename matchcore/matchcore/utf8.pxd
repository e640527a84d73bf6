# Well-formed UTF-8. The broker's wire has one of its own (wire/msgpack.pyx): the two know nothing of each other.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

# Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
cdef inline bint is_utf8(const uint8_t* at, Py_ssize_t size) noexcept nogil:
    cdef const uint8_t* end = at + size
    cdef uint64_t eight
    cdef uint8_t lead, low, high
    cdef int more
    while at < end:
        while end - at >= 8:
            memcpy(&eight, at, 8)
            if eight & <uint64_t> 0x8080808080808080:
                break
            at += 8
        if at >= end:
            return True
        lead = at[0]
        at += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if end - at < more or not low <= at[0] <= high:
            return False
        at += 1
        while more > 1:
            if at[0] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True
