# cython: language_level=3
"""The entries of a log after it was opened: see log_reader.pxd.

A gap is normal at the end of the log only: the last group was not synced, so any part of it may be missing after a
power cut. Each entry says how many of those before it may not have been synced when it was written. So a whole entry
behind a gap proves that the gap was synced before, if it does not count all that is missing among them: that is damage.

Entries are in several segments where a group was written again after a failed write: they are the same entries.
"""

from dataclasses import dataclass
from pathlib import Path

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, SEGMENT_HEADER, UNSYNCED_MAX, EntryHeader, Segment, SegmentReader, entry_size, get_varint,
)


@dataclass(frozen=True, slots=True)
class Damage:
    """Entries that were synced and are not there any more."""

    path: Path
    offset: int  # in the file, where the first of them was looked for
    first: int  # sequences
    last: int

    def __str__(self):
        return f"{self.path}: damaged at byte {self.offset}: entries {self.first} to {self.last} are lost"


cdef class LogReader:
    """after  the sequence of the last entry that is not wanted"""

    def __cinit__(self, Disk disk not None, list segments not None, uint64_t after):
        self.disk, self.segments, self.expected = disk, segments, after + 1
        self.damage = []
        self.index = self.begin(after)
        self.sequence = after

    cdef Py_ssize_t begin(self, uint64_t after) except -1:
        """The first segment that may have a later entry."""
        cdef Segment segment
        cdef Py_ssize_t index, first = 0
        for index, segment in enumerate(self.segments):
            reader = SegmentReader(self.disk, segment)
            self.find_first(reader)
            if 0 < segment.first <= after + 1:
                first = index
        return first

    cdef int find_first(self, SegmentReader reader) except -1:
        cdef EntryHeader* header = reader.entry(SEGMENT_HEADER)
        reader.segment.first = header.sequence if header is not NULL else 0
        return 0

    @property
    def last(self):
        """The sequence of the log's last entry, once all has been read."""
        return self.expected - 1

    cdef bint next_record(self) except -1:
        """Go to the next record. False: the log has ended."""
        cdef uint64_t size
        while self.at == self.end:
            if not self.next_entry():
                return False
        self.type = <unsigned char> self.at[0]
        self.at = get_varint(self.at + 1, self.end, &size)
        if self.at is NULL or size > <uint64_t> (self.end - self.at):
            raise ValueError(f"{self.reader.segment.path}: entry {self.sequence} has a record longer than itself")
        self.body, self.size = self.at, <Py_ssize_t> size
        self.at += size
        return True

    cdef bint next_entry(self) except -1:
        cdef EntryHeader* header
        while self.index < len(self.segments):
            if self.reader is None:
                self.reader = SegmentReader(self.disk, <Segment> self.segments[self.index])
                self.offset = SEGMENT_HEADER
            header = self.reader.entry(self.offset)
            if header is not NULL and header.sequence <= self.expected:
                if self.take(header):
                    return True
            elif not self.bridge():
                return False
        return False

    cdef bint take(self, EntryHeader* header) except -1:
        """Is this entry the next one? If it came before, it is passed over."""
        cdef Segment segment = self.reader.segment
        cdef bint wanted = header.sequence == self.expected
        if segment.last == 0:
            segment.first = header.sequence
        segment.last = header.sequence
        if wanted:
            self.sequence, self.number, self.time = header.sequence, header.number, header.when >> 16
            self.position = segment.generation << 32 | self.offset
            self.at = <const char*> header + ENTRY_HEADER
            self.end = self.at + header.length
            self.expected += 1
        self.offset += entry_size(header.length)
        segment.end = self.offset
        return wanted

    cdef bint bridge(self) except -1:
        """There is no next entry here: go to where the log goes on. False: it has ended."""
        cdef SegmentReader reader = self.reader
        cdef Py_ssize_t index = self.index, found_index = -1
        cdef uint64_t offset = self.offset, found_offset = 0, found = 0, unsynced
        cdef EntryHeader* header
        cdef bint proven = False
        while True:
            offset = reader.search(offset, self.expected)
            if offset:
                header = reader.entry(offset)
                if found_index < 0 or header.sequence == self.expected:
                    found_index, found_offset, found = index, offset, header.sequence
                unsynced = header.when & 0xFFFF
                proven = unsynced < UNSYNCED_MAX and header.sequence - unsynced > self.expected
                if proven or header.sequence == self.expected:
                    break
                offset += entry_size(header.length)
                continue
            index += 1
            if index == len(self.segments):
                break
            reader, offset = SegmentReader(self.disk, <Segment> self.segments[index]), SEGMENT_HEADER
        if found_index < 0 or not (proven or found == self.expected):
            return False
        if found != self.expected:
            self.reader.segment.damaged = True
            self.damage.append(Damage(self.reader.segment.path, self.offset, self.expected, found - 1))
            self.expected = found
        if found_index != self.index:
            self.reader = SegmentReader(self.disk, <Segment> self.segments[found_index])
        self.index, self.offset = found_index, found_offset
        return True
