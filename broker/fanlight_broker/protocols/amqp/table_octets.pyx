# cython: language_level=3
"""Field tables (4.2.5.5) walked through in compiled code, with RabbitMQ's types. field_table.py reads them.

What Python refuses has no size here: -1. All of a value is looked at, however deep it is, so that what is passed on
as it came can be read by everybody.
"""

from fanlight_broker.wire.msgpack cimport is_utf8

cdef enum:
    DEPTH_MAX = 16       # of tables and arrays in each other: field_table.py's


cdef Py_ssize_t short_string_size(const unsigned char* at, const unsigned char* end) noexcept:
    """Of the short string that begins here, its length included; -1 if it is none."""
    if at >= end or end - at <= at[0] or not is_utf8(at + 1, at[0]):
        return -1
    return 1 + at[0]


cdef Py_ssize_t value_size(const unsigned char* at, const unsigned char* end, int depth) noexcept:
    """Of a value with its letter, `at` < `end`; -1 if it is none. depth: of the table or array that it is in, from 1.
    """
    cdef Py_ssize_t size = 0
    cdef unsigned char letter = at[0]
    if letter == c"S" or letter == c"x":
        size = 5 + <Py_ssize_t> uint32_at(at + 1) if end - at >= 5 else -1
    elif letter == c"V":
        size = 1
    elif letter == c"t" or letter == c"b" or letter == c"B":
        size = 2
    elif letter == c"s" or letter == c"u":
        size = 3
    elif letter == c"I" or letter == c"i" or letter == c"f":
        size = 5
    elif letter == c"l" or letter == c"L" or letter == c"d" or letter == c"T":
        size = 9
    elif letter == c"D":
        size = 6
    elif letter == c"F" or letter == c"A":
        size = 1 + nested_size(at + 1, end, letter == c"F", depth + 1)
    return size if 0 < size <= end - at else -1


cdef Py_ssize_t nested_size(const unsigned char* at, const unsigned char* end, bint named, int depth) noexcept:
    """Of a table or an array, its length included; -1 if it is none. named: a table."""
    cdef const unsigned char* begun = at
    cdef Py_ssize_t size
    if depth > DEPTH_MAX or end - at < 4 or <Py_ssize_t> uint32_at(at) > end - at - 4:
        return -1
    end = at + 4 + uint32_at(at)
    at += 4
    while at < end:
        if named:
            size = short_string_size(at, end)
            if size < 0:
                return -1
            at += size
            if at >= end:
                return -1
        size = value_size(at, end, depth)
        if size < 0:
            return -1
        at += size
    return at - begun
