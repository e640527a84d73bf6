# cython: language_level=3
"""One segment from its first entry to its last, without the rest of the log: for check, repair and backup."""

import os
from typing import NamedTuple

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk, ReadOnlyDisk, checked
from fanlight_broker.storage.segments cimport SEGMENT_HEADER, EntryHeader, Segment, SegmentReader, entry_size


class Gap(NamedTuple):
    """Bytes that are no whole entry, with one behind them."""

    offset: int
    end: int
    sequence: int   # of the entry behind it
    number: int     # of its first message


class Walk(NamedTuple):
    """What a segment has."""

    entries: int
    end: int        # offset behind the last whole entry
    gaps: list      # Gap


def walk(path):
    """Walk through a segment, which another process may be writing. None: it was never used.

    LogError: its header is damaged, or of a newer format. OSError: the disk's.

    The writer goes forwards. So what is not whole at the first sight, but has a whole entry behind it, is read once
    more: now it is whole, unless it is damaged. Up to `end` all is there.
    """
    cdef Disk disk = ReadOnlyDisk()
    cdef int fd = disk.open_file(os.fsencode(path), False)
    checked(fd, path)
    cdef Segment segment = Segment(path, fd)
    cdef SegmentReader reader
    cdef EntryHeader* header
    cdef uint64_t offset = SEGMENT_HEADER, found, sequence = 0, entries = 0
    cdef list gaps = []
    cdef bint again = False
    if not segment.read_header(disk):
        return None
    reader = SegmentReader(disk, segment)
    while True:
        header = reader.entry(offset)
        if header is not NULL:
            sequence, again = header.sequence, False
            offset += entry_size(header.length)
            entries += 1
            continue
        found = reader.search(offset, sequence + 1)
        if found == 0:
            return Walk(entries, offset, gaps)
        if again:
            header = reader.entry(found)
            gaps.append(Gap(offset, found, header.sequence, header.number))
            offset, again = found, False
        else:
            reader, again = SegmentReader(disk, segment), True
