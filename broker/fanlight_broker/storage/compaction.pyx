# cython: language_level=3
"""Compaction: see compaction.pxd. For one thread that is neither the loop's nor the writer's."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.storage.message_records cimport number_of
from fanlight_broker.storage.records cimport MESSAGE
from fanlight_broker.storage.segment_pool cimport SegmentPool
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, SEGMENT_HEADER, EntryHeader, Segment, SegmentReader, entry_crc, entry_size, get_varint,
)
from fanlight_broker.storage.segments import LogError
from fanlight_broker.wire.allocator cimport allocate, deallocate

cdef enum:
    WRITE_BYTES = 1 << 20


cdef class Compaction:
    """
    sources     segments, in the order of their numbers
    first, end  the numbers of their messages: the last is not among them
    live        a bit for each of these numbers, the lowest of the first byte first: it is needed
    """

    def __cinit__(
        self, Disk disk not None, SegmentPool pool not None, list sources not None, uint64_t first, uint64_t end,
        const unsigned char[::1] live not None,
    ):
        self.disk, self.pool, self.sources, self.first, self.end, self.live = disk, pool, sources, first, end, live

    def __dealloc__(self):
        deallocate(self.buffer)

    def run(self):
        """Make the file, or give it up: `error`. Then it is `done`."""
        try:
            self.copy()
        except (LogError, OSError, MemoryError) as error:
            self.error = error
            if self.segment is not None:
                self.pool.doomed.append(self.segment)
        self.done = True

    cdef int copy(self) except -1:
        cdef Segment source
        wanted = int.from_bytes(self.live, "little").bit_count()
        self.segment = self.pool.begin_bodies(self.first, self.end)
        self.written = self.segment.end
        for source in self.sources:
            self.segment.capacity += source.capacity    # at most; for the index
        self.segment.make_index()
        for source in self.sources:
            self.copy_segment(source)
        self.flush()
        if self.segment.messages != wanted:
            # They are damaged where they are, which is reported when somebody asks for one of them.
            raise LogError(f"of {wanted} messages only {self.segment.messages} are whole")
        self.pool.finish_bodies(self.segment)
        return 0

    cdef int copy_segment(self, Segment source) except -1:
        cdef SegmentReader reader = SegmentReader(self.disk, source)
        cdef uint64_t offset = SEGMENT_HEADER
        cdef EntryHeader* header
        while True:
            header = reader.entry(offset)
            if header is NULL:
                if source.last and offset >= source.end:
                    break
                offset = reader.search(offset, self.sequence + 1)  # the end, or damage
                if offset == 0:
                    break
                continue
            if header.sequence > self.sequence:  # else a group was written again, and is in two files
                self.copy_entry(reader, header)
            offset += entry_size(header.length)
        return 0

    cdef int copy_entry(self, SegmentReader reader, const EntryHeader* header) except -1:
        """Its messages that are needed, if it has any."""
        cdef const char* at = <const char*> header + ENTRY_HEADER
        cdef const char* end = at + header.length
        cdef const char* record
        cdef EntryHeader* copied
        cdef size_t filled
        cdef uint64_t size, number = 0
        self.sequence = header.sequence
        self.make_room(entry_size(header.length))
        copied = <EntryHeader*> (self.buffer + self.filled)
        filled = ENTRY_HEADER
        while at < end:
            record = at
            at = get_varint(at + 1, end, &size)
            if at is NULL or size > <uint64_t> (end - at):
                raise LogError(f"{reader.segment.path}: entry {self.sequence} has a record longer than itself")
            if self.is_live(<unsigned char> record[0], at, <Py_ssize_t> size):
                number = number or self.number
                memcpy(<char*> copied + filled, record, at + size - record)
                filled += at + size - record
                self.segment.messages += 1
            at += size
        if filled == ENTRY_HEADER:
            return 0
        copied.length, copied.sequence, copied.number = filled - ENTRY_HEADER, header.sequence, number
        copied.when = header.when & ~<uint64_t> 0xFFFF
        copied.crc = entry_crc(self.segment.seed, <char*> copied, copied.length)
        memset(<char*> copied + filled, 0, entry_size(copied.length) - filled)
        self.segment.note(copied, self.written + self.filled)
        self.filled += entry_size(copied.length)
        return 0

    cdef bint is_live(self, int type, const char* body, Py_ssize_t size) except -1:
        cdef uint64_t number, bit
        if type != MESSAGE or size < 8:
            return False
        number = number_of(body, size)
        if number <= self.number or not self.first <= number < self.end:
            return False
        bit = number - self.first
        if bit // 8 >= <uint64_t> self.live.shape[0] or not self.live[bit // 8] >> bit % 8 & 1:
            return False
        self.number = number
        return True

    cdef int make_room(self, size_t size) except -1:
        """For so many bytes in the buffer."""
        if self.filled + size > self.capacity:
            self.flush()
        if size > self.capacity:
            deallocate(self.buffer)
            self.capacity = 0
            self.buffer = <char*> allocate(max(size, <size_t> WRITE_BYTES))
            if self.buffer is NULL:
                raise MemoryError()
            self.capacity = max(size, <size_t> WRITE_BYTES)
        return 0

    cdef int flush(self) except -1:
        cdef Disk disk = self.disk
        cdef Segment segment = self.segment
        cdef int result
        if self.stopping:
            raise LogError("the log is closed")
        with nogil:
            result = disk.write(segment.fd, self.buffer, self.filled, self.written)
        checked(result, segment.path)
        self.written += self.filled
        self.filled = 0
        return 0
