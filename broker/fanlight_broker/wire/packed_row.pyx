# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""The messages far behind in a long queue that keeps no journal, packed: drawn in packed_row.pxd.

A message that waits as an object, with its flight and its octets, takes 500 bytes beside its body; here it takes three
to twenty, and what its body has in common with others is there once. Those that a consumer takes next are objects
(wire/queue.pyx), so a short queue is as quick as without this.
"""

cimport cython

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF

from fanlight_broker.wire.allocator cimport allocate, allocate_zeros, deallocate, reallocate
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.packed_record cimport OVERHEAD, begin_chunk, is_inside, write_record

cdef enum:
    SMALLEST_CHUNK = 4 * 1024
    CHUNK = 64 * 1024         # 640 messages of 100 bytes
    COUNT_MOST = 640          # messages of a chunk: all of them are looked at when one has expired, 0.3 ms
    UNPACKED_MOST = 512 * 1024    # bytes of these, before the last: so much comes into memory then
    COPIED_MOST = 1024        # bytes of a message; a larger one is referred to, so that queues share it
    PAGED_MOST = 1024 * 1024  # the same for one that goes to the disk
    READ_AHEAD = 4            # chunks that a disk may begin to read when one is read
    FORMATS_MOST = 64


queues = 0


@cython.no_gc
cdef class Place:
    """A place in a row. It does not keep the chunk."""

    def __cinit__(self):
        self.reader = RecordReader.__new__(RecordReader)

    cdef int begin(self, PackedChunk* chunk) except -1:
        """At the beginning of a chunk, whose first record says all."""
        self.chunk, self.reader.at = chunk, 0
        return 0

    cdef Place copy(self):
        cdef Place place = Place.__new__(Place)
        place.chunk, place.reader = self.chunk, self.reader.copy()
        return place

    cdef Message read(self, list formats):
        """The next message of the chunk, which is in memory; the reader has what else its record says."""
        return self.reader.read(self.chunk.data, formats)


@cython.no_gc
cdef class PackedRow(Backlog):
    """Of one queue. What it holds is charged to the ledger, and to the account of the queue."""

    def __cinit__(self, Ledger ledger not None, Account account=None, Py_ssize_t chunk_bytes=CHUNK, pages=None,
                  Py_ssize_t memory_most=0):
        self.ledger, self.account, self.chunk_bytes = ledger, account, chunk_bytes
        self.pages, self.memory_most = pages, memory_most
        self.formats = unseen([])
        self.oldest = Place.__new__(Place)
        self.at_hand = True

    def __dealloc__(self):
        cdef double came = 0
        cdef uint32_t attempt = 0
        while self.oldest is not None and self.oldest.chunk is not NULL:
            if self.oldest.chunk.references:
                self.read(&came, &attempt)
                continue
            self.ledger.stored_messages -= self.oldest.chunk.count
            self.drop_chunk(NULL, self.oldest.chunk)

    cdef int charge(self, Py_ssize_t octets) noexcept:
        self.held += octets
        self.ledger.stored += octets
        if self.account is not None:
            self.account.count_for_all(octets)
        return 0

    cdef int put(self, Message message, double came, uint32_t attempt, Py_ssize_t counted) except -1:
        """As the last. A message that borrows its octets is copied. counted: its bytes in the queue."""
        cdef Py_ssize_t size = message.topic_size + message.fields_size
        cdef Kind kind
        cdef Kind* said = &kind
        cdef bint crowded = self.crowded()
        cdef char* at
        if not is_inside(message):
            size += message.payload_size
        if size > (PAGED_MOST if crowded else COPIED_MOST) or (is_shared() and not crowded) \
                or not self.kind_of(message, &kind):
            message = message.kept()
            size = 0
            said = NULL
        at = self.room(size + OVERHEAD)
        at = write_record(&self.writer, self.tail.data, at, message, said, came, attempt)
        if said is NULL:
            self.put_reference(message)
        else:
            self.ledger.stored_messages += 1
        self.tail.came_first = min(self.tail.came_first, came)
        self.tail.expires_first = min(self.tail.expires_first, message.expires_at)
        self.tail.size = at - self.tail.data
        self.tail.counted += counted
        self.tail.count += 1
        self.length += 1
        return 0

    cdef bint crowded(self) noexcept:
        """Is what comes to go to the disk?"""
        return self.pages is not None and (
            self.held + self.referred > self.memory_most or self.ledger.stored > self.ledger.stored_limit // 2
        )

    cdef bint kind_of(self, Message message, Kind* kind) except -1:
        """Fill in the kind of a message. False: there are too many formats."""
        cdef Py_ssize_t place, count = len(self.formats)
        memset(kind, 0, sizeof(Kind))
        for place in range(count):
            if <void*> self.formats[place] == <void*> message.format:
                break
        else:
            if count == FORMATS_MOST:
                return False
            self.formats.append(message.format)
            place = count
        kind.format, kind.format_data, kind.expiry_hole = place, message.format_data, message.expiry_hole
        kind.syntax, kind.qos, kind.retain = message.syntax, message.qos, message.retain
        return True

    cdef int put_reference(self, Message message) except -1:
        message.add_holder(self.ledger, self.account)
        Py_INCREF(message)
        self.tail.references += 1
        self.referred += message.bytes_held()
        return 0

    cdef char* room(self, Py_ssize_t size) except NULL:
        """Where the next record goes, of so many octets at most."""
        cdef PackedChunk* chunk = self.tail
        cdef Py_ssize_t capacity
        cdef char* data
        cdef bint more = chunk is not NULL and chunk.count < COUNT_MOST and chunk.counted < UNPACKED_MOST
        if more and chunk.size + size <= chunk.capacity:
            return chunk.data + chunk.size
        if more and chunk.size + size <= self.chunk_bytes:
            capacity = min(max(2 * chunk.capacity, chunk.size + size), self.chunk_bytes)
            data = <char*> reallocate(chunk.data, capacity)
            if data is NULL:
                raise MemoryError()
            self.charge(capacity - chunk.capacity)
            chunk.data, chunk.capacity = data, capacity
            return data + chunk.size
        capacity = min(self.chunk_bytes, SMALLEST_CHUNK)
        if chunk is not NULL:    # as large as the one before came to be
            capacity = min(self.chunk_bytes, max(capacity, chunk.capacity))
            if self.crowded():
                self.page_out(chunk)
        capacity = max(capacity, size)
        chunk = <PackedChunk*> allocate_zeros(1, sizeof(PackedChunk))
        data = <char*> allocate(capacity)
        if chunk is NULL or data is NULL:
            deallocate(chunk)
            deallocate(data)
            raise MemoryError()
        chunk.data, chunk.capacity = data, capacity
        chunk.came_first = chunk.expires_first = INFINITY
        self.charge(capacity)
        begin_chunk(&self.writer)
        if self.tail is NULL:
            self.oldest.begin(chunk)
        else:
            self.tail.next = chunk
        self.tail = chunk
        return data

    cdef int page_out(self, PackedChunk* chunk) except -1:
        """Write a full chunk to the disk, unless it is being read, or refers to messages; it stays if that fails."""
        if chunk is self.oldest.chunk or chunk.references or chunk.place is not NULL:
            return 0
        place = self.pages.write(PyBytes_FromStringAndSize(chunk.data, chunk.size))
        if place is None:
            return 0
        Py_INCREF(place)
        chunk.place = <void*> place
        deallocate(chunk.data)
        chunk.data = NULL
        self.charge(-chunk.capacity)
        chunk.capacity = 0
        self.paged += chunk.size
        return 0

    cdef bint load(self, PackedChunk* chunk) except -1:
        """Have a chunk in memory. False: it cannot be read, its messages are lost, and it is empty."""
        cdef PackedChunk* next = chunk.next
        cdef char* data
        if chunk.place is NULL:
            return True
        octets = self.pages.read(<object> chunk.place, chunk.size)
        if octets is None:
            self.lost += chunk.count
            self.lost_counted += chunk.counted
            self.length -= chunk.count
            self.ledger.stored_messages -= chunk.count
            chunk.count = 0
            return False
        data = <char*> allocate(chunk.size)
        if data is NULL:
            raise MemoryError()
        memcpy(data, PyBytes_AS_STRING(octets), chunk.size)
        self.free_place(chunk)
        chunk.data, chunk.capacity = data, chunk.size
        self.charge(chunk.capacity)
        for _ in range(READ_AHEAD):
            if next is NULL or next.place is NULL:
                break
            self.pages.expect(<object> next.place)
            next = next.next
        return True

    cdef int free_place(self, PackedChunk* chunk) except -1:
        place = <object> chunk.place
        chunk.place = NULL
        self.paged -= chunk.size
        Py_DECREF(place)
        self.pages.free(place)
        return 0

    cdef Message read(self, double* came, uint32_t* attempt):
        """Take out the oldest. None: what was there is lost."""
        cdef Place place = self.oldest
        cdef Message message
        while place.chunk is not NULL and not self.load(place.chunk):
            self.drop_chunk(NULL, place.chunk)
        if place.chunk is NULL:
            return None
        message = place.read(self.formats)
        came[0], attempt[0] = place.reader.came, place.reader.attempt
        self.taken(place, message)
        if place.chunk.count == 0:
            self.drop_chunk(NULL, place.chunk)
        return message

    cdef int taken(self, Place place, Message message) except -1:
        """A message was read, and is not in the row any more."""
        place.chunk.count -= 1
        self.length -= 1
        if not place.reader.referred:
            self.ledger.stored_messages -= 1
            return 0
        return self.release(place.chunk, message)

    cdef int release(self, PackedChunk* chunk, Message message) except -1:
        """A record of the chunk that refers to the message is not in the row any more."""
        chunk.references -= 1
        self.referred -= message.bytes_held()
        message.drop_holder(self.ledger, self.account)
        Py_DECREF(message)
        return 0

    cdef list take_expired(self, double now, double ttl, Py_ssize_t most):
        """Take out what has expired, at any place, chunk by chunk until it is so much: [(message, came, attempt)].

        ttl  seconds that a message may wait since it came
        """
        cdef list found = []
        cdef PackedChunk* before = NULL
        cdef PackedChunk* chunk = self.oldest.chunk
        cdef PackedChunk* next
        while chunk is not NULL and len(found) < most:
            next = chunk.next
            if chunk.expires_first <= now or chunk.came_first + ttl <= now:
                before = self.sift(before, chunk, now, ttl, found)
            else:
                before = chunk
            chunk = next
        return found

    cdef PackedChunk* sift(
        self, PackedChunk* before, PackedChunk* chunk, double now, double ttl, list found
    ) except? NULL:
        """Put what has expired of a chunk into `found`, and what has not into a new one. Returns the chunk that is
        before the next one then; NULL: there is none.
        """
        cdef Place place = self.oldest.copy()
        cdef PackedRow rest = PackedRow(self.ledger, self.account, self.chunk_bytes)
        cdef PackedChunk* last = chunk.next
        cdef list referred = []
        cdef Py_ssize_t count = chunk.count
        cdef Message message
        if not self.load(chunk):
            self.drop_chunk(before, chunk)
            return before
        if before is not NULL:
            place.begin(chunk)
        rest.formats = self.formats
        for _ in range(count):
            message = place.read(self.formats)
            if place.reader.referred:
                referred.append(message)
            if message.expires_at <= now or place.reader.came + ttl <= now:
                found.append((message, place.reader.came, place.reader.attempt))
            else:
                rest.put(message, place.reader.came, place.reader.attempt, chunk.counted // count)    # about
        for message in referred:
            self.release(chunk, message)
        self.ledger.stored_messages -= count - <Py_ssize_t> len(referred)
        self.length += rest.length - count
        if rest.tail is NULL:
            self.drop_chunk(before, chunk)
            return before
        rest.tail.next = last
        if chunk is self.tail:
            self.tail, self.writer = rest.tail, rest.writer
        chunk.next = rest.oldest.chunk
        last = rest.tail
        self.held += rest.held
        rest.oldest.chunk = rest.tail = NULL    # it has nothing any more
        rest.held = rest.length = 0
        self.drop_chunk(before, chunk)
        return last

    cdef int drop_chunk(self, PackedChunk* before, PackedChunk* chunk) except -1:
        """All of it was read. before: the one before it; NULL: it is the first."""
        if chunk.place is not NULL:
            self.free_place(chunk)
        self.charge(-chunk.capacity)
        if before is NULL:
            self.oldest.begin(chunk.next)
        else:
            before.next = chunk.next
        if chunk is self.tail:
            self.tail = before
            begin_chunk(&self.writer)
        deallocate(chunk.data)
        deallocate(chunk)
        return 0

    cdef list peek(self, Py_ssize_t most):
        """The oldest, which stay: [(message, attempt, came)]."""
        cdef list found = []
        cdef Place place = self.oldest.copy()
        cdef Py_ssize_t left = place.chunk.count if place.chunk is not NULL else 0
        while len(found) < most and place.chunk is not NULL:
            if left and not self.load(place.chunk):
                break
            if left == 0:
                place.begin(place.chunk.next)
                left = place.chunk.count if place.chunk is not NULL else 0
                continue
            message = place.read(self.formats)
            found.append((message, place.reader.attempt, place.reader.came))
            left -= 1
        return found

    cpdef since(self):
        return self.peek(1)[0][2]
