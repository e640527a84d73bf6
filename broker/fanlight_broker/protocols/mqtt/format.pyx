# cython: language_level=3
"""MQTT's two formats: PUBLISH packets of 3.1.1 and 5.0, from one kind of message.

They are one family: a message of either is written in the other by leaving its properties out, or having none. What the
properties mean to other protocols is in convert.py; Topic Aliases towards clients are in aliases.pyx.
"""

from libc.math cimport INFINITY, ceil
from libc.stdint cimport uint32_t
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from fanlight_broker.wire.message cimport (
    AS_PUBLISHED, SET, Format, HeaderWalk, Message, Variant, uint16_into, uint32_into,
)
from fanlight_broker.wire.varint cimport put_varint

from fanlight_broker.protocols.mqtt import convert
from fanlight_broker.protocols.mqtt.version import V3, V5

cdef enum:
    PUBLISH = 0x30
    DUP = 0x08
    RETAIN = 0x01
    TOPIC_ALIAS = 0x23
    ALIAS_BYTES = 3


cdef inline int variable_size(Py_ssize_t value) noexcept nogil:
    return 1 if value < 1 << 7 else 2 if value < 1 << 14 else 3 if value < 1 << 21 else 4


cdef bint write_publish(Variant variant, Message message, bint has_properties, bint again, double now, int alias,
                        bint named) except -1:
    """Make the template. False if four bytes do not hold its Remaining Length.

    alias  a Topic Alias to write, or 0
    named  write the topic; False: the alias says which it is
    """
    cdef int qos = min(message.qos, variant.qos)
    cdef Py_ssize_t topic = message.topic_size if named else 0
    cdef Py_ssize_t fields = 0, identifiers = 0, properties = 0, head = 2 + topic + (2 if qos else 0), remaining
    cdef char* at
    cdef double left
    if has_properties:
        fields = message.fields_size
        identifiers = PyBytes_GET_SIZE(variant.identifiers)
        properties = fields + identifiers + (ALIAS_BYTES if alias else 0)
        head += variable_size(properties) + properties
    remaining = head + message.payload_size
    if topic > STRING_MAX or remaining > VARIABLE_MAX:
        return False
    at = variant.reserve(1 + variable_size(remaining) + head)
    at[0] = <char> (PUBLISH | qos << 1)
    if variant.retain == SET or (variant.retain == AS_PUBLISHED and message.retain):
        at[0] |= RETAIN
    if again and qos:
        at[0] |= DUP
    at = put_varint(at + 1, remaining)
    uint16_into(at, <uint32_t> topic)
    memcpy(at + 2, message.topic_at, topic)
    at += 2 + topic
    variant.hole = at - variant.head
    variant.hole_size = 0
    if qos:
        variant.hole_size = 2
        uint16_into(at, 0)
        at += 2
    if has_properties:
        at = put_varint(at, properties)
        if alias:
            at[0] = TOPIC_ALIAS
            uint16_into(at + 1, alias)
            at += ALIAS_BYTES
        if identifiers:
            memcpy(at, PyBytes_AS_STRING(variant.identifiers), identifiers)
            at += identifiers
        if fields:
            memcpy(at, message.fields_at, fields)
            if now and message.expiry_hole >= 0 and message.expires_at < INFINITY:
                # What is left of it, in seconds; one that has begun counts [MQTT-3.3.2-6].
                left = min(max(ceil(message.expires_at - now), 0.0), 4294967295.0)
                uint32_into(at + message.expiry_hole, <uint32_t> left)
    variant.body = message.payload_at
    variant.body_size = message.payload_size
    return True


cdef inline Py_ssize_t string_size(const unsigned char* at, const unsigned char* end) noexcept nogil:
    """Of a string or binary data (1.5.4, 1.5.6) with its two octets of length; more than there is if cut short."""
    return 2 + (at[0] << 8 | at[1]) if end - at >= 2 else end - at + 1


cdef bint take_property(HeaderWalk* walk) noexcept nogil:
    """Put the next User Property at hand; False: there is none.

    These properties of a PUBLISH are forwarded, and so kept: Payload Format Indicator, Message Expiry Interval, Content
    Type, Response Topic, Correlation Data, User Property (3.3.2.3). Another ends the walk.
    """
    cdef const unsigned char* at = walk.at
    cdef const unsigned char* end = walk.end
    cdef Py_ssize_t size, more
    cdef int kind
    while at < end:
        kind = at[0]
        at += 1
        if kind == 0x01:
            at += 1
        elif kind == 0x02:
            at += 4
        elif kind == 0x03 or kind == 0x08 or kind == 0x09:
            size = string_size(at, end)
            if size > end - at:
                break
            if kind == 0x03:
                walk.content_type, walk.content_type_size = <const char*> at + 2, size - 2
            at += size
        elif kind == 0x26:
            size = string_size(at, end)
            if size >= end - at:
                break
            more = string_size(at + size, end)
            if more > end - at - size:
                break
            walk.name, walk.name_size = <const char*> at + 2, size - 2
            walk.value, walk.value_size = <const char*> at + size + 2, more - 2
            walk.encoded = False
            walk.at = at + size + more
            return True
        else:
            break
    walk.at = end
    return False


cdef inline void begin_properties(Message message, HeaderWalk* walk) noexcept nogil:
    walk.at = <const unsigned char*> message.fields_at
    walk.end = walk.at + message.fields_size
    walk.content_type = NULL


cdef int property_priority(Message message) noexcept:
    """The first User Property `priority`, if it is one digit; 0 if there is none."""
    cdef HeaderWalk walk
    begin_properties(message, &walk)
    while take_property(&walk):
        if walk.name_size == 8 and memcmp(walk.name, b"priority", 8) == 0:
            return walk.value[0] - 0x30 if walk.value_size == 1 and 0x30 <= walk.value[0] <= 0x39 else 0
    return 0


cdef class PublishFormat(Format):
    """PUBLISH packets in one version: MQTT_3_1_1 and MQTT_5_0, or FORMATS by it."""

    def __init__(self, version not None, *, bint stateful=False):
        Format.__init__(self, f"mqtt {version.name[5:].replace('_', '.')}", "mqtt", stateful=stateful)
        self.version = version
        self.has_properties = version == V5

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        return write_publish(variant, message, self.has_properties, again, now, 0, True)

    cdef int priority(self, Message message) except -1:
        return property_priority(message)

    cdef void walk_headers(self, Message message, HeaderWalk* walk) noexcept:
        begin_properties(message, walk)

    cdef bint next_header(self, HeaderWalk* walk) noexcept:
        return take_property(walk)

    def tag_frame(self, int tag):
        """PUBREL (3.6)."""
        return b"\x62\x02" + tag.to_bytes(2, "big")

    def read(self, Message message):
        return convert.read(message)

    def rewritten(self, message, bytes topic not None, headers):
        return convert.rewritten(message, topic, headers)

    def write(self, content):
        found, left_out = convert.write(self, content)
        MQTT_5_0.left_out += left_out    # one count, for the formats of single connections too
        return found


MQTT_3_1_1 = PublishFormat(V3)
MQTT_5_0 = PublishFormat(V5)
FORMATS = {V3: MQTT_3_1_1, V5: MQTT_5_0}
