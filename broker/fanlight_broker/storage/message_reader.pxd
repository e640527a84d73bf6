# Reads stored messages by their numbers: see message_reader.pyx.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.batch_reader cimport BatchReader, Found
from fanlight_broker.storage.entry_reader cimport EntryReader
from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.message_records cimport Formats
from fanlight_broker.storage.wanted cimport Wanted

cdef class MessageReader:
    cdef:
        Log log
        EntryReader entries
        BatchReader batch, following    # what is read, and what is announced meanwhile
        uint64_t before             # the number that was found last alone; 0: none
        readonly list damage        # (number, why) of those that could not be read
        str skipped                 # what was wrong with the last entry that was left out
        str why                     # the last number was not found
        uint64_t generation         # of the file that should have it

    cdef int fill(self, Wanted wanted, Wanted soon, Formats formats, double wall, dict bodies) except -1
    cdef int take(
        self, Wanted wanted, Py_ssize_t place, Found* found, Formats formats, double wall, dict bodies
    ) except -1
    cdef bint look_for(self, uint64_t number) except -1
    cdef bint may_be_elsewhere(self, uint64_t number) except -1
    cdef bint try_to_find(self, uint64_t number) except -1
    cdef bint find(self, uint64_t number) except -1
    cdef bint scan(self, uint64_t number, bint* there) except -1
    cdef bint next_entry(self) except -1
    cdef int renew(self) except -1
