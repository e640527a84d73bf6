# What of a log is live, where it is found, and which files are given back or compacted. The loop's.
#
# A lot is the entries that the loop means for one segment. What is live is counted by lot: which files they are in is
# the writer's affair, which needs a second file where the disk fails in between. After a compaction one lot stands for
# those that it was made of.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.compaction cimport Compaction
from fanlight_broker.storage.log_writer cimport LogWriter
from fanlight_broker.storage.number_list cimport NumberList
from fanlight_broker.storage.segments cimport Segment

cdef class Lot:
    cdef:
        readonly uint64_t first         # sequence
        readonly uint64_t first_number  # no message in it has a lower one
        readonly uint64_t nbytes        # of its entries
        readonly uint64_t messages      # that it began with, or a few more; 0 while it is appended to
        readonly Py_ssize_t live        # copies of messages in queues and windows: the caller's count
        readonly uint64_t ended_in      # the entry with the end of its last copy: it is given back once that is synced
        readonly Segment bodies         # the file of a compaction; None: its entries are in segments
        bint held                       # a compaction reads its files

cdef class LogLots(LogWriter):
    cdef:
        readonly object folder          # Path
        readonly uint64_t synced        # of the last entry that survives a power cut
        readonly list lots              # Lot, in order; the last is being appended to
        readonly uint64_t compactions, compactions_given_up, compacted_bytes
        readonly object uncompacted     # why the last one was given up; None
        Lot lot
        uint64_t sealed, entry_number
        Py_ssize_t entry_live           # of messages of the open entry, whose lot is not known yet
        uint64_t reclaimed_at           # the entry that must be synced before there is more to give back
        bint counted                    # all that is live was counted once
        bint rotates                    # the next entry begins a segment
        uint64_t lot_floor              # the floor when `lot` began: the header of its segment has it
        uint64_t spread                 # the floor for which one more segment was begun
        bint rests                      # a compaction was given up: none is offered until a segment begins
        readonly Compaction compaction  # under way; None
        uint64_t compacts_at            # it begins once this entry is synced
        bint compaction_waits
        tuple offered                   # what `sparse` has named last; None
        # Of files that are complete; those in memory past the bound are read again when they are needed.
        public Py_ssize_t index_bytes_max
        uint64_t index_looks
        readonly uint64_t indexes_read, indexes_walked, indexes_written
        readonly object unindexed       # OSError: why the last index could not be written; None
        readonly list index_faults      # str: what was wrong with indexes; whoever reports them empties it

    cpdef int live(self, uint64_t number, Py_ssize_t change) except -1
    cdef Py_ssize_t index_of(self, uint64_t number) except -1
    cdef int live_in(self, NumberList numbers) except -1
    cdef int must_be_replayed(self) except -1
    cdef int find_lots(self) except -1
    cdef int new_lot(self, uint64_t first, uint64_t number) except -1
    cdef bint needs_floor(self) except -1
    cdef bint is_before_floor(self, Py_ssize_t index, uint64_t floor) except -1
    cdef list files_of(self, Py_ssize_t index)
    cdef Py_ssize_t give_back_unused(self) except -1
    cdef int begin_compaction(self) except -1
    cdef int take_over(self) except -1
    cdef uint64_t position_of(self, uint64_t number, uint64_t sequence) except? 0
    cdef Segment span_of(self, uint64_t number, uint64_t* offset, uint64_t* end, uint64_t* until)
    cdef Segment indexed(self, uint64_t number, uint64_t sequence)
    cdef Segment segment_of(self, uint64_t number, uint64_t sequence)
    cdef int recall_index(self, Segment segment) except -1
    cdef bint walk_index(self, uint64_t number) except -1
    cdef int bound_indexes(self, Segment wanted) except -1
    cdef int write_indexes(self) except -1
