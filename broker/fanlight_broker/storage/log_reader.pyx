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

from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.storage.entry_reader cimport EntryCursor
from fanlight_broker.storage.segments cimport (
    SEGMENT_HEADER, UNSYNCED_MAX, EntryHeader, Segment, SegmentReader, entry_size,
)


@dataclass(frozen=True, slots=True)
class Damage:
    """Entries that were synced and are not there any more."""

    path: Path
    offset: int  # in the file, where the first of them was looked for
    first: int = 0  # sequences; 0: a file cannot be read at all
    last: int = 0

    def __str__(self):
        what = f"entries {self.first} to {self.last} are lost" if self.last else "both copies of the header"
        return f"{self.path}: damaged at byte {self.offset}: {what}"


cdef int first_entry(Disk disk, Segment segment, bint anywhere) except -1:
    """Note where a segment begins. anywhere: if its beginning is damaged, it is the first entry that is whole."""
    cdef SegmentReader reader = SegmentReader(disk, segment)
    cdef EntryHeader* header
    cdef uint64_t offset
    if segment.first:
        return 0
    reader.read_bytes = SEGMENT_HEADER
    header = reader.entry(SEGMENT_HEADER)
    if header is NULL and anywhere:
        reader = SegmentReader(disk, segment)
        offset = reader.search(SEGMENT_HEADER, 1)
        header = reader.entry(offset) if offset else NULL
    if header is not NULL:
        segment.first, segment.first_number = header.sequence, header.number
    return 0


cdef class LogReader(EntryCursor):
    """
    floor  of the log: the sequence of an entry that was synced; 0: everything is wanted
    after  the sequence of the last entry that is not wanted
    """

    def __cinit__(self, Disk disk not None, list segments not None, uint64_t floor, uint64_t after):
        self.disk, self.segments, self.floor = disk, segments, floor
        self.expected = max(floor, after + 1)
        self.damage, self.cut = [], []
        self.index = self.begun = self.begin(self.expected)
        self.sequence = self.expected - 1

    cdef Py_ssize_t begin(self, uint64_t first) except -1:
        """The segment that may have the entry `first`. Of those before it only the beginning is read."""
        cdef Segment segment
        cdef Py_ssize_t index, found = 0
        for index, segment in enumerate(self.segments):
            first_entry(self.disk, segment, False)
            if segment.first and segment.first <= first:
                found = index
        for segment in self.segments[:found]:
            first_entry(self.disk, segment, True)
            self.generation = segment.generation
        return found

    cdef int finish(self) except -1:
        """All was read: cut off what a torn group has left behind the end, so that it is never taken for entries.

        What was found counts as synced from now on. After a kill it may only have been written, so it is synced here.
        """
        cdef Segment segment
        for segment in self.segments:
            if segment in self.cut or (segment.generation == self.generation and segment.last and not segment.damaged):
                if segment.end < segment.capacity:
                    checked(self.disk.truncate(segment.fd, segment.end), segment.path)
                    segment.capacity = segment.end
                checked(self.disk.sync(segment.fd), segment.path)
            elif segment is self.segments[len(self.segments) - 1]:
                checked(self.disk.sync(segment.fd), segment.path)  # its header: files are given back by what it says
        return 0

    @property
    def last(self):
        """The sequence of the log's last entry, once all has been read."""
        return self.expected - 1

    cdef double share(self):
        """How much of what is to be read was read, 0 to 1: less than that if the last file is not full."""
        cdef Segment segment
        cdef uint64_t before = 0, total = 0
        cdef Py_ssize_t index
        for index in range(self.begun, len(self.segments)):
            segment = self.segments[index]
            before += segment.capacity if index < self.index else self.offset if index == self.index else 0
            total += segment.capacity
        return before / <double> max(total, 1)

    cdef bint next_record(self) except -1:
        """Go to the next record. False: the log has ended."""
        while not self.record():
            if not self.next_entry():
                return False
        return True

    cdef bint next_entry(self) except -1:
        cdef EntryHeader* header
        while self.index < len(self.segments):
            if self.reader is None:
                self.go_to(self.index, SEGMENT_HEADER)
            if self.next_first and self.next_first <= self.expected:
                # The later file has it, and is right if both have.
                self.note_rest()
                self.go_to(self.next_index, SEGMENT_HEADER)
            header = self.reader.entry(self.offset)
            if header is not NULL and header.sequence <= self.expected:
                if self.take(header):
                    return True
            elif not self.bridge():
                break
        self.miss_floor()
        return False

    cdef int miss_floor(self) except -1:
        """The log has ended. If that is before its floor, this was synced and is lost."""
        cdef Segment segment
        if self.expected <= self.floor and not self.damage and self.segments:
            segment = self.segments[self.index]
            segment.damaged = True
            self.damage.append(Damage(segment.path, self.offset, self.expected, self.floor))
        return 0

    cdef int go_to(self, Py_ssize_t index, uint64_t offset) except -1:
        cdef Segment segment
        self.reader = SegmentReader(self.disk, <Segment> self.segments[index])
        self.index, self.offset = index, offset
        self.next_index, self.next_first = index, 0
        while self.next_first == 0 and self.next_index + 1 < len(self.segments):
            self.next_index += 1
            segment = self.segments[self.next_index]
            self.next_first = segment.first
        return 0

    cdef int note_rest(self) except -1:
        """Cut this file off here in the end, if there are entries behind: of a group that is in the next file."""
        if self.reader.search(self.offset, self.expected):
            self.cut.append(self.reader.segment)
        return 0

    cdef bint take(self, EntryHeader* header) except -1:
        """Is this entry the next one? If it came before, it is passed over."""
        cdef Segment segment = self.reader.segment
        cdef bint wanted = header.sequence == self.expected
        if segment.last == 0:
            segment.make_index()
        segment.note(header, self.offset)
        self.generation = segment.generation
        if wanted:
            self.show(header)
            self.expected += 1
        self.offset += entry_size(header.length)
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
        proven = proven or self.expected <= self.floor
        if found_index < 0 or not (proven or found == self.expected):
            return False
        if found != self.expected:
            self.lose(found_index, found_offset, found)
        if found_index != self.index:
            self.note_rest()
            self.go_to(found_index, found_offset)
        self.offset = found_offset
        return True

    cdef int lose(self, Py_ssize_t found_index, uint64_t found_offset, uint64_t found) except -1:
        """The entries from the next one up to `found` were synced, and are not there."""
        cdef Segment segment = self.reader.segment
        cdef uint64_t offset = self.offset
        if found_index != self.index and found_offset != SEGMENT_HEADER:
            # The later file has lost its beginning.
            segment, offset = self.segments[found_index], SEGMENT_HEADER
        if found_index != self.index or found_offset != offset:
            segment.damaged = True
        self.damage.append(Damage(segment.path, offset, self.expected, found - 1))
        self.expected = found
        return 0
