# cython: language_level=3
"""Content headers (2.3.5.2) of messages that need no decision, read in compiled code; properties.py reads them all.

Left to Python, which decides or says what is wrong: CC and BCC, a reply-to that is the broker's own, an expiration that
is no number, and whatever is malformed.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from fanlight_broker.protocols.amqp.table_octets cimport short_string_size, uint32_at, uint64_at, value_size

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
    UNKNOWN = 0x0003
    PERSISTENT = 2

cdef const char* OWN = b"amq.rabbitmq."    # what begins so as a reply-to is the broker's own


cdef Py_ssize_t table(const unsigned char* at, const unsigned char* end) noexcept:
    """The size of the table of headers that begins here; -1 if it is for Python."""
    cdef const unsigned char* begun = at
    cdef Py_ssize_t size
    if end - at < 4 or <Py_ssize_t> uint32_at(at) > end - at - 4:
        return -1
    end = at + 4 + uint32_at(at)
    at += 4
    while at < end:
        size = short_string_size(at, end)
        if size < 0 or (size == 3 and memcmp(at + 1, b"CC", 2) == 0) or (size == 4 and memcmp(at + 1, b"BCC", 3) == 0):
            return -1
        at += size
        if at >= end:
            return -1
        size = value_size(at, end, 1)
        if size < 0:
            return -1
        at += size
    return at - begun


cdef int64_t milliseconds(const unsigned char* at, Py_ssize_t size) noexcept:
    """An expiration as RabbitMQ has it: a plain decimal of 32 bits; -1 for what is none."""
    cdef int64_t value = 0
    cdef Py_ssize_t i
    if not 0 < size <= 10:
        return -1
    for i in range(size):
        if not c"0" <= at[i] <= c"9":
            return -1
        value = 10 * value + at[i] - c"0"
    return value if value <= 0xFFFFFFFF else -1


cdef bint read_plain(const unsigned char* at, Py_ssize_t size, PlainContent* content) noexcept:
    """The payload of a HEADER frame. False: it is for Python."""
    cdef const unsigned char* end = at + size
    cdef uint32_t flags, bit = CONTENT_TYPE
    cdef Py_ssize_t taken
    if size < FIXED or at[0] or at[1] != BASIC or at[2] or at[3]:
        return False
    content.body_size = uint64_at(at + 4)
    content.encoded = at + 12
    content.encoded_size = size - 12
    content.priority = 0
    content.persistent = content.replies = False
    content.lifetime = -1
    content.user = NULL
    content.headers_size = 0
    flags = <uint32_t> at[12] << 8 | at[13]
    if flags & UNKNOWN:
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
            content.headers, content.headers_size = at + 4, taken - 4
        else:
            taken = short_string_size(at, end)
            if taken <= 0:
                return False
            if bit == REPLY_TO:
                content.replies = True
                if taken > 13 and memcmp(at + 1, OWN, 13) == 0:
                    return False
            elif bit == EXPIRATION:
                content.lifetime = milliseconds(at + 1, taken - 1)
                if content.lifetime < 0:
                    return False
            elif bit == USER_ID:
                content.user, content.user_size = at + 1, taken - 1
        if taken < 0 or taken > end - at:
            return False
        at += taken
        bit >>= 1
    return at == end


cdef bint text_in_properties(
    const unsigned char* at, const unsigned char* end, const char* name, Py_ssize_t name_size, const char** value,
    Py_ssize_t* size
) noexcept:
    """Find a header with a text (a long string) in flags and properties. False: there is none."""
    cdef uint32_t flags, bit
    cdef Py_ssize_t taken, named
    if end - at < 2:
        return False
    flags = <uint32_t> at[0] << 8 | at[1]
    at += 2
    if not flags & HEADERS:
        return False
    for bit in (CONTENT_TYPE, CONTENT_ENCODING):    # which stand before the headers
        if flags & bit:
            taken = short_string_size(at, end)
            if taken < 0:
                return False
            at += taken
    if end - at < 4 or <Py_ssize_t> uint32_at(at) > end - at - 4:
        return False
    end = at + 4 + uint32_at(at)
    at += 4
    while at < end:
        named = short_string_size(at, end)
        if named < 0 or named >= end - at:
            return False
        taken = value_size(at + named, end, 1)
        if taken < 0:
            return False
        if named == name_size + 1 and memcmp(at + 1, name, name_size) == 0:
            if at[named] != c"S":
                return False
            value[0], size[0] = <const char*> at + named + 5, taken - 5
            return True
        at += named + taken
    return False


def is_plain(bytes payload not None):
    """`read_plain` for tests: (body size, flags and properties, priority, persistent, has a reply-to, expiration in
    milliseconds or -1, user-id or None, entries of the headers), or None.
    """
    cdef PlainContent content
    if not read_plain(<const unsigned char*> PyBytes_AS_STRING(payload), PyBytes_GET_SIZE(payload), &content):
        return None
    return (
        content.body_size, (<const char*> content.encoded)[:content.encoded_size], content.priority,
        content.persistent, content.replies, content.lifetime,
        (<const char*> content.user)[:content.user_size] if content.user is not NULL else None,
        (<const char*> content.headers)[:content.headers_size] if content.headers_size else b"",
    )
