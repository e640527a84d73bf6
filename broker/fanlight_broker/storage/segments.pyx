# cython: language_level=3
"""Segments, the files of the log: their headers, and how the entries of one are read and looked for."""

import re

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from fanlight_broker.storage.crc32c cimport extend_crc
from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.wire.allocator cimport allocate, deallocate

cdef extern from "<unistd.h>":
    int close(int fd)

cdef enum:
    VERSION = 1
    READ_BYTES = 1 << 20
    INDEXED_BYTES = 4096    # an entry is noted for each

cdef const char* MAGIC = b"fanlight"

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


cdef uint32_t header_crc(const SegmentHeader* header) noexcept nogil:
    return extend_crc(extend_crc(0, <const char*> header, 12), <const char*> header + 16, sizeof(SegmentHeader) - 16)


cdef uint32_t seed_of(const SegmentHeader* header) noexcept nogil:
    return extend_crc(0, <const char*> &header.generation, 16)


cdef void make_header(char* page, uint64_t generation, uint64_t salt) noexcept nogil:
    """The first page of a segment."""
    cdef SegmentHeader header
    memcpy(header.magic, MAGIC, 8)
    header.version = VERSION
    header.generation, header.salt = generation, salt
    header.crc = header_crc(&header)
    memset(page, 0, SEGMENT_HEADER)
    memcpy(page, &header, sizeof(SegmentHeader))
    memcpy(page + SECOND_COPY, &header, sizeof(SegmentHeader))


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
            if memcmp(header.magic, MAGIC, 8) != 0 or header.crc != header_crc(header):
                continue
            if header.version > VERSION:
                raise LogError(
                    f"{self.path}: format {header.version} is of a newer Fanlight; this one reads up to {VERSION}: "
                    "start the newer one, or use another folder"
                )
            if header.generation > self.generation:
                self.generation, self.seed = header.generation, seed_of(header)
        if self.generation:
            return True
        for at in range(SEGMENT_HEADER):
            if page[at]:
                raise DamagedHeader(f"{self.path}: both copies of its header are damaged")
        return False

    cdef int begin(self, uint64_t generation, uint64_t salt) except -1:
        """A new use of the file: what it holds is nothing from now on."""
        self.first = self.last = self.first_number = 0
        self.end = SEGMENT_HEADER
        self.index_length = 0
        self.make_index()
        self.generation = generation
        return 0

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

    cdef int write_header(self, Disk disk, uint64_t salt) noexcept nogil:
        """Make its generation durable. -errno: the file must not be used."""
        cdef char page[SEGMENT_HEADER]
        cdef int result
        make_header(page, self.generation, salt)
        self.seed = seed_of(<SegmentHeader*> page)
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

    cdef uint64_t find(self, uint64_t number, uint64_t sequence) noexcept nogil:
        """The offset of an entry that is not behind this number and this sequence, and less than 4 KiB before."""
        cdef uint32_t low = 0, high = self.index_length, middle
        while low < high:
            middle = (low + high) // 2
            if self.index[middle].number <= number and self.first + self.index[middle].sequence <= sequence:
                low = middle + 1
            else:
                high = middle
        return self.index[low - 1].offset if low else <uint64_t> SEGMENT_HEADER


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
        cdef uint64_t most = sequence + (<uint64_t> 1 << 40)
        while True:
            header = <const EntryHeader*> self.view(offset, ENTRY_HEADER)
            if header is NULL:
                return 0
            if header.length and sequence <= header.sequence <= most and self.entry(offset) is not NULL:
                return offset
            offset += 8

    cdef int note_all(self) except -1:
        """The segment was not read when the log was opened: note what it has."""
        cdef Segment segment = self.segment
        cdef uint64_t offset = self.search(SEGMENT_HEADER, 1)
        cdef EntryHeader* header
        segment.make_index()
        while offset:
            header = self.entry(offset)
            segment.note(header, offset)
            offset += entry_size(header.length)
            if self.entry(offset) is NULL:
                offset = self.search(offset, segment.last + 1)
        return 0
