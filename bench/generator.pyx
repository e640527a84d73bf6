# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The load generator: publishes as fast as a window allows, and checks every delivery.

It is given sockets on which the handshake is done, and complete PUBLISH frames to repeat; from then on one thread
without the interpreter lock turns an epoll loop over them. What a message carries and how a delivery is checked is
in deliveries.pxd.

Flow: without a rate, deliveries expected minus deliveries received never exceed the window, so a broker is
measured at moving messages, not at filling its queues. With a rate the schedule is open-loop and waits for nobody.

Not here: opening connections and naming topics (session.py), what to measure (scenarios.py), processor time
(procfs.py).
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from bench.deliveries cimport NO_STREAM, Deliveries, Stream
from bench.histogram cimport forget, quantile_ns

from bench.sockets cimport (
    CLOCK_MONOTONIC,
    EPOLL_CTL_ADD,
    EPOLL_CTL_DEL,
    EPOLL_CTL_MOD,
    EPOLLERR,
    EPOLLHUP,
    EPOLLIN,
    EPOLLOUT,
    MSG_NOSIGNAL,
    TFD_NONBLOCK,
    TFD_TIMER_ABSTIME,
    Number,
    close,
    epoll_create1,
    epoll_ctl,
    epoll_event,
    epoll_wait,
    itimerspec,
    load_number,
    load_u32,
    now_ns,
    read,
    recv,
    send,
    store_u32,
    timerfd_create,
    timerfd_settime,
)

cdef enum:
    MESSAGE = 4
    RECEIPT = 5
    PING = 11
    PONG = 12
    ERROR = 13
    GOODBYE = 14

    READ_BYTES = 262144             # of one recv: large, so that the generator is not the limit
    EVENTS = 512
    FRAME_MAX = 16777216            # of a frame from the broker; a longer one is damage, not data
    COMPLAINT_BYTES = 512
    NOBODY = 0xffffffff             # the index of a connection that is no subscriber

cdef struct Peer:
    int fd
    bint watching_out               # EPOLLOUT is asked for
    bint closed
    uint32_t index                  # among the subscribers
    uint32_t subscription           # of a subscriber
    uint32_t stream                 # of a publisher: the next one to publish on, in a ring
    uint32_t request                # the last request sent
    uint32_t receipt                # the last request answered
    uint8_t* tail                   # the beginning of a frame whose end has not come yet
    size_t tail_size
    size_t tail_room
    uint8_t* out                    # bytes the kernel has not taken yet: out[out_start:out_end]
    size_t out_start
    size_t out_end
    size_t out_room


cdef class Generator:
    """A load on one broker: add the peers and the streams, then `run`, `drain` and `counters`.

    window: deliveries (and, with receipts, requests) that may be outstanding; batch: messages of one write;
    payload_bytes: see deliveries.pxd. The file descriptors stay the caller's, must be non-blocking, and must
    stay open as long as this object is used. Confined to one thread.
    """

    cdef:
        readonly Deliveries deliveries
        readonly uint64_t window
        readonly int batch
        readonly bint receipts
        readonly bint latency
        int epoll, timer
        Peer* peers
        uint32_t n_peers, n_publishers, n_subscribers
        uint32_t* publisher_peers
        uint32_t turn               # the publisher that is next to publish
        uint8_t* buffer             # what is received; shared by all, for frames are handled at once
        size_t buffer_room
        uint64_t schedule_start, scheduled
        bint out_of_memory
        # Counters, all since the start.
        readonly uint64_t requested, answered, wrong_receipts, closed_by_broker, refused
        readonly uint64_t schedule_lag_ns
        uint8_t[COMPLAINT_BYTES] complaint_bytes
        uint32_t complaint_size

    def __cinit__(self, *, int payload_bytes=64, uint64_t window=20_000, int batch=32, bint receipts=False,
                  bint latency=False):
        cdef epoll_event event
        self.epoll = self.timer = -1
        if batch < 1:
            raise ValueError(f"batch of {batch} messages; at least 1")
        self.deliveries = Deliveries(payload_bytes)
        self.window = window
        self.batch = batch
        self.receipts = receipts
        self.latency = latency
        self.epoll = epoll_create1(0)
        self.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)
        if self.epoll < 0 or self.timer < 0:
            raise OSError(errno, "epoll_create1 or timerfd_create")
        event.events = EPOLLIN
        event.data.ptr = NULL
        epoll_ctl(self.epoll, EPOLL_CTL_ADD, self.timer, &event)
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
        for i in range(self.n_peers):
            free(self.peers[i].tail)
            free(self.peers[i].out)
        free(self.peers)
        free(self.publisher_peers)
        free(self.buffer)

    # ------------------------------------------------------------------ setting up

    def add_subscriber(self, int fd, uint32_t subscription):
        """A connection that holds one subscription of this number. Returns its index among the subscribers."""
        cdef Peer* peer = self._add_peer(fd)
        peer.subscription = subscription
        peer.index = self.deliveries.n_subscribers
        self.deliveries.n_subscribers += 1
        return peer.index

    def add_publisher(self, int fd):
        """A connection to publish on. Returns its index among the publishers."""
        cdef uint32_t* grown = <uint32_t*>realloc(self.publisher_peers, (self.n_publishers + 1) * sizeof(uint32_t))
        if grown == NULL:
            raise MemoryError
        self.publisher_peers = grown
        cdef Peer* peer = self._add_peer(fd)
        peer.index = NOBODY
        self.publisher_peers[self.n_publishers] = self.n_peers - 1
        self.n_publishers += 1
        return self.n_publishers - 1

    def add_stream(self, uint32_t publisher, bytes topic, bytes frame, size_t payload_at, subscribers):
        """A sequence of messages. Returns its number.

        frame: a whole PUBLISH with a payload of payload_bytes that begins at payload_at, and, when receipts are
        wanted, a request in the five-byte form at offset 6. subscribers: indices of those it must reach. All
        peers are added before the first stream.
        """
        if publisher >= self.n_publishers:
            raise ValueError(f"no publisher {publisher}; there are {self.n_publishers}")
        cdef Peer* peer = &self.peers[self.publisher_peers[publisher]]
        peer.stream = self.deliveries.add(peer.stream, topic, frame, payload_at, subscribers)
        return peer.stream

    cdef Peer* _add_peer(self, int fd) except NULL:
        if self.deliveries.n_streams:
            raise ValueError("peers are added before streams")
        cdef Peer* grown = <Peer*>realloc(self.peers, (self.n_peers + 1) * sizeof(Peer))
        if grown == NULL:
            raise MemoryError
        self.peers = grown
        cdef Peer* peer = &self.peers[self.n_peers]
        peer[0] = Peer(fd, False, False, 0, 0, NO_STREAM, 0, 0, NULL, 0, 0, NULL, 0, 0, 0)
        self.n_peers += 1
        return peer

    # ------------------------------------------------------------------ running

    def start(self):
        """Watch all peers: after this none may be added."""
        cdef epoll_event event
        cdef uint32_t i
        for i in range(self.n_peers):
            event.events = EPOLLIN
            event.data.ptr = &self.peers[i]
            if epoll_ctl(self.epoll, EPOLL_CTL_ADD, self.peers[i].fd, &event) < 0:
                raise OSError(errno, f"epoll_ctl of file descriptor {self.peers[i].fd}")

    def run(self, double seconds, double rate=0.0):
        """Publish for so long; `rate` messages a second in all, or 0: as fast as the window lets it."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        cdef uint64_t now
        if not self.deliveries.n_streams:
            raise ValueError("no stream to publish on")
        with nogil:
            while True:
                now = now_ns()
                if now >= end or self.closed_by_broker or self.refused or self.out_of_memory:
                    break
                if rate > 0:
                    self._publish_paced(rate)
                    self._turn(10)
                else:
                    self._turn(0 if self._publish_windowed() else 10)
        if self.out_of_memory:
            raise MemoryError

    def drain(self, double seconds):
        """Wait until all that is expected has come, and a little more for what should not come. True if it has."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        with nogil:
            while now_ns() < end and not self.closed_by_broker and not self._is_drained():
                self._turn(10)
            self._turn(30)
            self._turn(30)
        return self._is_drained()

    def counters(self):
        """All counts since the start. unique: came first and rightly; lost: expected and not come."""
        cdef Deliveries deliveries = self.deliveries
        return {
            "published": deliveries.published, "expected": deliveries.expected, "received": deliveries.received,
            "unique": deliveries.unique, "lost": deliveries.expected - deliveries.unique,
            "repeated": deliveries.repeated, "reordered": deliveries.reordered,
            "misrouted": deliveries.misrouted, "damaged": deliveries.damaged,
            "requested": self.requested, "answered": self.answered, "wrong_receipts": self.wrong_receipts,
            "closed_by_broker": self.closed_by_broker, "refused": self.refused,
        }

    def complaint(self):
        """The body of the first ERROR or GOODBYE frame, cut at 512 bytes; empty if there was none."""
        return (<const char*>&self.complaint_bytes[0])[:self.complaint_size]

    def quantile(self, double share):
        """Latency from send to receipt, in seconds, that this share of the deliveries stays under (to 1.6 %)."""
        return quantile_ns(&self.deliveries.latency, share) / 1e9

    def forget_latency(self):
        """Begin the latency histogram and the schedule's lag anew, after a warm-up."""
        forget(&self.deliveries.latency)
        self.schedule_lag_ns = 0

    cdef bint _is_drained(self) noexcept nogil:
        return self.deliveries.received >= self.deliveries.expected and self.answered >= self.requested

    cdef void _turn(self, int timeout_ms) noexcept nogil:
        cdef epoll_event[EVENTS] events
        cdef Peer* peer
        cdef uint64_t ignored
        cdef int i, n = epoll_wait(self.epoll, events, EVENTS, timeout_ms)
        for i in range(n):
            peer = <Peer*>events[i].data.ptr
            if peer == NULL:
                read(self.timer, &ignored, 8)
                continue
            if peer.closed:
                continue
            if events[i].events & EPOLLOUT:
                self._flush(peer)
            if events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP):
                self._receive(peer)

    # ------------------------------------------------------------------ publishing

    cdef bint _publish_windowed(self) noexcept nogil:
        """One batch for each publisher whose socket has room, while the window has. True if it has room for more."""
        cdef int64_t cost = <int64_t>self.batch * self.deliveries.fan_out_max
        cdef int64_t outstanding
        cdef bint more = False
        cdef Peer* peer
        cdef uint32_t k
        for k in range(self.n_publishers):
            # Signed: a broker that repeats itself may be ahead of what is expected.
            outstanding = <int64_t>(self.deliveries.expected - self.deliveries.received)
            if outstanding > 0 and outstanding + cost > <int64_t>self.window:
                return False
            peer = &self.peers[self.publisher_peers[self.turn]]
            self.turn = (self.turn + 1) % self.n_publishers
            if peer.closed or peer.out_end:
                continue
            if self.receipts and peer.request - peer.receipt + <uint32_t>self.batch > self.window:
                continue
            self._publish(peer, self.batch)
            self._flush(peer)
            more = more or peer.out_end == 0
        return more

    cdef void _publish_paced(self, double rate) noexcept nogil:
        """Send what is due by the schedule, and set the timer to when the next is due."""
        cdef uint64_t now = now_ns(), due, next_due
        cdef double gap = 1e9 / rate
        cdef itimerspec at
        cdef Peer* peer
        if self.schedule_start == 0:
            self.schedule_start = now
        due = <uint64_t>(<double>(now - self.schedule_start) / gap) + 1
        while self.scheduled < due:
            next_due = self.schedule_start + <uint64_t>(<double>self.scheduled * gap)
            if now > next_due and now - next_due > self.schedule_lag_ns:
                self.schedule_lag_ns = now - next_due
            peer = &self.peers[self.publisher_peers[self.scheduled % self.n_publishers]]
            self.scheduled += 1
            if not peer.closed:
                self._publish(peer, 1)
                if not peer.watching_out:
                    self._flush(peer)
        next_due = self.schedule_start + <uint64_t>(<double>self.scheduled * gap)
        at.it_interval.tv_sec = 0
        at.it_interval.tv_nsec = 0
        at.it_value.tv_sec = <long>(next_due // 1000000000)
        at.it_value.tv_nsec = <long>(next_due % 1000000000)
        timerfd_settime(self.timer, TFD_TIMER_ABSTIME, &at, NULL)

    cdef void _publish(self, Peer* peer, int messages) noexcept nogil:
        """Append messages to the publisher's output, each on the next of its streams."""
        cdef uint64_t sent = now_ns()
        cdef Stream* stream
        cdef uint8_t* frame
        cdef int b
        if peer.stream == NO_STREAM:
            return
        for b in range(messages):
            stream = &self.deliveries.streams[peer.stream]
            peer.stream = stream.next_of_publisher
            if not _reserve(&peer.out, &peer.out_room, peer.out_end + stream.frame_size):
                self.out_of_memory = True
                return
            frame = peer.out + peer.out_end
            self.deliveries.write(stream, frame, sent)
            if self.receipts:
                peer.request += 1
                store_u32(frame + 7, peer.request)
                self.requested += 1
            peer.out_end += stream.frame_size

    cdef void _flush(self, Peer* peer) noexcept nogil:
        cdef ssize_t n
        cdef epoll_event event
        if peer.out_start < peer.out_end:
            n = send(peer.fd, peer.out + peer.out_start, peer.out_end - peer.out_start, MSG_NOSIGNAL)
            if n > 0:
                peer.out_start += <size_t>n
            elif n < 0 and errno != EAGAIN and errno != EINTR:
                self._lose(peer)
                return
        if peer.out_start == peer.out_end:
            peer.out_start = peer.out_end = 0
        if peer.watching_out != (peer.out_end > 0):
            peer.watching_out = peer.out_end > 0
            event.events = EPOLLIN | (EPOLLOUT if peer.watching_out else 0)
            event.data.ptr = peer
            epoll_ctl(self.epoll, EPOLL_CTL_MOD, peer.fd, &event)

    cdef void _lose(self, Peer* peer) noexcept nogil:
        peer.closed = True
        self.closed_by_broker += 1
        epoll_ctl(self.epoll, EPOLL_CTL_DEL, peer.fd, NULL)

    # ------------------------------------------------------------------ receiving

    cdef void _receive(self, Peer* peer) noexcept nogil:
        cdef size_t size, used
        cdef ssize_t n
        if not _reserve(&self.buffer, &self.buffer_room, peer.tail_size + READ_BYTES):
            self.out_of_memory = True
            return
        n = recv(peer.fd, self.buffer + peer.tail_size, READ_BYTES, 0)
        if n <= 0:
            if n == 0 or (errno != EAGAIN and errno != EINTR):
                self._lose(peer)
            return
        if peer.tail_size:
            memcpy(self.buffer, peer.tail, peer.tail_size)
        size = peer.tail_size + <size_t>n
        used = self._frames(peer, self.buffer, size)
        if peer.closed:
            return
        peer.tail_size = size - used
        if peer.tail_size:
            if not _reserve(&peer.tail, &peer.tail_room, peer.tail_size):
                self.out_of_memory = True
                return
            memcpy(peer.tail, self.buffer + used, peer.tail_size)

    cdef size_t _frames(self, Peer* peer, const uint8_t* data, size_t size) noexcept nogil:
        """Handle the whole frames in data; how many bytes they took."""
        cdef uint64_t now = now_ns() if self.latency else 0
        cdef const uint8_t* p = data
        cdef const uint8_t* end = data + size
        cdef uint32_t n
        while end - p >= 4:
            n = load_u32(p)
            if n < 2 or n > FRAME_MAX or (end - p > 4 and p[4] & 0xf0 != 0x90):
                self.deliveries.damaged += 1
                self._lose(peer)
                break
            if <uint64_t>(end - p) < <uint64_t>n + 4:
                break
            if p[5] == MESSAGE:
                self.deliveries.check(peer.index, peer.subscription, p + 6, p + 4 + n, now)
            elif p[5] == RECEIPT:
                self._receipt(peer, p + 6, p + 4 + n)
            elif p[5] == PING:
                self._pong(peer, p, n + 4)
            elif p[5] == ERROR or p[5] == GOODBYE:
                self.refused += 1
                if not self.complaint_size:
                    self.complaint_size = min(n, <uint32_t>COMPLAINT_BYTES)
                    memcpy(self.complaint_bytes, p + 4, self.complaint_size)
            p += 4 + n
        return p - data

    cdef void _receipt(self, Peer* peer, const uint8_t* p, const uint8_t* end) noexcept nogil:
        cdef Number request = load_number(p, end)
        cdef Number routed = load_number(p + request.size, end)
        self.answered += 1
        # Receipts come in the order of the requests. All streams of a scenario with receipts fan out alike.
        if request.size == 0 or routed.size == 0 or request.value != peer.receipt + 1:
            self.wrong_receipts += 1
        elif routed.value != self.deliveries.fan_out_max:
            self.wrong_receipts += 1
        peer.receipt = request.value

    cdef void _pong(self, Peer* peer, const uint8_t* frame, uint32_t size) noexcept nogil:
        # A PONG is the PING with another type.
        if not _reserve(&peer.out, &peer.out_room, peer.out_end + size):
            self.out_of_memory = True
            return
        memcpy(peer.out + peer.out_end, frame, size)
        peer.out[peer.out_end + 5] = PONG
        peer.out_end += size
        self._flush(peer)


cdef bint _reserve(uint8_t** buffer, size_t* room, size_t wanted) noexcept nogil:
    """Make a buffer hold at least so many bytes; what is in it stays. False when memory is out."""
    cdef size_t more = room[0] if room[0] else 4096
    cdef uint8_t* grown
    if wanted <= room[0]:
        return True
    while more < wanted:
        more *= 2
    grown = <uint8_t*>realloc(buffer[0], more)
    if grown == NULL:
        return False
    buffer[0] = grown
    room[0] = more
    return True
