# cython: language_level=3
# cython: wraparound=False
# cython: boundscheck=False
"""Messages as records of a chunk, written and read: drawn in packed_record.pxd.

What waits in one queue is mostly alike: the same topic and fields, and payloads that begin and end alike, such as JSON
with one number that changes. Comparing both ends of a payload takes some nanoseconds, and finds that; what is alike in
the middle, a compressor would find, for ten times as much.
"""

cimport cython

from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.varint cimport put_varint


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


cdef inline Py_ssize_t same_at_begin(const char* one, const char* other, Py_ssize_t size) noexcept:
    """How many of the first octets are the same."""
    cdef uint64_t a, b
    cdef Py_ssize_t at = 0
    while at + <Py_ssize_t> sizeof(uint64_t) <= size:
        memcpy(&a, one + at, sizeof(uint64_t))
        memcpy(&b, other + at, sizeof(uint64_t))
        if a != b:
            break
        at += sizeof(uint64_t)
    while at < size and one[at] == other[at]:
        at += 1
    return at


cdef inline Py_ssize_t same_at_end(const char* one_end, const char* other_end, Py_ssize_t size) noexcept:
    """How many of the last octets are the same. The ends are behind them."""
    cdef uint64_t a, b
    cdef Py_ssize_t count = 0
    while count + <Py_ssize_t> sizeof(uint64_t) <= size:
        memcpy(&a, one_end - count - sizeof(uint64_t), sizeof(uint64_t))
        memcpy(&b, other_end - count - sizeof(uint64_t), sizeof(uint64_t))
        if a != b:
            break
        count += sizeof(uint64_t)
    while count < size and one_end[-1 - count] == other_end[-1 - count]:
        count += 1
    return count


cdef int begin_chunk(RecordWriter* writer) noexcept:
    """The next record is the first of its chunk, and says all."""
    memset(writer, 0, sizeof(RecordWriter))
    writer.topic_at = writer.fields_at = writer.model_at = -1
    writer.came = NAN    # is no other number
    return 0


cdef char* write_record(
    RecordWriter* writer, char* chunk, char* at, Message message, Kind* kind, double came, uint32_t attempt
) noexcept:
    """Write at this place of a chunk, which has OVERHEAD bytes more than the texts. Returns the place behind.

    kind: NULL: the record refers to its message, for which the chunk holds a reference from now on.
    """
    cdef char* begin = at
    cdef unsigned char flags = 0
    cdef void* referred = <void*> message
    at += 1
    if kind is not NULL:
        if writer.topic_at < 0 or memcmp(kind, &writer.kind, sizeof(Kind)) != 0:
            flags |= KIND
            at = put_octets(at, kind, sizeof(Kind))
            writer.kind = kind[0]
        if writer.topic_at < 0 or writer.topic_size != message.topic_size \
                or memcmp(chunk + writer.topic_at, message.topic_at, message.topic_size) != 0:
            flags |= TOPIC
            at = put_varint(at, message.topic_size)
            writer.topic_at, writer.topic_size = at - chunk, message.topic_size
            at = put_octets(at, message.topic_at, message.topic_size)
        if writer.fields_at < 0 or writer.fields_size != message.fields_size \
                or memcmp(chunk + writer.fields_at, message.fields_at, message.fields_size) != 0:
            flags |= FIELDS
            at = put_varint(at, message.fields_size)
            writer.fields_at, writer.fields_size = at - chunk, message.fields_size
            at = put_octets(at, message.fields_at, message.fields_size)
        if message.expires_at != INFINITY:
            flags |= EXPIRES
            at = put_octets(at, &message.expires_at, sizeof(double))
    if came != writer.came:
        flags |= CAME
        at = put_octets(at, &came, sizeof(double))
        writer.came = came
    if attempt:
        flags |= ATTEMPT
        at = put_octets(at, &attempt, sizeof(uint32_t))
    if kind is NULL:
        flags |= REFERENCE
        at = put_octets(at, &referred, sizeof(void*))
    elif is_inside(message):
        flags |= INSIDE
        at = put_varint(at, message.payload_at - message.fields_at)
        at = put_varint(at, message.payload_size)
    else:
        at = write_payload(writer, chunk, at, message, &flags)
    begin[0] = <char> flags
    return at


cdef inline char* write_payload(
    RecordWriter* writer, char* chunk, char* at, Message message, unsigned char* flags
) noexcept:
    cdef Py_ssize_t size = message.payload_size, first = 0, last = 0, most
    cdef const char* payload = message.payload_at
    at = put_varint(at, size)
    if writer.model_at >= 0:
        most = min(size, writer.model_size)
        first = same_at_begin(payload, chunk + writer.model_at, most)
        last = same_at_end(payload + size, chunk + writer.model_at + writer.model_size, most - first)
    if first + last < ALIKE_LEAST:
        writer.model_at, writer.model_size = at - chunk, size
        return put_octets(at, payload, size)
    flags[0] |= ALIKE
    at = put_varint(at, first)
    at = put_varint(at, last)
    return put_octets(at, payload + first, size - first - last)


@cython.no_gc
cdef class RecordReader:
    """Reads one record behind the other."""

    cdef RecordReader copy(self):
        cdef RecordReader reader = RecordReader.__new__(RecordReader)
        reader.kind, reader.format, reader.topic, reader.fields = self.kind, self.format, self.topic, self.fields
        reader.at, reader.model_at, reader.model_size = self.at, self.model_at, self.model_size
        reader.came = self.came
        return reader

    cdef Message read(self, const char* chunk, list formats):
        """The message of the next record. `came`, `attempt` and `referred` are its."""
        cdef const char* at = chunk + self.at + 1
        cdef unsigned char flags = <unsigned char> chunk[self.at]
        cdef Py_ssize_t size = 0, inside = 0, first = 0, last = 0
        cdef void* referred = NULL
        cdef char* payload
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
        self.attempt, self.referred = attempt, flags & PAYLOAD == REFERENCE
        if self.referred:
            at = get(at, &referred, sizeof(void*))
            self.at = at - chunk
            return <Message> referred
        message = Message.__new__(Message)
        message.format = self.format
        message.syntax, message.qos, message.retain = self.kind.syntax, self.kind.qos, self.kind.retain
        message.format_data, message.expiry_hole = self.kind.format_data, self.kind.expiry_hole
        message.expires_at = expires_at
        message.topic_octets, message.fields_octets = self.topic, self.fields
        message.topic_at, message.topic_size = PyBytes_AS_STRING(self.topic), len(self.topic)
        message.fields_at, message.fields_size = PyBytes_AS_STRING(self.fields), len(self.fields)
        if flags & PAYLOAD == INSIDE:
            at = get_size(at, &inside)
            at = get_size(at, &size)
            message.payload_at = message.fields_at + inside
        else:
            at = get_size(at, &size)
            if flags & PAYLOAD == ALIKE:
                at = get_size(at, &first)
                at = get_size(at, &last)
            else:
                self.model_at, self.model_size = at - chunk, size
            message.payload_octets = PyBytes_FromStringAndSize(NULL, size)
            payload = PyBytes_AS_STRING(message.payload_octets)
            memcpy(payload, chunk + self.model_at, first)
            memcpy(payload + first, at, size - first - last)
            memcpy(payload + size - last, chunk + self.model_at + self.model_size - last, last)
            message.payload_at = payload
            at += size - first - last
        message.payload_size = size
        self.at = at - chunk
        return message
