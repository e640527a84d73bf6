# cython: language_level=3
"""Receiving: one buffer for the loop, and for each connection what the last parse left over.

`next_buffer` is what asyncio.BufferedProtocol.get_buffer returns, `received` what buffer_updated calls; then a compiled
parser moves `pos` over data[pos:end], and `keep_rest` puts the rest aside until the next read.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy, memmove

from fanlight_broker.wire.allocator cimport allocate, deallocate, reallocate
from fanlight_broker.wire.ledger cimport Ledger, Pot

cdef enum:
    # A rest up to this size is moved into the shared buffer before the next read: cheaper than a buffer of its own.
    SMALL_REST = 16 * 1024


cdef class ReceiveBuffer:
    """`capacity` bytes that all connections of a loop read into, one after the other."""

    def __cinit__(self, Py_ssize_t capacity=256 * 1024):
        if capacity < 2 * SMALL_REST:
            raise ValueError(f"a receive buffer of {capacity} bytes; it takes at least {2 * SMALL_REST}")
        self.data = <char*> allocate(capacity)
        if self.data is NULL:
            raise MemoryError()
        self.capacity = capacity
        self.view = self.data
        self.view_size = capacity

    def __dealloc__(self):
        deallocate(self.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.view, self.view_size, 0, flags)

    def __len__(self):
        return self.view_size


cdef class Inbox:
    """The unparsed bytes of one connection."""

    def __cinit__(self, ReceiveBuffer shared not None, Ledger ledger not None):
        self.shared = shared
        self.ledger = ledger
        self.pot, self.handshakes = ledger.inboxes, ledger.handshakes
        self.stranger_max = -1
        self.meter = ledger.meter

    def __dealloc__(self):
        deallocate(self.part)
        if self.pot is not None:
            self.pot.force(-self.counted)
        if self.handshakes is not None:
            self.handshakes.force(-self.excess)

    @property
    def size(self):
        """Bytes kept between reads."""
        return self.part_size

    def next_buffer(self):
        """Where the next read goes. Valid until `received`; nothing else may read in between."""
        self.open_space()
        return self.shared

    def received(self, Py_ssize_t octets):
        """`octets` bytes were read into `next_buffer()`: they and the rest before them can be parsed now."""
        if octets < 0 or octets > self.shared.view_size:
            raise ValueError(f"{octets} bytes read into a buffer of {self.shared.view_size}")
        self.add_read(octets)

    cdef int open_space(self) except -1:
        """Let `shared.view` be where the next read goes."""
        cdef ReceiveBuffer shared = self.shared
        cdef Pot pot = self.pot
        cdef Py_ssize_t capacity
        if self.part_size <= SMALL_REST:
            if self.part_size:
                memcpy(shared.data, self.part, self.part_size)
            self.in_shared = True
            shared.view = shared.data + self.part_size
            shared.view_size = shared.capacity - self.part_size
            if self.read_max:
                shared.view_size = max(1, min(shared.view_size, self.read_max - self.part_size))
            if 2 * pot.used > pot.limit:
                # What is read and cannot be parsed yet, because its publisher is held back, is kept whatever the bound.
                shared.view_size = min(shared.view_size, SMALL_REST)
            return 0
        if self.part_capacity - self.part_size < SMALL_REST:
            capacity = min(2 * self.part_capacity, max(self.wanted, self.part_size) + SMALL_REST)
            if not pot.admits(capacity - self.part_capacity):
                capacity = self.part_size + SMALL_REST    # it may be nearly complete; if it is not, it is over
            self.grow(max(capacity, self.part_capacity))
        self.in_shared = False
        shared.view = self.part + self.part_size
        shared.view_size = self.part_capacity - self.part_size
        return 0

    cdef int add_read(self, Py_ssize_t octets) noexcept:
        """`octets` bytes, no more than there was space for, have been read."""
        self.ledger.bytes_in += octets
        self.meter.bytes_in += octets
        if self.in_shared:
            self.data = self.shared.data
            self.end = self.part_size + octets
        else:
            self.part_size += octets
            self.data = self.part
            self.end = self.part_size
        self.pos = 0
        return 0

    def feed(self, const unsigned char[::1] octets):
        """Take bytes that were read elsewhere (tests, or a transport without buffers)."""
        cdef Py_ssize_t size = octets.shape[0]
        if self.part_size + size > self.part_capacity:
            self.grow(self.part_size + size)
        if size:
            memcpy(self.part + self.part_size, &octets[0], size)
        self.part_size += size
        self.ledger.bytes_in += size
        self.meter.bytes_in += size
        self.resume()

    def first(self, Py_ssize_t size):
        """The first of the bytes that can be parsed now, at most `size`; they stay."""
        return PyBytes_FromStringAndSize(self.data + self.pos, min(size, self.end - self.pos)) if self.data else b""

    def pause(self):
        """Put the unparsed bytes aside: they cannot be parsed yet. `resume` continues."""
        self.keep_rest()

    def resume(self):
        """Make the kept rest the bytes to parse, without a read."""
        self.in_shared = False
        self.data = self.part
        self.pos = 0
        self.end = self.part_size

    cdef int keep_rest(self) except -1:
        """Put data[pos:end] aside until the next read. The parser calls it when it stops, for whatever reason."""
        cdef Py_ssize_t rest = self.end - self.pos
        if rest == 0:
            deallocate(self.part)
            self.part = NULL
            self.part_size = self.part_capacity = 0
        elif self.in_shared:
            if self.part_capacity < rest or self.part_capacity > 4 * rest + 64:
                deallocate(self.part)
                self.part = NULL
                self.part_size = self.part_capacity = 0
                self.grow(rest)
            memcpy(self.part, self.data + self.pos, rest)
            self.part_size = rest
        elif self.pos:
            memmove(self.part, self.part + self.pos, rest)
            self.part_size = rest
            if self.part_capacity > 4 * rest + 64:
                # A large frame has gone through: what it took is not kept for the few bytes behind it.
                self.grow(rest)
        self.data = NULL
        self.pos = self.end = 0
        self.count()
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef char* part = <char*> reallocate(self.part, capacity)
        if part is NULL:
            raise MemoryError()
        self.part = part
        self.part_capacity = capacity
        self.count()
        return 0

    cdef void count(self) noexcept:
        cdef Py_ssize_t held = self.part_capacity + self.outside
        cdef Py_ssize_t excess = held - self.stranger_max if 0 <= self.stranger_max < held else 0
        self.pot.force(held - excess - self.counted)
        self.counted = held - excess
        if excess != self.excess:
            self.handshakes.force(excess - self.excess)
            self.excess = excess

    cdef bint over(self) noexcept:
        """Does it hold more than is its own, while all together hold more than they may?"""
        cdef Pot pot
        if self.excess:
            pot = self.handshakes
        elif self.counted > SMALL_REST:
            pot = self.pot
        else:
            return False
        if pot.used <= pot.limit:
            return False
        pot.refused += 1
        return True

    @property
    def crowded(self):
        """`over`, for Python."""
        return self.over()

    def stranger(self, Py_ssize_t octets_max):
        """Its client is not let in yet, and has this many bytes for itself."""
        self.stranger_max = octets_max
        self.count()

    def admitted(self):
        """Its client is let in."""
        self.stranger_max = -1
        self.count()

    def keep_outside(self, Py_ssize_t octets):
        """Count bytes kept elsewhere, before they came here or after; less than 0: fewer."""
        self.outside += octets
        self.count()

    def clear(self):
        """Drop what is unparsed: the connection is closed."""
        self.pos = self.end = 0
        self.keep_rest()
