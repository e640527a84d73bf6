# cython: language_level=3
"""The index of a segment in a file of its own: see segment_index.pxd."""

import os
import re

from libc.errno cimport ENOENT
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from fanlight_broker.storage.crc32c cimport extend_crc
from fanlight_broker.storage.disk cimport Disk, ReadOnlyDisk, checked
from fanlight_broker.storage.segments cimport (
    INDEXED_BYTES, SEGMENT_HEADER, EntryHeader, IndexPlace, Segment, SegmentReader, get_varint,
)
from fanlight_broker.storage.segment_walk import walk
from fanlight_broker.storage.segments import LogError
from fanlight_broker.wire.allocator cimport allocate, deallocate
from fanlight_broker.wire.varint cimport put_varint

cdef enum:
    VERSION = 1
    INDEX_HEADER = 512      # a sector: it is there or not
    PLACE_MAX = 25          # bytes of a place: three varints
    ALIGNED = 8             # offsets of entries are multiples of it

cdef const char* MAGIC = b"fanindex"

INDEX_NAME = re.compile(r"index-(\d{8})")

cdef struct IndexHeader:
    char magic[8]
    uint32_t version
    uint32_t crc            # of all that follows in the header
    uint64_t generation     # of the segment
    uint64_t first, first_number, last, end     # as in Segment
    uint32_t count, size    # places, and their bytes behind the header
    uint32_t places_crc     # seeded as the entries of the segment are
    uint32_t nothing


class DamagedIndex(LogError):
    """An index file is not what was written, or not what its segment has."""

    def __init__(self, path, offset, what):
        self.path, self.offset, self.what = path, offset, what
        super().__init__(f"{path}: damaged at byte {offset}: {what}")


def index_path(path):
    """Of the segment with this path."""
    return path.with_name(path.name.replace("log-", "index-"))


cdef uint32_t header_crc(const IndexHeader* header) noexcept nogil:
    return extend_crc(0, <const char*> header + 16, sizeof(IndexHeader) - 16)


cdef bint is_whole(const IndexHeader* header) noexcept nogil:
    return memcmp(header.magic, MAGIC, 8) == 0 and header.version == VERSION and header.crc == header_crc(header)


# -- writing ----------------------------------------------------------------------------------------------------------


cdef size_t put_places(Segment segment, char* start) noexcept:
    cdef char* at = start
    cdef IndexPlace before
    cdef uint32_t i
    before.number, before.sequence, before.offset = segment.first_number, 0, SEGMENT_HEADER
    for i in range(segment.index_length):
        at = put_varint(at, segment.index[i].number - before.number)
        at = put_varint(at, segment.index[i].sequence - before.sequence)
        at = put_varint(at, (segment.index[i].offset - before.offset) // ALIGNED)
        before = segment.index[i]
    return at - start


cdef int write_index(Disk disk, Segment segment) except -1:
    """Write the index of a segment that is complete. OSError: the disk's.

    The segment may be given back and used again meanwhile: then the file is of an older generation.
    """
    cdef char page[INDEX_HEADER]
    cdef IndexHeader* header = <IndexHeader*> page
    cdef char* places = <char*> allocate(segment.index_length * PLACE_MAX)
    cdef bytes path = os.fsencode(index_path(segment.path))
    cdef const char* c_path = path
    cdef int fd, result
    if places is NULL:
        raise MemoryError()
    memset(page, 0, INDEX_HEADER)
    memcpy(header.magic, MAGIC, 8)
    header.version, header.generation = VERSION, segment.generation
    header.first, header.first_number, header.last = segment.first, segment.first_number, segment.last
    header.end, header.count = segment.end, segment.index_length
    header.size = <uint32_t> put_places(segment, places)
    header.places_crc = extend_crc(segment.seed, places, header.size)
    header.crc = header_crc(header)
    with nogil:
        fd = disk.open_file(c_path, False)
        if fd == -ENOENT:
            fd = disk.open_file(c_path, True)
        result = fd
        if fd >= 0:
            result = disk.write(fd, places, header.size, INDEX_HEADER)
            if result == 0:
                result = disk.sync(fd)
            if result == 0:
                result = disk.write(fd, page, INDEX_HEADER, 0)
            if result == 0:
                result = disk.sync(fd)
            disk.close_file(fd)
    deallocate(places)
    segment.has_index_file = segment.has_index_file or fd >= 0
    checked(result, index_path(segment.path))
    if segment.generation == header.generation:
        segment.indexed = True
        segment.trim_index()
    return 0


# -- reading ----------------------------------------------------------------------------------------------------------


cdef bytes whole_file(Disk disk, Segment segment):
    """None: there is none."""
    cdef bytes path = os.fsencode(index_path(segment.path)), found
    cdef const char* c_path = path
    cdef char* data
    cdef int64_t size
    cdef int fd
    with nogil:
        fd = disk.open_file(c_path, False)
        size = disk.size(fd) if fd >= 0 else 0
    if fd == -ENOENT:
        return None
    checked(fd, index_path(segment.path))
    size = min(size, <int64_t> (INDEX_HEADER + (segment.capacity // INDEXED_BYTES + 2) * PLACE_MAX))
    data = <char*> allocate(size)
    with nogil:
        if data is not NULL and size > 0:
            size = disk.read(fd, data, size, 0)
        disk.close_file(fd)
    if data is NULL:
        raise MemoryError()
    try:
        checked(size, index_path(segment.path))
        found = data[:size]
    finally:
        deallocate(data)
    return found


cdef bint is_of(const char* data, Py_ssize_t size, Segment segment) except -1:
    """Is it of this use of the segment? False: of an older one, or it was not completed. DamagedIndex."""
    cdef const IndexHeader* header = <const IndexHeader*> data
    cdef Py_ssize_t at
    if size < INDEX_HEADER or not is_whole(header):
        for at in range(min(size, <Py_ssize_t> INDEX_HEADER)):
            if data[at]:
                raise DamagedIndex(index_path(segment.path), 0, "its header")
        return False
    return header.generation == segment.generation


cdef bytes whole_index(Disk disk, Segment segment):
    """The file of this use of a segment. None: there is none. DamagedIndex. OSError: the disk's."""
    cdef bytes data = whole_file(disk, segment) if segment.has_index_file else None
    cdef const IndexHeader* header
    cdef Py_ssize_t size
    if data is None or not is_of(data, len(data), segment):
        return None
    header = <const IndexHeader*> <const char*> data
    size = min(<Py_ssize_t> header.size, len(data) - INDEX_HEADER)
    if extend_crc(segment.seed, <const char*> data + INDEX_HEADER, size) != header.places_crc:
        raise DamagedIndex(index_path(segment.path), INDEX_HEADER, "its places")
    return data


cdef bint has_index(Disk disk, Segment segment) except -1:
    """Does the file say what the segment has noted? OSError: the disk's."""
    cdef bytes data
    cdef const IndexHeader* header
    try:
        data = whole_index(disk, segment)
    except DamagedIndex:
        return False    # it is written again
    if data is None:
        return False
    header = <const IndexHeader*> <const char*> data
    return header.last == segment.last and header.end == segment.end and header.count == segment.index_length


cdef bint read_index(Disk disk, Segment segment) except -1:
    """Read the index of a segment. False: it has none. DamagedIndex. OSError: the disk's."""
    cdef bytes data = whole_index(disk, segment)
    cdef Segment noted
    if data is None:
        return False
    if segment.first and (<const IndexHeader*> <const char*> data).first != segment.first:
        return False    # the segment is damaged at its beginning
    noted = decoded(segment, data)
    noted.recalled = True
    if noted.index_length:
        segment.copy_index(noted)
        segment.indexed = True
    return segment.index_length > 0


cdef Segment decoded(Segment segment, bytes data):
    """A Segment that has noted what the file says. DamagedIndex: it cannot be."""
    cdef const IndexHeader* header = <const IndexHeader*> <const char*> data
    cdef const char* start = data
    cdef const char* at = start + INDEX_HEADER
    cdef const char* end = start + min(<Py_ssize_t> INDEX_HEADER + header.size, len(data))
    cdef const char* place
    cdef uint64_t number = header.first_number, sequence = 0, offset = SEGMENT_HEADER
    cdef uint64_t[3] change
    cdef uint32_t i
    cdef Segment noted = Segment(segment.path, -1)
    noted.generation, noted.capacity = segment.generation, segment.capacity
    noted.first, noted.first_number = header.first, header.first_number
    noted.last, noted.end = header.last, header.end
    noted.make_index()
    for i in range(header.count):
        place = at
        at = get_varint(at, end, &change[0])
        at = get_varint(at, end, &change[1]) if at is not NULL else NULL
        at = get_varint(at, end, &change[2]) if at is not NULL else NULL
        if at is not NULL:
            number, sequence = number + change[0], sequence + change[1]
            offset += change[2] * ALIGNED
        if at is NULL or offset >= header.end or header.end > segment.capacity or i >= noted.index_size:
            raise DamagedIndex(index_path(segment.path), place - start, f"place {i + 1} of {header.count}")
        noted.index[i].number = number
        noted.index[i].sequence, noted.index[i].offset = <uint32_t> sequence, <uint32_t> offset
    noted.index_length = header.count
    noted.trim_index()
    return noted


# -- for check and repair ---------------------------------------------------------------------------------------------


cdef Segment opened(path):
    """A segment with its header. None: it was never used."""
    cdef Disk disk = ReadOnlyDisk()
    cdef int fd = disk.open_file(os.fsencode(path), False)
    checked(fd, path)
    cdef Segment segment = Segment(path, fd)
    segment.has_index_file = True   # perhaps
    return segment if segment.read_header(disk) else None


def index_fault(path):
    """What is wrong with the index of the segment with this path, compared to what the segment has.

    None: nothing, or it has none. LogError: the segment's header is damaged. OSError: the disk's.
    """
    cdef Disk disk = ReadOnlyDisk()
    cdef Segment segment = opened(path), noted
    cdef SegmentReader reader
    cdef EntryHeader* header
    cdef bytes data
    cdef uint32_t i
    cdef uint64_t number, sequence
    cdef bint right
    if segment is None:
        return None
    data = whole_file(disk, segment)
    try:
        if data is None or not is_of(data, len(data), segment):
            return None
        noted = decoded(segment, data)
    except DamagedIndex as fault:
        return fault
    gaps = walk(path).gaps
    reader = SegmentReader(disk, segment)
    for i in range(noted.index_length):
        header = reader.entry(noted.index[i].offset)
        if header is NULL:
            offset = noted.index[i].offset
            right = any(gap.offset <= offset < gap.end for gap in gaps)     # the segment is damaged there
        else:
            number, sequence = noted.index[i].number, noted.first + noted.index[i].sequence
            right = header.number == number and header.sequence == sequence
        if not right:
            return DamagedIndex(index_path(path), place_offset(data, i), f"place {i + 1} of {noted.index_length}")
    try:
        whole_index(disk, segment)
    except DamagedIndex as fault:
        return fault
    return None


cdef Py_ssize_t place_offset(bytes data, uint32_t index) except -1:
    """Where in the file this place begins, of one that can be decoded."""
    cdef const char* start = data
    cdef const char* at = start + INDEX_HEADER
    cdef uint64_t change
    for _ in range(3 * index):
        at = get_varint(at, start + len(data), &change)
    return at - start


def make_index(path):
    """Walk through the segment with this path and write its index. OSError: the disk's. LogError: see index_fault."""
    cdef Segment segment = opened(path)
    if segment is None:
        return
    SegmentReader(ReadOnlyDisk(), segment).note_all()
    if segment.index_length:
        write_index(Disk(), segment)
