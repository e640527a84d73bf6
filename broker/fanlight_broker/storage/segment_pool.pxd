# The files of a log: those in use, and those that wait for their next use.
#
#   make: zeros, sync, name durable --> ready --take: header with a new generation, sync--> used --give_back--> ready
#                                                                                                 '--> doomed: removed
#   begin_bodies: a new name --entries, sync, name--> finish_bodies: header, sync --> bodies --give_back--> doomed
#
# Those that lie before the floor of the log are body segments: kept for messages, which are found by number.
#
# A file keeps its name. The thread that prepares calls `prepare`, the writer `take`, the loop `give_back`, all of them
# with the GIL, which they release while the disk works.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segments cimport Segment

cdef class SegmentPool:
    cdef:
        Disk disk
        object folder
        list used               # Segment, by generation, those being written included
        list bodies             # Segment: what compaction has left of others, whole
        list ready              # of the full size, all blocks written
        list reserve            # smaller: taken when no other file can be made
        list doomed             # to be removed
        list unreadable         # both copies of the header are damaged
        bint ordered            # `superseded` is known of all that were there
        list orphans            # paths of index files without a segment: to be removed
        Py_ssize_t spares       # that `prepare` keeps ready
        Py_ssize_t reserves     # that it keeps in the reserve
        Py_ssize_t taken, cycle  # files since the floor was raised; between the last two times
        uint64_t segment_bytes, reserve_bytes, number, generation, salt
        uint64_t floor          # of the log: each file gets it at its next use

    cdef int open(self) except -1
    cdef Segment open_file(self, path, bint create)
    cdef Segment take(self, uint64_t capacity)
    cdef Segment make_or_reserve(self, uint64_t capacity)
    cdef Segment make(self, uint64_t capacity)
    cdef Segment create(self)
    cdef Segment begin_bodies(self, uint64_t first, uint64_t end)
    cdef int finish_bodies(self, Segment segment) except -1
    cdef int drop_replaced(self) except -1
    cdef int prepare(self) except -1
    cdef int raise_floor(self, uint64_t sequence) except -1
    cdef int give_back(self, Segment segment) except -1
    cdef int remove(self, Segment segment) except -1
    cdef int unlink(self, bytes path) except -1
    cdef uint64_t safe_floor(self) except? 0
    cdef int order(self) except -1
    cdef int keep_aside(self) except -1
    cdef int sync_folder(self) except -1
    cdef int close(self) except -1
