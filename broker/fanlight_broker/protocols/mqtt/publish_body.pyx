# cython: language_level=3
"""The body of a PUBLISH that a client sends, in C.

Accepts what codec.decode and from_client accept, and nothing else; the tests compare for mutated packets. Everything
that is forwarded has been checked here, so that subscribers can decode it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.msgpack cimport is_utf8

cdef enum:
    MQTT_SYNTAX = 1             # of topics, by its number in the core

cdef enum:    # table 2-4, those of a PUBLISH; a client sends no Subscription Identifier [MQTT-3.3.4-6]
    PAYLOAD_FORMAT_INDICATOR = 0x01
    MESSAGE_EXPIRY_INTERVAL = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    TOPIC_ALIAS = 0x23
    USER_PROPERTY = 0x26

cdef const char* DELAY = b"fanlight-delay"    # the User Property of a delayed message

cdef enum:
    DELAY_SIZE = 14

cdef inline uint32_t two_bytes(const unsigned char* at) noexcept nogil:
    return <uint32_t> at[0] << 8 | at[1]


cdef inline uint64_t zeros(uint64_t eight) noexcept nogil:
    """Not 0 if one of the eight bytes is."""
    return (eight - <uint64_t> 0x0101010101010101) & ~eight & <uint64_t> 0x8080808080808080


cdef inline bint is_string(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """UTF-8 without U+0000 (1.5.4)."""
    return size == 0 or (is_utf8(at, size) and memchr(at, 0, size) is NULL)


cdef inline bint is_name(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """A string without wildcards (4.7.1), eight bytes at a time as long as they are ASCII."""
    cdef Py_ssize_t i = 0
    cdef uint64_t eight
    while i + 8 <= size:
        memcpy(&eight, at + i, 8)
        if (eight & <uint64_t> 0x8080808080808080) | zeros(eight) | zeros(eight ^ <uint64_t> 0x2B2B2B2B2B2B2B2B) \
                | zeros(eight ^ <uint64_t> 0x2323232323232323):
            break
        i += 8
    while i < size:
        if at[i] >= 0x80:
            # Behind ASCII it begins anew: no sequence goes on from there.
            return is_utf8(at + i, size - i) and memchr(at + i, 0, size - i) is NULL \
                and memchr(at + i, 0x2B, size - i) is NULL and memchr(at + i, 0x23, size - i) is NULL
        if at[i] == 0 or at[i] == 0x2B or at[i] == 0x23:
            return False
        i += 1
    return True


cdef inline Py_ssize_t field(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """The bytes of a string or Binary Data behind its length; -1 if it goes on behind the end."""
    if size < 2 or size - 2 < <Py_ssize_t> two_bytes(at):
        return -1
    return two_bytes(at)


cdef inline void clear(PublishBody* body) noexcept nogil:
    """No properties."""
    body.alias = 0
    body.expiry_at = -1
    body.is_text = body.has_response = False
    body.user_properties = 0


cdef bint parse_body(const unsigned char* at, Py_ssize_t size, int qos, bint has_properties, Route last,
                     PublishBody* body) noexcept:
    """False if anything is wrong with it.

    last  a route of this protocol's syntax, or of another, or None: its topic need not be checked a second time, but
          for UTF-8, which other protocols that publish in this syntax do not ask for
    body  of the packet before, if its bytes are still there (else with properties_size 0): properties that are the same
          again need not be, either
    """
    cdef Py_ssize_t length, n, known_size = body.properties_size
    cdef const char* known = body.properties
    cdef int shift = 0
    body.topic_size = field(at, size)
    if body.topic_size < 0:
        return False
    body.again = last is not None and last.is_text and PyBytes_GET_SIZE(last.key) == body.topic_size + 1 \
        and PyBytes_AS_STRING(last.key)[0] == MQTT_SYNTAX \
        and memcmp(PyBytes_AS_STRING(last.key) + 1, at + 2, body.topic_size) == 0
    if not body.again and not is_name(at + 2, body.topic_size):
        return False
    body.topic = <const char*> at + 2
    at += 2 + body.topic_size
    size -= 2 + body.topic_size
    body.packet_id = 0
    if qos:
        if size < 2:
            return False
        body.packet_id = two_bytes(at)
        if body.packet_id == 0:
            return False
        at += 2
        size -= 2
    body.properties = <const char*> at
    body.properties_size = 0
    if not has_properties:
        clear(body)
    else:
        length = 0
        while True:
            if size == 0 or shift > 21:
                return False
            n = at[0]
            length |= (n & 0x7F) << shift
            at += 1
            size -= 1
            if n < 0x80:
                break
            shift += 7
        if (n == 0 and shift) or length > size:
            return False
        body.properties = <const char*> at
        body.properties_size = length
        if length == 0 or length != known_size or memcmp(known, at, length) != 0:
            clear(body)
            if length and not take_properties(at, length, body):
                body.properties_size = 0
                return False
        at += length
        size -= length
    body.payload = <const char*> at
    body.payload_size = size
    return body.topic_size > 0 or body.alias > 0


cdef bint take_properties(const unsigned char* start, Py_ssize_t size, PublishBody* body) noexcept nogil:
    """Each but the User Property at most once (3.3.2.3)."""
    cdef const unsigned char* at = start
    cdef const unsigned char* end = start + size
    cdef uint64_t seen = 0
    cdef unsigned char identifier
    cdef Py_ssize_t n
    while at < end:
        identifier = at[0]
        at += 1
        if identifier > USER_PROPERTY or (identifier != USER_PROPERTY and seen >> identifier & 1):
            return False
        seen |= <uint64_t> 1 << identifier
        if identifier == USER_PROPERTY:
            body.user_properties += 1
            n = field(at, end - at)
            if n < 0 or not is_string(at + 2, n):
                return False
            if n == DELAY_SIZE and memcmp(at + 2, DELAY, DELAY_SIZE) == 0:
                body.user_properties |= WITH_DELAY
            at += 2 + n
            n = field(at, end - at)
            if n < 0 or not is_string(at + 2, n):
                return False
            at += 2 + n
        elif identifier == PAYLOAD_FORMAT_INDICATOR:
            if at == end or at[0] > 1:
                return False
            body.is_text = at[0]
            at += 1
        elif identifier == MESSAGE_EXPIRY_INTERVAL:
            if end - at < 4:
                return False
            body.expiry = two_bytes(at) << 16 | two_bytes(at + 2)
            body.expiry_at = at - start
            at += 4
        elif identifier == TOPIC_ALIAS:
            if end - at < 2:
                return False
            body.alias = two_bytes(at)
            if body.alias == 0:
                return False
            body.alias_at = at - 1 - start
            at += 2
        elif identifier == CONTENT_TYPE or identifier == CORRELATION_DATA:
            n = field(at, end - at)
            if n < 0 or (identifier == CONTENT_TYPE and not is_string(at + 2, n)):
                return False
            at += 2 + n
        elif identifier == RESPONSE_TOPIC:
            n = field(at, end - at)
            if n <= 0 or not is_name(at + 2, n):    # [MQTT-3.3.2-14]; no name is empty [MQTT-4.7.3-1]
                return False
            body.has_response = True
            at += 2 + n
        else:
            return False
    return True
