# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Round trips: each requester asks, its responder sends the payload back, and only then the requester asks again.

    requester --question--> broker --> responder --answer--> broker --> requester

The payload of question and answer alike: its number (8 octets), when it was asked (8), who asked (4), filler. A closed
loop: the time of a round trip is what the requester sees, and there are `outstanding` of each under way.

As in generator.pyx: sockets on which the handshake is done are given, and frames to repeat; one thread without the
interpreter lock turns an epoll loop over them.
"""

from libc.errno cimport errno
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from fanlight_bench.load.histogram cimport Histogram
from fanlight_bench.load.endpoint cimport (
    NOBODY, OUT_OF_MEMORY, OVER, Endpoint, add_endpoint, copied, keep_tail, receive, reserve, send_out, watch,
)
from fanlight_bench.load.protocol cimport ANSWER_BYTES_MAX, CUT_OFF, DAMAGED, DELIVERY, REFUSAL, Dialect, Frame
from fanlight_bench.sockets cimport (
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, close, epoll_create1, epoll_ctl,
    epoll_event, epoll_wait, now_ns,
)

cdef enum:
    READ_BYTES = 65536
    EVENTS = 256
    HEADER = 20
    COMPLAINT_BYTES = 512


cdef struct Talk:                   # a frame to repeat, and the topic that its delivery has
    uint8_t* bytes
    size_t size
    size_t payload_at
    uint8_t* topic
    size_t topic_size


cdef struct Requester:
    Talk question
    Talk answer
    uint32_t responder              # its index among the endpoints
    uint64_t asked
    uint64_t answered


cdef class RoundTrips:
    """Add responders, then requesters, then `start`, `run` and `drain`. The file descriptors stay the caller's.

    payload_bytes: of question and answer, at least 21. Confined to one thread. Raises ValueError.
    """

    cdef:
        readonly Histogram latency
        readonly uint64_t asked, answered, reordered, repeated, misrouted, damaged, refused, closed
        Dialect dialect
        uint32_t payload_bytes, outstanding
        int epoll
        Endpoint* endpoints                 # index: of a requester its number, of a responder NOBODY
        uint32_t n_endpoints
        Requester* requesters
        uint32_t n_requesters
        uint8_t* buffer
        size_t buffer_room
        uint8_t* filler
        bint stopping, out_of_memory
        uint8_t[COMPLAINT_BYTES] complaint_bytes
        uint32_t complaint_size

    def __cinit__(self, Dialect dialect not None, uint32_t payload_bytes, uint32_t outstanding):
        cdef uint32_t i
        self.epoll = -1
        if payload_bytes <= HEADER or outstanding < 1:
            least = HEADER + 1
            raise ValueError(f"payload of {payload_bytes} bytes, {outstanding} outstanding; at least {least} and 1")
        self.dialect = dialect
        self.latency = Histogram()
        self.payload_bytes = payload_bytes
        self.outstanding = outstanding
        self.epoll = epoll_create1(0)
        if self.epoll < 0:
            raise OSError(errno, "epoll_create1")
        self.filler = <uint8_t*>malloc(payload_bytes)
        if self.filler == NULL:
            raise MemoryError
        for i in range(payload_bytes):
            self.filler[i] = <uint8_t>(97 + i % 26)

    def __dealloc__(self):
        cdef uint32_t i
        if self.epoll >= 0:
            close(self.epoll)
        for i in range(self.n_endpoints):
            free(self.endpoints[i].tail)
            free(self.endpoints[i].out)
        for i in range(self.n_requesters):
            _free(&self.requesters[i].question)
            _free(&self.requesters[i].answer)
        free(self.endpoints)
        free(self.requesters)
        free(self.buffer)
        free(self.filler)

    # ------------------------------------------------------------------ endpoints

    def add_responder(self, int fd, bytes rest=b""):
        """A connection that answers; rest: what was read behind the handshake. Its number."""
        add_endpoint(&self.endpoints, &self.n_endpoints, fd, NOBODY, rest)
        return self.n_endpoints - 1

    def add_requester(self, int fd, uint32_t responder, tuple question, tuple answer, bytes rest=b""):
        """A connection that asks this responder. question and answer: (frame, topic, where its payload begins)."""
        if responder >= self.n_endpoints or self.endpoints[responder].index != NOBODY:
            raise ValueError(f"{responder} is no responder")
        cdef Requester* grown = <Requester*>realloc(self.requesters, (self.n_requesters + 1) * sizeof(Requester))
        if grown == NULL:
            raise MemoryError
        self.requesters = grown
        cdef Requester* it = &grown[self.n_requesters]
        memset(it, 0, sizeof(Requester))
        self.n_requesters += 1
        it.responder = responder
        self._fill(&it.question, question)
        self._fill(&it.answer, answer)
        add_endpoint(&self.endpoints, &self.n_endpoints, fd, self.n_requesters - 1, rest)
        return self.n_requesters - 1

    cdef int _fill(self, Talk* talk, tuple given) except -1:
        cdef bytes frame = given[0], topic = given[1]
        talk.payload_at = given[2]
        if talk.payload_at + self.payload_bytes > <size_t>len(frame):
            raise ValueError("the payload does not lie in the frame")
        talk.size, talk.topic_size = len(frame), len(topic)
        talk.bytes, talk.topic = copied(frame), copied(topic)
        memcpy(talk.bytes + talk.payload_at, self.filler, self.payload_bytes)
        return 0

    def start(self):
        """Watch all endpoints, and ask the first questions: after this none may be added."""
        cdef uint32_t i, _
        for i in range(self.n_endpoints):
            watch(self.epoll, &self.endpoints[i], EPOLL_CTL_ADD)
        for i in range(self.n_endpoints):
            if self.endpoints[i].index != NOBODY:
                for _ in range(self.outstanding):
                    self._ask(&self.endpoints[i])
                self._flush(&self.endpoints[i])

    # ------------------------------------------------------------------ running

    def run(self, double seconds):
        """Ask and answer for so long; less long when the broker closes a connection or refuses something."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        with nogil:
            while now_ns() < end and not self._broken():
                self._turn(10)
        if self.out_of_memory:
            raise MemoryError

    def drain(self, double seconds):
        """Ask no more, and wait for the answers that are still to come, and a little for what should not come."""
        cdef uint64_t end = now_ns() + <uint64_t>(seconds * 1e9)
        self.stopping = True
        with nogil:
            while now_ns() < end and self.answered < self.asked and not self.closed:
                self._turn(10)
            self._turn(30)

    def begin(self):
        """Time from here on."""
        self.latency.clear()

    def broken(self):
        """Whether it makes no sense to go on."""
        return self._broken()

    def complaint(self):
        """The first frame that is an error, cut at 512 bytes; empty if there was none."""
        return (<const char*>&self.complaint_bytes[0])[:self.complaint_size]

    cdef bint _broken(self) noexcept nogil:
        return self.closed or self.refused or self.out_of_memory

    cdef void _turn(self, int timeout_ms) noexcept nogil:
        cdef epoll_event[EVENTS] events
        cdef Endpoint* endpoint
        cdef int i, n = epoll_wait(self.epoll, events, EVENTS, timeout_ms)
        for i in range(n):
            endpoint = <Endpoint*>events[i].data.ptr
            if events[i].events & EPOLLOUT and not endpoint.closed:
                self._flush(endpoint)
            if events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP) and not endpoint.closed:
                self._receive(endpoint)

    cdef void _flush(self, Endpoint* endpoint) noexcept nogil:
        if not send_out(endpoint):
            self._lose(endpoint)
        elif endpoint.watching_out != (endpoint.out_end > 0):
            endpoint.watching_out = endpoint.out_end > 0
            watch(self.epoll, endpoint, EPOLL_CTL_MOD)

    cdef void _lose(self, Endpoint* endpoint) noexcept nogil:
        endpoint.closed = True
        self.closed += 1
        epoll_ctl(self.epoll, EPOLL_CTL_DEL, endpoint.fd, NULL)

    cdef void _receive(self, Endpoint* endpoint) noexcept nogil:
        cdef size_t used = 0, size
        cdef ssize_t n
        cdef Frame frame
        cdef int state
        n = receive(endpoint, &self.buffer, &self.buffer_room, READ_BYTES)
        if n == OUT_OF_MEMORY:
            self.out_of_memory = True
        elif n == OVER:
            self._lose(endpoint)
        if n <= 0:
            return
        size = <size_t>n
        while used < size:
            state = self.dialect.next(self.buffer + used, self.buffer + size, &frame)
            if state == CUT_OFF:
                break
            if state == DAMAGED:
                self.damaged += 1
                self._lose(endpoint)
                return
            self._take(endpoint, &frame, self.buffer + used)
            used += frame.size
        if endpoint.out_end and not endpoint.watching_out:
            self._flush(endpoint)
        if not keep_tail(endpoint, self.buffer + used, size - used):
            self.out_of_memory = True

    cdef void _take(self, Endpoint* endpoint, const Frame* frame, const uint8_t* p) noexcept nogil:
        if frame.kind == DELIVERY:
            if endpoint.index == NOBODY:
                self._respond(endpoint, frame)
            else:
                self._book(endpoint, frame)
        elif frame.kind == REFUSAL:
            self.refused += 1
            if not self.complaint_size:
                self.complaint_size = <uint32_t>min(frame.size, <size_t>COMPLAINT_BYTES)
                memcpy(self.complaint_bytes, p, self.complaint_size)
            return
        if frame.kind != DELIVERY or frame.qos:
            if reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + ANSWER_BYTES_MAX):
                endpoint.out_end += self.dialect.answer(frame, p, endpoint.out + endpoint.out_end)
            else:
                self.out_of_memory = True

    # ------------------------------------------------------------------ asking and answering

    cdef void _ask(self, Endpoint* endpoint) noexcept nogil:
        cdef Requester* it = &self.requesters[endpoint.index]
        cdef uint64_t now = now_ns()
        cdef uint8_t* payload
        if not reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + it.question.size):
            self.out_of_memory = True
            return
        memcpy(endpoint.out + endpoint.out_end, it.question.bytes, it.question.size)
        payload = endpoint.out + endpoint.out_end + it.question.payload_at
        memcpy(payload, &it.asked, 8)
        memcpy(payload + 8, &now, 8)
        memcpy(payload + 16, &endpoint.index, 4)
        endpoint.out_end += it.question.size
        it.asked += 1
        self.asked += 1

    cdef void _respond(self, Endpoint* endpoint, const Frame* frame) noexcept nogil:
        cdef Requester* it
        cdef uint32_t number = self._who(frame)
        if number == NOBODY:
            self.damaged += 1
            return
        it = &self.requesters[number]
        if &self.endpoints[it.responder] != endpoint:
            self.misrouted += 1
            return
        if not _same(&it.question, frame):
            self.damaged += 1
            return
        if not reserve(&endpoint.out, &endpoint.out_room, endpoint.out_end + it.answer.size):
            self.out_of_memory = True
            return
        memcpy(endpoint.out + endpoint.out_end, it.answer.bytes, it.answer.size)
        memcpy(endpoint.out + endpoint.out_end + it.answer.payload_at, frame.payload, self.payload_bytes)
        endpoint.out_end += it.answer.size

    cdef void _book(self, Endpoint* endpoint, const Frame* frame) noexcept nogil:
        cdef Requester* it = &self.requesters[endpoint.index]
        cdef uint64_t sequence, asked, now
        cdef uint32_t number = self._who(frame)
        if number == NOBODY:
            self.damaged += 1
            return
        if number != endpoint.index:
            self.misrouted += 1
            return
        memcpy(&sequence, frame.payload, 8)
        memcpy(&asked, frame.payload + 8, 8)
        if not _same(&it.answer, frame) or sequence >= it.asked:
            self.damaged += 1
            return
        if sequence < it.answered:
            self.repeated += 1
            return
        if sequence > it.answered:
            self.reordered += 1     # one responder answers in order: the one before is late, or lost
        it.answered = sequence + 1
        now = now_ns()
        self.latency.add(now - asked if now > asked else 0)
        self.answered += 1
        if not self.stopping:
            self._ask(endpoint)

    cdef uint32_t _who(self, const Frame* frame) noexcept nogil:
        """Which requester's question or answer this is; NOBODY: nobody's, or it has been changed."""
        cdef uint32_t number
        if frame.payload_size != self.payload_bytes:
            return NOBODY
        memcpy(&number, frame.payload + 16, 4)
        if number >= self.n_requesters or memcmp(
            frame.payload + HEADER, self.filler + HEADER, self.payload_bytes - HEADER
        ):
            return NOBODY
        return number


cdef inline bint _same(const Talk* talk, const Frame* frame) noexcept nogil:
    return frame.topic_size == talk.topic_size and memcmp(frame.topic, talk.topic, talk.topic_size) == 0


cdef void _free(Talk* talk) noexcept:
    free(talk.bytes)
    free(talk.topic)
