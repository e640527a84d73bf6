# The entries of a log after it was opened, in order: where the log ends, and what of it is lost.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segments cimport EntryHeader, Segment, SegmentReader

cdef class LogReader:
    cdef:
        Disk disk
        list segments               # in the order of their generations
        Py_ssize_t index            # of the segment that is being read
        SegmentReader reader
        uint64_t offset             # in it, of the next entry
        uint64_t expected           # sequence of the next entry
        const char* at              # the next record, in the reader's buffer
        const char* end
        readonly list damage        # Damage: what is missing
        # Of the entry, and of the record that was read last.
        readonly uint64_t sequence, number, time
        readonly uint64_t position  # of the entry: generation << 32 | offset
        readonly int type
        const char* body
        readonly Py_ssize_t size

    cdef bint next_record(self) except -1
    cdef bint next_entry(self) except -1
    cdef bint take(self, EntryHeader* header) except -1
    cdef bint bridge(self) except -1
    cdef Py_ssize_t begin(self, uint64_t after) except -1
    cdef int find_first(self, SegmentReader reader) except -1
