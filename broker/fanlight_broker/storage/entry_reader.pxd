# Entries of a log that are read: one after another when it is opened (log_reader.pxd), or from a position on.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segments cimport EntryHeader, SegmentReader

cdef class EntryCursor:
    cdef:
        SegmentReader reader
        uint64_t offset             # in its segment, of the next entry
        const char* at              # the next record, in the reader's buffer
        const char* end
        # Of the entry, and of the record that was read last.
        readonly uint64_t sequence
        readonly uint64_t number    # its messages have this number, and those up to the next entry's
        readonly uint64_t time      # ms since 1970
        readonly uint64_t position  # of the entry: generation << 32 | offset
        readonly int type
        const char* body
        readonly Py_ssize_t size

    cdef int show(self, const EntryHeader* header) except -1
    cdef bint record(self) except -1

cdef class EntryReader(EntryCursor):
    cdef:
        Disk disk
        list segments, bodies       # the pool's
        size_t read_bytes

    cpdef int seek(self, uint64_t position) except -1
    cpdef bint next_entry(self) except -1
