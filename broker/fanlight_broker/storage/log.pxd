# The log: what was appended is on the disk, in order, once its sequence is synced.
#
#   loop:    reserve, reserve, ... seal   an entry: the records of one turn, in the log whole or not at all
#   writer:  checksum, write, sync        a group: the entries that were sealed while the last one was on its way
#   loop:    collect                      called when `fileno()` is readable: `synced` moves on, memory is free
#
# Each message has a number of the caller's, in the order of the log. `number` is the next one: the caller counts it
# upwards. So an entry has the messages from its own number up to that of the entry behind it.
#
# A lot is the entries that the loop means for one segment. What is live is counted by lot: which files they are in is
# the writer's affair, which needs a second file where the disk fails in between.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.log_writer cimport Chunk, LogWriter

cdef class Lot:
    cdef:
        readonly uint64_t first         # sequence
        readonly uint64_t first_number  # no message in it has a lower one
        readonly uint64_t nbytes        # of its entries
        readonly Py_ssize_t live        # messages, or references to them: the caller's count

cdef class Log(LogWriter):
    cdef:
        readonly uint64_t appended      # sequence of the open entry if it has a record, else of the last one
        readonly uint64_t written       # of the last entry that survives a kill
        readonly uint64_t synced        # of the last entry that survives a power cut
        public uint64_t number          # of the next message
        readonly Py_ssize_t buffered    # bytes of sealed entries that wait for the disk
        public Py_ssize_t buffer_bytes_max
        readonly object trouble         # str: why nothing is synced at present; None
        readonly object folder
        readonly object unprepared      # OSError: why no file could be made ahead of time; None
        readonly list lots              # Lot, in order; the last is being appended to
        object progressed, clock, folder_lock, threads
        list unreadable                 # Damage of files without a header
        LogReader opening               # None: it was not replayed yet
        Lot lot
        Chunk* last                     # the chunk that is appended to
        Chunk* spare
        char* entry                     # the open entry
        char* at                        # its end
        char* limit                     # of the chunk
        uint64_t sealed, entry_number
        int read_end
        readonly bint threaded
        bint ready                      # all was replayed: it may be appended to

    cdef char* reserve(self, int type, Py_ssize_t size) except NULL
    cpdef int seal(self) except -1
    cpdef int live(self, uint64_t number, Py_ssize_t change) except -1
    cpdef int live_at(self, uint64_t sequence, Py_ssize_t change) except -1

    cdef LogReader open_reader(self, uint64_t after)
    cdef int begin(self) except -1
    cdef uint64_t position_of(self, uint64_t number, uint64_t sequence) except? 0
    cdef Py_ssize_t give_back(self, uint64_t first, uint64_t end) except -1
    cdef int must_be_replayed(self) except -1
    cdef int make_room(self, Py_ssize_t size) except -1
    cdef int new_chunk(self, size_t least) except -1
    cdef int new_lot(self, uint64_t first, uint64_t number) except -1
    cdef int keep_spare(self, Chunk* chunk) noexcept
    cdef int close_files(self) except -1
