# cython: language_level=3
"""The files of a log: see segment_pool.pxd."""

import os

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.storage.segments cimport SEGMENT_HEADER, Segment
from fanlight_broker.storage.segments import NAME, DamagedHeader

cdef enum:
    ZEROS = 1 << 20

cdef bytes zeros = bytes(ZEROS)


def generation_of(Segment segment):
    return segment.generation


cdef class SegmentPool:
    """The files below `folder`, opened. LogError: one is of a newer format."""

    def __cinit__(self, folder, Disk disk not None, uint64_t segment_bytes, uint64_t salt, Py_ssize_t spares):
        self.folder, self.disk, self.salt, self.spares = folder, disk, salt, spares
        self.segment_bytes = max(segment_bytes, <uint64_t> 2 * SEGMENT_HEADER)
        self.used, self.ready, self.doomed, self.unreadable = [], [], [], []

    cdef int open(self) except -1:
        cdef Segment segment
        for name in sorted(os.listdir(self.folder)):
            match = NAME.fullmatch(name)
            if match is None:
                continue
            segment = self.open_file(self.folder / name, False)
            self.number = max(self.number, <uint64_t> int(match[1]))
            try:
                if segment.read_header(self.disk):
                    self.used.append(segment)
                else:
                    self.give_back(segment)  # it was being made, or waited for its first use
            except DamagedHeader:
                self.unreadable.append(segment)
            self.generation = max(self.generation, segment.generation)
        self.used.sort(key=generation_of)
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
            segment = self.make(max(capacity, self.segment_bytes))
        self.generation += 1
        segment.begin(self.generation, self.salt)
        with nogil:
            result = segment.write_header(self.disk, self.salt)
        if result < 0:
            self.doomed.append(segment)  # it is not trusted any more
            checked(result, segment.path)
        self.used.append(segment)
        return segment

    cdef Segment make(self, uint64_t capacity):
        """A new file, full of zeros, with a durable name."""
        cdef Segment segment
        cdef Disk disk = self.disk
        cdef char* source = zeros
        cdef uint64_t offset = 0
        cdef int result = 0, fd
        self.number += 1
        segment = self.open_file(self.folder / f"log-{self.number:08}", True)
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

    cdef int prepare(self) except -1:
        """Have as many files ready as there should be, and remove those that are too many."""
        while self.doomed:
            self.remove(self.doomed.pop())
        while len(self.ready) < self.spares:
            self.ready.append(self.make(self.segment_bytes))
        return 0

    cdef int give_back(self, Segment segment) except -1:
        """Its entries are not needed any more, or it has none."""
        if segment in self.used:
            self.used.remove(segment)
        if segment.capacity == self.segment_bytes and not segment.damaged and len(self.ready) < 2 * self.spares:
            self.ready.append(segment)
        else:
            self.doomed.append(segment)
        return 0

    cdef int remove(self, Segment segment) except -1:
        cdef int result = self.disk.unlink(segment.c_path)
        segment.close(self.disk)
        return checked(result, segment.path)

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
        for segment in self.used + self.ready + self.doomed + self.unreadable:
            segment.close(self.disk)
        self.used, self.ready, self.doomed, self.unreadable = [], [], [], []
        return 0
