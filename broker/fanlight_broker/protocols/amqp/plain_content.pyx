# cython: language_level=3
"""Content headers (2.3.5.2) of messages that need no decision, read in compiled code; properties.py reads them all.

Left to Python, which decides or says what is wrong: expiration and user-id, CC and BCC, a reply-to that is the broker's
own, tables with a table or an array in them, and whatever is malformed.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

from fanlight_broker.wire.msgpack cimport is_utf8

cdef enum:
    BASIC = 60
    FIXED = 14                # class, weight, body size, flags
    # Flags of the properties (1.8), and of what there is not.
    CONTENT_TYPE = 0x8000
    CONTENT_ENCODING = 0x4000
    HEADERS = 0x2000
    DELIVERY_MODE = 0x1000
    PRIORITY = 0x0800
    CORRELATION_ID = 0x0400
    REPLY_TO = 0x0200
    EXPIRATION = 0x0100
    MESSAGE_ID = 0x0080
    TIMESTAMP = 0x0040
    TYPE = 0x0020
    USER_ID = 0x0010
    APP_ID = 0x0008
    CLUSTER_ID = 0x0004
    FOR_PYTHON = EXPIRATION | USER_ID | 0x0003
    PERSISTENT = 2

cdef const char* OWN = b"amq.rabbitmq."    # what begins so as a reply-to is the broker's own


cdef inline uint32_t uint32_at(const unsigned char* at) noexcept:
    return <uint32_t> at[0] << 24 | <uint32_t> at[1] << 16 | <uint32_t> at[2] << 8 | at[3]


cdef inline Py_ssize_t text(const unsigned char* at, const unsigned char* end) noexcept:
    """The size of the short string that begins here, its length included; -1 if it is none."""
    if at >= end or end - at <= at[0] or not is_utf8(at + 1, at[0]):
        return -1
    return 1 + at[0]


cdef Py_ssize_t value_size(const unsigned char* at, const unsigned char* end) noexcept:
    """Of a value with its letter (4.2.5.5); -1 for what Python reads."""
    cdef unsigned char letter = at[0]
    if letter == c"S" or letter == c"x":
        return 5 + <Py_ssize_t> uint32_at(at + 1) if end - at >= 5 else -1
    if letter == c"V":
        return 1
    if letter == c"t" or letter == c"b" or letter == c"B":
        return 2
    if letter == c"s" or letter == c"u":
        return 3
    if letter == c"I" or letter == c"i" or letter == c"f":
        return 5
    if letter == c"l" or letter == c"L" or letter == c"d" or letter == c"T":
        return 9
    return 6 if letter == c"D" else -1


cdef Py_ssize_t table(const unsigned char* at, const unsigned char* end) noexcept:
    """The size of the table of headers that begins here; -1 if it is for Python."""
    cdef const unsigned char* begun = at
    cdef Py_ssize_t size
    if end - at < 4 or <Py_ssize_t> uint32_at(at) > end - at - 4:
        return -1
    end = at + 4 + uint32_at(at)
    at += 4
    while at < end:
        size = text(at, end)
        if size < 0 or (size == 3 and memcmp(at + 1, b"CC", 2) == 0) or (size == 4 and memcmp(at + 1, b"BCC", 3) == 0):
            return -1
        at += size
        if at >= end:
            return -1
        size = value_size(at, end)
        if size < 0 or size > end - at:
            return -1
        at += size
    return at - begun


cdef bint read_plain(const unsigned char* at, Py_ssize_t size, PlainContent* content) noexcept:
    """The payload of a HEADER frame. False: it is for Python."""
    cdef const unsigned char* end = at + size
    cdef uint32_t flags, bit = CONTENT_TYPE
    cdef Py_ssize_t taken
    if size < FIXED or at[0] or at[1] != BASIC or at[2] or at[3]:
        return False
    content.body_size = <uint64_t> uint32_at(at + 4) << 32 | uint32_at(at + 8)
    content.encoded = at + 12
    content.encoded_size = size - 12
    content.priority = 0
    content.persistent = content.replies = False
    flags = <uint32_t> at[12] << 8 | at[13]
    if flags & FOR_PYTHON:
        return False
    at += FIXED
    while bit >= CLUSTER_ID:
        if not flags & bit:
            bit >>= 1
            continue
        if bit == DELIVERY_MODE or bit == PRIORITY:
            if at >= end:
                return False
            if bit == PRIORITY:
                content.priority = at[0]
            else:
                content.persistent = at[0] == PERSISTENT
            taken = 1
        elif bit == TIMESTAMP:
            taken = 8
        elif bit == HEADERS:
            taken = table(at, end)
        else:
            taken = text(at, end)
            if bit == REPLY_TO and taken > 0:
                content.replies = True
                if taken > 13 and memcmp(at + 1, OWN, 13) == 0:
                    return False
        if taken < 0 or taken > end - at:
            return False
        at += taken
        bit >>= 1
    return at == end


def is_plain(bytes payload not None):
    """`read_plain` for tests: (body size, flags and properties, priority, persistent, has a reply-to), or None."""
    cdef PlainContent content
    if not read_plain(<const unsigned char*> PyBytes_AS_STRING(payload), PyBytes_GET_SIZE(payload), &content):
        return None
    encoded = PyBytes_FromStringAndSize(<const char*> content.encoded, content.encoded_size)
    return content.body_size, encoded, content.priority, content.persistent, content.replies
