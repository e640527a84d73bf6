# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""TLS and WebSocket for the generator: see carrier.pxd."""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

from fanlight_bench.sockets cimport MSG_NOSIGNAL, recv, send

cdef enum:
    WANT_READ = 2               # of SSL_get_error
    WANT_WRITE = 3
    RECORD_BYTES = 16384        # of TLS, at most
    BINARY = 0x82               # FIN and the opcode
    CONTINUATION = 0x80
    PING = 0x89
    PONG = 0x8A
    MASKED = 0x80
    LENGTH_16 = 126
    LENGTH_64 = 127

cdef uint8_t[4] KEY = [0x37, 0xFA, 0x21, 0x3D]  # any will do: there is no proxy to protect (RFC 6455, 10.3)


cdef ssize_t push(Carried* carried, const uint8_t* data, size_t size) noexcept nogil:
    """Give bytes to TLS or to the socket. How many it took; -1: broken."""
    cdef ssize_t n
    cdef int why
    if carried.ssl == NULL:
        n = send(carried.fd, data, size, MSG_NOSIGNAL)
        if n < 0:
            return 0 if errno == EAGAIN or errno == EINTR else -1
        return n
    n = carried.ssl_write(carried.ssl, data, <int>min(size, <size_t>RECORD_BYTES))
    if n > 0:
        return n
    why = carried.ssl_error(carried.ssl, <int>n)
    return 0 if why == WANT_WRITE or why == WANT_READ else -1


cdef ssize_t pull(Carried* carried, uint8_t* buffer, size_t size) noexcept nogil:
    """Take bytes from TLS or from the socket. How many; 0: there are none; -1: the end."""
    cdef ssize_t n
    cdef int why
    carried.dry = True
    if carried.ssl == NULL:
        n = recv(carried.fd, buffer, size, 0)
        if n <= 0:
            return 0 if n < 0 and (errno == EAGAIN or errno == EINTR) else -1
        return n
    n = carried.ssl_read(carried.ssl, buffer, <int>min(size, <size_t>0x40000000))
    if n > 0:
        carried.dry = not carried.ssl_pending(carried.ssl)
        return n
    why = carried.ssl_error(carried.ssl, <int>n)
    return 0 if why == WANT_READ or why == WANT_WRITE else -1


cdef bint frame(Carried* carried, const uint8_t* data, size_t size) noexcept nogil:
    """Make `data` the frame to send. False: no memory."""
    cdef uint8_t* p
    cdef size_t i, at
    if carried.out_room < size + HEAD_BYTES_MAX:
        p = <uint8_t*>realloc(carried.out, size + HEAD_BYTES_MAX)
        if p == NULL:
            return False
        carried.out = p
        carried.out_room = size + HEAD_BYTES_MAX
    p = carried.out
    p[0] = BINARY
    if size < LENGTH_16:
        p[1] = MASKED | <uint8_t>size
        at = 2
    elif size < 65536:
        p[1] = MASKED | LENGTH_16
        p[2] = <uint8_t>(size >> 8)
        p[3] = <uint8_t>size
        at = 4
    else:
        p[1] = MASKED | LENGTH_64
        for i in range(8):
            p[2 + i] = <uint8_t>(<uint64_t>size >> (56 - 8 * i))
        at = 10
    for i in range(4):
        p[at + i] = KEY[i]
    at += 4
    for i in range(size):
        p[at + i] = data[i] ^ KEY[i & 3]
    carried.out_start = 0
    carried.out_end = at + size
    carried.covers = size
    return True


cdef ssize_t send_carried(Carried* carried, const uint8_t* data, size_t size) noexcept nogil:
    cdef ssize_t n
    if not carried.framed:
        return push(carried, data, size)
    if carried.out_start == carried.out_end and not frame(carried, data, size):
        return -1
    while carried.out_start < carried.out_end:
        n = push(carried, carried.out + carried.out_start, carried.out_end - carried.out_start)
        if n <= 0:
            return n
        carried.out_start += <size_t>n
    return <ssize_t>carried.covers


cdef ssize_t unframe(Carried* carried, uint8_t* buffer, size_t size) noexcept nogil:
    """Leave the payload of binary messages in the buffer. Its size; -1: it is something else, or the end."""
    cdef size_t at = 0, kept = 0, n
    while at < size:
        if carried.left:
            n = <size_t>min(carried.left, <uint64_t>(size - at))
            if not carried.skipped:
                if kept != at:
                    memmove(buffer + kept, buffer + at, n)
                kept += n
            at += n
            carried.left -= n
            continue
        carried.head[carried.head_size] = buffer[at]
        carried.head_size += 1
        at += 1
        if head_is_whole(carried) and not begin(carried):
            return -1
    return <ssize_t>kept


cdef bint head_is_whole(const Carried* carried) noexcept nogil:
    cdef size_t wanted = 2
    if carried.head_size < 2:
        return False
    if carried.head[1] == LENGTH_16:
        wanted = 4
    elif carried.head[1] == LENGTH_64:
        wanted = 10
    return carried.head_size == wanted


cdef bint begin(Carried* carried) noexcept nogil:
    """The head is whole: a frame begins. False: the end, or none of a server's."""
    cdef uint8_t opcode = carried.head[0], length = carried.head[1]
    cdef size_t i
    if length & MASKED:
        return False
    carried.left = length
    if length >= LENGTH_16:
        carried.left = 0
        for i in range(2, carried.head_size):
            carried.left = carried.left << 8 | carried.head[i]
    carried.head_size = 0
    carried.skipped = opcode == PING or opcode == PONG
    # A message in fragments is a stream of bytes, as any other.
    return carried.skipped or (opcode & 0x7F) == (BINARY & 0x7F) or (opcode & 0x7F) == (CONTINUATION & 0x7F)


cdef ssize_t receive_carried(Carried* carried, uint8_t* buffer, size_t size) noexcept nogil:
    cdef ssize_t n = pull(carried, buffer, size)
    return unframe(carried, buffer, <size_t>n) if n > 0 and carried.framed else n


cdef class Carrier:
    """One connection's. The file descriptor stays the caller's, who keeps it open as long as this is used.

    tls: the addresses of an SSL that is connected, and of OpenSSL's functions (openssl.py), which this frees; framed:
    in frames of WebSocket, after the handshake.
    """

    def __cinit__(self, int fd, tls=(), *, bint framed=False):
        memset(&self.carried, 0, sizeof(Carried))
        self.carried.fd = fd
        self.carried.framed = framed
        self.carried.dry = True
        if tls:
            ssl, read, write, error, pending, free_ssl = tls
            self.carried.ssl_read = <SslRead><uintptr_t>read
            self.carried.ssl_write = <SslWrite><uintptr_t>write
            self.carried.ssl_error = <SslError><uintptr_t>error
            self.carried.ssl_pending = <SslPending><uintptr_t>pending
            self.carried.ssl_free = <SslFree><uintptr_t>free_ssl
            self.carried.ssl = <void*><uintptr_t>ssl

    def __dealloc__(self):
        if self.carried.ssl != NULL:
            self.carried.ssl_free(self.carried.ssl)
        free(self.carried.out)

    def send(self, bytes data not None):
        """How many of these bytes need not be given again. Raises BlockingIOError, ConnectionResetError."""
        cdef ssize_t n = send_carried(&self.carried, <const uint8_t*><const char*>data, len(data)) if data else 0
        if n < 0:
            raise ConnectionResetError("the connection is broken")
        if n == 0 and data:
            raise BlockingIOError
        return n

    def recv(self, size_t size):
        """What has come, in portions of this size; empty at the end. Raises BlockingIOError."""
        cdef bytes portion = bytes(size)
        cdef uint8_t* buffer = <uint8_t*><char*>portion
        cdef ssize_t n
        found = []
        while True:
            n = receive_carried(&self.carried, buffer, size)
            if n > 0:
                found.append((<char*>buffer)[:n])
            if n < 0 or self.carried.dry:
                break
        if not found and n == 0:
            raise BlockingIOError
        return b"".join(found)
