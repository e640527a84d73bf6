# cython: language_level=3
"""Messages of many numbers at a time: see batch_reader.pxd. For one thread that is not the loop's."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.records cimport MESSAGE
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, EntryHeader, Segment, entry_crc, entry_size, get_varint,
)
from fanlight_broker.storage.segments import LogError
from fanlight_broker.wire.allocator cimport allocate, deallocate

cdef extern from "<fcntl.h>" nogil:
    int posix_fadvise(int fd, long offset, long size, int advice)
    int POSIX_FADV_WILLNEED

cdef enum:
    NUMBERS_MOST = 16384        # in one batch
    NEAR_BYTES = 16 * 1024      # between two pieces: reading them costs less than another read


cdef class BatchReader:
    """Of this log. It holds memory from `plan` to `release` only."""

    def __cinit__(self, Log log not None):
        self.log = log

    def __dealloc__(self):
        self.release()

    cdef int release(self) noexcept:
        deallocate(self.found)
        deallocate(self.pieces)
        deallocate(self.buffer)
        self.found, self.pieces, self.buffer = NULL, NULL, NULL
        self.count = self.piece_count = self.announced = 0
        self.until = 0
        self.segments = None
        return 0

    cdef Py_ssize_t plan(self, const uint64_t* numbers, Py_ssize_t start, Py_ssize_t end, size_t most) except -1:
        """Find the entries of numbers that rise, from numbers[start] on: as many as `most` bytes have, one at least.

        Returns the index of the next. What has no place, or in more than `most` bytes, is not read here.
        """
        cdef Py_ssize_t at = start
        end = min(end, start + NUMBERS_MOST)
        self.release()
        self.segments, self.filled = [], 0
        self.found = <Found*> allocate((end - start) * sizeof(Found) + 1)
        self.pieces = <Piece*> allocate((end - start) * sizeof(Piece) + 1)
        if self.found is NULL or self.pieces is NULL:
            raise MemoryError()
        while at < end and self.add(numbers[at], most):
            at += 1
        return at

    cdef bint add(self, uint64_t number, size_t most) except -1:
        """False: it is of the next batch."""
        cdef Piece* last = &self.pieces[self.piece_count - 1] if self.piece_count else NULL
        cdef Segment segment
        cdef uint64_t offset = 0, end = 0, behind, until = 0
        self.found[self.count].number, self.found[self.count].body = number, NULL
        if number < self.until:
            self.count += 1
            last.end = self.count
            return True
        self.until = 0
        try:
            segment = self.log.span_of(number, &offset, &end, &until)
        except (LogError, OSError):
            segment = None      # whoever looks for it alone says why
        if segment is None or end - offset > most:
            self.count += 1
            return True
        if last is not NULL and self.segments[len(self.segments) - 1] is segment and offset >= last.offset:
            behind = last.offset + last.size
            if offset <= behind + NEAR_BYTES:
                if end > behind:
                    if self.filled + end - behind > most:
                        return False
                    self.filled += end - behind
                    last.size += end - behind
                self.count += 1
                last.end = self.count
                self.until = until
                return True
        if self.filled + end - offset > most:
            return False
        if last is NULL or self.segments[len(self.segments) - 1] is not segment:
            self.segments.append(segment)
        last = &self.pieces[self.piece_count]
        last.fd, last.seed, last.offset, last.size = segment.fd, segment.seed, offset, end - offset
        last.first, last.end = self.count, self.count + 1
        self.filled += last.size
        self.piece_count += 1
        self.count += 1
        self.until = until
        return True

    cdef void announce(self, Py_ssize_t pieces) noexcept nogil:
        """Have the kernel read the first pieces, so many."""
        cdef Piece* piece
        while self.announced < min(pieces, self.piece_count):
            piece = &self.pieces[self.announced]
            posix_fadvise(piece.fd, <long> piece.offset, <long> piece.size, POSIX_FADV_WILLNEED)
            self.announced += 1

    cdef int read(self, BatchReader following) except -1:
        """Fill in where the records are, of those that are found, until `release`. Announce what `following` plans."""
        cdef Disk disk = self.log.disk
        cdef Piece* piece
        cdef Py_ssize_t i, done
        cdef char* data
        self.buffer = <char*> allocate(self.filled + 1)
        if self.buffer is NULL:
            raise MemoryError()
        data = self.buffer
        with nogil:
            for i in range(self.piece_count):
                piece = &self.pieces[i]
                done = disk.read(piece.fd, data, piece.size, piece.offset)
                following.announce(i + 1)
                if done > 0:
                    look_through(data, data + done, piece, self.found)
                data += piece.size
            following.announce(following.piece_count)
        return 0


cdef int look_through(const char* at, const char* limit, const Piece* piece, Found* found) noexcept nogil:
    """Whole entries from `at` on have these records."""
    cdef const EntryHeader* header
    cdef const char* record
    cdef const char* end
    cdef Py_ssize_t i = piece.first
    cdef uint64_t size, number
    while at + ENTRY_HEADER <= limit:
        header = <const EntryHeader*> at
        if header.length == 0 or entry_size(header.length) > <size_t> (limit - at):
            return 0
        if header.crc != entry_crc(piece.seed, at, header.length):
            return 0
        record, end = at + ENTRY_HEADER, at + ENTRY_HEADER + header.length
        while record < end:
            at = get_varint(record + 1, end, &size)
            if at is NULL or size > <uint64_t> (end - at):
                return 0
            if record[0] == MESSAGE and size >= sizeof(number):
                memcpy(&number, at, sizeof(number))
                while i < piece.end and found[i].number < number:
                    i += 1
                if i == piece.end:
                    return 0
                if found[i].number == number:
                    found[i].body, found[i].size = at, <Py_ssize_t> size
            record = at + size
        at = <const char*> header + entry_size(header.length)
    return 0
