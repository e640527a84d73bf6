# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The native protocol as a load reads it: docs/native-protocol.md, sections 2 and 3. See protocol.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_bench.load.protocol cimport (
    ACKNOWLEDGEMENT, ANSWER_BYTES_MAX, CUT_OFF, DAMAGED, DELIVERY, FRAME_BYTES_MAX, GRANTED, OTHER, REFUSAL, WELCOME,
    WHOLE, Frame, new_dialect,
)
from fanlight_bench.load.protocol cimport PING as WANTS_PONG
from fanlight_bench.sockets cimport Number, Text, load_number, load_text, load_u32

cdef enum:
    TYPE_WELCOME = 2
    MESSAGE = 4
    RECEIPT = 5
    OK = 7
    PING = 11
    PONG = 12
    ERROR = 13
    GOODBYE = 14


cdef int next_frame(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil:
    cdef uint32_t n
    cdef Text topic, payload
    cdef Number number
    if end - p < 4:
        return CUT_OFF
    n = load_u32(p)
    if n < 2 or n > FRAME_BYTES_MAX - 4 or (end - p > 4 and p[4] & 0xf0 != 0x90):
        return DAMAGED
    if <uint64_t>(end - p) < <uint64_t>n + 4:
        return CUT_OFF
    end = p + 4 + n
    frame.size = n + 4
    frame.kind = OTHER
    if p[5] == MESSAGE:
        if n < 8 or p[6] != 0xce:
            return DAMAGED
        topic = load_text(p + 11, end)
        if topic.bytes == NULL:
            return DAMAGED
        payload = load_text(topic.bytes + topic.size, end)
        if payload.bytes == NULL:
            return DAMAGED
        frame.kind = DELIVERY
        frame.subscription = load_u32(p + 7)
        frame.topic = topic.bytes
        frame.topic_size = topic.size
        frame.payload = payload.bytes
        frame.payload_size = payload.size
        frame.alias = frame.properties_size = frame.number = 0
        frame.properties = NULL
        frame.qos = 0
    elif p[5] == RECEIPT:
        number = load_number(p + 6, end)
        frame.number = number.value
        number = load_number(p + 6 + number.size, end)
        frame.routed = number.value
        frame.kind = ACKNOWLEDGEMENT
    elif p[5] == TYPE_WELCOME:
        frame.kind = WELCOME
    elif p[5] == OK:
        frame.kind = GRANTED
        frame.number = load_number(p + 6, end).value
    elif p[5] == PING:
        frame.kind = WANTS_PONG
    elif p[5] == ERROR or p[5] == GOODBYE:
        frame.kind = REFUSAL
    return WHOLE


cdef size_t answer(const Frame* frame, const uint8_t* p, uint8_t* out) noexcept nogil:
    if frame.kind != WANTS_PONG or frame.size > ANSWER_BYTES_MAX:
        return 0
    memcpy(out, p, frame.size)      # a PONG is the PING with another type
    out[5] = PONG
    return frame.size


NATIVE = new_dialect("native", next_frame, answer, 4, 0xffffffff, True)
