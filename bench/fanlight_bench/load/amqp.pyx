# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""AMQP 0-9-1 as a load reads it; sections of its specification. See protocol.pxd.

     0      1         3             7                     size + 7
     +------+---------+-------------+---------------------+------+
     | type | channel | size        | payload             | 0xce |     big-endian (2.3.5)
     +------+---------+-------------+---------------------+------+

A delivery is three frames: the method basic.deliver, the content header, the body. They are read as one, for on a
connection with one channel nothing can come between them; a body must fit one frame.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_bench.load.protocol cimport (
    ACKNOWLEDGEMENT, CUT_OFF, DAMAGED, DELIVERY, FRAME_BYTES_MAX, GRANTED, OTHER, REFUSAL, WELCOME, WHOLE,
    Frame, new_dialect,
)
from fanlight_bench.sockets cimport load_u32, store_u32

cdef enum:
    METHOD = 1                          # types of frames (4.2.3)
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8
    END = 0xce
    HEAD_BYTES = 7
    AROUND_BYTES = 8                    # a frame is longer than its payload by this
    # Methods: class << 16 | method (1.4 to 1.8 of the reference).
    CONNECTION_START = 0x000a000a
    CONNECTION_TUNE = 0x000a001e
    CONNECTION_OPEN_OK = 0x000a0029
    CONNECTION_CLOSE = 0x000a0032
    CHANNEL_CLOSE = 0x00140028
    BASIC_RETURN = 0x003c0032
    BASIC_DELIVER = 0x003c003c
    BASIC_ACK = 0x003c0050
    BASIC_CANCEL = 0x003c001e
    BASIC_NACK = 0x003c0078             # of RabbitMQ


cdef int whole(const uint8_t* p, const uint8_t* end, uint32_t* size) noexcept nogil:
    """The payload of the frame that begins at p: its size."""
    if end - p < HEAD_BYTES:
        return CUT_OFF
    size[0] = load_u32(p + 3)
    if size[0] > FRAME_BYTES_MAX:
        return DAMAGED
    if <uint64_t>(end - p) < <uint64_t>size[0] + AROUND_BYTES:
        return CUT_OFF
    return WHOLE if p[HEAD_BYTES + size[0]] == END else DAMAGED


cdef int next_frame(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil:
    cdef uint32_t size = 0, method
    cdef int state
    if p < end and p[0] != METHOD and p[0] != HEARTBEAT:
        return DAMAGED                                      # "AMQP0091": the broker speaks another version (4.2.2)
    state = whole(p, end, &size)
    if state != WHOLE:
        return state
    frame.size = size + AROUND_BYTES
    frame.kind = OTHER
    if p[0] == HEARTBEAT:
        return WHOLE
    if size < 4:
        return DAMAGED
    p += HEAD_BYTES
    method = load_u32(p)
    if method == BASIC_DELIVER:
        return deliver(p + 4, p + size, end, frame)
    if method == BASIC_ACK:
        if size < 13:
            return DAMAGED
        frame.kind = ACKNOWLEDGEMENT
        frame.number = load_u32(p + 8)
        frame.up_to = p[12] & 1
        frame.routed = 0
    elif method == CONNECTION_OPEN_OK:
        frame.kind = WELCOME
    elif method in (CONNECTION_CLOSE, CHANNEL_CLOSE, BASIC_RETURN, BASIC_CANCEL, BASIC_NACK):
        frame.kind = REFUSAL
    elif method != CONNECTION_START and method != CONNECTION_TUNE:
        frame.kind = GRANTED
    return WHOLE


cdef int deliver(const uint8_t* p, const uint8_t* stop, const uint8_t* end, Frame* frame) noexcept nogil:
    """The rest of basic.deliver, which ends at `stop`, and the two frames behind it (1.8.3.13, 4.2.6)."""
    cdef uint32_t size = 0
    cdef uint64_t body
    cdef int state
    if stop - p < 1 or stop - p < p[0] + 11:                # consumer tag, delivery tag, redelivered, exchange
        return DAMAGED
    p += p[0] + 1
    frame.number = load_u32(p + 4)
    p += 9
    if stop - p < p[0] + 2:
        return DAMAGED
    p += p[0] + 1
    if stop - p < p[0] + 1:
        return DAMAGED
    frame.topic_size = p[0]
    frame.topic = p + 1
    p = stop + 1
    state = whole(p, end, &size)
    if state != WHOLE:
        return state
    if p[0] != HEADER or size < 14 or load_u32(p + HEAD_BYTES + 4):
        return DAMAGED
    body = load_u32(p + HEAD_BYTES + 8)
    p += size + AROUND_BYTES
    frame.size += size + AROUND_BYTES
    frame.payload = p
    frame.payload_size = 0
    if body:
        state = whole(p, end, &size)
        if state != WHOLE:
            return state
        if p[0] != BODY or size != body:
            return DAMAGED
        frame.payload = p + HEAD_BYTES
        frame.payload_size = size
        frame.size += size + AROUND_BYTES
    frame.kind = DELIVERY
    frame.qos = 1
    frame.alias = frame.subscription = frame.properties_size = 0
    frame.properties = NULL
    return WHOLE


cdef size_t answer(const Frame* frame, const uint8_t* p, uint8_t* out) noexcept nogil:
    """basic.ack of one delivery, on its channel (1.8.3.15)."""
    if frame.kind != DELIVERY:
        return 0
    out[0] = METHOD
    out[1] = p[1]
    out[2] = p[2]
    store_u32(out + 3, 13)
    store_u32(out + 7, BASIC_ACK)
    memcpy(out + 11, p + HEAD_BYTES + 4 + 1 + p[HEAD_BYTES + 4], 8)
    out[19] = 0
    out[20] = END
    return 21


AMQP = new_dialect("amqp", next_frame, answer, 0, 0xffffffff, False)
