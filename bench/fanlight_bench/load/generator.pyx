# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The load generator: publishes as fast as a window allows, or at a fixed rate, and checks every delivery.

It is given sockets on which the handshake is done, and complete frames to repeat; from then on one thread without the
interpreter lock turns an epoll loop over them. What a message carries and how a delivery is checked is in
streams.pxd, how a protocol's frames are recognised in its Dialect.

Closed loop: deliveries expected minus deliveries received, of all workers of the load, never exceed the window, so a
broker is measured at moving messages, not at filling its queues. Open loop, with a rate: the schedule waits for
nobody, and a message carries the time it was due, not the time it was sent. So a broker that holds up the generator
does not shorten the latency that is seen (coordinated omission).

Not here: opening connections and naming topics (worker.py), what to measure (scenario.py), processor time.
"""

from libc.errno cimport errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from fanlight_bench.load.carrier cimport Carrier
from fanlight_bench.load.endpoint cimport (
    NOBODY, OUT_OF_MEMORY, OVER, Endpoint, add_endpoint, keep_tail, receive, reserve, send_out, watch,
)
from fanlight_bench.load.protocol cimport (
    ACKNOWLEDGEMENT, ANSWER_BYTES_MAX, CUT_OFF, DAMAGED, DELIVERY, REFUSAL, Dialect, Frame,
)
from fanlight_bench.load.streams cimport NO_STREAM, Stream, Streams, template

from fanlight_bench.sockets cimport (
    CLOCK_MONOTONIC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, TFD_NONBLOCK,
    TFD_TIMER_ABSTIME, close, epoll_create1, epoll_ctl, epoll_event, epoll_wait, itimerspec, now_ns, read,
    store_u32, timerfd_create, timerfd_settime, write,
)

cdef enum:
    READ_BYTES = 262144             # of one recv: large, so that the generator is not the limit
    SLOW_TICK_NS = 10000000         # how often subscribers that are slow on purpose are read
    EVENTS = 512
    COMPLAINT_BYTES = 512
    UNSENT_BYTES = 4194304          # of a connection, beyond which nothing is added to them
    WORKERS_MAX = 64


cdef class Generator:
    """One worker of a load on one broker: add the endpoints and what they publish, then `start`, `run` and `drain`.

    window: deliveries that may be outstanding; batch: messages of one write; inflight: publishes of one connection that
    may wait for their acknowledgement, 0: none asks for one; eager: publish as long as the window allows it, otherwise
    one round of batches, then wait for input; wakers: an eventfd for each worker. The file descriptors remain the
    caller's, must be non-blocking, and must stay open as long as this object is used. Confined to one thread.
    """

    cdef:
        readonly Streams streams
        Dialect dialect
        uint64_t window
        uint32_t batch, inflight
        uint32_t worker, n_wakers
        int[WORKERS_MAX] wakers
        int epoll, timer
        list carriers               # what the endpoints point to
        Endpoint* endpoints
        uint32_t n_endpoints, n_publishers
        uint32_t* publishers        # their indices in endpoints
        uint32_t turn               # the publisher that is next to publish
        uint32_t fan_out_max
        uint8_t* buffer             # what is received; shared by all, for frames are handled at once
        size_t buffer_room
        uint64_t schedule_start, scheduled
        double slow_rate            # of a slow subscriber, in bytes a nanosecond
        uint64_t slow_at            # when they were last read
        bint eager, any_slow, out_of_memory
        readonly uint64_t schedule_lag_ns
        uint8_t[COMPLAINT_BYTES] complaint_bytes
        uint32_t complaint_size

    def __cinit__(self, Dialect dialect not None, Streams streams not None, uint32_t worker, *, uint64_t window=20_000,
                  uint32_t batch=32, uint32_t inflight=0, bint eager=True, wakers=(),
                  double slow_bytes_per_second=0.0):
        cdef int i
        self.epoll = self.timer = -1
        if batch < 1:
            raise ValueError(f"batch of {batch} messages; at least 1")
        if inflight and batch > inflight:
            raise ValueError(f"batch of {batch} messages, and {inflight} may be in flight")
        if inflight > dialect.number_max:
            raise ValueError(f"{inflight} messages in flight; {dialect.name} can number {dialect.number_max}")
        if len(wakers) > WORKERS_MAX:
            raise ValueError(f"{len(wakers)} workers; at most {WORKERS_MAX}")
        self.carriers = []
        self.dialect = dialect
        self.streams = streams
        self.worker = worker
        self.window = window
        self.batch = batch
        self.inflight = inflight
        self.eager = eager
        self.slow_rate = slow_bytes_per_second / 1e9
        self.n_wakers = <uint32_t>len(wakers)
        for i, waker in enumerate(wakers):
            self.wakers[i] = waker
        self.epoll = epoll_create1(0)
        self.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)
        if self.epoll < 0 or self.timer < 0:
            raise OSError(errno, "epoll_create1 or timerfd_create")
        self._watch(self.timer)
        if self.n_wakers:
            self._watch(self.wakers[worker])
        self.buffer_room = READ_BYTES
        self.buffer = <uint8_t*>malloc(self.buffer_room)
        if self.buffer == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        if self.epoll >= 0:
            close(self.epoll)
        if self.timer >= 0:
            close(self.timer)
        for i in range(self.n_endpoints):
            free(self.endpoints[i].tail)
            free(self.endpoints[i].out)
        free(self.endpoints)
        free(self.publishers)
        free(self.buffer)

    # ------------------------------------------------------------------ endpoints

    def add_subscriber(self, int fd, bytes rest=b"", *, bint slow=False, uint32_t aliases=0, Carrier carrier=None):
        """A connection that is subscribed; rest: what was read behind the handshake; carrier: between it and us.

        Its number.
        """
        cdef uint32_t index = self.streams.add_subscriber(slow=slow, aliases=aliases)
        cdef Endpoint* endpoint = add_endpoint(&self.endpoints, &self.n_endpoints, fd, index, rest)
        endpoint.stream = endpoint.acknowledged_stream = NO_STREAM
        endpoint.slow = slow
        self._carry(endpoint, carrier)
        self.any_slow = self.any_slow or slow
        return index

    def add_publisher(self, int fd, bytes rest=b"", *, Carrier carrier=None):
        """A connection that publishes; see add_subscriber."""
        cdef uint32_t* grown = <uint32_t*>realloc(self.publishers, (self.n_publishers + 1) * sizeof(uint32_t))
        if grown == NULL:
            raise MemoryError
        self.publishers = grown
        cdef Endpoint* endpoint = add_endpoint(&self.endpoints, &self.n_endpoints, fd, NOBODY, rest)
        endpoint.stream = endpoint.acknowledged_stream = NO_STREAM
        self._carry(endpoint, carrier)
        self.publishers[self.n_publishers] = self.n_endpoints - 1
        self.n_publishers += 1
        return self.n_publishers - 1

    cdef int _carry(self, Endpoint* endpoint, Carrier carrier) except -1:
        if carrier is not None:
            self.carriers.append(carrier)
            endpoint.carried = &carrier.carried
        return 0

    def publish_on(self, uint32_t publisher, uint32_t stream):
        """This publisher goes through the ring of streams that this one is in, beginning with it."""
        if publisher >= self.n_publishers or stream >= self.streams.n_streams:
            of = self.n_publishers, self.streams.n_streams
            raise ValueError(f"publisher {publisher} of {of[0]}, stream {stream} of {of[1]}")
        cdef Endpoint* endpoint = &self.endpoints[self.publishers[publisher]]
        cdef uint32_t at = stream
        endpoint.stream = endpoint.acknowledged_stream = stream
        while True:
            if self.streams.streams[at].frame.bytes == NULL:
                raise ValueError(f"stream {at} has no frame")
            self.fan_out_max = max(self.fan_out_max, self.streams.streams[at].fan_out)
            at = self.streams.streams[at].next_of_publisher
            if at == stream:
                return

    def start(self):
        """Watch all endpoints: after this none may be added."""
        cdef uint32_t i
        for i in range(self.n_endpoints):
            if not self.endpoints[i].slow:
                watch(self.epoll, &self.endpoints[i], EPOLL_CTL_ADD)

    cdef int _watch(self, int fd) except -1:
        cdef epoll_event event
        event.events = EPOLLIN
        event.data.ptr = NULL
        if epoll_ctl(self.epoll, EPOLL_CTL_ADD, fd, &event) < 0:
            raise OSError(errno, f"epoll_ctl of file descriptor {fd}")
        return 0

    # ------------------------------------------------------------------ running

    def run(self, double seconds, double rate=0.0):
        """Publish for so long; `rate` messages a second of this worker, or 0: as fast as the window lets it."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        with nogil:
            while now_ns() < end and not self._broken():
                if self.n_publishers and rate > 0:
                    self._publish_paced(rate)
                    self._turn(10)
                else:
                    self._turn(0 if self.n_publishers and self._publish_windowed() and self.eager else 10)
        if self.out_of_memory:
            raise MemoryError

    def drain(self, double seconds):
        """Wait until all that is expected has come, and a little more for what should not come. True if it has."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        with nogil:
            while now_ns() < end and not self._count_closed() and not self._is_drained():
                self._turn(10)
            self._turn(30)
            self._turn(30)
        return self._is_drained()

    def begin(self):
        """Begin the latency histogram and the schedule's lag anew, after a warm-up."""
        self.streams.latency.clear()
        self.schedule_lag_ns = 0

    def broken(self):
        """Whether it makes no sense to go on: the broker has closed a connection, or said that it refuses."""
        return self._broken()

    def complaint(self):
        """The first frame that is an error, cut at 512 bytes; empty if there was none."""
        return (<const char*>&self.complaint_bytes[0])[:self.complaint_size]

    cdef bint _broken(self) noexcept nogil:
        cdef int i
        for i in range(self.streams.shared.workers):
            if self.streams.shared.counters[i].refused:
                return True
        return self.out_of_memory or self._count_closed()

    cdef uint64_t _count_closed(self) noexcept nogil:
        cdef uint64_t sum = 0
        cdef int i
        for i in range(self.streams.shared.workers):
            sum += self.streams.shared.counters[i].closed
        return sum

    cdef bint _is_drained(self) noexcept nogil:
        return self.streams.shared.outstanding() <= 0 and self.streams.own.acknowledged >= self.streams.own.requested

    cdef void _turn(self, int timeout_ms) noexcept nogil:
        cdef epoll_event[EVENTS] events
        cdef Endpoint* endpoint
        cdef uint64_t ignored
        cdef int i, n = epoll_wait(self.epoll, events, EVENTS, timeout_ms)
        for i in range(n):
            endpoint = <Endpoint*>events[i].data.ptr
            if endpoint == NULL:
                read(self.timer, &ignored, 8)
                if self.n_wakers:
                    read(self.wakers[self.worker], &ignored, 8)
                continue
            if endpoint.closed:
                continue
            if events[i].events & EPOLLOUT:
                self._flush(endpoint)
            if events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP):
                self._receive(endpoint, READ_BYTES)
        if self.any_slow:
            self._read_slow_ones()
        if self.n_wakers > 1:
            self._wake_others()

    cdef void _read_slow_ones(self) noexcept nogil:
        cdef uint64_t now = now_ns(), allowed
        cdef uint32_t i
        if now - self.slow_at < SLOW_TICK_NS:
            return
        # After a long wait not more than a second's worth.
        allowed = <uint64_t>(<double>min(now - self.slow_at, <uint64_t>1000000000) * self.slow_rate)
        self.slow_at = now
        for i in range(self.n_endpoints):
            if self.endpoints[i].slow and not self.endpoints[i].closed and allowed:
                self._receive(&self.endpoints[i], <size_t>min(allowed, <uint64_t>READ_BYTES))

    cdef void _wake_others(self) noexcept nogil:
        """Wake workers that wait for the window: they see no event when others receive their deliveries."""
        cdef uint64_t one = 1
        cdef uint32_t i
        for i in range(self.n_wakers):
            if i != self.worker and self.streams.shared.counters[i].waiting:
                if self.streams.shared.outstanding() <= <int64_t>(self.window // 2):
                    self.streams.shared.counters[i].waiting = 0
                    write(self.wakers[i], &one, 8)

    # ------------------------------------------------------------------ publishing

    cdef bint _publish_windowed(self) noexcept nogil:
        """One batch for each publisher whose socket has room, while the window has. True if it has room for more."""
        cdef int64_t cost = <int64_t>self.batch * self.fan_out_max
        cdef int64_t outstanding
        cdef bint more = False
        cdef Endpoint* endpoint
        cdef uint32_t _
        for _ in range(self.n_publishers):
            outstanding = self.streams.shared.outstanding()
            if outstanding > 0 and outstanding + cost > <int64_t>self.window:
                self.streams.own.waiting = 1
                return False
            endpoint = &self.endpoints[self.publishers[self.turn]]
            self.turn = (self.turn + 1) % self.n_publishers
            if endpoint.closed or endpoint.out_end:
                continue
            if self.inflight and endpoint.requested - endpoint.acknowledged + self.batch > self.inflight:
                continue
            self._publish(endpoint, self.batch, now_ns())
            self._flush(endpoint)
            more = more or endpoint.out_end == 0
        return more

    cdef void _publish_paced(self, double rate) noexcept nogil:
        """Send what is due by the schedule, and set the timer to when the next is due."""
        cdef uint64_t now = now_ns(), due, next_due
        cdef double gap = 1e9 / rate
        cdef itimerspec at
        cdef Endpoint* endpoint
        if self.schedule_start == 0:
            self.schedule_start = now
        due = <uint64_t>(<double>(now - self.schedule_start) / gap) + 1
        while self.scheduled < due:
            next_due = self.schedule_start + <uint64_t>(<double>self.scheduled * gap)
            if now > next_due and now - next_due > self.schedule_lag_ns:
                self.schedule_lag_ns = now - next_due
            endpoint = &self.endpoints[self.publishers[self.scheduled % self.n_publishers]]
            # The protocol forbids more, or the broker reads nothing: what is late is seen in the latency. Without a
            # timer, which would be over: an acknowledgement wakes us, or room in the socket.
            if self.inflight and endpoint.requested - endpoint.acknowledged >= self.inflight:
                return
            if endpoint.out_end - endpoint.out_start > UNSENT_BYTES:
                return
            self.scheduled += 1
            if not endpoint.closed:
                self._publish(endpoint, 1, next_due)
                if not endpoint.watching_out:
                    self._flush(endpoint)
        next_due = self.schedule_start + <uint64_t>(<double>self.scheduled * gap)
        at.it_interval.tv_sec = 0
        at.it_interval.tv_nsec = 0
        at.it_value.tv_sec = <long>(next_due // 1000000000)
        at.it_value.tv_nsec = <long>(next_due % 1000000000)
        timerfd_settime(self.timer, TFD_TIMER_ABSTIME, &at, NULL)

    cdef void _publish(self, Endpoint* endpoint, uint32_t messages, uint64_t sent) noexcept nogil:
        """Append messages to the publisher's output, each on the next of its streams."""
        cdef Stream* stream
        cdef uint8_t* frame
        cdef uint32_t _, number, size
        cdef size_t number_at
        if endpoint.stream == NO_STREAM:
            return
        for _ in range(messages):
            number = endpoint.stream
            stream = &self.streams.streams[number]
            endpoint.stream = stream.next_of_publisher
            size = <uint32_t>template(stream, self.streams.shared.sequences[number]).size
            number_at = template(stream, self.streams.shared.sequences[number]).number_at
            if not reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + size):
                self.out_of_memory = True
                return
            frame = endpoint.out + endpoint.out_end
            self.streams.write(number, frame, sent)
            if self.inflight:
                endpoint.requested += 1
                self.streams.own.requested += 1
                self._store_number(frame + number_at, self._number(endpoint.requested))
            endpoint.out_end += size

    cdef uint32_t _number(self, uint64_t count) noexcept nogil:
        """The packet identifier or request of a connection's count'th message that has one."""
        return <uint32_t>((count - 1) % self.dialect.number_max) + 1

    cdef void _store_number(self, uint8_t* p, uint32_t number) noexcept nogil:
        if self.dialect.number_bytes == 4:
            store_u32(p, number)
        else:
            p[0] = <uint8_t>(number >> 8)
            p[1] = <uint8_t>number

    cdef void _flush(self, Endpoint* endpoint) noexcept nogil:
        if not send_out(endpoint):
            self._lose(endpoint)
        elif endpoint.watching_out != (endpoint.out_end > 0):
            endpoint.watching_out = endpoint.out_end > 0
            watch(self.epoll, endpoint, EPOLL_CTL_MOD)

    cdef void _lose(self, Endpoint* endpoint) noexcept nogil:
        endpoint.closed = True
        if endpoint.slow:
            self.streams.own.slow_closed += 1
        else:
            self.streams.own.closed += 1
            epoll_ctl(self.epoll, EPOLL_CTL_DEL, endpoint.fd, NULL)

    # ------------------------------------------------------------------ receiving

    cdef void _receive(self, Endpoint* endpoint, size_t most) noexcept nogil:
        self._receive_once(endpoint, most)
        # What is read from the socket and not yet from the carrier makes no event.
        while endpoint.carried != NULL and not endpoint.carried.dry and not endpoint.closed and not self.out_of_memory:
            self._receive_once(endpoint, most)

    cdef void _receive_once(self, Endpoint* endpoint, size_t most) noexcept nogil:
        cdef size_t size, used
        cdef ssize_t n
        n = receive(endpoint, &self.buffer, &self.buffer_room, most)
        if n == OUT_OF_MEMORY:
            self.out_of_memory = True
        elif n == OVER:
            self._lose(endpoint)
        if n <= 0:
            return
        size = <size_t>n
        used = self._frames(endpoint, self.buffer, size)
        if endpoint.closed:
            return
        if not keep_tail(endpoint, self.buffer + used, size - used):
            self.out_of_memory = True

    cdef size_t _frames(self, Endpoint* endpoint, const uint8_t* data, size_t size) noexcept nogil:
        """Handle the whole frames in data; how many bytes they took."""
        cdef uint64_t now = now_ns()
        cdef const uint8_t* p = data
        cdef const uint8_t* end = data + size
        cdef Frame frame
        cdef int state
        cdef size_t before = endpoint.out_end
        while p < end:
            state = self.dialect.next(p, end, &frame)
            if state == CUT_OFF:
                break
            if state == DAMAGED:
                self.streams.own.damaged += 1
                self._lose(endpoint)
                break
            if frame.kind == DELIVERY:
                self.streams.check(endpoint.index, &frame, now)
                if frame.qos:
                    self._answer(endpoint, &frame, p)
            elif frame.kind == ACKNOWLEDGEMENT:
                self._acknowledge(endpoint, &frame)
            elif frame.kind == REFUSAL:
                self._refuse(p, frame.size)
            else:
                self._answer(endpoint, &frame, p)
            p += frame.size
        if endpoint.out_end > before and not endpoint.closed and not endpoint.watching_out:
            self._flush(endpoint)
        return p - data

    cdef void _acknowledge(self, Endpoint* endpoint, const Frame* frame) noexcept nogil:
        """Acknowledgements come in the order of the publishes: MQTT 5, 4.6; native, section 3."""
        cdef Stream* stream
        self.streams.own.acknowledged += 1
        endpoint.acknowledged += 1
        if endpoint.acknowledged_stream == NO_STREAM:
            self.streams.own.wrong_acknowledgements += 1
            return
        stream = &self.streams.streams[endpoint.acknowledged_stream]
        endpoint.acknowledged_stream = stream.next_of_publisher
        if frame.number != self._number(endpoint.acknowledged) or self.dialect.counts and frame.routed != stream.reach:
            self.streams.own.wrong_acknowledgements += 1

    cdef void _refuse(self, const uint8_t* frame, size_t size) noexcept nogil:
        self.streams.own.refused += 1
        if not self.complaint_size:
            self.complaint_size = <uint32_t>min(size, <size_t>COMPLAINT_BYTES)
            memcpy(self.complaint_bytes, frame, self.complaint_size)

    cdef void _answer(self, Endpoint* endpoint, const Frame* frame, const uint8_t* p) noexcept nogil:
        if not reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + ANSWER_BYTES_MAX):
            self.out_of_memory = True
            return
        endpoint.out_end += self.dialect.answer(frame, p, endpoint.out + endpoint.out_end)
