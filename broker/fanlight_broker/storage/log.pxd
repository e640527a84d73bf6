# The log: what was appended is on the disk, in order, once its sequence is synced.
#
#   loop:    reserve, reserve, ... seal        an entry: the records of one turn, in the log whole or not at all
#   writer:  checksum, write, sync             a group: the entries that were sealed while the last one was on its way
#   loop:    collect                           called when `fileno()` is readable: `synced` moves on, memory is free
#
#   chunk:   [ entry | entry | entry | open entry ....room ]  -->  chunk --> ...
#              ^ cursor: the writer's    ^ entry       ^ at   ^ limit
#
# The loop writes behind `used` of the last chunk, the writer reads before it: the lock is held for a few instructions,
# once a turn and once a group.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.segments cimport ENTRY_HEADER, RECORD_HEADER_MAX, Segment, put_varint

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass

cdef struct Chunk:
    Chunk* next
    size_t capacity
    size_t used             # bytes of sealed entries

cdef class Log:
    cdef:
        # The loop's.
        readonly uint64_t appended      # sequence of the open entry if it has a record, else of the last one
        readonly uint64_t written       # of the last entry that survives a kill
        readonly uint64_t synced        # of the last entry that survives a power cut
        public uint64_t number          # the caller's count; each entry keeps what it was when the entry began
        readonly Py_ssize_t buffered    # bytes that are not on the disk yet, the open entry left out
        public Py_ssize_t buffer_bytes_max
        readonly object trouble         # str: why nothing is synced at present; None
        readonly object folder
        readonly uint64_t groups, bytes_written
        object progressed, clock, folder_lock, thread
        list segments                   # Segment, by generation
        LogReader reader                # until all was replayed
        Chunk* last                     # the chunk that is appended to
        Chunk* spare
        char* entry                     # the open entry
        char* at                        # its end
        char* limit                     # of the chunk
        uint64_t entry_number, sealed
        bint ready                      # all was replayed: it may be appended to
        # Under the lock.
        pthread_mutex_t lock
        pthread_cond_t work_to_do
        uint64_t given, done_written, done_synced
        Py_ssize_t freed
        int failure                     # errno, while the disk fails
        bint idle, stopping, retrying
        Chunk* consumed                 # chunks that the writer is through with
        Chunk* tail                     # the last chunk, and where its sealed entries end
        size_t tail_used
        # The writer's.
        Disk disk
        Segment segment                 # None: the next group begins a new one
        Chunk* cursor
        size_t cursor_at
        uint64_t taken                  # sequence of the last entry of the group
        uint64_t generation, salt
        Py_ssize_t segment_bytes, group_bytes_max
        int read_end, write_end         # of a pipe: the writer wakes the loop
        readonly bint threaded

    cdef inline char* reserve(self, int type, Py_ssize_t size) except NULL:
        """Room for a record of `size` bytes, to be filled before the next call. The entry is open until `seal`."""
        cdef char* at
        if size + RECORD_HEADER_MAX > self.limit - self.at or self.at == self.entry + ENTRY_HEADER:
            self.make_room(size)
        self.at[0] = <char> type
        at = put_varint(self.at + 1, <uint64_t> size)
        self.at = at + size
        return at

    cdef int make_room(self, Py_ssize_t size) except -1
    cdef int new_chunk(self, size_t least) except -1
    cpdef int seal(self) except -1
    cdef int keep_spare(self, Chunk* chunk) noexcept

    cdef int open_segments(self) except -1
    cdef Segment open_segment(self, path, bint create)
    cdef LogReader open_reader(self, uint64_t after)
    cdef int begin(self) except -1
    cdef int close_files(self) except -1

    cdef bint has_work(self) noexcept nogil
    cdef bint await_work(self) noexcept nogil
    cdef bint write_one(self) noexcept nogil
    cdef int leave_segment(self) noexcept nogil
    cdef int write_group(self, Py_ssize_t* size) noexcept nogil
    cdef int finish(self, char* data, size_t* at, size_t end, Py_ssize_t* total, uint64_t* sequence) noexcept nogil
    cdef int next_segment(self, Py_ssize_t size) noexcept nogil
    cdef int make_segment(self, uint64_t capacity) except -1
