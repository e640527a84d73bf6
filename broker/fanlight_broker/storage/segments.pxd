# The bytes of a segment: docs/store-format.md draws them. Integers are little-endian.
#
#   0       header: magic, version, checksum, generation, salt, floor, range of bodies      2048   the same once more
#   4096    entry, entry, ... each a multiple of 8 bytes; what follows the last is of an older generation, or zeros
#
#   entry:  crc32c u32 | length u32 | sequence u64 | number u64 | unsynced u16 and time u48 | records, zeros up to 8
#   record: type u8 | size, as a varint | body

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from fanlight_broker.storage.crc32c cimport extend_crc
from fanlight_broker.storage.disk cimport Disk

cdef enum:
    SEGMENT_HEADER = 4096       # a page: no entry shares a sector with it
    SECOND_COPY = 2048
    ENTRY_HEADER = 32
    RECORD_HEADER_MAX = 11
    UNSYNCED_MAX = 0xFFFF       # that many or more
    INDEXED_BYTES = 4096        # an entry is noted for each

cdef struct EntryHeader:
    uint32_t crc        # of generation, salt and all that follows here, without the zeros at the end
    uint32_t length     # of the records; never 0
    uint64_t sequence   # 1, 2, 3 ... in the log
    uint64_t number     # the caller's, when the entry began
    uint64_t when       # unsynced: entries directly before this one that may not have been synced | ms since 1970 << 16

cdef inline size_t entry_size(uint32_t length) noexcept nogil:
    return (<size_t> ENTRY_HEADER + length + 7) & ~<size_t> 7

cdef inline uint32_t entry_crc(uint32_t seed, const char* entry, uint32_t length) noexcept nogil:
    return extend_crc(seed, entry + 4, ENTRY_HEADER - 4 + <size_t> length)

cdef inline const char* get_varint(const char* at, const char* end, uint64_t* value) noexcept nogil:
    """Behind it; NULL: it does not end before `end`, or has more than 63 bits."""
    cdef int shift = 0
    value[0] = 0
    while at < end and shift < 63:
        value[0] |= <uint64_t> (at[0] & 0x7F) << shift
        if not at[0] & 0x80:
            return at + 1
        at += 1
        shift += 7
    return NULL

cdef struct IndexPlace:
    uint64_t number         # the entry's
    uint32_t sequence       # after the segment's first
    uint32_t offset

cdef class Segment:
    # One file of the log. `generation` names its use: it rises with each.
    cdef:
        readonly object path
        bytes c_path
        int fd
        readonly uint64_t generation    # 0: it has no header yet
        readonly uint64_t floor         # the log's, when this use of the file began
        readonly uint64_t capacity      # bytes, the header included: the size of the file
        uint32_t seed                   # of the checksums of its entries
        readonly uint64_t first, last   # sequences of its entries; 0: none
        readonly uint64_t first_number
        readonly uint64_t end           # offset behind the last entry
        # Of a file that compaction has made: it has what is left of the messages with these numbers.
        readonly bint bodies
        readonly uint64_t range_first, range_end
        readonly uint32_t messages
        readonly bint damaged           # it is never used again, and kept aside
        bint superseded                 # what it has is in a later one: a group that was written again
        bint failed                     # the disk has: a restart may find more in it than is known now
        # One entry in each 4 KiB: its writer appends, others read what was there before the last sync. Without places
        # it is read from a file of its own, or made by a walk (segment_index.pxd).
        IndexPlace* index
        uint32_t index_length, index_size
        readonly bint indexed           # that file has it, too, so it may be dropped here
        bint recalled                   # it was read from that file
        bint has_index_file             # perhaps of an older generation
        uint64_t index_used             # the last time that something was looked for in it: LogLots counts

    cdef bint read_header(self, Disk disk) except -1
    cdef bint replaces(self, Segment other)
    cdef int write_header(self, Disk disk, uint64_t salt) noexcept nogil
    cdef int make_index(self) except -1
    cdef int trim_index(self) noexcept
    cdef int drop_index(self) noexcept
    cdef int begin(self, uint64_t generation, uint64_t salt, uint64_t floor) except -1
    cdef void note(self, const EntryHeader* header, uint64_t offset) noexcept nogil
    cdef int copy_index(self, Segment noted) noexcept
    cdef uint64_t find(self, uint64_t number, uint64_t sequence) noexcept nogil
    cdef int span(self, uint64_t number, uint64_t* offset, uint64_t* end, uint64_t* until) noexcept nogil
    cdef uint32_t behind(self, uint64_t number, uint64_t sequence) noexcept nogil
    cdef int close(self, Disk disk) noexcept

cdef class SegmentReader:
    # Reads one segment through a buffer. What it returns points into the buffer, until the next call.
    cdef:
        Disk disk
        Segment segment
        char* buffer
        size_t capacity, filled
        uint64_t start          # offset of the buffer in the file
        size_t read_bytes       # at least, at once

    cdef const char* view(self, uint64_t offset, size_t size) except? NULL
    cdef EntryHeader* entry(self, uint64_t offset) except? NULL
    cdef uint64_t search(self, uint64_t offset, uint64_t sequence) except? 0
    cdef uint64_t search_together(self, uint64_t offset, uint64_t sequence) except? 0
    cdef int note_all(self) except -1
