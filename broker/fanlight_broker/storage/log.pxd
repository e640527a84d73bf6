# The log: what was appended is on the disk, in order, once its sequence is synced.
#
#   loop:    reserve, reserve, ... seal   an entry: the records of one turn, in the log whole or not at all
#   writer:  checksum, write, sync        a group: the entries that were sealed while the last one was on its way
#   loop:    collect                      called when `fileno()` is readable: `synced` moves on, memory is free
#
# Each message has a number of the caller's, in the order of the log. `number` is the next one: the caller counts it
# upwards. So an entry has the messages from its own number up to that of the entry behind it.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.log_lots cimport LogLots
from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.log_writer cimport Chunk

cdef class Log(LogLots):
    cdef:
        readonly uint64_t appended      # sequence of the open entry if it has a record, else of the last one
        readonly uint64_t written       # of the last entry that survives a kill
        public uint64_t number          # of the next message
        readonly Py_ssize_t buffered    # bytes of sealed entries that wait for the disk
        public Py_ssize_t buffer_bytes_max
        readonly object trouble         # str: why nothing is synced at present; None
        object unprepared               # OSError: why no file could be made ahead of time; None
        readonly object short           # str: the same; what can still be written is for what makes room; None
        object progressed, clock, folder_lock, threads
        list unreadable                 # Damage of files without a header
        LogReader opening               # None: it was not replayed yet
        Chunk* last                     # the chunk that is appended to
        Chunk* spare
        char* entry                     # the open entry
        char* at                        # its end
        char* limit                     # of the chunk
        int read_end
        readonly bint threaded
        bint more_comes                 # in this turn: `seal` lets the writer sleep
        bint ready                      # all was replayed: it may be appended to

    cdef char* reserve(self, int type, Py_ssize_t size) except NULL
    cpdef int seal(self) except -1
    cdef int wake_writer(self) except -1
    cdef bint has_come_further(self) noexcept
    cdef bint is_full(self) noexcept
    cpdef int collect(self) except -1

    cdef LogReader open_reader(self, uint64_t after)
    cdef int begin(self) except -1
    cdef int make_room(self, Py_ssize_t size) except -1
    cdef int new_chunk(self, size_t least) except -1
    cdef int keep_spare(self, Chunk* chunk) noexcept
    cdef bint has_dead(self, uint64_t above, uint64_t below) except -1
    cdef int prepare_files(self) except -1
    cdef int close_files(self) except -1
