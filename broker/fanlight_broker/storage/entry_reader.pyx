# cython: language_level=3
"""Entries of a log that are read: see entry_reader.pxd."""

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, EntryHeader, Segment, SegmentReader, entry_size, get_varint,
)
from fanlight_broker.storage.segments import LogError


cdef class EntryCursor:
    """An entry, and the record of it that was read last. Both are valid until the next entry is read."""

    cdef int show(self, const EntryHeader* header) except -1:
        """This is the entry, at `offset`."""
        self.sequence, self.number, self.time = header.sequence, header.number, header.when >> 16
        self.position = self.reader.segment.generation << 32 | self.offset
        self.at = <const char*> header + ENTRY_HEADER
        self.end = self.at + header.length
        return 0

    cdef bint record(self) except -1:
        """Go to the next record of the entry. False: it has no more."""
        cdef uint64_t size
        if self.at == self.end:
            return False
        self.type = <unsigned char> self.at[0]
        self.at = get_varint(self.at + 1, self.end, &size)
        if self.at is NULL or size > <uint64_t> (self.end - self.at):
            raise LogError(f"{self.reader.segment.path}: entry {self.sequence} has a record longer than itself")
        self.body, self.size = self.at, <Py_ssize_t> size
        self.at += size
        return True

    def records(self):
        """[(type, body)]: the records of the entry that were not read yet."""
        cdef list found = []
        while self.record():
            found.append((self.type, self.body[:self.size]))
        return found


cdef class EntryReader(EntryCursor):
    """Reads from a position on, beside what is appended: one for each thread that reads. Log.reader makes it."""

    def __cinit__(self, Disk disk not None, list segments not None, list bodies not None, size_t read_bytes):
        self.disk, self.segments, self.bodies, self.read_bytes = disk, segments, bodies, read_bytes

    cpdef int seek(self, uint64_t position) except -1:
        """Go to a position, which `Log.locate` has given. LogError: its file is not there any more."""
        cdef Segment segment
        cdef uint64_t generation = position >> 32
        if self.reader is None or self.reader.segment.generation != generation:
            self.reader = None
            for segment in self.segments + self.bodies:
                if segment.generation == generation:
                    break
            else:
                raise LogError(f"no segment of the log has generation {generation}")
            self.reader = SegmentReader(self.disk, segment)
            self.reader.read_bytes = self.read_bytes
        self.offset = position & 0xFFFFFFFF
        self.at = self.end
        return 0

    cpdef bint next_entry(self) except -1:
        """Read the next one. False: the file has no more. LogError: it is damaged, or was given back."""
        cdef Segment segment
        cdef EntryHeader* header
        if self.reader is None:
            raise LogError("an entry is read before its position is known: seek comes first")
        segment = self.reader.segment
        if self.offset >= segment.end:
            return False
        header = self.reader.entry(self.offset)
        if header is NULL:
            raise LogError(f"{segment.path}: damaged at byte {self.offset}")
        self.show(header)
        self.offset += entry_size(header.length)
        return True
