# Compaction: what is left of some files whose messages are mostly done with is copied into one new file.
#
#   body segments   [ m . . . . m ] [ . . m . . . ] [ . . . . . . m ]        m: a message that waits or is in flight
#   file of bodies  [ m m m m ]     "numbers 100 to 4,000", in its header, which is written last
#
# Entries keep their sequences and times, without the records that are not needed, messages their numbers. The file
# counts once its header is synced; then those that it was made of are given back. Until then they are what is read.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segment_pool cimport SegmentPool
from fanlight_broker.storage.segments cimport EntryHeader, Segment, SegmentReader

cdef class Compaction:
    cdef:
        Disk disk
        SegmentPool pool
        readonly list sources       # Segment, in the order of their numbers
        uint64_t first, end         # numbers
        const unsigned char[::1] live
        readonly Segment segment    # that is made
        readonly object error       # why it was given up; None
        readonly bint done
        public bint stopping        # set by the loop: the log is closed
        uint64_t sequence, number   # the last that were copied
        char* buffer
        size_t capacity, filled
        uint64_t written            # offset in the file: what is in the buffer goes there

    cdef int copy(self) except -1
    cdef int copy_segment(self, Segment source) except -1
    cdef int copy_entry(self, SegmentReader reader, const EntryHeader* header) except -1
    cdef bint is_live(self, int type, const char* body, Py_ssize_t size) except -1
    cdef int make_room(self, size_t size) except -1
    cdef int flush(self) except -1
