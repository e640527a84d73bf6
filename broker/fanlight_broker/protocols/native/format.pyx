# cython: language_level=3
"""The native protocol's format: a MESSAGE is a new head before the fields of the PUBLISH (section 3.4).

What its fields mean to others is in convert.py.
"""

from libc.stdint cimport uint32_t, uint64_t

from libc.string cimport memcmp

from fanlight_broker.wire.levels cimport PRIORITY_MOST
from fanlight_broker.wire.message cimport Format, HeaderWalk, Message, Variant, uint32_into
from fanlight_broker.wire.msgpack cimport MsgpackCursor, is_nil, map_header, octets, skip, unsigned_integer

from fanlight_broker.protocols.native import convert

cdef enum:
    MESSAGE_TYPE = 4
    HEAD = 11
    HOLE = 7
    NIL = 0xC0
    DELIVERY_TYPE = 32
    DELIVERY_HEAD = 25
    SEQUENCE = 12              # where in the head of a DELIVERY
    ATTEMPT = 21


cdef class MessageFormat(Format):
    """There is one of this class: FORMAT."""

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        # `reserve`, but for the call: its buffer is never shorter than this head.
        cdef unsigned char* head = <unsigned char*> (
            variant.head if variant.head is not NULL else variant.reserve(HEAD)
        )
        cdef Py_ssize_t size = HEAD - 4 + message.fields_size
        head[0] = (size >> 24) & 0xFF
        head[1] = (size >> 16) & 0xFF
        head[2] = (size >> 8) & 0xFF
        head[3] = size & 0xFF
        head[4] = 0x90 | message.format_data
        head[5] = MESSAGE_TYPE
        head[6] = 0xCE
        variant.head_size = HEAD
        variant.hole = HOLE
        variant.hole_size = 4
        variant.body = message.fields_at
        variant.body_size = message.fields_size
        return True

    cdef bint says_more(self, Message message) noexcept:
        # The fields are topic, payload, headers, syntax, reply: the last three may be left out, or nil.
        cdef const unsigned char* at = <const unsigned char*> message.payload_at + message.payload_size
        cdef Py_ssize_t rest = <const unsigned char*> message.fields_at + message.fields_size - at
        if rest == 0:
            return False
        return at[0] != NIL or rest > 3 or (rest == 3 and at[2] != NIL)

    cdef int priority(self, Message message) except -1:
        return header_priority(message)

    cdef void walk_headers(self, Message message, HeaderWalk* walk) noexcept:
        begin_headers(message, walk)

    cdef bint next_header(self, HeaderWalk* walk) noexcept:
        return take_header(walk)

    def read(self, Message message):
        return convert.read(message)

    def rewritten(self, message, bytes topic not None, headers):
        return convert.rewritten(message, topic, headers)

    def write(self, content):
        return convert.write(FORMAT, content)


cdef class DeliveryFormat(MessageFormat):
    """A MESSAGE of a named queue, which is acknowledged (section 3.9). There is one: DELIVERY_FORMAT."""

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        cdef unsigned char* head = <unsigned char*> variant.reserve(DELIVERY_HEAD)
        cdef Py_ssize_t size = DELIVERY_HEAD - 4 + message.fields_size
        head[0] = (size >> 24) & 0xFF
        head[1] = (size >> 16) & 0xFF
        head[2] = (size >> 8) & 0xFF
        head[3] = size & 0xFF
        head[4] = 0x90 | (message.format_data + 2)
        head[5] = DELIVERY_TYPE
        head[6] = 0xCE
        head[11] = 0xCF
        head[20] = 0xCE
        variant.hole = HOLE
        variant.hole_size = 0    # it has three: see `address`
        variant.body = message.fields_at
        variant.body_size = message.fields_size
        return True

    cdef int address(self, Variant variant, uint32_t number, uint64_t tag, uint32_t attempt) except -1:
        uint32_into(variant.head + HOLE, number)
        uint32_into(variant.head + SEQUENCE, <uint32_t> (tag >> 32))
        uint32_into(variant.head + SEQUENCE + 4, <uint32_t> (tag & 0xFFFFFFFF))
        uint32_into(variant.head + ATTEMPT, attempt)
        return 0


cdef void begin_headers(Message message, HeaderWalk* walk) noexcept nogil:
    """Before the first header of a message.

    The lane has checked the fields, so no fault is possible; here and in `take_header` what one could be ends the walk.
    """
    cdef MsgpackCursor cursor
    cdef uint32_t count = 0
    walk.left = 0
    walk.content_type = NULL
    if message.format_data < 5:
        return    # fields: type, request, topic, payload, headers
    cursor.at = <const unsigned char*> message.fields_at
    cursor.end = cursor.at + message.fields_size
    if skip(&cursor, 0) or skip(&cursor, 0) or is_nil(&cursor) or map_header(&cursor, &count):
        return
    walk.at, walk.end, walk.left = cursor.at, cursor.end, count


cdef bint take_header(HeaderWalk* walk) noexcept nogil:
    """Put the next one at hand; False: there is none."""
    cdef MsgpackCursor cursor
    cdef const unsigned char* start = NULL
    cdef Py_ssize_t size = 0
    cdef bint is_str = False
    if walk.left == 0:
        return False
    walk.left -= 1
    cursor.at, cursor.end = walk.at, walk.end
    if octets(&cursor, True, False, &start, &size, &is_str):
        walk.left = 0
        return False
    walk.name, walk.name_size = <const char*> start, size
    walk.value = <const char*> cursor.at
    if skip(&cursor, 1):
        walk.left = 0
        return False
    walk.at = cursor.at
    walk.value_size = <const char*> cursor.at - walk.value
    walk.encoded = True
    if walk.content_type is NULL and size == 12 and memcmp(walk.name, b"content-type", 12) == 0:
        cursor.at = <const unsigned char*> walk.value
        if octets(&cursor, True, False, &start, &size, &is_str) == 0:
            walk.content_type, walk.content_type_size = <const char*> start, size
    return True


cdef int header_priority(Message message) noexcept:
    """The header `priority`: an integer, or one digit as text; 9 for more. 0: there is none, or it is another value."""
    cdef HeaderWalk walk
    cdef MsgpackCursor cursor
    cdef const unsigned char* start = NULL
    cdef Py_ssize_t size = 0
    cdef uint64_t number = 0
    cdef bint is_str = False
    begin_headers(message, &walk)
    while take_header(&walk):
        if walk.name_size == 8 and memcmp(walk.name, b"priority", 8) == 0:
            cursor.at, cursor.end = <const unsigned char*> walk.value, walk.at
            if unsigned_integer(&cursor, &number) == 0:
                return <int> min(number, <uint64_t> PRIORITY_MOST)
            if octets(&cursor, True, True, &start, &size, &is_str) == 0 and size == 1 and 0x30 <= start[0] <= 0x39:
                return start[0] - 0x30
            return 0
    return 0


FORMAT = MessageFormat("native")
DELIVERY_FORMAT = DeliveryFormat("native delivery", "native")
