# cython: language_level=3
"""Walking over msgpack values without decoding them: what the fast lane needs to know that a frame is sound.

A frame that passes here can be decoded by any msgpack library with strict UTF-8, also after a program has
forwarded it unchanged. `check` is the same walk for Python, and for the tests that compare it with the msgpack package.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

FAULTS = {
    TRUNCATED: "a value goes on behind the end of the frame",
    TOO_DEEP: "nested too deep",
    EXTENSION: "an extension type, or the octet c1",
    BAD_UTF8: "a str that is not valid UTF-8",
    WRONG_TYPE: "a value of the wrong type",
}


cdef inline bint take(MsgpackCursor* cursor, int size, uint64_t* value) noexcept nogil:
    """A big-endian integer of `size` octets."""
    cdef int i
    if cursor.end - cursor.at < size:
        return False
    value[0] = 0
    for i in range(size):
        value[0] = (value[0] << 8) | cursor.at[i]
    cursor.at += size
    return True


cdef inline Fault pass_over(MsgpackCursor* cursor, uint64_t size) noexcept nogil:
    if <uint64_t> (cursor.end - cursor.at) < size:
        return TRUNCATED
    cursor.at += size
    return NO_FAULT


cdef bint is_nil(MsgpackCursor* cursor) noexcept nogil:
    """Is the next value nil? It is passed over if so."""
    if cursor.at < cursor.end and cursor.at[0] == 0xC0:
        cursor.at += 1
        return True
    return False


cdef Fault unsigned_integer(MsgpackCursor* cursor, uint64_t* value) noexcept nogil:
    """A non-negative integer in any of its forms (a signed form with a value of 0 or more counts)."""
    cdef unsigned char kind
    cdef int size
    if cursor.at >= cursor.end:
        return TRUNCATED
    kind = cursor.at[0]
    if kind < 0x80:
        cursor.at += 1
        value[0] = kind
        return NO_FAULT
    if 0xCC <= kind <= 0xD3:
        size = 1 << ((kind - 0xCC) & 3)
        cursor.at += 1
        if not take(cursor, size, value):
            return TRUNCATED
        if kind >= 0xD0 and value[0] >> (8 * size - 1):
            return WRONG_TYPE
        return NO_FAULT
    return WRONG_TYPE


cdef inline Fault counted(MsgpackCursor* cursor, unsigned char fix, unsigned char fix_mask, unsigned char wide,
                          uint32_t* count) noexcept nogil:
    """The header of an array or a map: the fix form, or `wide` with 16 bits, or `wide` + 1 with 32."""
    cdef unsigned char kind
    cdef uint64_t value
    if cursor.at >= cursor.end:
        return TRUNCATED
    kind = cursor.at[0]
    if kind & fix_mask == fix:
        cursor.at += 1
        count[0] = kind & ~fix_mask & 0xFF
        return NO_FAULT
    if kind == wide or kind == wide + 1:
        cursor.at += 1
        if not take(cursor, 2 if kind == wide else 4, &value):
            return TRUNCATED
        count[0] = <uint32_t> value
        return NO_FAULT
    return WRONG_TYPE


cdef Fault array_header(MsgpackCursor* cursor, uint32_t* count) noexcept nogil:
    return counted(cursor, 0x90, 0xF0, 0xDC, count)


cdef Fault map_header(MsgpackCursor* cursor, uint32_t* count) noexcept nogil:
    return counted(cursor, 0x80, 0xF0, 0xDE, count)


cdef Fault octets(MsgpackCursor* cursor, bint allow_str, bint allow_bin, const unsigned char** start, Py_ssize_t* size,
                  bint* is_str) noexcept nogil:
    """A str (whose UTF-8 is checked) or a bin; `start` and `size` get its octets."""
    cdef unsigned char kind
    cdef uint64_t value
    if cursor.at >= cursor.end:
        return TRUNCATED
    kind = cursor.at[0]
    if kind & 0xE0 == 0xA0:
        is_str[0] = True
        value = kind & 0x1F
        cursor.at += 1
    elif 0xD9 <= kind <= 0xDB or 0xC4 <= kind <= 0xC6:
        is_str[0] = kind >= 0xD9
        cursor.at += 1
        if not take(cursor, 1 << ((kind - 0xD9) if is_str[0] else (kind - 0xC4)), &value):
            return TRUNCATED
    else:
        return WRONG_TYPE
    if (is_str[0] and not allow_str) or (not is_str[0] and not allow_bin):
        return WRONG_TYPE
    start[0] = cursor.at
    size[0] = <Py_ssize_t> value
    if pass_over(cursor, value):
        return TRUNCATED
    if is_str[0] and not is_utf8(start[0], size[0]):
        return BAD_UTF8
    return NO_FAULT


cdef Fault skip(MsgpackCursor* cursor, int depth) noexcept nogil:
    """Pass over one value of any type, containers at most `depth` deep."""
    cdef unsigned char kind
    cdef uint64_t value
    cdef uint32_t count = 0
    cdef Py_ssize_t size
    cdef const unsigned char* start
    cdef bint is_str, is_map
    cdef Fault fault
    if cursor.at >= cursor.end:
        return TRUNCATED
    kind = cursor.at[0]
    if kind < 0x80 or kind >= 0xE0 or kind == 0xC0 or kind == 0xC2 or kind == 0xC3:
        cursor.at += 1
        return NO_FAULT
    if kind & 0xE0 == 0xA0 or 0xD9 <= kind <= 0xDB or 0xC4 <= kind <= 0xC6:
        return octets(cursor, True, True, &start, &size, &is_str)
    if 0xCC <= kind <= 0xD3:
        cursor.at += 1
        return pass_over(cursor, 1 << ((kind - 0xCC) & 3))
    if kind == 0xCA or kind == 0xCB:
        cursor.at += 1
        return pass_over(cursor, 4 if kind == 0xCA else 8)
    is_map = kind & 0xF0 == 0x80 or kind == 0xDE or kind == 0xDF
    if not is_map and not (kind & 0xF0 == 0x90 or kind == 0xDC or kind == 0xDD):
        return EXTENSION
    if depth == 0:
        return TOO_DEEP
    fault = map_header(cursor, &count) if is_map else array_header(cursor, &count)
    if fault:
        return fault
    value = <uint64_t> count * (2 if is_map else 1)
    # Each value takes an octet at least: a header that announces more than there is ends here, not after a long loop.
    if value > <uint64_t> (cursor.end - cursor.at):
        return TRUNCATED
    while value:
        fault = skip(cursor, depth - 1)
        if fault:
            return fault
        value -= 1
    return NO_FAULT


cdef bint is_utf8(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """Well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF)."""
    cdef const unsigned char* end = at + size
    cdef unsigned char lead, low, high
    cdef int more
    cdef uint64_t eight
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
        low, high = 0x80, 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if end - at < more or not low <= at[0] <= high:
            return False
        at += 1
        more -= 1
        while more:
            if not 0x80 <= at[0] <= 0xBF:
                return False
            at += 1
            more -= 1
    return True


def check(const unsigned char[::1] encoded, int depth=8):
    """None if `encoded` is exactly one sound value, else a sentence about what is wrong."""
    cdef MsgpackCursor cursor
    cdef Fault fault
    if encoded.shape[0] == 0:
        return FAULTS[TRUNCATED]
    cursor.at = &encoded[0]
    cursor.end = cursor.at + encoded.shape[0]
    fault = skip(&cursor, depth)
    if fault:
        return FAULTS[fault]
    if cursor.at != cursor.end:
        return f"{cursor.end - cursor.at} bytes left over behind the value"
    return None


def valid_utf8(const unsigned char[::1] text):
    """Is `text` well-formed UTF-8?"""
    return text.shape[0] == 0 or is_utf8(&text[0], text.shape[0])
