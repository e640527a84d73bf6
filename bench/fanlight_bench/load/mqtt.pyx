# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""MQTT 3.1.1 and 5 as a load reads them; sections of the MQTT 5 specification. See protocol.pxd.

The two differ in the properties only: 3.1.1 has none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fanlight_bench.load.properties cimport SUBSCRIPTION_IDENTIFIER, TOPIC_ALIAS, load_length, load_u16, property_size
from fanlight_bench.load.protocol cimport (
    ACKNOWLEDGEMENT, CUT_OFF, DAMAGED, DELIVERY, GRANTED, OTHER, RECEIVED, REFUSAL, RELEASE, WELCOME, WHOLE, Frame,
    new_dialect,
)

cdef enum:
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBACK = 9
    PINGRESP = 13
    DISCONNECT = 14
    FAILURE = 0x80                  # reason codes from here on are errors (2.4)


cdef int next_frame(const uint8_t* p, const uint8_t* end, Frame* frame, bint five) noexcept nogil:
    cdef uint32_t n = 0
    cdef int head, kind
    if end - p < 2:
        return CUT_OFF
    head = load_length(p + 1, end, &n)
    if head <= 0:
        return head
    head += 1
    kind = p[0] >> 4
    if kind == 0 or (kind == 15 and not five):
        return DAMAGED
    if <uint64_t>(end - p) < <uint64_t>n + head:
        return CUT_OFF
    frame.size = n + head
    frame.kind = OTHER
    if kind == PUBLISH:
        return publish(p[0], p + head, p + head + n, frame, five)
    if PUBACK <= kind <= PUBCOMP:
        if n < 2:
            return DAMAGED
        frame.number = load_u16(p + head)
        if n > 2 and p[head + 2] >= FAILURE:
            frame.kind = REFUSAL
        elif kind == PUBREC:
            frame.kind = RECEIVED
        elif kind == PUBREL:
            frame.kind = RELEASE
        else:
            frame.kind = ACKNOWLEDGEMENT
        frame.routed = 0
    elif kind == CONNACK:
        frame.kind = WELCOME
    elif kind == SUBACK:
        if n < 2:
            return DAMAGED
        frame.kind = GRANTED
        frame.number = load_u16(p + head)
    elif kind == DISCONNECT:
        frame.kind = REFUSAL
    return WHOLE


cdef int publish(uint8_t flags, const uint8_t* p, const uint8_t* end, Frame* frame, bint five) noexcept nogil:
    cdef uint32_t size = 0
    cdef int head
    frame.kind = DELIVERY
    frame.qos = (flags >> 1) & 3
    frame.number = frame.alias = frame.subscription = frame.properties_size = 0
    frame.properties = NULL
    if end - p < 2 or frame.qos == 3:
        return DAMAGED
    frame.topic_size = load_u16(p)
    frame.topic = p + 2
    p += 2
    if <uint64_t>(end - p) < <uint64_t>frame.topic_size + (2 if frame.qos else 0):
        return DAMAGED
    p += frame.topic_size
    if frame.qos:
        frame.number = load_u16(p)
        p += 2
    if five:
        head = load_length(p, end, &size)
        if head <= 0 or <uint64_t>(end - p) < <uint64_t>size + head:
            return DAMAGED
        p += head
        frame.properties = p
        frame.properties_size = size
        p += size
        if size and own_properties(frame) == DAMAGED:
            return DAMAGED
    frame.payload = p
    frame.payload_size = <uint32_t>(end - p)
    return WHOLE


cdef int own_properties(Frame* frame) noexcept nogil:
    """Read what is between the broker and this subscriber: topic alias, subscription identifier (3.3.2.3)."""
    cdef const uint8_t* p = frame.properties
    cdef const uint8_t* end = p + frame.properties_size
    cdef int64_t size
    while p < end:
        size = property_size(p, end)
        if size <= 0:
            return DAMAGED
        if p[0] == TOPIC_ALIAS:
            frame.alias = load_u16(p + 1)
        elif p[0] == SUBSCRIPTION_IDENTIFIER:
            load_length(p + 1, end, &frame.subscription)
        p += size
    return WHOLE


cdef int next_3(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil:
    return next_frame(p, end, frame, False)


cdef int next_5(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil:
    return next_frame(p, end, frame, True)


cdef size_t answer(const Frame* frame, const uint8_t* p, uint8_t* out) noexcept nogil:
    """PUBACK and PUBREC to a delivery, PUBREL to PUBREC, PUBCOMP to PUBREL (4.3)."""
    if frame.kind == DELIVERY and frame.qos:
        out[0] = (PUBACK if frame.qos == 1 else PUBREC) << 4
    elif frame.kind == RECEIVED:
        out[0] = PUBREL << 4 | 2
    elif frame.kind == RELEASE:
        out[0] = PUBCOMP << 4
    else:
        return 0
    out[1] = 2
    out[2] = <uint8_t>(frame.number >> 8)
    out[3] = <uint8_t>frame.number
    return 4


MQTT_3 = new_dialect("mqtt", next_3, answer, 2, 0xffff, False)
MQTT_5 = new_dialect("mqtt5", next_5, answer, 2, 0xffff, False)
