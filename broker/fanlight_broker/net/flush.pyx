# cython: language_level=3
"""Flushing: one write for each connection that got something in this turn of the loop.

On plain TCP the bytes go straight from the outbox to the socket with sendmsg(2), which saves the transport's
bookkeeping
and a copy; what the socket does not take goes through the transport, which knows how to wait. Without a file
descriptor of its own (TLS), a connection is flushed through the transport altogether: slower, same order, same bytes.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from fanlight_broker.wire.debug cimport check
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.outbox cimport Outbox, Sink
from fanlight_broker.wire.token_bucket cimport TokenBucket

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len

cdef extern from "<sys/socket.h>" nogil:
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    Py_ssize_t sendmsg(int fd, const msghdr* message, int flags)
    int shutdown(int fd, int how)
    int MSG_NOSIGNAL, SHUT_WR

cdef extern from "<string.h>" nogil:
    void* memset(void* at, int octet, size_t size)

cdef enum:
    MOST_RUNS = 64
    # Handed to a transport at once: its TLS may hold two such, out of reach of the outbox's limit and policy.
    TRANSPORT_BYTES = 64 * 1024


cdef class SocketSink(Sink):
    """Where an outbox is emptied to.

    transport  an asyncio transport, its write buffer limit set to 0, so that it says at once when the socket is full
    on_drained called with the outbox when it held publishers back and does no more, or when it wanted to be refilled
    fd         its socket's file descriptor, or -1
    waits      whether the transport can wait for room with nothing to send (`wait_for_room`)
    """

    def __cinit__(self, Outbox outbox not None, transport not None, on_drained not None, int fd=-1,
                  bint waits=False):
        self.outbox = outbox
        self.transport = transport
        self.on_drained = on_drained
        self.fd = fd
        self.waits = waits

    def resumed(self):
        """The transport has sent everything (asyncio's resume_writing)."""
        self.full = False
        self.outbox.stuck = self.outbox.sits_out
        self.flush()

    def paused(self):
        """The socket is full (asyncio's pause_writing)."""
        self.full = self.outbox.stuck = True

    cpdef flush_now(self):
        """Flush outside a turn. An error waits for the end of the turn: the caller is another client's publish."""
        try:
            self.flush()
        except Exception as error:
            self.fault = error
            self.abort()
            if not self.outbox.dirty:
                self.outbox.mark_dirty()

    def close(self, bint linger=True):
        """End the stream when everything is out.

        With `linger` only our half of it: whoever closes a socket while there is something to read in it resets the
        connection, and the peer may lose what was sent to it last. The owner closes when the peer has, or its time is
        over.
        """
        self.closing = True
        self.linger = linger and self.transport.can_write_eof()
        self.outbox.close()
        self.flush()

    def abort(self):
        """The connection is gone: nothing more can be sent."""
        self.broken = True
        self.outbox.close()

    @property
    def unsent(self):
        """Bytes of whole frames, and of the one the transport is at."""
        return self.outbox.size + (0 if self.broken else self.transport.get_write_buffer_size())

    cdef int flush(self) except -1:
        cdef Outbox outbox = self.outbox
        if outbox.delivery is None:
            self.send(outbox.size)
        else:
            self.send_paced()
            if outbox.refill and outbox.size == 0 and not self.closing and not outbox.sits_out \
                    and outbox.delivery.first_owing(outbox.ledger.now) is not None:
                self.sit_out()    # what there is to get waits as well
        if outbox.over_half(0) != self.behind:
            self.behind = not self.behind
            if self.behind:
                outbox.ledger.attention.append(outbox)    # the core shows who falls behind
        if (outbox.pausing and outbox.drained()) or (outbox.refill and outbox.size == 0 and not outbox.sits_out):
            self.on_drained(outbox)    # `refill` is the flow's to clear
        if self.closing and not self.full and not self.broken and outbox.size == 0:
            self.end()
        return 0

    cdef int send(self, Py_ssize_t most) except -1:
        """Send so many bytes, as far as the socket takes them: all, or those of whole frames."""
        cdef char* starts[MOST_RUNS]
        cdef Py_ssize_t sizes[MOST_RUNS]
        cdef iovec runs[MOST_RUNS]
        cdef msghdr message
        cdef Py_ssize_t total, sent, before
        cdef int i, n
        cdef Outbox outbox = self.outbox
        while not self.full and not self.broken and outbox.size and most > 0:
            before = outbox.size
            if self.fd < 0:
                self.through_transport(outbox.read(min(most, TRANSPORT_BYTES)))
                most -= before - outbox.size
                continue
            n = outbox.gather(starts, sizes, MOST_RUNS)
            total = 0
            for i in range(n):
                runs[i].iov_base = starts[i]
                runs[i].iov_len = min(sizes[i], most - total)
                total += runs[i].iov_len
            memset(&message, 0, sizeof(message))
            message.msg_iov = runs
            message.msg_iovlen = n
            sent = sendmsg(self.fd, &message, MSG_NOSIGNAL)
            while sent < 0 and errno == EINTR:
                sent = sendmsg(self.fd, &message, MSG_NOSIGNAL)
            if sent < 0:
                if errno == EAGAIN and self.waits and not self.transport.is_closing():
                    self.full = outbox.stuck = True
                    self.transport.wait_for_room()
                    break
                if errno == EAGAIN:
                    # This transport waits only while it has something to send: it gets the first frame.
                    self.through_transport(outbox.read(1))
                    most -= before - outbox.size
                    continue
                # The transport's read sees the error too and ends the connection in good order; this is only faster.
                self.abort()
                self.transport.abort()
                return 0
            outbox.ledger.bytes_out += sent
            outbox.meter.bytes_out += sent
            outbox.bytes_out += sent
            rest = outbox.consume(sent)
            most -= before - outbox.size
            if rest:
                self.through_transport(rest)
        return 0

    cdef int send_paced(self) except -1:
        """The same, no more than the rates of its client allow; it sits out while it owes (core/paces.py). Answers pass
        up to the first message that waits. What is sent before the end of a connection is paid by the next one.
        """
        cdef Outbox outbox = self.outbox
        cdef double now = outbox.ledger.now, messages, octets
        cdef Py_ssize_t size, allowed
        cdef uint64_t sent
        while not self.full and not self.broken and outbox.size:
            allowed = outbox.size
            if not self.closing:
                messages = octets = 0 if outbox.sits_out else INFINITY
                outbox.delivery.least(now, &messages, &octets)
                if outbox.messages > messages or outbox.size - outbox.control_size > octets:
                    allowed = outbox.front(messages, octets)    # else there is a token for each
            if allowed == 0:
                if not outbox.sits_out:
                    self.sit_out()
                break
            sent, size = outbox.sent, outbox.size - outbox.control_size
            self.send(allowed)
            outbox.delivery.spend(outbox.sent - sent, size - (outbox.size - outbox.control_size), now)
        return 0

    cdef int sit_out(self) except -1:
        """Wait for the first bucket that owes."""
        cdef Outbox outbox = self.outbox
        cdef TokenBucket bucket = outbox.delivery.first_owing(outbox.ledger.now)
        check(bucket is not None, b"a connection waits that owes nothing")
        outbox.sits_out = outbox.stuck = True
        bucket.add_waiting(outbox)
        return 0

    cdef int end(self) except -1:
        """Everything is out."""
        self.broken = self.ended = True
        if self.transport.is_closing():
            return 0
        if not self.linger:
            self.transport.close()
        elif self.fd >= 0:
            # Not write_eof: if the peer has reset the connection it fails, and the loop would report that as an error
            # of ours. The read that fails next is enough.
            shutdown(self.fd, SHUT_WR)
        else:
            try:
                self.transport.write_eof()
            except OSError:
                self.transport.abort()
        return 0

    cdef int through_transport(self, bytes octets) except -1:
        if self.transport.is_closing():
            self.abort()
            return 0
        self.outbox.ledger.bytes_out += len(octets)
        self.outbox.meter.bytes_out += len(octets)
        self.outbox.bytes_out += len(octets)
        self.transport.write(octets)
        if self.transport.get_write_buffer_size():
            self.full = self.outbox.stuck = True
        return 0


cdef class Flusher:
    """Empties the outboxes that got something.

    on_fault  called with an outbox and the exception that flushing it raised; its connection is closed
    """

    def __cinit__(self, Ledger ledger not None, on_fault not None):
        self.ledger = ledger
        self.on_fault = on_fault
        self.ending = []

    def schedule(self, loop):
        """Something waits to be flushed: schedule it, unless this turn ends with a flush."""
        if not self.expected:
            loop.call_soon(self.flush)

    def at_end(self, then not None):
        """Call this at the end of the present turn, before its flush. False: this turn does not end with one."""
        if self.expected:
            self.ending.append(then)
        return self.expected

    def call(self, then not None):
        """Call this, and flush at once what it has put into outboxes: as a turn of its own, if none is under way."""
        if self.expected:
            then()
            return
        self.expected = True
        try:
            then()
        finally:
            self.end_turn()

    cdef int end_turn(self) except -1:
        """A turn is over that flushes at its end."""
        cdef list ending = self.ending
        try:
            if ending:
                self.ending = []
                for then in ending:
                    then()
        finally:
            self.expected = False
            self.flush()
        return 0

    cpdef flush(self):
        """The end of a turn."""
        if self.ledger.dirty:
            self.turns += 1
            self.empty(self.ledger.pop_dirty())

    cdef int flush_oldest(self, Py_ssize_t count, Py_ssize_t few) except -1:
        """Flush the `count` that have waited longest, or all if they are few; the others wait for more."""
        cdef list dirty = self.ledger.dirty
        if len(dirty) <= few:
            if self.ledger.journal is not None:
                self.ledger.journal.begin_writing()    # the disk works while sockets are written
            self.flush()
            return 0
        cdef list oldest = dirty[:count]
        del dirty[:count]
        return self.empty(oldest)

    cdef int empty(self, list outboxes) except -1:
        cdef Outbox outbox
        cdef SocketSink sink
        self.writes += len(outboxes)
        for outbox in outboxes:
            outbox.dirty = False
            if outbox.sink is not None:
                sink = <SocketSink?> outbox.sink
                try:
                    sink.flush()
                except Exception as error:
                    sink.fault = error
                if sink.fault is not None:
                    # It ends this connection; the others of this turn are flushed.
                    sink.abort()
                    self.on_fault(outbox, sink.fault)
                    sink.fault = None
                    sink.transport.abort()
        return 0
