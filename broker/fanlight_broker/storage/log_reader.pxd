# The entries of a log after it was opened, in order: where the log ends, and what of it is lost.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.entry_reader cimport EntryCursor
from fanlight_broker.storage.segments cimport EntryHeader, Segment

cdef int first_entry(Disk disk, Segment segment, bint anywhere) except -1

cdef class LogReader(EntryCursor):
    cdef:
        Disk disk
        list segments               # in the order of their generations
        list cut                    # those with entries that are right in the next one only
        Py_ssize_t begun            # index of the segment that was read first
        Py_ssize_t index            # of the segment that is being read
        Py_ssize_t next_index       # of the next one that begins with an entry
        uint64_t next_first         # the sequence of that entry; 0: there is none
        uint64_t floor, expected    # sequences: of the first entry that must be there, and of the next one
        uint64_t generation         # of the last segment that has one
        readonly list damage        # Damage: what is missing

    cdef double share(self)
    cdef bint next_record(self) except -1
    cdef bint next_entry(self) except -1
    cdef bint take(self, EntryHeader* header) except -1
    cdef bint bridge(self) except -1
    cdef Py_ssize_t begin(self, uint64_t first) except -1
    cdef int miss_floor(self) except -1
    cdef int finish(self) except -1
    cdef int go_to(self, Py_ssize_t index, uint64_t offset) except -1
    cdef int note_rest(self) except -1
    cdef int lose(self, Py_ssize_t found_index, uint64_t found_offset, uint64_t found) except -1
