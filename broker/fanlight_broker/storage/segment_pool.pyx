# cython: language_level=3
"""The files of a log: see segment_pool.pxd."""

import errno
import os

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.storage.segments cimport SEGMENT_HEADER, Segment
from fanlight_broker.storage.segment_index import INDEX_NAME, index_path
from fanlight_broker.storage.segments import NAME, DamagedHeader

cdef enum:
    ZEROS = 1 << 20
    CYCLE_MAX = 8           # files that are kept for what is written until the floor is raised again
    RESERVE_PART = 16       # of a segment: the size of a file of the reserve

cdef bytes zeros = bytes(ZEROS)

FULL = (errno.ENOSPC, errno.EDQUOT)


def generation_of(Segment segment):
    return segment.generation


cdef class SegmentPool:
    """The files below `folder`, opened. LogError: one is of a newer format."""

    def __cinit__(self, folder, Disk disk not None, uint64_t segment_bytes, uint64_t salt, Py_ssize_t spares,
                  Py_ssize_t reserves):
        self.folder, self.disk, self.salt, self.spares, self.reserves = folder, disk, salt, spares, reserves
        self.segment_bytes = max(segment_bytes, <uint64_t> 2 * SEGMENT_HEADER)
        self.reserve_bytes = max(segment_bytes // RESERVE_PART, <uint64_t> 2 * SEGMENT_HEADER)
        self.used, self.bodies, self.ready, self.doomed, self.unreadable = [], [], [], [], []
        self.orphans, self.reserve = [], []

    cdef int open(self) except -1:
        cdef Segment segment
        names = sorted(os.listdir(self.folder))
        indexes = {match[1] for match in map(INDEX_NAME.fullmatch, names) if match is not None}
        for name in names:
            match = NAME.fullmatch(name)
            if match is None:
                continue
            segment = self.open_file(self.folder / name, False)
            segment.has_index_file = match[1] in indexes
            indexes.discard(match[1])
            self.number = max(self.number, <uint64_t> int(match[1]))
            try:
                if segment.read_header(self.disk):
                    (self.bodies if segment.bodies else self.used).append(segment)
                else:
                    self.give_back(segment)  # it was being made, or waited for its first use
            except DamagedHeader:
                self.unreadable.append(segment)
            self.generation = max(self.generation, segment.generation)
            self.floor = max(self.floor, segment.floor)
        self.used.sort(key=generation_of)
        self.orphans = [os.fsencode(self.folder / f"index-{number}") for number in indexes]
        return 0

    cdef Segment open_file(self, path, bint create):
        cdef int fd = self.disk.open_file(os.fsencode(path), create)
        checked(fd, path)
        return Segment(path, fd)

    cdef Segment take(self, uint64_t capacity):
        """A file for its next use, with room for this many bytes. OSError: there is none now."""
        cdef Segment segment
        cdef int result
        if capacity <= self.segment_bytes and self.ready:
            segment = self.ready.pop()
        else:
            segment = self.make_or_reserve(capacity)
        self.generation += 1
        segment.begin(self.generation, self.salt, self.floor)
        with nogil:
            result = segment.write_header(self.disk, self.salt)
        if result < 0:
            self.doomed.append(segment)  # it is not trusted any more
            checked(result, segment.path)
        self.used.append(segment)
        self.taken += 1
        return segment

    cdef Segment make_or_reserve(self, uint64_t capacity):
        """No file was made ahead of time: make one, or take one of the reserve."""
        try:
            return self.make(max(capacity, self.segment_bytes))
        except OSError:
            if capacity > self.reserve_bytes or not self.reserve:
                raise
            return self.reserve.pop()

    cdef Segment make(self, uint64_t capacity):
        """A new file, full of zeros, with a durable name."""
        cdef Segment segment
        cdef Disk disk = self.disk
        cdef char* source = zeros
        cdef uint64_t offset = 0
        cdef int result = 0, fd
        segment = self.create()
        segment.capacity = capacity
        fd = segment.fd
        with nogil:
            while offset < capacity and result == 0:
                result = disk.write(fd, source, min(<uint64_t> ZEROS, capacity - offset), offset)
                offset += ZEROS
            if result == 0:
                result = disk.sync(fd)
        try:
            checked(result, segment.path)
            self.sync_folder()
        except OSError:
            self.remove(segment)
            raise
        return segment

    cdef Segment create(self):
        self.number += 1
        return self.open_file(self.folder / f"log-{self.number:08}", True)

    cdef Segment begin_bodies(self, uint64_t first, uint64_t end):
        """A new file for what is left of the messages with these numbers. It counts once `finish_bodies` is done."""
        cdef Segment segment = self.create()
        self.generation += 1
        segment.begin(self.generation, self.salt, self.floor)
        segment.bodies, segment.range_first, segment.range_end = True, first, end
        return segment

    cdef int finish_bodies(self, Segment segment) except -1:
        """What was written to it is all: from now on it stands for the files that it was made of."""
        cdef Disk disk = self.disk
        cdef int result
        segment.capacity = segment.end
        with nogil:
            result = disk.sync(segment.fd)
        checked(result, segment.path)
        self.sync_folder()
        with nogil:
            result = segment.write_header(disk, self.salt)
        return checked(result, segment.path)

    cdef int drop_replaced(self) except -1:
        """After a start: files whose messages compaction has put elsewhere are not needed any more."""
        cdef Segment segment, other
        for segment in list(self.bodies):
            found = [other for other in self.used if other.last == 0 and segment.replaces(other)]
            found += [other for other in self.bodies if segment.replaces(other)]
            if found:
                checked(self.disk.sync(segment.fd), segment.path)  # its header may have survived a kill only
            for other in found:
                self.give_back(other)
        return 0

    cdef int prepare(self) except -1:
        """Have as many files ready as there should be, and remove those that are too many."""
        while self.doomed:
            self.remove(self.doomed.pop())
        while self.orphans:
            self.unlink(self.orphans.pop())
        while len(self.reserve) < self.reserves:
            try:
                self.reserve.append(self.make(self.reserve_bytes))
            except OSError as error:
                if error.errno not in FULL or len(self.ready) < 2:
                    raise
                self.remove(self.ready.pop())  # a larger file makes room
        while len(self.ready) < self.spares:
            self.ready.append(self.make(self.segment_bytes))
        return 0

    cdef int raise_floor(self, uint64_t sequence) except -1:
        """What is before it is given back soon, and is needed again before the next time: as many files as now."""
        self.floor = sequence
        self.cycle, self.taken = min(self.taken, <Py_ssize_t> CYCLE_MAX), 0
        return 0

    cdef int give_back(self, Segment segment) except -1:
        """Its entries are not needed any more, or it has none."""
        cdef Py_ssize_t kept = self.spares + max(self.spares, self.cycle)
        if segment in self.used:
            self.used.remove(segment)
        if segment in self.bodies:
            self.bodies.remove(segment)
        if segment.damaged:
            self.doomed.append(segment)
        elif segment.capacity == self.segment_bytes and len(self.ready) < kept:
            self.ready.append(segment)
        elif segment.capacity == self.reserve_bytes and len(self.reserve) < self.reserves:
            self.reserve.append(segment)
        else:
            self.doomed.append(segment)
        return 0

    cdef uint64_t safe_floor(self) except? 0:
        """The floor if the header that has the highest is damaged: the second highest of those with a synced entry."""
        cdef Segment segment
        cdef uint64_t highest = 0, second = 0
        for segment in self.used:
            if segment.first and segment.floor > second:
                second = min(segment.floor, highest)
                highest = max(segment.floor, highest)
        return second

    cdef int order(self) except -1:
        """Once all was read: the first entries of those not superseded rise. Files that follow are in order."""
        cdef Segment segment
        cdef uint64_t following = -1
        for segment in reversed(self.used):
            segment.superseded = segment.first >= following
            if segment.first and not segment.superseded:
                following = segment.first
        self.ordered = True
        return 0

    cdef int remove(self, Segment segment) except -1:
        cdef int result = self.disk.unlink(segment.c_path)
        segment.close(self.disk)
        if segment.has_index_file:
            self.orphans.append(os.fsencode(index_path(segment.path)))
        return checked(result, segment.path)

    cdef int unlink(self, bytes path) except -1:
        return checked(self.disk.unlink(path), os.fsdecode(path))

    cdef int keep_aside(self) except -1:
        """Damaged files are kept in `damaged`: those with a header until somebody removes them there, too."""
        cdef Segment segment
        cdef list damaged = [each for each in self.used if (<Segment> each).damaged]
        if not damaged and not self.unreadable:
            return 0
        aside = self.folder / "damaged"
        aside.mkdir(exist_ok=True)
        for segment in damaged:
            target = aside / f"{segment.path.name}-{segment.generation}"
            if not target.exists():
                checked(self.disk.link(segment.c_path, os.fsencode(target)), target)
        for segment in self.unreadable:
            target = aside / f"{segment.path.name}-{os.urandom(4).hex()}"
            checked(self.disk.rename(segment.c_path, os.fsencode(target)), target)
            segment.close(self.disk)
        self.unreadable = []
        checked(self.disk.sync_folder(os.fsencode(aside)), aside)
        return self.sync_folder()

    cdef int sync_folder(self) except -1:
        cdef bytes path = os.fsencode(self.folder)
        cdef char* c_path = path
        cdef Disk disk = self.disk
        cdef int result
        with nogil:
            result = disk.sync_folder(c_path)
        return checked(result, self.folder)

    cdef int close(self) except -1:
        cdef Segment segment
        for segment in self.used + self.bodies + self.ready + self.reserve + self.doomed + self.unreadable:
            segment.close(self.disk)
        self.used, self.bodies, self.ready, self.doomed, self.unreadable = [], [], [], [], []
        self.reserve = []
        return 0
