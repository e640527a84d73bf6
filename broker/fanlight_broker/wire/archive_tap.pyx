# cython: language_level=3
"""The archive tap: copies the messages of some routes into columns, some 40 ns each.

A batch is handed over when it has `rows_max` messages or `batch_bytes_max` bytes, and on `flush`. What was
handed over counts against `bytes_max` until it is freed. What does not fit is dropped here, and counted.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t, uintptr_t
from libc.string cimport memcpy

from fanlight_broker.wire.allocator cimport allocate, allocate_zeros, deallocate, reallocate
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.msgpack cimport is_utf8
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState, kept

cdef enum:
    FIRST_OCTETS = 64 * 1024
    BATCH_MOST = 1 << 30             # and one largest message: still less than 2^31
    ROW_BYTES = 8 + 4 + 4 + 4 + 3    # of a message beside its octets


cdef int more(Octets* octets, const char* at, Py_ssize_t size, Py_ssize_t row) except -1:
    """Append the octets of one row; again, if the row was not finished for want of memory."""
    cdef Py_ssize_t capacity
    cdef char* data
    octets.size = octets.ends[row]
    if octets.size + size > octets.capacity:
        capacity = max(octets.size + size, max(2 * octets.capacity, <Py_ssize_t> FIRST_OCTETS))
        data = <char*> reallocate(octets.data, capacity)
        if data is NULL:
            raise MemoryError()
        octets.data = data
        octets.capacity = capacity
    if size:  # memcpy may not be given NULL, not even for nothing
        memcpy(octets.data + octets.size, at, size)
    octets.size += size
    octets.ends[row + 1] = <int32_t> octets.size
    return 0


cdef class Columns:
    """Some messages, by column. It does not change once it is handed over, so any thread may read it."""

    def __cinit__(self, Py_ssize_t rows_max, uint64_t first):
        self.rows_max = rows_max
        self.first = first
        self.owners = []
        self.extras = {}
        self.numbers = {}
        self.times = <int64_t*> allocate(rows_max * sizeof(int64_t))
        self.publishers = <int32_t*> allocate(rows_max * sizeof(int32_t))
        self.qos = <int8_t*> allocate(rows_max)
        self.retain = <int8_t*> allocate(rows_max)
        self.syntax = <int8_t*> allocate(rows_max)
        self.topics.ends = <int32_t*> allocate_zeros(rows_max + 1, sizeof(int32_t))
        self.values.ends = <int32_t*> allocate_zeros(rows_max + 1, sizeof(int32_t))
        if NULL in (<void*> self.times, <void*> self.publishers, <void*> self.qos, <void*> self.retain,
                    <void*> self.syntax, <void*> self.topics.ends, <void*> self.values.ends):
            raise MemoryError()

    def __dealloc__(self):
        deallocate(self.times)
        deallocate(self.publishers)
        deallocate(self.qos)
        deallocate(self.retain)
        deallocate(self.syntax)
        deallocate(self.topics.data)
        deallocate(self.topics.ends)
        deallocate(self.values.data)
        deallocate(self.values.ends)

    @property
    def end(self):
        """Messages that the tap had recorded, these included."""
        return self.first + self.rows

    @property
    def nbytes(self):
        return self.size()

    def buffers(self):
        """(address, size in bytes) by name, in the layout of Arrow; valid as long as this object is there."""
        return {
            "times": (<uintptr_t> self.times, self.rows * sizeof(int64_t)),
            "publishers": (<uintptr_t> self.publishers, self.rows * sizeof(int32_t)),
            "qos": (<uintptr_t> self.qos, self.rows),
            "retain": (<uintptr_t> self.retain, self.rows),
            "syntax": (<uintptr_t> self.syntax, self.rows),
            "topic_ends": (<uintptr_t> self.topics.ends, (self.rows + 1) * sizeof(int32_t)),
            "topics": (<uintptr_t> self.topics.data, self.topics.size),
            "value_ends": (<uintptr_t> self.values.ends, (self.rows + 1) * sizeof(int32_t)),
            "values": (<uintptr_t> self.values.data, self.values.size),
        }

    cdef Py_ssize_t size(self) noexcept:
        return self.rows * ROW_BYTES + self.topics.size + self.values.size

    cdef int add(self, FanoutState* publication, Outbox publisher, double now, bytes before) except -1:
        cdef Message message = <Message> publication.message
        cdef Py_ssize_t row = self.rows
        self.times[row] = <int64_t> (now * 1e6)
        if before is None:
            more(&self.topics, message.topic_at, message.topic_size, row)
        else:
            before = before + PyBytes_FromStringAndSize(message.topic_at, message.topic_size)
            more(&self.topics, PyBytes_AS_STRING(before), PyBytes_GET_SIZE(before), row)
        more(&self.values, message.payload_at, message.payload_size, row)
        if publisher is not self.last or row == 0:
            self.last_number = self.number_of(publisher)
            self.last = publisher
        self.publishers[row] = self.last_number
        self.qos[row] = message.qos
        self.retain[row] = message.retain
        self.syntax[row] = message.syntax
        if message.format.says_more(message):
            self.extras[row] = kept(publication)
        self.rows = row + 1
        return 0

    cdef int32_t number_of(self, Outbox publisher) except -1:
        number = self.numbers.get(publisher)
        if number is None:
            number = self.numbers[publisher] = len(self.owners)
            self.owners.append(None if publisher is None else publisher.owner)
        return number


cdef class ArchiveTap:
    """Hands what it has recorded to `full`, a batch at a time."""

    def __cinit__(self, *, Py_ssize_t rows_max, Py_ssize_t bytes_max, Py_ssize_t batch_bytes_max, begun, full):
        if not 0 < batch_bytes_max <= BATCH_MOST:
            raise ValueError(f"batches of {batch_bytes_max} bytes; at most {BATCH_MOST}, which the ends can count")
        self.rows_max = rows_max
        self.bytes_max = bytes_max
        self.batch_bytes_max = batch_bytes_max
        self.begun = begun
        self.full = full

    def within(self, tuple before not None):
        """A tap that gives this one what it takes, with octets before the topics: by the numbers of syntaxes."""
        cdef ArchiveTap tap = ArchiveTap(
            rows_max=self.rows_max, bytes_max=self.bytes_max, batch_bytes_max=self.batch_bytes_max, begun=None,
            full=None,
        )
        tap.whole, tap.before = self, before
        return tap

    @property
    def crowded(self):
        """Is the buffer full? Publishers that need an acknowledgement should wait."""
        return self.bytes >= self.bytes_max

    cdef int record(self, Ledger ledger, Outbox publisher, FanoutState* publication) except -1:
        """Copy a message into the columns."""
        cdef Message message = <Message> publication.message
        cdef Py_ssize_t size = ROW_BYTES + message.topic_size + message.payload_size
        cdef bytes before
        if self.whole is not None:
            before = <bytes> self.before[message.syntax]
            return self.whole.take(ledger, publisher, publication, size + PyBytes_GET_SIZE(before), before)
        return self.take(ledger, publisher, publication, size, None)

    cdef int take(self, Ledger ledger, Outbox publisher, FanoutState* publication, Py_ssize_t size,
                  bytes before) except -1:
        """size: of the message in the columns; before: what stands before its topic there, or None"""
        cdef Message message = <Message> publication.message
        if self.bytes >= self.bytes_max:
            self.dropped += 1
            return 0
        if not is_utf8(<const unsigned char*> message.topic_at, message.topic_size):
            self.unspellable += 1    # Arrow's strings are UTF-8, and readers rely on it
            return 0
        if message.format.says_more(message):
            size += message.bytes_held()    # it is kept whole, too
        if self.batch is None:
            self.batch = Columns(self.rows_max, self.taken)
            self.begun()
        self.batch.add(publication, publisher, ledger.now + self.utc, before)
        self.batch.octets += size
        self.taken += 1
        self.bytes += size
        if self.batch.rows == self.rows_max or self.batch.octets >= self.batch_bytes_max:
            self.hand_over()
        return 0

    cdef int hand_over(self) except -1:
        cdef Columns batch = self.batch
        self.batch = None
        if batch is not None:
            batch.last = None
            batch.numbers = None
            self.full(batch)
        return 0

    def flush(self):
        """Hand over the present batch."""
        self.hand_over()

    def free_bytes(self, Py_ssize_t octets):
        """This many bytes that were handed over have been freed."""
        self.bytes -= octets
