# cython: language_level=3
"""Segments, the files of the log: their headers, and how the entries of one are read and looked for."""

import re

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from fanlight_broker.storage.crc32c cimport extend_crc
from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.storage.range_crc cimport RangeCrc
from fanlight_broker.wire.allocator cimport allocate, deallocate, reallocate

cdef extern from "<unistd.h>":
    int close(int fd)

cdef enum:
    VERSION = 2    # 1: each MESSAGE has a long head
    READ_BYTES = 1 << 20
    SEARCH_BYTES = 4 << 20      # of what looks like entries and is not, before a search takes the rest together

cdef const char* MAGIC = b"fanlight"
cdef uint64_t SEQUENCES = <uint64_t> 1 << 40    # an entry that is found is not later than by this

NAME = re.compile(r"log-(\d{8})")


class LogError(Exception):
    """The log cannot be opened, or is closed: says why, and what to do."""


class DamagedHeader(LogError):
    """Both copies of a segment's header are damaged: it cannot be known which of its entries are its own."""


cdef struct SegmentHeader:
    char magic[8]
    uint32_t version
    uint32_t crc        # of all but itself
    uint64_t generation
    uint64_t salt       # random: a message cannot have bytes that look like an entry of this segment
    uint64_t floor      # of the log: no entry before it is needed, but for the bodies of messages that are live
    uint32_t kind       # 0, or BODIES; then of the rest of some segments:
    uint32_t messages
    uint64_t range_first, range_end     # numbers that were in them


cdef enum:
    BODIES = 1
    BEFORE_FLOORS = 32      # bytes of a header that was written before there were floors; zeros follow


cdef uint32_t header_crc(const SegmentHeader* header, size_t size) noexcept nogil:
    return extend_crc(extend_crc(0, <const char*> header, 12), <const char*> header + 16, size - 16)


cdef bint is_whole(const SegmentHeader* header) noexcept nogil:
    cdef size_t at
    if memcmp(header.magic, MAGIC, 8) != 0:
        return False
    if header.crc == header_crc(header, sizeof(SegmentHeader)):
        return True
    for at in range(BEFORE_FLOORS, sizeof(SegmentHeader)):
        if (<const char*> header)[at]:
            return False
    return header.crc == header_crc(header, BEFORE_FLOORS)


cdef uint32_t seed_of(uint64_t generation, uint64_t salt) noexcept nogil:
    return extend_crc(extend_crc(0, <const char*> &generation, 8), <const char*> &salt, 8)


cdef class Segment:
    """One file of the log, open."""

    def __cinit__(self, path, int fd):
        self.path = path
        self.c_path = str(path).encode()
        self.fd = fd
        self.end = SEGMENT_HEADER

    def __dealloc__(self):
        deallocate(self.index)
        if self.fd >= 0:
            close(self.fd)

    cdef int close(self, Disk disk) noexcept:
        disk.close_file(self.fd)
        self.fd = -1
        return 0

    cdef bint read_header(self, Disk disk) except -1:
        """Is it whole, in one copy at least? False: the file has never been used. LogError: it cannot be read."""
        cdef char page[SEGMENT_HEADER]
        cdef SegmentHeader* header
        cdef Py_ssize_t size = disk.read(self.fd, page, SEGMENT_HEADER, 0)
        cdef int64_t capacity = disk.size(self.fd)
        cdef int at
        checked(size, self.path)
        checked(capacity, self.path)
        self.capacity = capacity
        memset(page + size, 0, SEGMENT_HEADER - size)
        for at in (0, SECOND_COPY):
            header = <SegmentHeader*> (page + at)
            if not is_whole(header):
                continue
            if header.version > VERSION:
                raise LogError(
                    f"{self.path}: format {header.version} is of a newer Fanlight; this one reads up to {VERSION}: "
                    "start the newer one, or use another folder"
                )
            if header.generation > self.generation:
                self.generation, self.floor = header.generation, header.floor
                self.seed = seed_of(header.generation, header.salt)
                self.bodies, self.messages = header.kind == BODIES, header.messages
                self.range_first, self.range_end = header.range_first, header.range_end
        if self.generation:
            return True
        for at in range(SEGMENT_HEADER):
            if page[at]:
                raise DamagedHeader(f"{self.path}: both copies of its header are damaged")
        return False

    cdef int begin(self, uint64_t generation, uint64_t salt, uint64_t floor) except -1:
        """A new use of the file: what it holds is nothing from now on."""
        self.first = self.last = self.first_number = 0
        self.end = SEGMENT_HEADER
        self.index_length = 0
        self.indexed = self.recalled = self.failed = self.superseded = False
        self.make_index()
        self.generation, self.floor = generation, floor
        self.seed = seed_of(generation, salt)
        self.bodies = False
        return 0

    cdef bint replaces(self, Segment other):
        """Has this one the rest of the messages of an older one, which is before the floor?"""
        cdef uint64_t number = other.range_first if other.bodies else other.first_number
        return other.generation < self.generation and self.range_first <= number < self.range_end

    cdef int make_index(self) except -1:
        """Room for an entry in each 4 KiB."""
        cdef uint32_t size = <uint32_t> (self.capacity // INDEXED_BYTES + 2)
        if self.index is NULL or self.index_size < size:
            deallocate(self.index)
            self.index_size = 0
            self.index = <IndexPlace*> allocate(size * sizeof(IndexPlace))
            if self.index is NULL:
                raise MemoryError()
            self.index_size = size
        return 0

    cdef int trim_index(self) noexcept:
        """Nothing is noted any more: keep no more memory than there are places."""
        cdef IndexPlace* places
        if 0 < self.index_length < self.index_size:
            places = <IndexPlace*> reallocate(self.index, self.index_length * sizeof(IndexPlace))
            if places is not NULL:
                self.index, self.index_size = places, self.index_length
        return 0

    cdef int drop_index(self) noexcept:
        """It is read, or made, again when something is looked for."""
        deallocate(self.index)
        self.index = NULL
        self.index_length = self.index_size = 0
        return 0

    @property
    def places(self):
        """[(number, sequence, offset)] of its index, for tests and checks."""
        cdef uint32_t i
        return [
            (self.index[i].number, self.first + self.index[i].sequence, self.index[i].offset)
            for i in range(self.index_length)
        ]

    @property
    def index_bytes(self):
        """Memory of its index."""
        return self.index_size * sizeof(IndexPlace)

    cdef int write_header(self, Disk disk, uint64_t salt) noexcept nogil:
        """Make its generation durable. -errno: the file must not be used."""
        cdef char page[SEGMENT_HEADER]
        cdef SegmentHeader* header = <SegmentHeader*> page
        cdef int result
        memset(page, 0, SEGMENT_HEADER)
        memcpy(header.magic, MAGIC, 8)
        header.version = VERSION
        header.generation, header.salt, header.floor = self.generation, salt, self.floor
        if self.bodies:
            header.kind, header.messages = BODIES, self.messages
            header.range_first, header.range_end = self.range_first, self.range_end
        header.crc = header_crc(header, sizeof(SegmentHeader))
        memcpy(page + SECOND_COPY, page, sizeof(SegmentHeader))
        result = disk.write(self.fd, page, SEGMENT_HEADER, 0)
        return result if result < 0 else disk.sync(self.fd)

    cdef void note(self, const EntryHeader* header, uint64_t offset) noexcept nogil:
        """It has this entry, behind those noted before."""
        cdef IndexPlace* place
        if self.last == 0:
            self.first, self.first_number = header.sequence, header.number
        self.last = header.sequence
        self.end = offset + entry_size(header.length)
        if self.index_length == 0 or offset >= self.index[self.index_length - 1].offset + INDEXED_BYTES:
            place = &self.index[self.index_length]
            place.number, place.offset = header.number, <uint32_t> offset
            place.sequence = <uint32_t> (header.sequence - self.first)
            self.index_length += 1

    cdef int copy_index(self, Segment noted) noexcept:
        """What was noted elsewhere is noted here, at once, unless it is already, or the file is used again."""
        if self.index_length == 0 and self.generation == noted.generation:
            self.first, self.first_number, self.end = noted.first, noted.first_number, noted.end
            self.index, noted.index = noted.index, self.index
            self.index_length, self.index_size = noted.index_length, noted.index_size
            self.last, self.recalled = noted.last, noted.recalled
        return 0

    cdef uint64_t find(self, uint64_t number, uint64_t sequence) noexcept nogil:
        """The offset of an entry that is not behind this number and this sequence, and less than 4 KiB before."""
        cdef uint32_t behind = self.behind(number, sequence)
        return self.index[behind - 1].offset if behind else <uint64_t> SEGMENT_HEADER

    cdef int span(self, uint64_t number, uint64_t* offset, uint64_t* end, uint64_t* until) noexcept nogil:
        """Where the entry of a message is: from `offset` on, and before `end`. So is that of each that follows it and
        is less than `until`.
        """
        cdef uint32_t behind = self.behind(number, <uint64_t> -1)
        offset[0] = self.index[behind - 1].offset if behind else <uint64_t> SEGMENT_HEADER
        end[0], until[0] = self.end, number + 1
        if behind < self.index_length:
            end[0], until[0] = self.index[behind].offset, self.index[behind].number
        return 0

    cdef uint32_t behind(self, uint64_t number, uint64_t sequence) noexcept nogil:
        """The first place behind this number or this sequence."""
        cdef uint32_t low = 0, high = self.index_length, middle
        while low < high:
            middle = (low + high) // 2
            if self.index[middle].number <= number and self.first + self.index[middle].sequence <= sequence:
                low = middle + 1
            else:
                high = middle
        return low


cdef class SegmentReader:
    """Reads a segment from anywhere on."""

    def __cinit__(self, Disk disk not None, Segment segment not None):
        self.disk, self.segment = disk, segment
        self.read_bytes = READ_BYTES

    def __dealloc__(self):
        deallocate(self.buffer)

    cdef const char* view(self, uint64_t offset, size_t size) except? NULL:
        """`size` bytes at `offset`; NULL without an exception: the file ends before."""
        cdef Py_ssize_t done
        if offset >= self.start and offset + size <= self.start + self.filled:
            return self.buffer + (offset - self.start)
        if size > self.capacity:
            deallocate(self.buffer)
            self.capacity = self.filled = 0
            self.buffer = <char*> allocate(max(size, self.read_bytes))
            if self.buffer is NULL:
                raise MemoryError()
            self.capacity = max(size, self.read_bytes)
        self.start, self.filled = offset, 0
        with nogil:
            done = self.disk.read(self.segment.fd, self.buffer, self.capacity, offset)
        checked(done, self.segment.path)
        self.filled = done
        return self.buffer if self.filled >= size else NULL

    cdef EntryHeader* entry(self, uint64_t offset) except? NULL:
        """The entry at `offset`; NULL without an exception: there is no whole one of this generation."""
        cdef EntryHeader* header = <EntryHeader*> self.view(offset, ENTRY_HEADER)
        cdef uint32_t length
        if header is NULL or header.length == 0 or header.sequence == 0:
            return NULL
        length = header.length
        if offset + entry_size(length) > self.segment.capacity:
            return NULL
        header = <EntryHeader*> self.view(offset, entry_size(length))
        if header is NULL or header.crc != entry_crc(self.segment.seed, <const char*> header, length):
            return NULL
        return header

    cdef uint64_t search(self, uint64_t offset, uint64_t sequence) except? 0:
        """The offset of the next whole entry, from `offset` on, with this sequence or a later one; 0: there is none."""
        cdef const EntryHeader* header
        # What claims to be much later is of no entry, and its checksum need not be computed.
        cdef uint64_t most = sequence + SEQUENCES, spent = 0
        cdef size_t size
        while True:
            header = <const EntryHeader*> self.view(offset, ENTRY_HEADER)
            if header is NULL:
                return 0
            if header.length and sequence <= header.sequence <= most:
                size = entry_size(header.length)
                if self.entry(offset) is not NULL:
                    return offset
                if offset + size <= self.segment.capacity:
                    spent += size
                if spent > SEARCH_BYTES:
                    return self.search_together(offset + 8, sequence)
            offset += 8

    cdef uint64_t search_together(self, uint64_t offset, uint64_t sequence) except? 0:
        """The same, of bytes in which much looks like an entry: messages in a file that is used again, or made so."""
        # Each that looks like one may claim to be as long as the file: one by one the time would be its square.
        cdef const EntryHeader* header
        cdef const char* data
        cdef RangeCrc ranges = RangeCrc()
        cdef size_t size, at = 0, end
        if offset + ENTRY_HEADER > self.segment.capacity:
            return 0
        self.view(offset, self.segment.capacity - offset)
        data, size = self.buffer + (offset - self.start), self.filled - (offset - self.start)
        size = min(size, self.segment.capacity - offset)
        ranges.begin(data, size)
        with nogil:
            while at + ENTRY_HEADER <= size:
                header = <const EntryHeader*> (data + at)
                end = at + ENTRY_HEADER + header.length
                if (header.length and sequence <= header.sequence <= sequence + SEQUENCES
                        and at + entry_size(header.length) <= size
                        and header.crc == ranges.of(self.segment.seed, at + 4, end)):
                    return offset + at
                at += 8
        return 0

    cdef int note_all(self) except -1:
        """The segment was not read when the log was opened: note what it has. Other threads may do the same."""
        cdef Segment segment = self.segment, noted = Segment(segment.path, -1)
        cdef uint64_t offset = self.search(SEGMENT_HEADER, 1)
        cdef EntryHeader* header
        noted.generation, noted.capacity = segment.generation, segment.capacity
        noted.make_index()
        while offset:
            header = self.entry(offset)
            noted.note(header, offset)
            offset += entry_size(header.length)
            if self.entry(offset) is NULL:
                offset = self.search(offset, noted.last + 1)
        noted.trim_index()
        segment.copy_index(noted)
        return 0
