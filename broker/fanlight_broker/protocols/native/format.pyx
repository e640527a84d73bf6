# cython: language_level=3
"""The native protocol's format: a MESSAGE is a new head before the fields of the PUBLISH (section 3.4).

What its fields mean to others is in convert.py.
"""

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.message cimport Format, Message, Variant, uint32_into

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
        cdef unsigned char* octets = <unsigned char*> (
            variant.head if variant.head is not NULL else variant.reserve(HEAD)
        )
        cdef Py_ssize_t size = HEAD - 4 + message.fields_size
        octets[0] = (size >> 24) & 0xFF
        octets[1] = (size >> 16) & 0xFF
        octets[2] = (size >> 8) & 0xFF
        octets[3] = size & 0xFF
        octets[4] = 0x90 | message.format_data
        octets[5] = MESSAGE_TYPE
        octets[6] = 0xCE
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

    def read(self, Message message):
        return convert.read(message)

    def write(self, content):
        return convert.write(FORMAT, content)


cdef class DeliveryFormat(MessageFormat):
    """A MESSAGE of a named queue, which is acknowledged (section 3.9). There is one: DELIVERY_FORMAT."""

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        cdef unsigned char* octets = <unsigned char*> variant.reserve(DELIVERY_HEAD)
        cdef Py_ssize_t size = DELIVERY_HEAD - 4 + message.fields_size
        octets[0] = (size >> 24) & 0xFF
        octets[1] = (size >> 16) & 0xFF
        octets[2] = (size >> 8) & 0xFF
        octets[3] = size & 0xFF
        octets[4] = 0x90 | (message.format_data + 2)
        octets[5] = DELIVERY_TYPE
        octets[6] = 0xCE
        octets[11] = 0xCF
        octets[20] = 0xCE
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


FORMAT = MessageFormat("native")
DELIVERY_FORMAT = DeliveryFormat("native delivery", "native")
