# What a store has sealed, and how durable it is by now.
#
#   turns   [ entry 7, changes 41, number 900 | entry 9, changes 44, number 903 | ... ]
#                  ^ read                ^ synced              ^ written
#
# A turn of the loop, or a part of it, is an entry of the log. Once the log is that far, its changes are written, or
# synced (JournalPosition), and its messages can be read back. What all three have passed is forgotten.
#
# This is done for each turn that somebody waits for, and for each sync: compiled, it is not in the way of an
# acknowledgement.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.stored_queue cimport QueueRecords
from fanlight_broker.wire.journal cimport JournalPosition

cdef struct SealedTurn:
    uint64_t entry          # its sequence; entries before it that are not here are its own, too
    uint64_t changes        # JournalPosition.appended at its end
    uint64_t number         # of the last message so far

cdef class SealedTurns:
    cdef:
        Log log
        QueueRecords records
        JournalPosition position
        int durability          # IN_MEMORY, WRITTEN or ON_DISK: what an acknowledgement waits for
        public bint syncing     # each group is synced: messages are read back once they are, else once they are written
        public object low       # why nothing more is taken though it could be; None
        public object pager     # its `synced_number` is set, and `work` called; None
        object changed, failed
        bint has_failed
        SealedTurn* turns       # a ring; the others count upwards for good
        uint64_t mask, tail, written, synced, read

    cpdef int seal(self) except -1
    cpdef int progress(self) except -1
    cdef int add(self, uint64_t entry, uint64_t changes, uint64_t number) except -1
    cdef int grow(self) except -1
    cdef uint64_t reached(self) noexcept
    cdef int page(self) except -1
