# cython: language_level=3
"""Plain TCP under the poller: a socket with the interface of an asyncio transport, and the socket that listens.

net.connection uses a Socket as any other transport: the same calls in the same order. Tests compare it with uvloop's.
In addition it gives what it reads directly to the connection's lane. Python runs only when the lane needs it: never for
messages on known routes, nor for acknowledgements.
"""

import os

from libc.errno cimport EAGAIN, ECONNABORTED, EINTR, errno
from libc.stdint cimport uint32_t
from libc.stdlib cimport atoi
from libc.string cimport memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from fanlight_broker.net.poller cimport GONE, LEAVES, READABLE, WRITABLE, Poller, Watched
from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.lane cimport NEED_MORE, Lane

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct sockaddr:
        pass
    struct sockaddr_storage:
        pass
    int accept4(int fd, sockaddr* address, socklen_t* size, int flags)
    Py_ssize_t recv(int fd, void* at, size_t size, int flags)
    Py_ssize_t send(int fd, const void* at, size_t size, int flags)
    int setsockopt(int fd, int level, int name, const void* value, socklen_t size)
    int MSG_NOSIGNAL, SOCK_NONBLOCK, SOCK_CLOEXEC, SOL_SOCKET, SO_KEEPALIVE

cdef extern from "<netinet/in.h>" nogil:
    int IPPROTO_TCP

cdef extern from "<netinet/tcp.h>" nogil:
    int TCP_NODELAY

cdef extern from "<netdb.h>" nogil:
    int getnameinfo(const sockaddr* address, socklen_t size, char* host, socklen_t host_size, char* service,
                    socklen_t service_size, int flags)
    int NI_NUMERICHOST, NI_NUMERICSERV

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef enum:
    ACCEPTED_AT_ONCE = 64      # before the others have their turn, at some 50 µs each until their first bytes come


cdef class Socket(Watched):
    """One connection. It has a file descriptor of its own and closes it."""

    def __cinit__(self, Poller poller not None, int fd, str address not None, int port):
        self.poller = poller
        self.fd = fd
        self.address = address
        self.port = port

    def __dealloc__(self):
        if self.fd >= 0:
            close(self.fd)

    def attach(self, owner, reader):
        """Hand what is read to `reader`, and what happens otherwise to `owner`; reading begins."""
        self.owner = owner
        self.reader = reader
        self.inbox = reader.inbox
        self.lane = reader.lane
        self.ledger = self.lane.ledger
        self.direct = True
        self.listen()

    # -- what the poller tells --------------------------------------------------------------------------------------

    cdef int attend(self, uint32_t events, double now) except -1:
        if self.gone:
            return 0
        if events & WRITABLE and self.full:
            self.go_on()
        if events & ~<uint32_t> WRITABLE:
            if self.paused or self.closing:
                self.look_away(events)
            else:
                self.read(now)
        return 0

    cdef int look_away(self, uint32_t events) except -1:
        """Stop reading. Until reading begins again, epoll does not report what arrives, and reports once that the peer
        has gone.
        """
        cdef uint32_t wanted = WRITABLE if self.full else 0
        if not self.closing and not events & GONE:
            wanted |= LEAVES
        self.poller.watch(self, wanted)
        if not self.closing and events & GONE:
            self.owner.peer_gone()
        return 0

    cdef int fault(self) except -1:
        self.owner.fault()
        return 0

    cdef int read(self, double now) except -1:
        """One read: what more there is comes after the others' turn."""
        cdef Inbox inbox = self.inbox
        cdef Py_ssize_t size
        inbox.open_space()
        size = recv(self.fd, inbox.shared.view, inbox.shared.view_size, 0)
        if size <= 0:
            if size == 0:
                self.owner.eof_received()
                self.close()
            elif errno != EAGAIN and errno != EINTR:
                self.lose(OSError(errno, os.strerror(errno)))
            return 0
        return self.hand_on(size, now)

    cdef int hand_on(self, Py_ssize_t size, double now) except -1:
        """So many bytes are where the inbox has opened space: let the lane take them, or Python."""
        cdef Lane lane = self.lane
        cdef int event
        self.inbox.add_read(size)
        if self.direct and lane.ready:
            event = lane.advance(now)
            if event != NEED_MORE or self.ledger.ended or self.ledger.attention or self.ledger.faults \
                    or self.ledger.graves:
                self.reader.process(event, now)
        else:
            self.reader.receive(now)
        return 0

    cdef int go_on(self) except -1:
        """There is room: for what waits here first, then for what is in the outbox."""
        if not self.send_rest():
            return 0
        self.full = False
        if self.closing:
            self.lose(None)
        else:
            self.owner.resume_writing()
            self.listen()    # for room no more, unless it is full again
        return 0

    cdef int send_rest(self) except -1:
        """Send what waits. Returns whether all of it is out."""
        cdef Py_ssize_t size, sent
        if self.rest is not None:
            size = PyBytes_GET_SIZE(self.rest) - self.rest_at
            sent = send(self.fd, PyBytes_AS_STRING(self.rest) + self.rest_at, size,
                        MSG_NOSIGNAL | self.more)
            if sent < 0:
                if errno != EAGAIN and errno != EINTR:
                    self.lose(OSError(errno, os.strerror(errno)))
                return 0
            self.rest_at += sent
            if sent < size:
                return 0
        self.rest = None
        self.rest_at = 0
        return 1

    cdef int listen(self) except -1:
        """Ask epoll for what there is to wait for. Who reads nothing for a while need not be taken off: see
        `attend`.
        """
        cdef uint32_t events = 0
        if self.gone:
            return 0
        if self.full:
            events |= WRITABLE
        if not self.closing and not self.paused:
            events |= READABLE
        elif not self.closing:
            events |= self.wanted & (READABLE | LEAVES)
        return self.poller.watch(self, events)

    cdef int lose(self, error) except -1:
        """The connection is over: its owner hears of it in a turn of its own, and the descriptor is closed then."""
        if self.gone:
            return 0
        self.gone = self.closing = True
        self.full = False    # else `attend` would have it watched once more
        self.rest = None
        self.poller.watch(self, 0)
        self.poller.end_later(self, error)
        return 0

    cdef int lost(self, object error) except -1:
        try:
            if self.owner is not None:
                self.owner.connection_lost(error)
        finally:
            self.poller.forget(self)
            close(self.fd)
            self.fd = -1
            self.owner = self.reader = self.inbox = self.lane = None
        return 0

    # -- a transport's face -----------------------------------------------------------------------------------------

    def get_extra_info(self, name, default=None):
        return (self.address, self.port) if name == "peername" else default

    def write(self, bytes octets not None):
        """Send this when there is room: who calls has tried. One such at a time."""
        if self.closing:
            return
        self.rest = octets if self.rest is None else self.rest[self.rest_at:] + octets
        self.rest_at = 0
        self.wait_for_room()

    def wait_for_room(self):
        """Call the owner's `resume_writing` when there is room."""
        if not self.full:
            self.full = True
            self.listen()

    def get_write_buffer_size(self):
        return 0 if self.rest is None else PyBytes_GET_SIZE(self.rest) - self.rest_at

    def set_write_buffer_limits(self, high=None, low=None):
        """It is full whenever something waits."""

    def can_write_eof(self):
        return True

    def is_closing(self):
        return self.closing

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        if self.paused:
            self.paused = False
            self.listen()

    def by_python(self):
        """What comes from now on is for Python, however it looks: the connection is being closed."""
        self.direct = False

    def close(self):
        """Read nothing more; gone when what waits is out."""
        if self.closing:
            return
        self.closing = True
        if self.rest is None:
            self.lose(None)    # what is still in the outbox is its owner's to give up
        else:
            self.listen()

    def abort(self):
        self.lose(None)


cdef class ListeningSocket(Watched):
    """A listening socket.

    on_accept   called with each new Socket, which is to be attached or aborted
    on_trouble  called with an OSError when nothing can be accepted for now; nothing is accepted any more until `open`
    """

    def __cinit__(self, Poller poller not None, listening not None, on_accept not None, on_trouble not None):
        self.poller = poller
        self.listening = listening
        self.fd = listening.fileno()
        self.on_accept = on_accept
        self.on_trouble = on_trouble

    def open(self):
        cdef int on = 1
        # What it accepts has these from it (Linux), without two calls for each connection.
        setsockopt(self.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on))
        setsockopt(self.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on))
        self.poller.watch(self, READABLE)

    def close(self):
        """Accept nothing more. The socket itself is left open: it is the caller's."""
        if self.fd >= 0:
            self.poller.forget(self)
            self.fd = -1

    cdef int attend(self, uint32_t events, double now) except -1:
        cdef sockaddr_storage address
        cdef socklen_t size
        cdef char[64] host
        cdef char[8] service
        cdef int _, fd
        for _ in range(ACCEPTED_AT_ONCE):
            if self.fd < 0:
                return 0
            size = sizeof(address)
            memset(&address, 0, size)
            fd = accept4(self.fd, <sockaddr*> &address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)
            if fd < 0:
                if errno == EAGAIN:
                    return 0
                if errno == EINTR or errno == ECONNABORTED:
                    continue
                self.poller.watch(self, 0)
                self.on_trouble(OSError(errno, os.strerror(errno)))
                return 0
            if getnameinfo(<sockaddr*> &address, size, host, sizeof(host), service, sizeof(service),
                           NI_NUMERICHOST | NI_NUMERICSERV) != 0:
                host[0] = 0
                service[0] = 0
            self.on_accept(Socket(self.poller, fd, (<bytes> host).decode("ascii", "replace"), atoi(service)))
        return 0

    cdef int fault(self) except -1:
        raise
