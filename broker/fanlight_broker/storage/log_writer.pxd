# The writer's half of a log: groups of sealed entries to the disk, in a thread of its own, without the GIL.
#
#   chunk:   [ entry | entry | entry | open entry ....room ]  <-- chunk <-- ...
#              ^ cursor: the writer's  ^ tail_used
#
# The loop writes behind `tail_used` of the last chunk, the writer reads before it: the lock is held for a few
# instructions, once a turn and once a group. Memory is kept until it is synced.

from libc.stdint cimport uint64_t

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.segment_pool cimport SegmentPool
from fanlight_broker.storage.segments cimport EntryHeader, Segment
from fanlight_broker.storage.tally cimport Tally

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t* lock)
    int pthread_mutex_unlock(pthread_mutex_t* lock)
    int pthread_cond_signal(pthread_cond_t* condition)

cdef enum:
    BEGINS_SEGMENT = 1      # in place of `unsynced`, until the writer knows that: the entry is the first of a segment

cdef struct Chunk:
    Chunk* next
    size_t capacity
    size_t used             # bytes of sealed entries, once another chunk follows

cdef inline char* data_of(Chunk* chunk) noexcept nogil:
    return <char*> chunk + sizeof(Chunk)

cdef class LogWriter:
    cdef:
        Disk disk
        SegmentPool pool
        public bint syncing         # each group; False: when `sync` asks for it, and memory is free once it is written
        public bint wakes_early     # the loop waits for `written`, too
        # Under the lock.
        pthread_mutex_t lock
        pthread_cond_t work_to_do
        uint64_t given              # sequence of the last sealed entry
        uint64_t done_written, done_synced
        Py_ssize_t freed            # bytes of entries, since `collect`
        readonly uint64_t groups, bytes_written
        readonly uint64_t unsure    # entries that were not synced with their group, and then the sync failed
        int failure                 # errno, while the disk fails
        bint idle, stopping, retrying, sync_asked
        readonly uint64_t spins, spins_in_vain     # times that it waited without sleeping: there was work, or not
        Chunk* tail                 # the last chunk, and where its sealed entries end
        size_t tail_used
        Chunk* consumed             # chunks that the writer is through with
        # The writer's.
        Segment segment             # None: the next group begins one
        Chunk* cursor
        size_t cursor_at
        uint64_t taken, durable     # sequences: the last that was written, and synced
        readonly Tally sync_seconds, group_entries, group_bytes
        size_t group_bytes_max
        public double spin_seconds  # that it waits for the next group without sleeping; 0: it sleeps at once
        int short_gaps              # a score of the gaps between groups: those that were no longer than that
        int wake_end                # of a pipe to the loop
        object jobs                 # of the thread that prepares segments; None: there is none

    cdef bint has_work(self) noexcept nogil
    cdef bint await_work(self) noexcept nogil
    cdef bint spin(self, double began) noexcept nogil
    cdef void score(self, bint short_gap) noexcept nogil
    cdef bint write_one(self) noexcept nogil
    cdef int attempt(self, size_t* size) noexcept nogil
    cdef int write_entries(self, size_t* size, uint64_t* sequence) noexcept nogil
    cdef int finish(self, char* data, size_t* at, size_t end, size_t* total, uint64_t* sequence) noexcept nogil
    cdef bint begins_segment(self, const EntryHeader* header, uint64_t offset) noexcept nogil
    cdef void wake(self) noexcept nogil
    cdef void note_entries(self, Chunk* chunk, size_t at, uint64_t last) noexcept nogil
    cdef int leave_segment(self) noexcept nogil
    cdef int next_segment(self, size_t size) noexcept nogil
