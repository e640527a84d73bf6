# cython: language_level=3
"""The writer's half of a log: see log_writer.pxd.

A group is what was sealed while the last one was on its way: no timer waits for more. After a failed write or sync
nothing that was written to that file since its last sync is trusted, nor is it synced again: the kernel forgets what it
could not write. The group is still in memory, and is written again to a new segment. If that fails, too, nothing is
reported as synced any more until `retry` succeeds.

A thread that sleeps takes some 20 to 50 µs to wake up, for its processor sleeps, too. So where groups have followed
each other in less than SPIN_SECONDS, the writer waits so long without sleeping. A publisher that waits for each
acknowledgement gains it; where groups are rare, or the machine is busy, the gaps are longer, and the writer sleeps.
"""

import os

from libc.errno cimport ENOMEM
from libc.stdint cimport uint64_t

from fanlight_broker.storage.segments cimport (
    SEGMENT_HEADER, UNSYNCED_MAX, EntryHeader, entry_crc, entry_size,
)
from fanlight_broker.storage.tally cimport Tally, seconds_now
from fanlight_broker.wire.allocator cimport deallocate

SYNC_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
GROUP_ENTRIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096)
GROUP_BYTES = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216)

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t* lock, void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* lock)
    int pthread_cond_init(pthread_cond_t* condition, void* attributes)
    int pthread_cond_destroy(pthread_cond_t* condition)
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* lock)

cdef extern from *:
    """
    #if defined(__x86_64__) || defined(__i386__)
    #define fanlight_pause() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define fanlight_pause() __asm__ __volatile__("yield")
    #else
    #define fanlight_pause() ((void) 0)
    #endif
    #define fanlight_load(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
    """
    void pause "fanlight_pause" () nogil
    bint load "fanlight_load" (bint* place) nogil

cdef enum:
    PAUSES = 32             # between two looks at the clock
    SCORE_MAX = 16          # of gaps that were short, less LONG_GAP for each that was not
    LONG_GAP = 4
    SPINS_FROM = 8          # this score on

SPIN_SECONDS = 0.00015      # more than a publisher on this machine takes from an acknowledgement to its next message

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t write(int fd, const void* data, size_t size)


def processors():
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


cdef class LogWriter:
    """What Log puts its entries into."""

    def __cinit__(self):
        pthread_mutex_init(&self.lock, NULL)
        pthread_cond_init(&self.work_to_do, NULL)
        self.wake_end = -1
        self.syncing = True
        self.sync_seconds, self.group_entries = Tally(SYNC_SECONDS), Tally(GROUP_ENTRIES)
        self.group_bytes = Tally(GROUP_BYTES)
        self.spin_seconds = SPIN_SECONDS if processors() > 1 else 0

    def __dealloc__(self):
        free_chunks(self.consumed)
        free_chunks(self.cursor)
        pthread_cond_destroy(&self.work_to_do)
        pthread_mutex_destroy(&self.lock)

    def write_until_stopped(self):
        """The thread."""
        with nogil:
            while self.await_work():
                self.write_one()

    def retry(self):
        """Try again, after `trouble`."""
        pthread_mutex_lock(&self.lock)
        self.retrying, self.idle = True, False
        pthread_cond_signal(&self.work_to_do)
        pthread_mutex_unlock(&self.lock)

    def sync(self):
        """Sync what is written, if that is not done with each group."""
        pthread_mutex_lock(&self.lock)
        self.sync_asked, self.idle = True, False
        pthread_cond_signal(&self.work_to_do)
        pthread_mutex_unlock(&self.lock)

    cdef bint has_work(self) noexcept nogil:
        """Under the lock, if there is a thread."""
        if self.given == self.taken and not (self.sync_asked and self.durable != self.taken):
            return False
        return self.failure == 0 or self.retrying

    cdef bint await_work(self) noexcept nogil:
        """Sleep until there is a group to write. False: the log is closed, and what can be written is written."""
        cdef bint found
        cdef double began
        pthread_mutex_lock(&self.lock)
        if not self.has_work() and not self.stopping:
            began = seconds_now()
            if self.short_gaps >= SPINS_FROM and self.failure == 0:
                self.idle = True
                pthread_mutex_unlock(&self.lock)
                found = self.spin(began)
                pthread_mutex_lock(&self.lock)
                self.spins += found
                self.spins_in_vain += not found
            while not self.has_work() and not self.stopping:
                self.idle = True
                pthread_cond_wait(&self.work_to_do, &self.lock)
            self.score(seconds_now() - began <= self.spin_seconds)
        self.idle = False
        found = self.has_work()
        pthread_mutex_unlock(&self.lock)
        return found

    cdef bint spin(self, double began) noexcept nogil:
        """Wait for the loop to say that there is work. False: the time is over."""
        cdef int pauses = 0
        while load(&self.idle):
            pause()
            pauses += 1
            if pauses % PAUSES == 0 and seconds_now() - began > self.spin_seconds:
                return False
        return True

    cdef void score(self, bint short_gap) noexcept nogil:
        """Between this group and the one before was a gap that spinning covers, or a longer one."""
        if short_gap:
            self.short_gaps = min(self.short_gaps + 1, SCORE_MAX)
        else:
            self.short_gaps = max(self.short_gaps - LONG_GAP, 0)

    cdef bint write_one(self) noexcept nogil:
        """Write a group; if that fails, once more elsewhere. Report it to the loop. False: the disk fails."""
        cdef size_t size = 0
        cdef Chunk* following
        cdef Chunk* oldest = self.cursor
        cdef uint64_t before = self.taken
        cdef int result = self.attempt(&size)
        if result < 0:
            self.leave_segment()
            result = self.attempt(&size)
        if result < 0:
            self.leave_segment()
        elif size > 0:
            self.group_entries.observe(<double> (self.taken - before))
            self.group_bytes.observe(<double> size)
        pthread_mutex_lock(&self.lock)
        self.retrying = False
        self.failure = -result
        if result == 0:
            self.done_written, self.done_synced = self.taken, self.durable
            self.freed += size
            self.groups += size > 0
            self.bytes_written += size
            while oldest is not self.cursor:
                following = oldest.next
                oldest.next = self.consumed
                self.consumed = oldest
                oldest = following
        pthread_mutex_unlock(&self.lock)
        self.wake()
        return result == 0

    cdef void wake(self) noexcept nogil:
        # A full pipe wakes as well.
        write(self.wake_end, b"\0", 1)

    cdef int attempt(self, size_t* size) noexcept nogil:
        """Write a group and sync it. -errno: in memory nothing has changed."""
        cdef Chunk* chunk = self.cursor
        cdef size_t at = self.cursor_at
        cdef uint64_t sequence = self.taken
        cdef bint syncing
        cdef double began
        cdef int result = self.write_entries(size, &sequence)
        pthread_mutex_lock(&self.lock)
        syncing = self.syncing or self.sync_asked or self.stopping
        self.sync_asked = self.sync_asked and result < 0
        if result == 0 and self.wakes_early:
            self.done_written = sequence
        pthread_mutex_unlock(&self.lock)
        if result == 0 and syncing and self.segment is not None:
            if self.wakes_early:
                self.wake()
            began = seconds_now()
            result = self.disk.sync(self.segment.fd)
            if result == 0:
                self.sync_seconds.observe(seconds_now() - began)
        if result < 0:
            self.cursor, self.cursor_at = chunk, at
            return result
        self.note_entries(chunk, at, sequence)
        self.taken = sequence
        if syncing:
            self.durable = sequence
        return 0

    cdef int write_entries(self, size_t* size, uint64_t* sequence) noexcept nogil:
        """Write what was sealed, up to a group, and move the cursor. -errno."""
        cdef Chunk* chunk = self.cursor
        cdef Chunk* tail
        cdef size_t at = self.cursor_at, tail_used, begin, end, total = 0
        cdef int result
        pthread_mutex_lock(&self.lock)
        tail, tail_used = self.tail, self.tail_used
        pthread_mutex_unlock(&self.lock)
        while True:
            end = tail_used if chunk is tail else chunk.used
            if at == end:
                if chunk is tail:
                    break
                chunk, at = chunk.next, 0
                continue
            begin = at
            result = self.finish(data_of(chunk), &at, end, &total, sequence)
            if result < 0:
                return result
            if at == begin:
                break
            result = self.disk.write(
                self.segment.fd, data_of(chunk) + begin, at - begin, self.segment.end + total - (at - begin)
            )
            if result < 0:
                return result
        self.cursor, self.cursor_at = chunk, at
        size[0] = total
        return 0

    cdef int finish(self, char* data, size_t* at, size_t end, size_t* total, uint64_t* sequence) noexcept nogil:
        """Give the next entries of a chunk, as many as the group and the segment take, their checksums. -errno."""
        cdef EntryHeader* header
        cdef size_t size
        cdef int result
        while at[0] != end:
            header = <EntryHeader*> (data + at[0])
            size = entry_size(header.length)
            if total[0] and total[0] + size > self.group_bytes_max:
                break
            if self.segment is None or self.begins_segment(header, self.segment.end + total[0]):
                if total[0]:
                    break
                result = self.next_segment(size)
                if result < 0:
                    return result
            header.when = header.when & ~<uint64_t> 0xFFFF | min(sequence[0] - self.durable, <uint64_t> UNSYNCED_MAX)
            header.crc = entry_crc(self.segment.seed, <char*> header, header.length)
            total[0] += size
            at[0] += size
            sequence[0] += 1
        return 0

    cdef bint begins_segment(self, const EntryHeader* header, uint64_t offset) noexcept nogil:
        # The loop has decided it. Where a segment had to be left, its entries go on in the next.
        if header.crc == 0 and header.when & 0xFFFF == BEGINS_SEGMENT and offset > SEGMENT_HEADER:
            return True
        return offset + entry_size(header.length) > self.segment.capacity

    cdef void note_entries(self, Chunk* chunk, size_t at, uint64_t last) noexcept nogil:
        """The segment has these entries now, up to the sequence `last`."""
        cdef EntryHeader* header
        cdef uint64_t sequence = self.taken
        while sequence != last:
            if chunk is not self.cursor and at == chunk.used:
                chunk, at = chunk.next, 0
                continue
            header = <EntryHeader*> (data_of(chunk) + at)
            self.segment.note(header, self.segment.end)
            at += entry_size(header.length)
            sequence += 1

    cdef int leave_segment(self) noexcept nogil:
        """What is in this file behind its last sync is not trusted."""
        self.unsure += self.taken - self.durable
        self.durable = self.taken  # they are not in memory any more
        with gil:
            if self.segment is not None:
                self.segment.failed = True
            self.segment = None
        return 0

    cdef int next_segment(self, size_t size) noexcept nogil:
        """Go on in a new segment, with room for an entry of `size` bytes. -errno: there is none."""
        cdef int result = 0
        if self.segment is not None and self.durable != self.taken:
            result = self.disk.sync(self.segment.fd)
            if result < 0:
                return result
            self.durable = self.taken
        with gil:
            try:
                self.segment = self.pool.take(SEGMENT_HEADER + size)
                if self.jobs is not None:
                    self.jobs.put(True)
            except OSError as error:
                result = -error.errno
            except MemoryError:
                result = -ENOMEM
        return result


cdef void free_chunks(Chunk* chunk) noexcept:
    cdef Chunk* following
    while chunk is not NULL:
        following = chunk.next
        deallocate(chunk)
        chunk = following
