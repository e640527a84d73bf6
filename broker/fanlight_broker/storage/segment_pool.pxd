# The files of a log: those in use, and those that wait for their next use.
#
#   make: zeros, sync, name durable --> ready --take: header with a new generation, sync--> used --give_back--> ready
#                                                                                                 '--> doomed: removed
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
        list ready              # of the full size, all blocks written
        list doomed             # to be removed
        list unreadable         # both copies of the header are damaged
        Py_ssize_t spares       # that `prepare` keeps ready; twice as many are kept when they are given back
        uint64_t segment_bytes, number, generation, salt

    cdef int open(self) except -1
    cdef Segment open_file(self, path, bint create)
    cdef Segment take(self, uint64_t capacity)
    cdef Segment make(self, uint64_t capacity)
    cdef int prepare(self) except -1
    cdef int give_back(self, Segment segment) except -1
    cdef int remove(self, Segment segment) except -1
    cdef int keep_aside(self) except -1
    cdef int sync_folder(self) except -1
    cdef int close(self) except -1
