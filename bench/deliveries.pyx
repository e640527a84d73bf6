# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Making messages and checking deliveries: see deliveries.pxd. Nothing here touches a socket."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

from bench.histogram cimport record
from bench.sockets cimport Text, load_text, load_u32

HEADER_BYTES = HEADER   # of a payload: the least that it may hold


cdef class Deliveries:
    """The streams of one load. Confined to one thread.

    payload_bytes: of each message, at least HEADER_BYTES. Raises ValueError.
    """

    def __cinit__(self, int payload_bytes):
        cdef int i
        if payload_bytes < HEADER:
            raise ValueError(f"payload of {payload_bytes} bytes; it must hold a header of {HEADER}")
        self.payload_bytes = payload_bytes
        self.filler = <uint8_t*>malloc(payload_bytes)
        if self.filler == NULL:
            raise MemoryError
        for i in range(payload_bytes):
            self.filler[i] = <uint8_t>(ord("a") + i % 26)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.n_streams):
            free(self.streams[i].frame)
            free(self.streams[i].topic)
        free(self.streams)
        free(self.cells)
        free(self.filler)

    cdef uint32_t add(self, uint32_t last, bytes topic, bytes frame, size_t payload_at, object subscribers) except? 0:
        """A stream, put into its publisher's ring behind the stream `last` (NO_STREAM: the first). Its number."""
        if payload_at + self.payload_bytes > <size_t>len(frame):
            raise ValueError("the payload does not lie in the frame")
        cdef Stream* grown = <Stream*>realloc(self.streams, (self.n_streams + 1) * sizeof(Stream))
        if grown == NULL:
            raise MemoryError
        self.streams = grown
        cdef size_t cells = <size_t>(self.n_streams + 1) * self.n_subscribers
        cdef Cell* more = <Cell*>realloc(self.cells, (cells + 1) * sizeof(Cell))
        if more == NULL:
            raise MemoryError
        self.cells = more
        cdef uint32_t number = self.n_streams, i
        cdef Cell* row = &self.cells[<size_t>number * self.n_subscribers]
        for i in range(self.n_subscribers):
            row[i] = Cell(0, 0, False)
        cdef Stream* stream = &self.streams[number]
        stream[0] = Stream(NULL, 0, 0, NULL, 0, 0, 0, 0)
        self.n_streams += 1
        stream.frame = _copy(frame)
        stream.frame_size = len(frame)
        stream.payload_at = payload_at
        stream.topic = _copy(topic)
        stream.topic_size = <uint32_t>len(topic)
        memcpy(stream.frame + payload_at, self.filler, self.payload_bytes)
        memcpy(stream.frame + payload_at + 16, &number, 4)
        for subscriber in subscribers:
            if not 0 <= subscriber < self.n_subscribers:
                raise ValueError(f"no subscriber {subscriber}; there are {self.n_subscribers}")
            row[<uint32_t>subscriber].expected = True
            stream.fan_out += 1
        self.fan_out_max = max(self.fan_out_max, stream.fan_out)
        if last == NO_STREAM:
            stream.next_of_publisher = number
        else:
            stream.next_of_publisher = self.streams[last].next_of_publisher
            self.streams[last].next_of_publisher = number
        return number

    cdef void write(self, Stream* stream, uint8_t* frame, uint64_t sent) noexcept nogil:
        memcpy(frame, stream.frame, stream.frame_size)
        memcpy(frame + stream.payload_at, &stream.sequence, 8)
        memcpy(frame + stream.payload_at + 8, &sent, 8)
        stream.sequence += 1
        self.published += 1
        self.expected += stream.fan_out

    cdef void check(
        self, uint32_t subscriber, uint32_t subscription, const uint8_t* p, const uint8_t* end, uint64_t now
    ) noexcept nogil:
        cdef Text topic, payload
        cdef Stream* stream
        cdef Cell* cell
        cdef uint64_t sequence, sent, age, gap
        cdef uint32_t number
        self.received += 1
        if end - p < 6 or p[0] != 0xce:
            self.damaged += 1
            return
        topic = load_text(p + 5, end)
        if topic.bytes == NULL:
            self.damaged += 1
            return
        payload = load_text(topic.bytes + topic.size, end)
        if payload.bytes == NULL or payload.size != self.payload_bytes:
            self.damaged += 1
            return
        memcpy(&sequence, payload.bytes, 8)
        memcpy(&sent, payload.bytes + 8, 8)
        memcpy(&number, payload.bytes + 16, 4)
        if number >= self.n_streams or memcmp(payload.bytes + HEADER, self.filler + HEADER, payload.size - HEADER):
            self.damaged += 1
            return
        stream = &self.streams[number]
        if (
            topic.size != stream.topic_size
            or memcmp(topic.bytes, stream.topic, topic.size)
            or sequence >= stream.sequence
        ):
            self.damaged += 1
            return
        if subscriber >= self.n_subscribers or load_u32(p + 1) != subscription:
            self.misrouted += 1
            return
        cell = &self.cells[<size_t>number * self.n_subscribers + subscriber]
        if not cell.expected:
            self.misrouted += 1
            return
        if now:
            record(&self.latency, now - sent if now > sent else 0)
        if sequence == cell.next:
            cell.next += 1
            cell.seen = cell.seen << 1 | 1
        elif sequence > cell.next:
            gap = sequence - cell.next + 1
            cell.seen = (cell.seen << gap | 1) if gap < 64 else 1
            cell.next = sequence + 1
        else:
            # Late: one that was skipped, or one that came before. Beyond 64 it counts as repeated, and so the
            # skipped one as lost: either way the run has failed.
            age = cell.next - 1 - sequence
            if age >= 64 or cell.seen >> age & 1:
                self.repeated += 1
                return
            cell.seen |= <uint64_t>1 << age
            self.reordered += 1
        self.unique += 1


cdef uint8_t* _copy(bytes data) except NULL:
    cdef uint8_t* copy = <uint8_t*>malloc(len(data) + 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, <const char*>data, len(data))
    return copy
