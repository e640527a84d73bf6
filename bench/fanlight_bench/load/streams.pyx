# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Making messages and checking deliveries: see streams.pxd. Nothing here touches a socket."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from fanlight_bench.load.endpoint cimport copied
from fanlight_bench.load.properties cimport same_properties
from fanlight_bench.load.protocol cimport Frame
from fanlight_bench.load.shared_counters cimport SharedCounters

HEADER_BYTES = HEADER   # of a payload: the least that it may hold, and one for its last octet
DIGITS_COUNT = DIGITS


cdef class Streams:
    """The streams of one load, as one of its workers sees them. Confined to one thread.

    payload_bytes: of each message, more than HEADER_BYTES. Raises ValueError.
    """

    def __cinit__(self, SharedCounters shared not None, int worker, int64_t payload_bytes):
        cdef int64_t i
        if payload_bytes <= HEADER:
            raise ValueError(f"payload of {payload_bytes} bytes; it must hold a header of {HEADER} and one more")
        if not 0 <= worker < shared.workers:
            raise ValueError(f"worker {worker} of {shared.workers}")
        self.shared = shared
        self.own = &shared.counters[worker]
        self.latency = Histogram()
        self.payload_bytes = <uint32_t>payload_bytes
        self.filler = <uint8_t*>malloc(<size_t>payload_bytes)
        if self.filler == NULL:
            raise MemoryError
        for i in range(payload_bytes):
            self.filler[i] = <uint8_t>(97 + i % 26)

    def __dealloc__(self):
        cdef uint32_t i, k
        for i in range(self.n_streams):
            free(self.streams[i].frame.bytes)
            free(self.streams[i].later.bytes)
            free(self.streams[i].topic)
            free(self.streams[i].properties)
        for i in range(self.n_subscribers):
            for k in range(self.subscribers[i].n_aliases):
                free(self.subscribers[i].aliases[k])
            free(self.subscribers[i].aliases)
            free(self.subscribers[i].cells)
        free(self.streams)
        free(self.subscribers)
        free(self.filler)

    # ------------------------------------------------------------------ once per subscriber and stream

    def add_subscriber(self, *, bint slow=False, uint32_t aliases=0):
        """Its number. slow: what it misses is no fault; aliases: topics that the broker may give numbers to."""
        cdef Subscriber* grown = <Subscriber*>realloc(self.subscribers, (self.n_subscribers + 1) * sizeof(Subscriber))
        if grown == NULL:
            raise MemoryError
        self.subscribers = grown
        cdef Subscriber* subscriber = &grown[self.n_subscribers]
        memset(subscriber, 0, sizeof(Subscriber))
        subscriber.slow = slow
        self.n_subscribers += 1
        if aliases:
            subscriber.aliases = <uint8_t**>calloc(aliases + 1, sizeof(uint8_t*))
            if subscriber.aliases == NULL:
                raise MemoryError
            subscriber.n_aliases = aliases + 1
        return self.n_subscribers - 1

    def add_stream(
        self, bytes topic, uint32_t fan_out, *, reach=None, int64_t digits_at=-1, bytes properties=b"", frame=None,
        later=None, last=None
    ):
        """Its number. All workers add the same streams in the same order.

        fan_out: deliveries of a message, to all workers; reach: including slow subscribers. digits_at: where in the
        topic its number stands, -1 nowhere. frame and later, of a stream that is published here: (bytes, payload_at,
        number_at, digits_at), see Template. last: the stream of the same publisher that this one follows.
        """
        if self.n_streams >= <uint32_t>self.shared.streams:
            raise ValueError(f"more than {self.shared.streams} streams")
        cdef Stream* grown = <Stream*>realloc(self.streams, (self.n_streams + 1) * sizeof(Stream))
        if grown == NULL:
            raise MemoryError
        self.streams = grown
        cdef uint32_t number = self.n_streams
        cdef Stream* stream = &grown[number]
        memset(stream, 0, sizeof(Stream))
        self.n_streams += 1
        stream.topic = copied(topic)
        stream.topic_size = <uint32_t>len(topic)
        stream.properties = copied(properties)
        stream.properties_size = <uint32_t>len(properties)
        stream.digits_at = digits_at
        stream.fan_out = fan_out
        stream.reach = fan_out if reach is None else reach
        if digits_at >= 0 and digits_at + DIGITS > len(topic):
            raise ValueError("the digits do not lie in the topic")
        if frame is not None:
            self._fill(&stream.frame, number, frame)
        if later is not None:
            self._fill(&stream.later, number, later)
        stream.next_of_publisher = number
        if last is not None:
            stream.next_of_publisher = self.streams[<uint32_t>last].next_of_publisher
            self.streams[<uint32_t>last].next_of_publisher = number
        return number

    cdef int _fill(self, Template* made, uint32_t stream, tuple given) except -1:
        cdef bytes frame = given[0]
        cdef size_t payload_at = given[1], number_at = given[2], digits_at = given[3]
        cdef size_t size = <size_t>len(frame)
        if payload_at + self.payload_bytes > size or digits_at and digits_at + DIGITS > size:
            raise ValueError("the payload does not lie in the frame")
        made[0] = Template(copied(frame), len(frame), payload_at, number_at, digits_at)
        memcpy(made.bytes + payload_at, self.filler, self.payload_bytes)
        memcpy(made.bytes + payload_at + 16, &stream, 4)
        return 0

    def expect(self, uint32_t subscriber, uint32_t stream, uint32_t subscription):
        """This subscriber is to get this stream, once, and a delivery must name this subscription (0: any)."""
        if subscriber >= self.n_subscribers or stream >= self.n_streams:
            raise ValueError(f"subscriber {subscriber} of {self.n_subscribers}, stream {stream} of {self.n_streams}")
        cdef Subscriber* it = &self.subscribers[subscriber]
        cdef Subscriber grown
        cdef uint32_t i
        if it.cells == NULL or 2 * (it.used + 1) > it.mask + 1:
            grown = it[0]
            grown.mask = 2 * it.mask + 1 if it.cells != NULL else 1
            grown.cells = <Cell*>malloc(<size_t>(grown.mask + 1) * sizeof(Cell))
            if grown.cells == NULL:
                raise MemoryError
            memset(grown.cells, 0xff, <size_t>(grown.mask + 1) * sizeof(Cell))
            if it.cells != NULL:
                for i in range(it.mask + 1):
                    if it.cells[i].stream != NO_STREAM:
                        _slot(&grown, it.cells[i].stream)[0] = it.cells[i]
                free(it.cells)
            it[0] = grown
        cdef Cell* cell = _slot(it, stream)
        if cell.stream != NO_STREAM:
            raise ValueError(f"two subscriptions of subscriber {subscriber} match stream {stream}")
        cell[0] = Cell(stream, subscription, 0, 0)
        it.used += 1

    # ------------------------------------------------------------------ once per message

    cdef void write(self, uint32_t number, uint8_t* frame, uint64_t sent) noexcept nogil:
        cdef Stream* stream = &self.streams[number]
        cdef uint64_t sequence = self.shared.sequences[number]
        cdef Template* made = template(stream, sequence)
        memcpy(frame, made.bytes, made.size)
        memcpy(frame + made.payload_at, &sequence, 8)
        memcpy(frame + made.payload_at + 8, &sent, 8)
        frame[made.payload_at + self.payload_bytes - 1] = <uint8_t>sequence
        if made.digits_at:
            _store_digits(frame + made.digits_at, sequence)
        self.shared.sequences[number] = sequence + 1
        self.own.published += 1
        self.own.expected += stream.fan_out

    cdef void check(self, uint32_t subscriber, const Frame* frame, uint64_t now) noexcept nogil:
        cdef Subscriber* it
        cdef Stream* stream
        cdef Cell* cell
        cdef uint64_t sequence, sent
        cdef uint32_t number, age, gap
        cdef const uint8_t* topic = frame.topic
        cdef uint32_t topic_size = frame.topic_size
        if subscriber >= self.n_subscribers:
            self.own.received += 1
            self.own.misrouted += 1
            return
        it = &self.subscribers[subscriber]
        if it.slow:
            self.own.slow_received += 1
        else:
            self.own.received += 1
        if frame.payload_size != self.payload_bytes or frame.alias and not _alias(it, frame, &topic, &topic_size):
            self.own.damaged += 1
            return
        memcpy(&sequence, frame.payload, 8)
        memcpy(&sent, frame.payload + 8, 8)
        memcpy(&number, frame.payload + 16, 4)
        if (
            number >= self.n_streams
            or memcmp(frame.payload + HEADER, self.filler + HEADER, self.payload_bytes - HEADER - 1)
            or frame.payload[self.payload_bytes - 1] != <uint8_t>sequence
        ):
            self.own.damaged += 1
            return
        stream = &self.streams[number]
        if (
            not _same_topic(stream, topic, topic_size, sequence)
            or sequence >= self.shared.sequences[number]
            or (frame.properties_size or stream.properties_size) and not same_properties(
                frame.properties, frame.properties_size, stream.properties, stream.properties_size
            )
        ):
            self.own.damaged += 1
            return
        if it.cells == NULL:
            self.own.misrouted += 1
            return
        cell = _slot(it, number)
        if cell.stream != number or cell.subscription and cell.subscription != frame.subscription:
            self.own.misrouted += 1
            return
        if now and not it.slow:
            self.latency.add(now - sent if now > sent else 0)
        if <uint32_t>sequence == cell.next:
            cell.next += 1
            cell.seen = cell.seen << 1 | 1
        elif <int>(<uint32_t>sequence - cell.next) > 0:
            gap = <uint32_t>sequence - cell.next + 1
            cell.seen = (cell.seen << gap | 1) if gap < 32 else 1
            cell.next = <uint32_t>sequence + 1
        else:
            # Late: one that was skipped, or one that came before. Beyond 32 it counts as repeated, and so the
            # skipped one as lost: either way the run has failed.
            age = cell.next - 1 - <uint32_t>sequence
            if age >= 32 or cell.seen >> age & 1:
                self.own.repeated += 1
                return
            cell.seen |= <uint32_t>1 << age
            self.own.reordered += 1
        if not it.slow:
            self.own.unique += 1


cdef inline Cell* _slot(Subscriber* it, uint32_t stream) noexcept nogil:
    """Where the stream's cell is, or would be: at most half of the slots are used."""
    cdef uint32_t i = (stream * 0x9e3779b1u >> 7) & it.mask
    while it.cells[i].stream != stream and it.cells[i].stream != NO_STREAM:
        i = (i + 1) & it.mask
    return &it.cells[i]


cdef inline bint _same_topic(
    const Stream* stream, const uint8_t* topic, uint32_t size, uint64_t sequence
) noexcept nogil:
    cdef uint8_t[DIGITS] digits
    cdef size_t rest
    if size != stream.topic_size:
        return False
    if stream.digits_at < 0:
        return memcmp(topic, stream.topic, size) == 0
    _store_digits(digits, sequence)
    rest = <size_t>stream.digits_at + DIGITS
    return (
        memcmp(topic, stream.topic, <size_t>stream.digits_at) == 0
        and memcmp(topic + stream.digits_at, digits, DIGITS) == 0
        and memcmp(topic + rest, stream.topic + rest, size - rest) == 0
    )


cdef bint _alias(Subscriber* it, const Frame* frame, const uint8_t** topic, uint32_t* size) noexcept nogil:
    """Note the topic under its alias, or look it up (MQTT 5, 3.3.2.3.4). False when there is no such alias."""
    cdef uint8_t* kept
    if frame.alias >= it.n_aliases:
        return False
    if frame.topic_size:
        kept = <uint8_t*>realloc(it.aliases[frame.alias], 4 + frame.topic_size)
        if kept == NULL:
            return False
        memcpy(kept, &frame.topic_size, 4)
        memcpy(kept + 4, frame.topic, frame.topic_size)
        it.aliases[frame.alias] = kept
        return True
    kept = it.aliases[frame.alias]
    if kept == NULL:
        return False
    memcpy(size, kept, 4)
    topic[0] = kept + 4
    return True


cdef inline void _store_digits(uint8_t* out, uint64_t value) noexcept nogil:
    cdef int i
    for i in range(DIGITS - 1, -1, -1):
        out[i] = <uint8_t>(48 + value % 10)
        value //= 10
