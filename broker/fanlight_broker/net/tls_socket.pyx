# cython: language_level=3
"""TLS under the poller: a Socket that passes what it reads and writes through OpenSSL (see tls_socket.pxd).

It begins after the handshake (net.tls_acceptor). Its owner uses it like any Socket; what it is given to write it sends
itself, as far as there is room. Its end differs from that of plain TCP in one point: before our half of the stream
ends, the peer gets close_notify (RFC 8446, 6.1). From then on what it sends is thrown away undecrypted.
"""

import os
from ssl import SSLError, SSLWantReadError, SSLZeroReturnError

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from libc.errno cimport EAGAIN, EINTR, errno
from libc.string cimport memcpy

from fanlight_broker.net.poller cimport monotonic
from fanlight_broker.net.tcp cimport Socket
from fanlight_broker.wire.inbox cimport Inbox, ReceiveBuffer

cdef extern from "<sys/socket.h>" nogil:
    Py_ssize_t recv(int fd, void* at, size_t size, int flags)
    int shutdown(int fd, int how)
    int SHUT_WR, MSG_MORE

cdef enum:
    RECORD_HEAD = 5                     # bytes: type, version, length (RFC 8446, 5.1)
    PLAIN_BYTES = 16 * 1024             # of one record, at most
    RECORD_BYTES_MAX = PLAIN_BYTES + 2048    # encrypted, at most (TLS 1.2; TLS 1.3 allows 256 for 2048)
    RECORDS_BYTES_MIN = 2 * (RECORD_HEAD + RECORD_BYTES_MAX)
    RECORDS_AT_ONCE = 64                # between two looks at the clock: key updates take some 8 µs each
    CHARGE_STEP = 4 * 1024              # so that few reads change the charge
    # Alerts and answers to key updates that a peer has not read: some hundreds. There is no need to read more of one
    # that asks for them without end.
    ANSWERS_BYTES_MAX = 16 * 1024


cdef inline Py_ssize_t record_size(const unsigned char* at, Py_ssize_t size) noexcept:
    """Bytes of the record that begins here, its head included; 0: it is not whole. As its length says, whatever that
    is.
    """
    if size < RECORD_HEAD:
        return 0
    cdef Py_ssize_t whole = RECORD_HEAD + (at[3] << 8 | at[4])
    return whole if whole <= size or whole > RECORD_HEAD + RECORD_BYTES_MAX else 0


cdef class TlsSocket(Socket):
    """One connection that is through its TLS handshake. `secure` is called before `attach`."""

    def secure(self, tls not None, incoming not None, outgoing not None, ReceiveBuffer records not None, memory):
        """Use this OpenSSL connection.

        tls       an ssl.SSLObject whose handshake is complete
        incoming, outgoing  its two ssl.MemoryBIO
        records   shared by all sockets of a loop
        memory    what its buffers are charged for; None: nothing
        """
        if records.capacity < RECORDS_BYTES_MIN:
            raise ValueError(f"{records.capacity} bytes for records; it takes at least {RECORDS_BYTES_MIN}")
        self.tls = tls
        # The methods of the object within, which do the same, without Python's face of them.
        within = getattr(tls, "_sslobj", tls)
        self.ssl_read = within.read
        self.ssl_write = within.write
        self.feed = incoming.write
        self.outgoing = outgoing
        self.drain = outgoing.read
        self.records = records
        self.memory = memory
        # What came behind the handshake: OpenSSL takes no more than whole records, and they begin here.
        self.unread = incoming.read() or None

    def attach(self, owner, reader):
        cdef bytes unread = self.unread
        Socket.attach(self, owner, reader)
        if unread is not None:
            self.unread = None
            self.keep(<const unsigned char*> PyBytes_AS_STRING(unread), PyBytes_GET_SIZE(unread))
            self.behind = True
            self.poller.come_back_to(self)

    # -- in ---------------------------------------------------------------------------------------------------------

    cdef int read(self, double now) except -1:
        """One read, or what an earlier one has left."""
        cdef unsigned char* data = <unsigned char*> self.records.data
        cdef Py_ssize_t size = 0, received
        if self.unread is not None:
            size = PyBytes_GET_SIZE(self.unread)
            memcpy(data, PyBytes_AS_STRING(self.unread), size)
        if not self.behind:
            received = recv(self.fd, data + size, self.records.capacity - size, 0)
            if received <= 0:
                if received == 0:
                    self.owner.eof_received()
                    self.close()
                elif errno != EAGAIN and errno != EINTR:
                    self.lose(OSError(errno, os.strerror(errno)))
                return 0
            size += received
        if self.ending:
            return 0
        return self.take(data, size, now)

    cdef int take(self, const unsigned char* data, Py_ssize_t size, double now) except -1:
        """Decrypt and hand on what this has in whole records, while the owner reads and the turn lasts."""
        cdef Py_ssize_t at = 0, got
        self.behind = self.late = False
        while True:
            got = self.decrypt(data, size, &at)
            if got:
                self.hand_on(got, now)
            if self.closing or self.ending:
                return 0
            if self.paused or self.late:
                # The end of the stream, too, waits until what came before is taken.
                self.behind = self.over or self.given != 0 or record_size(data + at, size - at) != 0
                break
            if self.over or (self.given == 0 and record_size(data + at, size - at) == 0):
                break
        if not self.send_answer():
            return 0
        if self.over and not self.behind:
            self.owner.eof_received()
            self.close()
            return 0
        self.keep(data + at, size - at)
        if self.behind and not self.paused:
            self.poller.come_back_to(self)
        return 0

    cdef Py_ssize_t decrypt(self, const unsigned char* data, Py_ssize_t size, Py_ssize_t* at) except -1:
        """Decrypt from data[at] on into the inbox. Returns how many bytes are there now.

        It stops when the inbox has no more space, when no whole record is left, or when the turn is over.
        """
        cdef Inbox inbox = self.inbox
        cdef ReceiveBuffer shared = inbox.shared
        cdef Py_ssize_t run, next_one, n, got = 0
        inbox.open_space()
        while shared.view_size and not (self.over or self.gone):
            if self.given == 0:
                if at[0] and monotonic() >= self.ledger.turn_ends:
                    self.late = True
                    break
                run = 0
                while (next_one := record_size(data + at[0] + run, size - at[0] - run)) != 0:
                    if self.given == RECORDS_AT_ONCE or (self.given and run + next_one > RECORD_BYTES_MAX):
                        break
                    if next_one > RECORD_HEAD + RECORD_BYTES_MAX:
                        if self.given == 0:
                            self.lose(OSError(f"a TLS record of {next_one - RECORD_HEAD} bytes"))
                        break
                    self.given += 1
                    run += next_one
                if run == 0:
                    break
                self.charge(run)
                self.feed(PyBytes_FromStringAndSize(<const char*> data + at[0], run))
                at[0] += run
            n = self.read_record(shared.view_size)
            got += n
            shared.view += n
            shared.view_size -= n
        return got

    cdef Py_ssize_t read_record(self, Py_ssize_t room) except -1:
        """Read what is left of a record from OpenSSL to where the inbox has space. Returns the number of bytes."""
        cdef Py_ssize_t n
        try:
            n = self.ssl_read(room, self.inbox.shared)
        except SSLWantReadError:    # the last record was TLS's own, such as a key update
            self.given = 0
            return 0
        except SSLZeroReturnError:
            n = 0
        except SSLError as error:
            self.send_answer()    # the alert, which says why
            self.lose(error)
            return 0
        if n == 0:
            self.over = True
            self.given = 0
        elif n < room:
            self.given -= 1    # else there may be more of it
        return n

    cdef int keep(self, const unsigned char* data, Py_ssize_t size) except -1:
        """Keep this until the next read, in place of what was kept."""
        cdef Py_ssize_t before = 0 if self.unread is None else PyBytes_GET_SIZE(self.unread)
        if self.inbox is not None and (size or before):
            self.unread = PyBytes_FromStringAndSize(<const char*> data, size) if size else None
            self.inbox.outside += size - before
            self.inbox.count()
        return 0

    # -- out --------------------------------------------------------------------------------------------------------

    def write(self, bytes octets not None):
        """Send this: now, as far as there is room for it."""
        if self.closing or self.ending:
            return
        self.plain = octets if self.plain is None else self.plain[self.plain_at:] + octets
        self.plain_at = 0
        if not self.full and not self.send_rest():
            self.wait_for_room()

    cdef int send_rest(self) except -1:
        while Socket.send_rest(self):
            if self.plain is not None:
                self.encrypt()
            elif self.ending and not self.notified:
                self.notify()
            else:
                if self.half:
                    self.half = False
                    shutdown(self.fd, SHUT_WR)
                return 1
        return 0

    cdef int encrypt(self) except -1:
        """Make `rest` of the first record's worth of `plain`."""
        cdef bytes plain = self.plain
        cdef Py_ssize_t size = PyBytes_GET_SIZE(plain), left = size - self.plain_at, n
        if size <= PLAIN_BYTES:
            n = self.ssl_write(plain if self.plain_at == 0 else plain[self.plain_at:])
        else:
            n = self.ssl_write(PyMemoryView_FromMemory(
                PyBytes_AS_STRING(plain) + self.plain_at, min(left, PLAIN_BYTES), PyBUF_READ
            ))
        self.charge(min(left, PLAIN_BYTES))
        self.plain_at += n
        self.more = MSG_MORE
        if n == left:
            self.plain = None
            self.plain_at = self.more = 0
        self.rest = self.drain()
        return 0

    cdef int send_answer(self) except -1:
        """Send what OpenSSL itself has to say: an alert, its answer to a key update. Returns 0 if that is the end."""
        if self.gone or not self.outgoing.pending:
            return not self.gone
        if self.rest is not None and PyBytes_GET_SIZE(self.rest) - self.rest_at > PLAIN_BYTES + ANSWERS_BYTES_MAX:
            self.lose(OSError("the peer does not read what TLS answers"))
            return 0
        self.rest = self.drain() if self.rest is None else self.rest[self.rest_at:] + self.drain()
        self.rest_at = 0
        if not self.full and not self.send_rest():
            self.wait_for_room()
        return not self.gone

    cdef int notify(self) except -1:
        """Make `rest` of close_notify, which is the last that is sent."""
        self.notified = True
        try:
            self.tls.unwrap()
        except SSLError:
            pass    # it waits for the peer's, or has seen an error of the peer: ours is written in any case
        self.rest = self.drain() or None
        return 0

    cdef int charge(self, Py_ssize_t size) except -1:
        """OpenSSL's buffers have held this much at once."""
        size = min(size, PLAIN_BYTES)
        if size > self.largest:
            self.largest = (size + CHARGE_STEP - 1) & ~<Py_ssize_t> (CHARGE_STEP - 1)
            if self.memory is not None:
                self.memory.read(self.largest)
        return 0

    cdef int lose(self, error) except -1:
        if self.gone:
            return 0
        self.plain = None
        self.keep(NULL, 0)
        # Whoever closed first need not wait for our close_notify: that it cannot be sent is no error.
        return Socket.lose(self, None if self.closing and self.notified else error)

    # -- a transport's face -----------------------------------------------------------------------------------------

    def get_extra_info(self, name, default=None):
        if name == "peercert":
            return self.tls.getpeercert()
        if name == "sslcontext":
            return self.tls.context
        return Socket.get_extra_info(self, name, default)

    def get_write_buffer_size(self):
        cdef Py_ssize_t plain = 0 if self.plain is None else PyBytes_GET_SIZE(self.plain) - self.plain_at
        return plain + (0 if self.rest is None else PyBytes_GET_SIZE(self.rest) - self.rest_at)

    def resume_reading(self):
        if self.paused:
            self.paused = False
            if self.behind:
                self.poller.come_back_to(self)
            self.listen()

    def write_eof(self):
        """Nothing more is written: close_notify, and the end of our half of the stream."""
        if not self.closing and not self.ending:
            self.half = True
            self.end()

    def close(self):
        """Read nothing more; gone when what waits, and close_notify, are out."""
        if self.closing:
            return
        self.closing = True
        self.half = False
        self.end()
        if self.gone:
            return
        if self.full:
            self.listen()
        else:
            self.lose(None)

    cdef int end(self) except -1:
        """Send close_notify behind what waits. What comes from now on is thrown away."""
        self.ending = True
        self.behind = False
        self.keep(NULL, 0)
        if not self.full and not self.send_rest():
            self.wait_for_room()
        return 0
