# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A load of durable messages: publishers that wait for acknowledgements, consumers that acknowledge each delivery.

A message is timed from its publish to its acknowledgement. A payload has its number (8 octets), when it was published
(8) and its publisher (4), so that each consumer sees a message that is missing, repeated or not for it.

Message `n` of publisher `p` goes to topic (n + p) % topics, six digits of its frame; a consumer is for one topic. So a
consumer knows which number it must get next from each publisher, also after it was away: connections are attached and
detached, and the books are kept. As in round_trips.pyx the sockets are given, with the handshake done, and one thread
without the interpreter lock turns an epoll loop over them.
"""

from libc.errno cimport errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from fanlight_bench.load.endpoint cimport OUT_OF_MEMORY, OVER, Endpoint, keep_tail, receive, reserve, send_out
from fanlight_bench.load.histogram cimport Histogram
from fanlight_bench.load.protocol cimport (
    ACKNOWLEDGEMENT, ANSWER_BYTES_MAX, CUT_OFF, DAMAGED, DELIVERY, REFUSAL, Dialect, Frame,
)
from fanlight_bench.sockets cimport (
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, close, epoll_create1, epoll_ctl,
    epoll_event, epoll_wait, now_ns,
)

cdef enum:
    READ_BYTES = 262144
    EVENTS = 512
    HEADER = 20
    TOPIC_DIGITS = 6
    RING_WINDOWS = 16               # publishes that may be under way behind the oldest, in windows
    COMPLAINT_BYTES = 512


cdef struct Sender:
    uint8_t* bytes                  # a whole publish, to be copied and patched; offsets in it
    size_t size
    size_t payload_at
    size_t number_at                # 0: the protocol counts by itself
    size_t topic_at                 # of the topic's digits; 0: there are none
    uint64_t next                   # the number of the next message
    uint64_t oldest                 # that is not acknowledged
    uint64_t base                   # the first message of this connection
    uint32_t unacknowledged
    uint64_t* sent                  # when, by number, in a ring; 0: acknowledged


cdef struct Place:                  # an endpoint, and whose it is
    Endpoint endpoint
    int64_t sender                  # -1: a consumer's
    uint32_t consumer


cdef class StoredLoad:
    """Add publishers, attach connections, `start`, then `run` or `drain`. File descriptors stay the caller's.

    consumers: the topic number of each. window: publishes of one publisher that may wait for acknowledgement; behind:
    messages that may be published and not delivered, 0: any number. Confined to one thread. Raises ValueError.
    """

    cdef:
        readonly Histogram latency
        readonly uint64_t published, acknowledged, received, right, missing, repeated, misrouted, damaged
        readonly uint64_t wrong_acknowledgements, refused, closed
        Dialect dialect
        uint32_t payload_bytes, topics, window, behind, ring, n_senders, n_consumers
        uint64_t most
        int epoll
        Sender* senders
        uint64_t* expected          # by consumer and publisher: the number that must come next
        Place** places
        uint32_t n_places
        uint8_t* buffer
        size_t buffer_room
        bint out_of_memory
        uint8_t[COMPLAINT_BYTES] complaint_bytes
        uint32_t complaint_size

    def __cinit__(self, Dialect dialect not None, list publishes not None, list consumers not None, *,
                  uint32_t payload_bytes=256, uint32_t topics=1, uint32_t window=1, uint32_t behind=0):
        cdef uint32_t p, c, topic
        self.epoll = -1
        if payload_bytes <= HEADER or window < 1 or topics < 1 or topics > 1000000:
            least = HEADER + 1
            given = f"payload of {payload_bytes} bytes, {topics} topics, window {window}"
            raise ValueError(f"{given}; at least {least}, 1, 1")
        if window > dialect.number_max:
            raise ValueError(f"window {window}; {dialect.name} can number {dialect.number_max}")
        self.dialect = dialect
        self.latency = Histogram()
        self.payload_bytes, self.topics, self.window, self.behind = payload_bytes, topics, window, behind
        self.ring = 1
        while self.ring < RING_WINDOWS * window:
            self.ring *= 2
        self.senders = <Sender*>calloc(len(publishes) + 1, sizeof(Sender))
        self.expected = <uint64_t*>calloc(len(publishes) * len(consumers) + 1, sizeof(uint64_t))
        if self.senders == NULL or self.expected == NULL:
            raise MemoryError
        for publish in publishes:
            self._add_sender(publish)
        self.n_consumers = len(consumers)
        for c in range(self.n_consumers):
            topic = consumers[c]
            for p in range(self.n_senders):
                self.expected[c * self.n_senders + p] = (topic + topics - p % topics) % topics

    def __dealloc__(self):
        cdef uint32_t i
        self._forget()
        for i in range(self.n_senders):
            free(self.senders[i].bytes)
            free(self.senders[i].sent)
        free(self.senders)
        free(self.expected)
        free(self.buffer)

    cdef int _add_sender(self, tuple publish) except -1:
        cdef bytes frame = publish[0]
        cdef Sender* sender = &self.senders[self.n_senders]
        cdef uint32_t i
        sender.size = len(frame)
        sender.payload_at, sender.number_at, sender.topic_at = publish[1:]
        if sender.payload_at + self.payload_bytes > sender.size or sender.topic_at + TOPIC_DIGITS > sender.size:
            raise ValueError("the payload or the topic does not lie in the frame")
        sender.bytes = <uint8_t*>malloc(sender.size)
        sender.sent = <uint64_t*>calloc(self.ring, sizeof(uint64_t))
        self.n_senders += 1
        if sender.bytes == NULL or sender.sent == NULL:
            raise MemoryError
        memcpy(sender.bytes, <const char*>frame, sender.size)
        for i in range(self.payload_bytes):
            sender.bytes[sender.payload_at + i] = <uint8_t>(97 + i % 26)
        return 0

    # ------------------------------------------------------------------ connections

    def attach_publisher(self, uint32_t number, int fd, bytes rest=b""):
        """The connection of this publisher; rest: what was read behind the handshake."""
        if number >= self.n_senders:
            raise ValueError(f"publisher {number} of {self.n_senders}")
        self.senders[number].base = self.senders[number].oldest = self.senders[number].next
        self._attach(fd, number, 0, rest)

    def attach_consumer(self, uint32_t number, int fd, bytes rest=b""):
        """The connection of this consumer."""
        if number >= self.n_consumers:
            raise ValueError(f"consumer {number} of {self.n_consumers}")
        self._attach(fd, -1, number, rest)

    cdef int _attach(self, int fd, int64_t sender, uint32_t consumer, bytes rest) except -1:
        cdef Place** grown = <Place**>realloc(self.places, (self.n_places + 1) * sizeof(Place*))
        if grown == NULL:
            raise MemoryError
        self.places = grown
        cdef Place* place = <Place*>calloc(1, sizeof(Place))
        if place == NULL:
            raise MemoryError
        grown[self.n_places] = place
        self.n_places += 1
        place.endpoint.fd = fd
        place.sender = sender
        place.consumer = consumer
        if not keep_tail(&place.endpoint, <const uint8_t*><const char*>rest, len(rest)):
            raise MemoryError
        return 0

    def start(self):
        """Watch all connections, and read what came with their handshakes. OSError: there is no epoll."""
        cdef uint32_t i
        if self.epoll < 0:
            self.epoll = epoll_create1(0)
            if self.epoll < 0:
                raise OSError(errno, "epoll_create1")
        for i in range(self.n_places):
            self._control(&self.places[i].endpoint, EPOLL_CTL_ADD, self.places[i])
            self._take_rest(self.places[i])

    def detach(self):
        """Forget all connections. What was published and never acknowledged stays in the books."""
        cdef uint32_t i
        self._forget()
        self.closed = 0
        for i in range(self.n_senders):
            memset(self.senders[i].sent, 0, self.ring * sizeof(uint64_t))
            self.senders[i].unacknowledged = 0

    cdef void _forget(self) noexcept:
        cdef uint32_t i
        if self.epoll >= 0:
            close(self.epoll)
        self.epoll = -1
        for i in range(self.n_places):
            free(self.places[i].endpoint.tail)
            free(self.places[i].endpoint.out)
            free(self.places[i])
        free(self.places)
        self.places = NULL
        self.n_places = 0

    # ------------------------------------------------------------------ running

    def begin(self):
        """Time from here on."""
        self.latency.clear()

    def run(self, double seconds, uint64_t messages=0):
        """Publish until the time is over, or `messages` are acknowledged in all; one turn at least."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        self.most = messages if messages else <uint64_t>-1
        with nogil:
            while True:
                self._publish()
                self._turn(10)
                if messages and self.published >= messages and self.acknowledged >= messages:
                    break
                if self._broken() or now_ns() >= end:
                    break
        if self.out_of_memory:
            raise MemoryError

    def drain(self, double seconds, uint64_t deliveries):
        """Wait until so many deliveries have come in all and every publish is acknowledged. True if they have."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        with nogil:
            while not self._is_drained(deliveries):
                self._turn(10)
                if self._broken() or now_ns() >= end:
                    break
        if self.out_of_memory:
            raise MemoryError
        return self._is_drained(deliveries)

    def published_to(self, uint32_t topic):
        """Messages of all publishers on a topic."""
        cdef uint64_t found = 0, first
        cdef uint32_t p
        for p in range(self.n_senders):
            first = (topic + self.topics - p % self.topics) % self.topics
            if self.senders[p].next > first:
                found += (self.senders[p].next - first - 1) // self.topics + 1
        return found

    def broken(self):
        """Whether it makes no sense to go on: the broker has closed a connection, or refuses something."""
        return self._broken()

    def complaint(self):
        """The first frame that is an error, cut at 512 bytes; empty if there was none."""
        return (<const char*>&self.complaint_bytes[0])[:self.complaint_size]

    cdef bint _broken(self) noexcept nogil:
        return self.closed or self.refused or self.out_of_memory

    cdef bint _is_drained(self, uint64_t deliveries) noexcept nogil:
        cdef uint32_t i
        if self.received < deliveries or self.acknowledged < self.published:
            return False
        for i in range(self.n_places):
            if self.places[i].endpoint.out_end:
                return False
        return True

    cdef void _turn(self, int timeout_ms) noexcept nogil:
        cdef epoll_event[EVENTS] events
        cdef Place* place
        cdef int i, n = epoll_wait(self.epoll, events, EVENTS, timeout_ms)
        for i in range(n):
            place = <Place*>events[i].data.ptr
            if events[i].events & EPOLLOUT and not place.endpoint.closed:
                self._flush(place)
            if events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP) and not place.endpoint.closed:
                self._receive(place)

    cdef void _control(self, Endpoint* endpoint, int what, Place* place) noexcept nogil:
        cdef epoll_event event
        event.events = EPOLLIN | (EPOLLOUT if endpoint.watching_out else 0)
        event.data.ptr = place
        epoll_ctl(self.epoll, what, endpoint.fd, &event)

    cdef void _flush(self, Place* place) noexcept nogil:
        cdef Endpoint* endpoint = &place.endpoint
        if not send_out(endpoint):
            self._lose(endpoint)
        elif endpoint.watching_out != (endpoint.out_end > 0):
            endpoint.watching_out = endpoint.out_end > 0
            self._control(endpoint, EPOLL_CTL_MOD, place)

    cdef void _lose(self, Endpoint* endpoint) noexcept nogil:
        endpoint.closed = True
        self.closed += 1
        epoll_ctl(self.epoll, EPOLL_CTL_DEL, endpoint.fd, NULL)

    cdef void _receive(self, Place* place) noexcept nogil:
        cdef Endpoint* endpoint = &place.endpoint
        cdef ssize_t n = receive(endpoint, &self.buffer, &self.buffer_room, READ_BYTES)
        if n == OUT_OF_MEMORY:
            self.out_of_memory = True
        elif n == OVER:
            self._lose(endpoint)
        if n > 0:
            self._take_all(place, <size_t>n)

    cdef void _take_rest(self, Place* place) noexcept nogil:
        cdef Endpoint* endpoint = &place.endpoint
        if not reserve(&self.buffer, &self.buffer_room, endpoint.tail_size + 1):
            self.out_of_memory = True
            return
        memcpy(self.buffer, endpoint.tail, endpoint.tail_size)
        self._take_all(place, endpoint.tail_size)

    cdef void _take_all(self, Place* place, size_t size) noexcept nogil:
        """Take the whole frames in the buffer, and keep what is behind them."""
        cdef Endpoint* endpoint = &place.endpoint
        cdef size_t used = 0
        cdef Frame frame
        cdef int state
        memset(&frame, 0, sizeof(Frame))
        while used < size:
            state = self.dialect.next(self.buffer + used, self.buffer + size, &frame)
            if state == CUT_OFF:
                break
            if state == DAMAGED:
                self.damaged += 1
                self._lose(endpoint)
                return
            self._take(place, &frame, self.buffer + used)
            used += frame.size
        if endpoint.out_end and not endpoint.watching_out:
            self._flush(place)
        if not keep_tail(endpoint, self.buffer + used, size - used):
            self.out_of_memory = True

    cdef void _take(self, Place* place, const Frame* frame, const uint8_t* p) noexcept nogil:
        cdef Endpoint* endpoint = &place.endpoint
        if frame.kind == DELIVERY:
            self._check(place, frame)
        elif frame.kind == ACKNOWLEDGEMENT:
            if place.sender >= 0:
                self._acknowledge(&self.senders[place.sender], frame)
            return
        elif frame.kind == REFUSAL:
            self.refused += 1
            if not self.complaint_size:
                self.complaint_size = <uint32_t>min(frame.size, <size_t>COMPLAINT_BYTES)
                memcpy(self.complaint_bytes, p, self.complaint_size)
            return
        if reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + ANSWER_BYTES_MAX):
            endpoint.out_end += self.dialect.answer(frame, p, endpoint.out + endpoint.out_end)
        else:
            self.out_of_memory = True

    # ------------------------------------------------------------------ publishing

    cdef void _publish(self) noexcept nogil:
        """Fill the window of each publisher whose socket has taken what there was."""
        cdef uint32_t i
        cdef Place* place
        cdef uint64_t now
        for i in range(self.n_places):
            place = self.places[i]
            if place.sender < 0 or place.endpoint.closed or place.endpoint.out_end:
                continue
            now = now_ns()
            while self._may_publish(&self.senders[place.sender]):
                self._write(place, &self.senders[place.sender], now)
            if place.endpoint.out_end:
                self._flush(place)

    cdef bint _may_publish(self, Sender* sender) noexcept nogil:
        if sender.unacknowledged >= self.window or sender.next - sender.oldest >= self.ring:
            return False
        if self.published >= self.most or self.out_of_memory:
            return False
        return not self.behind or self.published < self.received + self.behind

    cdef void _write(self, Place* place, Sender* sender, uint64_t now) noexcept nogil:
        cdef Endpoint* endpoint = &place.endpoint
        cdef uint64_t number = (sender.next - sender.base) % self.dialect.number_max + 1
        cdef uint32_t publisher = <uint32_t>place.sender
        cdef uint8_t* p
        if not reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + sender.size):
            self.out_of_memory = True
            return
        p = endpoint.out + endpoint.out_end
        memcpy(p, sender.bytes, sender.size)
        if self.dialect.number_bytes == 2:
            p[sender.number_at] = <uint8_t>(number >> 8)
            p[sender.number_at + 1] = <uint8_t>number
        elif sender.number_at:
            _digits(p + sender.number_at, self.dialect.number_bytes, number)
        if sender.topic_at:
            _digits(p + sender.topic_at, TOPIC_DIGITS, (sender.next + publisher) % self.topics)
        memcpy(p + sender.payload_at, &sender.next, 8)
        memcpy(p + sender.payload_at + 8, &now, 8)
        memcpy(p + sender.payload_at + 16, &publisher, 4)
        sender.sent[sender.next & (self.ring - 1)] = now
        endpoint.out_end += sender.size
        sender.next += 1
        sender.unacknowledged += 1
        self.published += 1

    cdef void _acknowledge(self, Sender* sender, const Frame* frame) noexcept nogil:
        """Book the acknowledgement of a message, or of all up to it."""
        cdef uint64_t limit = self.dialect.number_max
        cdef uint64_t at, before = (sender.oldest - sender.base) % limit + 1, now = now_ns()
        if frame.number == 0:
            self.wrong_acknowledgements += 1
            return
        at = sender.oldest + (frame.number + limit - before) % limit
        if at >= sender.next:
            # All up to it may have come already; then there is nothing to book.
            self.wrong_acknowledgements += not frame.up_to
            return
        if frame.up_to:
            while sender.oldest <= at:
                self._book(sender, sender.oldest, now)
                sender.oldest += 1
        elif not self._book(sender, at, now):
            self.wrong_acknowledgements += 1
        while sender.oldest < sender.next and not sender.sent[sender.oldest & (self.ring - 1)]:
            sender.oldest += 1

    cdef bint _book(self, Sender* sender, uint64_t number, uint64_t now) noexcept nogil:
        cdef uint64_t* sent = &sender.sent[number & (self.ring - 1)]
        if not sent[0]:
            return False
        self.latency.add(now - sent[0] if now > sent[0] else 0)
        sent[0] = 0
        sender.unacknowledged -= 1
        self.acknowledged += 1
        return True

    # ------------------------------------------------------------------ deliveries

    cdef void _check(self, Place* place, const Frame* frame) noexcept nogil:
        cdef uint64_t number
        cdef uint64_t* expected
        cdef uint32_t publisher
        self.received += 1
        if place.sender >= 0:
            self.misrouted += 1
            return
        if frame.payload_size != self.payload_bytes:
            self.damaged += 1
            return
        memcpy(&number, frame.payload, 8)
        memcpy(&publisher, frame.payload + 16, 4)
        if publisher >= self.n_senders or number >= self.senders[publisher].next or memcmp(
            frame.payload + HEADER, self.senders[publisher].bytes + self.senders[publisher].payload_at + HEADER,
            self.payload_bytes - HEADER,
        ):
            self.damaged += 1
            return
        expected = &self.expected[<size_t>place.consumer * self.n_senders + publisher]
        if number % self.topics != expected[0] % self.topics:
            self.misrouted += 1
        elif number < expected[0]:
            self.repeated += 1
        else:
            self.missing += (number - expected[0]) // self.topics
            expected[0] = number + self.topics
            self.right += 1


cdef inline void _digits(uint8_t* p, uint32_t count, uint64_t value) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        p[count - 1 - i] = <uint8_t>(48 + value % 10)
        value //= 10
