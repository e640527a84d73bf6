# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The floor under every figure: the least work that the native protocol, or MQTT, can cost on this machine.

One thread, one epoll loop. It is not a broker: no limits, no policies, no credit, no checks, and it believes what its
one client, the load generator, sends; the generator's window bounds what it holds. Handshakes, subscriptions and the
first message on a topic are Python; every further message is one look-up, one MESSAGE frame written into an arena,
and a pointer per subscriber. Frames that follow each other in the arena leave with one send(), uncopied. That is
possible because here every subscription must have the number 1, so all copies of a message are the same bytes. A client
whose first octet is that of CONNECT uses MQTT, 3.1.1 or 5: QoS 0 only; a PUBLISH leaves as it arrived, and clients of
one protocol get nothing from the other.

What remains is recv, a look-up and a copy per message, a few instructions per delivery, and send.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy

from fanlight_bench.sockets cimport (
    EPOLL_CTL_ADD,
    EPOLL_CTL_MOD,
    EPOLLERR,
    EPOLLHUP,
    EPOLLIN,
    EPOLLOUT,
    MSG_NOSIGNAL,
    Number,
    Text,
    close,
    epoll_create1,
    epoll_ctl,
    epoll_event,
    epoll_wait,
    load_number,
    load_text,
    load_u32,
    now_ns,
    recv,
    send,
    store_u32,
)

import socket

from fanlight_bench import frames, null_mqtt
from fanlight_bench.load.properties cimport load_length, load_u16
from matchcore import FilterIndex

cdef enum:
    PUBLISH = 3
    MQTT_CONNECT = 0x10
    MQTT_PUBLISH = 0x30
    ARENA_BYTES = 4194304
    READ_BYTES = 262144
    FRAME_MAX = 1048576
    ROUTES = 131072                 # slots; the table is forgotten when half of them are used
    EVENTS = 512
    MESSAGE_HEAD = 11               # length, array, type, ce and the subscription
    RECEIPT_BYTES = 16

cdef struct NullClient:
    int fd
    bint watching_out, dirty
    bint known, mqtt                # which protocol it speaks
    bint five                       # MQTT 5
    uint8_t* tail
    size_t tail_size
    uint8_t* out                    # copied output: out[out_start:out_end]
    size_t out_start, out_end, out_room
    const uint8_t* segment          # output that still lies in the arena
    size_t segment_size
    uint32_t number
    NullClient* next_dirty

cdef struct Route:
    uint8_t* topic                  # NULL: a free slot
    uint32_t topic_size, count
    uint64_t hash
    NullClient** subscribers


cdef class NullBroker:
    """Serve on a listening, non-blocking socket until `run` has lasted its time."""

    cdef:
        object _listener
        dict _filters               # connection number -> {(filter, syntax)}
        object _index               # of the same filters, by connection number
        dict _peers                 # connection number -> address of its NullClient
        uint32_t _numbers
        int epoll
        uint8_t* arena
        size_t arena_used
        uint8_t* buffer
        Route* routes
        uint32_t n_routes
        NullClient* dirty
        readonly uint64_t received, delivered

    def __cinit__(self, listener):
        cdef epoll_event event
        self.epoll = epoll_create1(0)
        self.arena = <uint8_t*>malloc(ARENA_BYTES)
        self.buffer = <uint8_t*>malloc(READ_BYTES + FRAME_MAX)
        self.routes = <Route*>calloc(ROUTES, sizeof(Route))
        if self.arena == NULL or self.buffer == NULL or self.routes == NULL:
            raise MemoryError
        self._listener = listener
        self._filters = {}
        self._index = FilterIndex()
        self._peers = {}
        event.events = EPOLLIN
        event.data.ptr = NULL
        if epoll_ctl(self.epoll, EPOLL_CTL_ADD, listener.fileno(), &event) < 0:
            raise OSError(errno, "epoll_ctl")

    def __dealloc__(self):
        for address in list((self._peers or {}).values()):
            self._free_peer(<NullClient*><size_t>address)
        self._forget_routes()
        free(self.routes)
        free(self.arena)
        free(self.buffer)
        if self.epoll >= 0:
            close(self.epoll)

    def run(self, double seconds):
        """Serve for so long, or until a signal handler raises."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        cdef epoll_event[EVENTS] events
        cdef NullClient* peer
        cdef int i, n
        while now_ns() < end:
            with nogil:
                n = epoll_wait(self.epoll, events, EVENTS, 100)
            PyErr_CheckSignals()
            for i in range(n):
                peer = <NullClient*>events[i].data.ptr
                if peer == NULL:
                    self._accept()
                    continue
                if events[i].events & EPOLLOUT:
                    self._flush(peer)
                if events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP) and not self._receive(peer):
                    self._hang_up(peer)
            self._flush_all()

    # ------------------------------------------------------------------ once per connection, subscription, topic

    def _accept(self):
        cdef NullClient* peer
        cdef epoll_event event
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            peer = <NullClient*>calloc(1, sizeof(NullClient))
            if peer == NULL:
                raise MemoryError
            self._numbers += 1
            peer.number = self._numbers
            peer.fd = connection.detach()
            self._peers[peer.number] = <size_t>peer
            event.events = EPOLLIN
            event.data.ptr = peer
            epoll_ctl(self.epoll, EPOLL_CTL_ADD, peer.fd, &event)

    cdef void _control(self, NullClient* peer, bytes frame) except *:
        if peer.mqtt:
            peer.five = peer.five or null_mqtt.is_five(frame)
            reply, subscribed = null_mqtt.answer(frame, peer.five)
        else:
            reply, subscribed = frames.answer(frame[4:])
        # Its own filters only: a pattern that one client has twice would be two entries for one pointer.
        mine = self._filters.setdefault(peer.number, set())
        for pattern, syntax in set(subscribed) - mine:
            mine.add((pattern, syntax))
            self._index.insert(pattern, peer.number, syntax=syntax)
        if subscribed:
            self._forget_routes()
        self._copy_out(peer, <const uint8_t*><const char*>reply, len(reply))

    cdef Route* _new_route(self, Route* slot, Text topic, uint64_t hashed, bint mqtt) except NULL:
        cdef uint32_t i = 0
        text = (<const char*>topic.bytes)[:topic.size].decode()
        numbers = self._index.match(text, syntax="mqtt" if mqtt else "amqp")
        numbers = [number for number in numbers if (<NullClient*><size_t>self._peers[number]).mqtt == mqtt]
        slot.topic = <uint8_t*>malloc(topic.size + 1)
        slot.subscribers = <NullClient**>malloc((len(numbers) + 1) * sizeof(NullClient*))
        if slot.topic == NULL or slot.subscribers == NULL:
            raise MemoryError
        memcpy(slot.topic, topic.bytes, topic.size)
        slot.topic_size = topic.size
        slot.hash = hashed
        slot.count = <uint32_t>len(numbers)
        for number in numbers:
            slot.subscribers[i] = <NullClient*><size_t>self._peers[number]
            i += 1
        self.n_routes += 1
        return slot

    cdef void _forget_routes(self):
        cdef uint32_t i
        if self.routes == NULL:
            return
        for i in range(ROUTES):
            if self.routes[i].topic != NULL:
                free(self.routes[i].topic)
                free(self.routes[i].subscribers)
                self.routes[i] = Route(NULL, 0, 0, 0, NULL)
        self.n_routes = 0

    cdef void _hang_up(self, NullClient* peer):
        cdef NullClient** link = &self.dirty
        while link[0] != NULL:
            if link[0] == peer:
                link[0] = peer.next_dirty
                break
            link = &link[0].next_dirty
        for pattern, syntax in self._filters.pop(peer.number, ()):
            self._index.remove(pattern, peer.number, syntax=syntax)
        self._peers.pop(peer.number)
        self._forget_routes()
        self._free_peer(peer)

    cdef void _free_peer(self, NullClient* peer):
        close(peer.fd)
        free(peer.tail)
        free(peer.out)
        free(peer)

    # ------------------------------------------------------------------ once per message

    cdef bint _receive(self, NullClient* peer) except -1:
        """Read and handle what has come; False when the connection is at its end."""
        cdef size_t size = peer.tail_size, used = 0
        cdef ssize_t n
        cdef int64_t frame
        if size:
            memcpy(self.buffer, peer.tail, size)
        n = recv(peer.fd, self.buffer + size, READ_BYTES, 0)
        if n <= 0:
            return n < 0 and errno == EAGAIN
        size += <size_t>n
        if not peer.known:
            peer.known = True
            peer.mqtt = self.buffer[0] == MQTT_CONNECT
        while size - used >= 2:
            frame = _frame_size(self.buffer + used, self.buffer + size, peer.mqtt)
            if frame < 0:
                return False
            if frame == 0 or size - used < <size_t>frame:
                break
            if peer.mqtt and self.buffer[used] & 0xf0 == MQTT_PUBLISH:
                self._publish_mqtt(self.buffer + used, <uint32_t>frame)
            elif not peer.mqtt and self.buffer[used + 5] == PUBLISH:
                self._publish(peer, self.buffer + used, <uint32_t>frame - 4)
            else:
                self._control(peer, (<const char*>self.buffer)[used:used + frame])
            used += frame
        if peer.tail == NULL:
            peer.tail = <uint8_t*>malloc(FRAME_MAX)
            if peer.tail == NULL:
                raise MemoryError
        peer.tail_size = size - used
        memcpy(peer.tail, self.buffer + used, peer.tail_size)
        return True

    cdef int _publish(self, NullClient* peer, const uint8_t* frame, uint32_t n) except -1:
        cdef const uint8_t* end = frame + 4 + n
        cdef Number request = load_number(frame + 6, end)
        cdef size_t head = 6 + (request.size if request.size else 1)
        cdef size_t rest = 4 + n - head
        cdef Text topic = load_text(frame + head, end)
        cdef Route* route
        cdef uint8_t* message
        cdef uint8_t[RECEIPT_BYTES] receipt
        if topic.bytes == NULL:
            raise ValueError("a PUBLISH without a topic")
        route = self._find(topic, False)
        message = self._room(rest + MESSAGE_HEAD)
        store_u32(message, <uint32_t>(rest + MESSAGE_HEAD - 4))
        message[4] = frame[4]
        message[5] = 4
        message[6] = 0xce
        store_u32(message + 7, 1)
        memcpy(message + MESSAGE_HEAD, frame + head, rest)
        self._deliver(route, message, rest + MESSAGE_HEAD)
        if request.size:
            store_u32(receipt, 12)
            receipt[4] = 0x93
            receipt[5] = 5
            receipt[6] = 0xce
            store_u32(receipt + 7, request.value)
            receipt[11] = 0xce
            store_u32(receipt + 12, route.count)
            self._copy_out(peer, receipt, RECEIPT_BYTES)
        return 0

    cdef int _publish_mqtt(self, const uint8_t* frame, uint32_t size) except -1:
        cdef const uint8_t* p = frame + 2
        cdef uint8_t* message
        cdef Text topic
        cdef Route* route
        while (p - 1)[0] & 0x80:        # the length's octets
            p += 1
        if frame[0] & 6 or p + 2 > frame + size or p + 2 + load_u16(p) > frame + size:
            raise ValueError("a PUBLISH of QoS 0 with a topic is what the null broker knows")
        topic.bytes = p + 2
        topic.size = load_u16(p)
        route = self._find(topic, True)
        message = self._room(size)
        memcpy(message, frame, size)
        self._deliver(route, message, size)
        return 0

    cdef uint8_t* _room(self, size_t size) except NULL:
        """Where the next message goes; the arena is emptied when it is full."""
        if self.arena_used + size > ARENA_BYTES:
            self._flush_all()
        return self.arena + self.arena_used

    cdef int _deliver(self, Route* route, uint8_t* message, size_t size) except -1:
        cdef NullClient* subscriber
        cdef uint32_t i
        self.arena_used += size
        self.received += 1
        self.delivered += route.count
        for i in range(route.count):
            subscriber = route.subscribers[i]
            if subscriber.segment_size and subscriber.segment + subscriber.segment_size == message:
                subscriber.segment_size += size
                continue
            if subscriber.segment_size:
                self._copy_segment(subscriber)
            subscriber.segment = message
            subscriber.segment_size = size
            self._mark(subscriber)
        return 0

    cdef Route* _find(self, Text topic, bint mqtt) except NULL:
        cdef uint64_t hashed = 14695981039346656037u, word
        cdef uint32_t i = 0, slot
        cdef Route* route
        while i + 8 <= topic.size:
            memcpy(&word, topic.bytes + i, 8)
            hashed = (hashed ^ word) * 0x9e3779b97f4a7c15u
            hashed ^= hashed >> 29
            i += 8
        while i < topic.size:
            hashed = (hashed ^ topic.bytes[i]) * 1099511628211u
            i += 1
        hashed ^= hashed >> 32
        hashed ^= mqtt                  # the same topic is another route in the other spelling
        if self.n_routes > ROUTES // 2:
            self._forget_routes()
        slot = <uint32_t>(hashed & (ROUTES - 1))
        while True:
            route = &self.routes[slot]
            if route.topic == NULL:
                return self._new_route(route, topic, hashed, mqtt)
            if (
                route.hash == hashed and route.topic_size == topic.size
                and memcmp(route.topic, topic.bytes, topic.size) == 0
            ):
                return route
            slot = (slot + 1) & (ROUTES - 1)

    # ------------------------------------------------------------------ output

    cdef void _mark(self, NullClient* peer) noexcept:
        if not peer.dirty:
            peer.dirty = True
            peer.next_dirty = self.dirty
            self.dirty = peer

    cdef int _copy_out(self, NullClient* peer, const uint8_t* data, size_t size) except -1:
        """Append bytes behind all that the peer is to get before them."""
        cdef uint8_t* grown
        if peer.segment_size and peer.segment != data:
            self._copy_segment(peer)
        if peer.out_end + size > peer.out_room:
            peer.out_room = 2 * (peer.out_end + size)
            grown = <uint8_t*>realloc(peer.out, peer.out_room)
            if grown == NULL:
                raise MemoryError
            peer.out = grown
        memcpy(peer.out + peer.out_end, data, size)
        peer.out_end += size
        self._mark(peer)
        return 0

    cdef int _copy_segment(self, NullClient* peer) except -1:
        cdef size_t size = peer.segment_size
        peer.segment_size = 0
        return self._copy_out(peer, peer.segment, size)

    cdef int _flush(self, NullClient* peer) except -1:
        cdef ssize_t n
        cdef bint waiting
        cdef epoll_event event
        if peer.segment_size and peer.out_end == 0:      # nothing was copied: send in place
            n = send(peer.fd, peer.segment, peer.segment_size, MSG_NOSIGNAL)
            if n > 0:
                peer.segment += n
                peer.segment_size -= <size_t>n
        if peer.segment_size:
            self._copy_segment(peer)
        if peer.out_start < peer.out_end:
            n = send(peer.fd, peer.out + peer.out_start, peer.out_end - peer.out_start, MSG_NOSIGNAL)
            if n > 0:
                peer.out_start += <size_t>n
        if peer.out_start == peer.out_end:
            peer.out_start = peer.out_end = 0
        waiting = peer.out_end > 0
        if waiting != peer.watching_out:
            peer.watching_out = waiting
            event.events = EPOLLIN | (EPOLLOUT if waiting else 0)
            event.data.ptr = peer
            epoll_ctl(self.epoll, EPOLL_CTL_MOD, peer.fd, &event)
        return 0

    cdef int _flush_all(self) except -1:
        cdef NullClient* peer
        cdef NullClient* following = self.dirty
        self.dirty = NULL
        while following != NULL:
            peer = following
            following = peer.next_dirty
            self._flush(peer)
            peer.dirty = False
        self.arena_used = 0
        return 0


cdef int64_t _frame_size(const uint8_t* p, const uint8_t* end, bint mqtt) noexcept:
    """Of the frame that begins at p: its size as far as it is known, 0 if it is not yet, -1 if it is too large."""
    cdef uint32_t n = 0
    cdef int head
    if mqtt:
        head = load_length(p + 1, end, &n)
        if head <= 0:
            return head
        return <int64_t>n + head + 1 if n < FRAME_MAX - 5 else -1
    if end - p < 6:
        return 0
    n = load_u32(p)
    return <int64_t>n + 4 if 2 <= n <= FRAME_MAX - 4 else -1
