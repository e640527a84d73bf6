# The index of a segment in a file of its own: docs/store-format.md has its bytes.
#
#   log-00000007    entry, entry, entry ...           sealed: nothing is written to it any more
#   index-00000007  header | place, place, ...        one entry in each 4 KiB; made by the thread that makes files ahead
#
# It is written once: the places, a sync, the header, a sync. So a whole header says that the places are whole, unless
# the disk has lost something. Without a file, or with a bad one, the segment is walked, and the file is made again.
# An index only says where to look: entries have their own checksums, messages their numbers.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segments cimport Segment

cdef int write_index(Disk disk, Segment segment) except -1
cdef bint read_index(Disk disk, Segment segment) except -1
cdef bint has_index(Disk disk, Segment segment) except -1
