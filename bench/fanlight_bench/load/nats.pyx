# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The text protocol of NATS as a load reads it. See protocol.pxd.

    MSG <subject> <sid> [reply-to] <bytes>   and behind the line the payload and an empty one
    INFO {...}   +OK   -ERR '...'   PING   PONG                    each a line

Headers (HMSG) are not asked for in CONNECT, so none come. NATS has no acknowledgements; JetStream makes them messages:
a publish names a subject for the answer, which the dialect JETSTREAM expects on subscription 1 and ending in the ten
digits of the publish's number; a delivery names a subject on which it is acknowledged.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from fanlight_bench.load.protocol cimport (
    ACKNOWLEDGEMENT, CUT_OFF, DAMAGED, DELIVERY, FRAME_BYTES_MAX, GRANTED, OTHER, REFUSAL, WELCOME, WHOLE, Frame,
    new_dialect,
)
from fanlight_bench.load.protocol cimport PING as WANTS_PONG

ctypedef const uint8_t* Octets

cdef enum:
    LINE_BYTES_MAX = 65536          # INFO lists the servers of a cluster; other lines are short
    ANSWERS = 1                     # JetStream: the subscription that its answers come on
    DIGITS = 10                     # of a publish's number, at the end of the subject of its answer
    REPLY_BYTES_MAX = 170           # so that an acknowledgement fits ANSWER_BYTES_MAX


cdef int next_frame(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil:
    cdef const uint8_t* eol
    cdef size_t line
    if end - p < 3:
        return CUT_OFF
    eol = <const uint8_t*>memchr(p, 10, min(<size_t>(end - p), <size_t>LINE_BYTES_MAX))
    if eol == NULL:
        return DAMAGED if end - p >= LINE_BYTES_MAX else CUT_OFF
    line = eol - p + 1
    if line < 2 or (eol - 1)[0] != 13:
        return DAMAGED
    frame.size = line
    if line > 4 and memcmp(p, b"MSG ", 4) == 0:
        return message(p + 4, eol - 1, p, end, frame)
    if line == 6 and memcmp(p, b"PING", 4) == 0:
        frame.kind = WANTS_PONG
    elif line == 6 and memcmp(p, b"PONG", 4) == 0:
        frame.kind = GRANTED
    elif line > 5 and memcmp(p, b"INFO ", 5) == 0:
        frame.kind = WELCOME
    elif line == 5 and memcmp(p, b"+OK", 3) == 0:
        frame.kind = OTHER
    elif line > 4 and memcmp(p, b"-ERR", 4) == 0:
        frame.kind = REFUSAL
    else:
        return DAMAGED
    return WHOLE


cdef int message(
    const uint8_t* p, const uint8_t* eol, const uint8_t* start, const uint8_t* end, Frame* frame
) noexcept nogil:
    """The rest of a MSG line, which ends at eol, and its payload."""
    cdef Octets[4] words
    cdef size_t[4] sizes
    cdef uint64_t number = 0, size = 0
    cdef int n = 0
    while p < eol:
        if p[0] == 32 or p[0] == 9:
            p += 1
            continue
        if n == 4:
            return DAMAGED
        words[n] = p
        while p < eol and p[0] != 32 and p[0] != 9:
            p += 1
        sizes[n] = p - words[n]
        n += 1
    if n < 3 or not decimal(words[1], sizes[1], &number) or not decimal(words[n - 1], sizes[n - 1], &size):
        return DAMAGED
    if size > FRAME_BYTES_MAX:
        return DAMAGED
    p = eol + 2
    if <uint64_t>(end - p) < size + 2:
        return CUT_OFF
    if p[size] != 13 or p[size + 1] != 10:
        return DAMAGED
    frame.kind = DELIVERY
    frame.size = p + size + 2 - start
    frame.topic = words[0]
    frame.topic_size = <uint32_t>sizes[0]
    frame.payload = p
    frame.payload_size = <uint32_t>size
    frame.subscription = <uint32_t>number
    frame.reply = words[2] if n == 4 else NULL
    frame.reply_size = <uint32_t>sizes[2] if n == 4 else 0
    frame.alias = frame.properties_size = frame.number = 0
    frame.properties = NULL
    frame.qos = 0
    return WHOLE


cdef bint decimal(const uint8_t* p, size_t size, uint64_t* value) noexcept nogil:
    cdef size_t i
    if size == 0 or size > 10:
        return False
    for i in range(size):
        if p[i] < 48 or p[i] > 57:
            return False
        value[0] = value[0] * 10 + p[i] - 48
    return True


cdef size_t answer(const Frame* frame, const uint8_t* p, uint8_t* out) noexcept nogil:
    if frame.kind != WANTS_PONG:
        return 0
    memcpy(out, b"PONG\r\n", 6)
    return 6


# ---------------------------------------------------------------------- JetStream


cdef int next_of_stream(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil:
    cdef int state = next_frame(p, end, frame)
    cdef uint64_t number = 0
    if state != WHOLE or frame.kind != DELIVERY:
        return state
    if frame.subscription != ANSWERS:
        frame.qos = 1
        return WHOLE if 0 < frame.reply_size <= REPLY_BYTES_MAX else DAMAGED
    if is_error(frame):
        frame.kind = REFUSAL
        return WHOLE
    if frame.topic_size < DIGITS or not decimal(frame.topic + frame.topic_size - DIGITS, DIGITS, &number):
        return DAMAGED
    frame.kind = ACKNOWLEDGEMENT
    frame.number = <uint32_t>number
    return WHOLE


cdef bint is_error(const Frame* frame) noexcept nogil:
    """Whether the JSON of an answer has a field "error"."""
    cdef const uint8_t* p = frame.payload
    cdef const uint8_t* end = p + frame.payload_size
    while end - p >= 7:
        p = <const uint8_t*>memchr(p, 34, end - p)      # a quotation mark
        if p == NULL or end - p < 7:
            return False
        if memcmp(p, b'"error"', 7) == 0:
            return True
        p += 1
    return False


cdef size_t answer_of_stream(const Frame* frame, const uint8_t* p, uint8_t* out) noexcept nogil:
    """An empty message to the subject that a delivery names acknowledges it, as "+ACK" does."""
    if frame.kind != DELIVERY:
        return answer(frame, p, out)
    memcpy(out, b"PUB ", 4)
    memcpy(out + 4, frame.reply, frame.reply_size)
    memcpy(out + 4 + frame.reply_size, b" 0\r\n\r\n", 6)
    return 10 + frame.reply_size


NATS = new_dialect("nats", next_frame, answer, 4, 0, False)
JETSTREAM = new_dialect("jetstream", next_of_stream, answer_of_stream, DIGITS, 0xffffffff, False)
