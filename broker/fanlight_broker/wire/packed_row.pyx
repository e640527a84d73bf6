# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""The messages far behind in a long queue that keeps no journal, packed: drawn in packed_row.pxd.

A message that waits as an object, with its flight and its octets, takes 500 bytes beside its body; here it takes three
to twenty. Those that a consumer takes next are objects (wire/queue.pyx), so a short queue is as quick as without this.
"""

cimport cython

from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF

from fanlight_broker.wire.allocator cimport allocate, allocate_zeros, deallocate, reallocate
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.message cimport Message

cdef enum:
    SMALLEST_CHUNK = 4 * 1024
    CHUNK = 64 * 1024         # 640 messages of 100 bytes
    COUNT_MOST = 640          # messages of a chunk: all of them are looked at when one has expired, 0.3 ms
    COPIED_MOST = 1024        # bytes of a message; a larger one is referred to, so that queues share it
    PAGED_MOST = 1024 * 1024  # the same for one that goes to the disk
    READ_AHEAD = 4            # chunks that a disk may begin to read when one is read
    FORMATS_MOST = 64
    OVERHEAD = 96             # of a record, without its texts: above what it can take

cdef enum:                    # flags of a record
    KIND = 1
    TOPIC = 2
    FIELDS = 4
    EXPIRES = 8               # else it never does
    CAME = 16
    ATTEMPT = 32              # else it was never delivered
    INSIDE = 64               # the payload is a part of the fields
    REFERENCE = 128


queues = 0


cdef inline char* put_size(char* at, uint64_t value) noexcept:
    while value >= 0x80:
        at[0] = <char> (value & 0x7F | 0x80)
        value >>= 7
        at += 1
    at[0] = <char> value
    return at + 1


cdef inline const char* get_size(const char* at, Py_ssize_t* value) noexcept:
    cdef int shift = 0
    value[0] = 0
    while <unsigned char> at[0] & 0x80:
        value[0] |= <Py_ssize_t> (<unsigned char> at[0] & 0x7F) << shift
        shift += 7
        at += 1
    value[0] |= <Py_ssize_t> <unsigned char> at[0] << shift
    return at + 1


cdef inline const char* get(const char* at, void* value, size_t size) noexcept:
    memcpy(value, at, size)
    return at + size


cdef inline char* put_octets(char* at, const void* octets, size_t size) noexcept:
    memcpy(at, octets, size)
    return at + size


@cython.no_gc
cdef class Place:
    """A place in a row. It does not keep the chunk."""

    cdef int begin(self, PackedChunk* chunk) except -1:
        """At the beginning of a chunk, whose first record says all."""
        self.chunk, self.at = chunk, 0
        return 0

    cdef Place copy(self):
        cdef Place place = Place.__new__(Place)
        place.chunk, place.at, place.kind, place.format = self.chunk, self.at, self.kind, self.format
        place.topic, place.fields, place.came = self.topic, self.fields, self.came
        return place

    cdef Message read(self, list formats):
        """The message of the next record. `came`, `attempt` and `referred` are its."""
        cdef const char* begin = self.chunk.data + self.at
        cdef const char* at = begin + 1
        cdef unsigned char flags = <unsigned char> begin[0]
        cdef Py_ssize_t size = 0, inside = -1
        cdef void* referred = NULL
        cdef Message message
        cdef double expires_at = INFINITY
        cdef uint32_t attempt = 0
        if flags & KIND:
            at = get(at, &self.kind, sizeof(Kind))
            self.format = <Format> formats[self.kind.format]
        if flags & TOPIC:
            at = get_size(at, &size)
            self.topic = PyBytes_FromStringAndSize(at, size)
            at += size
        if flags & FIELDS:
            at = get_size(at, &size)
            self.fields = PyBytes_FromStringAndSize(at, size)
            at += size
        if flags & EXPIRES:
            at = get(at, &expires_at, sizeof(double))
        if flags & CAME:
            at = get(at, &self.came, sizeof(double))
        if flags & ATTEMPT:
            at = get(at, &attempt, sizeof(uint32_t))
        self.attempt, self.referred = attempt, flags & REFERENCE
        if self.referred:
            at = get(at, &referred, sizeof(void*))
            self.at += at - begin
            return <Message> referred
        if flags & INSIDE:
            at = get_size(at, &inside)
        at = get_size(at, &size)
        message = Message.__new__(Message)
        message.format = self.format
        message.syntax, message.qos, message.retain = self.kind.syntax, self.kind.qos, self.kind.retain
        message.format_data, message.expiry_hole = self.kind.format_data, self.kind.expiry_hole
        message.expires_at = expires_at
        message.topic_octets, message.fields_octets = self.topic, self.fields
        message.topic_at, message.topic_size = PyBytes_AS_STRING(self.topic), len(self.topic)
        message.fields_at, message.fields_size = PyBytes_AS_STRING(self.fields), len(self.fields)
        if inside >= 0:
            message.payload_at = message.fields_at + inside
        else:
            message.payload_octets = PyBytes_FromStringAndSize(at, size)
            message.payload_at = PyBytes_AS_STRING(message.payload_octets)
            at += size
        message.payload_size = size
        self.at += at - begin
        return message


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
        cdef Py_ssize_t inside = message.payload_at - message.fields_at
        cdef Py_ssize_t size = message.topic_size + message.fields_size
        cdef Kind kind
        cdef unsigned char flags = 0
        cdef bint crowded
        cdef void* referred
        cdef char* begin
        cdef char* at
        if not (0 <= inside and inside + message.payload_size <= message.fields_size):
            inside = -1
            size += message.payload_size
        crowded = self.crowded()
        if size > (PAGED_MOST if crowded else COPIED_MOST) or (is_shared() and not crowded) \
                or not self.kind_of(message, &kind):
            message = message.kept()
            size = 0
            flags = REFERENCE
        begin = self.room(size + OVERHEAD)
        at = begin + 1
        if flags & REFERENCE == 0:
            # The first of a chunk that is no reference says all.
            if self.topic_at < 0 or memcmp(&kind, &self.kind, sizeof(Kind)) != 0:
                flags |= KIND
                at = put_octets(at, &kind, sizeof(Kind))
            if self.topic_at < 0 or self.topic_size != message.topic_size \
                    or memcmp(self.tail.data + self.topic_at, message.topic_at, message.topic_size) != 0:
                flags |= TOPIC
                at = put_size(at, message.topic_size)
                self.topic_at, self.topic_size = at - self.tail.data, message.topic_size
                at = put_octets(at, message.topic_at, message.topic_size)
            if self.fields_at < 0 or self.fields_size != message.fields_size \
                    or memcmp(self.tail.data + self.fields_at, message.fields_at, message.fields_size) != 0:
                flags |= FIELDS
                at = put_size(at, message.fields_size)
                self.fields_at, self.fields_size = at - self.tail.data, message.fields_size
                at = put_octets(at, message.fields_at, message.fields_size)
            if message.expires_at != INFINITY:
                flags |= EXPIRES
                at = put_octets(at, &message.expires_at, sizeof(double))
            self.kind = kind
        if came != self.came:    # before the first of a chunk it is no number
            flags |= CAME
            at = put_octets(at, &came, sizeof(double))
        if attempt:
            flags |= ATTEMPT
            at = put_octets(at, &attempt, sizeof(uint32_t))
        if flags & REFERENCE:
            referred = <void*> message
            at = put_octets(at, &referred, sizeof(void*))
            self.put_reference(message)
        else:
            if inside >= 0:
                flags |= INSIDE
                at = put_size(at, inside)
            at = put_size(at, message.payload_size)
            if inside < 0:
                at = put_octets(at, message.payload_at, message.payload_size)
            self.ledger.stored_messages += 1
        begin[0] = <char> flags
        self.came = came
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
        cdef bint more = chunk is not NULL and chunk.count < COUNT_MOST
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
        self.topic_at = self.fields_at = -1
        self.came = NAN
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
        came[0], attempt[0] = place.came, place.attempt
        self.taken(place, message)
        if place.chunk.count == 0:
            self.drop_chunk(NULL, place.chunk)
        return message

    cdef int taken(self, Place place, Message message) except -1:
        """A message was read, and is not in the row any more."""
        place.chunk.count -= 1
        self.length -= 1
        if not place.referred:
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
            if place.referred:
                referred.append(message)
            if message.expires_at <= now or place.came + ttl <= now:
                found.append((message, place.came, place.attempt))
            else:
                rest.put(message, place.came, place.attempt, chunk.counted // count)    # about
        for message in referred:
            self.release(chunk, message)
        self.ledger.stored_messages -= count - <Py_ssize_t> len(referred)
        self.length += rest.length - count
        if rest.tail is NULL:
            self.drop_chunk(before, chunk)
            return before
        rest.tail.next = last
        if chunk is self.tail:
            self.tail, self.kind, self.came = rest.tail, rest.kind, rest.came
            self.topic_at, self.topic_size = rest.topic_at, rest.topic_size
            self.fields_at, self.fields_size = rest.fields_at, rest.fields_size
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
            self.topic_at = self.fields_at = -1
            self.came = NAN
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
            found.append((message, place.attempt, place.came))
            left -= 1
        return found

    cpdef since(self):
        return self.peek(1)[0][2]
