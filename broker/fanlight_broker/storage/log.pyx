# cython: language_level=3
"""The log of the store: see log.pxd. docs/store-format.md has its bytes.

Segments are never continued after a restart: what a torn group has left behind the end could look like its sequel.
"""

import contextlib
import os
import queue
import threading
from pathlib import Path
from time import sleep, time

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from fanlight_broker.storage.disk cimport Disk, ReadOnlyDisk
from fanlight_broker.storage.log_lots cimport LogLots, Lot
from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.log_writer cimport (
    BEGINS_SEGMENT, Chunk, data_of, pthread_cond_signal, pthread_mutex_lock, pthread_mutex_unlock,
)
from fanlight_broker.storage.segment_pool cimport SegmentPool
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, RECORD_HEADER_MAX, SEGMENT_HEADER, EntryHeader, Segment, entry_size,
)
from fanlight_broker.storage.folder_lock import FolderLock
from fanlight_broker.storage.log_reader import Damage
from fanlight_broker.storage.segments import LogError
from fanlight_broker.wire.allocator cimport allocate, deallocate
from fanlight_broker.wire.varint cimport put_varint

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t read(int fd, void* data, size_t size)
    int close(int fd)

cdef enum:
    CHUNK_BYTES = 256 << 10
    ENTRY_MAX = 1 << 30         # its length has 32 bits

PREPARE_SECONDS = 0.1           # between the use of a file and the making of another, while there is one more


cdef class Log(LogLots):
    """The log in `folder`, which it makes and locks. `replay` comes first, then entries may be appended.

    progressed        called without arguments by `collect`, when `written`, `synced` or `trouble` has changed
    segment_bytes     of a file; a longer entry makes a longer one
    group_bytes_max   that are written before a sync, if there is more than one entry
    buffer_bytes_max  that wait for the disk, past which `full` says so
    spares            files that are made ahead of time
    reserves          smaller ones, for what must be written while no other can be made: see `short`
    clock             seconds since 1970: the time of entries
    salt              of the checksums; None: a random one
    threaded          False: the caller calls `write_group` and `prepare`
    read_only         nothing is written, nor made: only `scan`, `locate` and `reader` are of use then

    LogError: it is in use, or of a newer format. OSError: the disk's.
    """

    def __cinit__(
        self, folder, progressed, *, Py_ssize_t segment_bytes=64 << 20, Py_ssize_t group_bytes_max=1 << 20,
        Py_ssize_t buffer_bytes_max=64 << 20, Py_ssize_t spares=2, Py_ssize_t reserves=0, clock=time, salt=None,
        Disk disk=None, bint threaded=True, bint read_only=False,
    ):
        self.read_end = -1
        self.folder, self.progressed, self.clock, self.threaded = Path(folder), progressed, clock, threaded
        self.group_bytes_max, self.buffer_bytes_max = group_bytes_max, buffer_bytes_max
        self.threads, self.unreadable = [], []
        self.disk = disk if disk is not None else ReadOnlyDisk() if read_only else Disk()
        salt = int.from_bytes(os.urandom(8), "little") if salt is None else salt
        self.pool = SegmentPool(self.folder, self.disk, segment_bytes, salt, spares, reserves)
        self.folder_lock = FolderLock(self.folder, read_only=read_only)
        try:
            self.pool.open()
            self.unreadable = [Damage((<Segment> each).path, 0) for each in self.pool.unreadable]
            self.read_end, self.wake_end = os.pipe()
            os.set_blocking(self.read_end, False)
            os.set_blocking(self.wake_end, False)
        except BaseException:
            self.close_files()
            raise

    def __dealloc__(self):
        if self.read_end >= 0:
            close(self.read_end)
            close(self.wake_end)
        deallocate(self.spare)

    # -- opening ------------------------------------------------------------------------------------------------------

    def replay(self, uint64_t after=0):
        """Yield (sequence, seconds since 1970, type, body) of each record; then append.

        It begins at the floor, or behind the entry `after` if that is later. `damage` says what is missing.
        """
        cdef LogReader reader = self.open_reader(after)
        while reader.next_record():
            yield reader.sequence, reader.time / 1000, reader.type, reader.body[:reader.size]
        self.begin()

    def scan(self):
        """Yield the same, and append nothing afterwards: the files stay as they are."""
        cdef LogReader reader = self.open_reader(0)
        while reader.next_record():
            yield reader.sequence, reader.time / 1000, reader.type, reader.body[:reader.size]

    def files(self):
        """(segments in use by generation, files that wait for a use or their removal)."""
        return self.pool.used + self.pool.bodies, self.pool.ready + self.pool.reserve + self.pool.doomed

    cdef LogReader open_reader(self, uint64_t after):
        """The same for compiled code, which calls `begin` when it has read all."""
        if self.opening is not None:
            raise RuntimeError("the log was replayed already")
        self.opening = LogReader(self.disk, self.pool.used, self.pool.floor, after)
        return self.opening

    cdef int begin(self) except -1:
        """All was replayed: append from now on."""
        cdef LogReader reader = self.opening
        cdef Segment segment
        cdef uint64_t last = reader.last
        reader.finish()
        for segment in list(self.pool.used):
            if segment.generation > reader.generation:
                self.pool.give_back(segment)  # it has nothing, or the rest of a group that was not synced
        self.find_lots()
        self.pool.keep_aside()
        self.appended = self.written = self.synced = self.sealed = self.taken = self.durable = last
        self.given = self.done_written = self.done_synced = last
        self.number = self.entry_number = reader.number
        self.new_lot(last + 1, self.number)
        self.new_chunk(CHUNK_BYTES)
        self.cursor = self.tail = self.last
        self.ready = True
        if self.threaded:
            self.jobs = queue.SimpleQueue()
            self.jobs.put(True)
            self.threads = [
                threading.Thread(target=self.write_until_stopped, name="log", daemon=True),
                threading.Thread(target=self.prepare_until_stopped, name="log-segments", daemon=True),
            ]
            for thread in self.threads:
                thread.start()
        return 0

    def bytes_behind_floor(self):
        """Of entries: what a replay reads, about."""
        cdef Lot lot
        cdef uint64_t total = 0
        for lot in reversed(self.lots):
            total += lot.nbytes
            if lot.first <= self.pool.floor:
                break
        return total

    def number_from(self, uint64_t number):
        """After `replay`, before anything is appended: the next message gets `number`, or `self.number` if larger."""
        self.must_be_replayed()
        self.number = self.entry_number = self.lot.first_number = max(number, self.number)

    @property
    def damage(self):
        """What was found missing, as far as `replay` has come: a list of Damage."""
        return self.unreadable + (self.opening.damage if self.opening is not None else [])

    # -- appending ----------------------------------------------------------------------------------------------------

    @property
    def full(self):
        """More waits for the disk than should: whoever appends is held back."""
        return self.is_full()

    cdef bint is_full(self) noexcept:
        return self.buffered + (self.at - self.entry) > self.buffer_bytes_max

    def append(self, int type, const unsigned char[::1] body not None):
        """Put a record into the open entry. Returns the sequence that says when it is synced."""
        cdef char* at = self.reserve(type, body.shape[0])
        if body.shape[0]:
            memcpy(at, &body[0], body.shape[0])
        return self.appended

    cdef char* reserve(self, int type, Py_ssize_t size) except NULL:
        """Room for a record of `size` bytes, to be filled before the next call. The entry is open until `seal`."""
        cdef char* at
        if size + RECORD_HEADER_MAX > self.limit - self.at or self.at == self.entry + ENTRY_HEADER:
            self.make_room(size)
        self.at[0] = <char> type
        at = put_varint(self.at + 1, <uint64_t> size)
        self.at = at + size
        return at

    cdef int make_room(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t begun = self.at - self.entry
        if not self.ready:
            raise LogError(f"{self.folder} is closed, or was not replayed")
        if size < 0 or begun + size > ENTRY_MAX:
            raise ValueError(f"an entry of {begun + size} bytes; at most {ENTRY_MAX}")
        if size + RECORD_HEADER_MAX > self.limit - self.at:
            self.new_chunk(2 * (begun + size) + RECORD_HEADER_MAX)
        if begun == ENTRY_HEADER:
            self.appended = self.sealed + 1
        return 0

    cdef int new_chunk(self, size_t least) except -1:
        """Go on in a new chunk, and take the open entry along."""
        cdef size_t begun = self.at - self.entry, capacity = max(<size_t> CHUNK_BYTES, least)
        cdef Chunk* chunk = self.spare
        if chunk is not NULL and chunk.capacity >= capacity:
            self.spare = chunk.next
        else:
            chunk = <Chunk*> allocate(sizeof(Chunk) + capacity + ENTRY_HEADER)
            if chunk is NULL:
                raise MemoryError()
            chunk.capacity = capacity
        chunk.next, chunk.used = NULL, 0
        if self.last is not NULL:
            memcpy(data_of(chunk), self.entry, begun)
            self.last.used = self.entry - data_of(self.last)
            self.last.next = chunk  # the writer goes there when `tail` does
        self.last = chunk
        self.entry = data_of(chunk)
        self.at = self.entry + max(begun, <size_t> ENTRY_HEADER)
        self.limit = self.entry + capacity
        return 0

    cpdef int seal(self) except -1:
        """The turn is over: give the open entry to the writer."""
        cdef EntryHeader* header = <EntryHeader*> self.entry
        cdef Py_ssize_t length = self.at - self.entry - ENTRY_HEADER
        cdef size_t size
        cdef bint asleep
        if length <= 0:
            return 0 if self.more_comes else self.wake_writer()
        size = entry_size(length)
        header.crc, header.length, header.sequence, header.number = 0, length, self.appended, self.entry_number
        header.when = <uint64_t> (<double> self.clock() * 1000) << 16
        if self.lot.nbytes and (self.rotates or self.lot.nbytes + size > self.pool.segment_bytes - SEGMENT_HEADER):
            self.new_lot(self.appended, self.entry_number)
            header.when |= BEGINS_SEGMENT
        self.rotates = False
        self.lot.live += self.entry_live
        self.entry_live = 0
        memset(self.at, 0, self.entry + size - self.at)
        self.lot.nbytes += size
        self.sealed = self.appended
        self.entry_number = self.number
        self.buffered += size
        self.entry += size
        self.at = self.entry + ENTRY_HEADER
        pthread_mutex_lock(&self.lock)
        self.tail, self.tail_used, self.given = self.last, self.entry - data_of(self.last), self.sealed
        asleep = self.idle and not self.more_comes
        if asleep:
            self.idle = False
        pthread_mutex_unlock(&self.lock)
        if asleep:
            pthread_cond_signal(&self.work_to_do)    # behind the lock: it would wake up to wait for that
        return 0

    cdef int wake_writer(self) except -1:
        """If it sleeps beside an entry that was sealed while more was to come."""
        cdef bint asleep
        pthread_mutex_lock(&self.lock)
        asleep = self.idle and self.has_work()
        if asleep:
            self.idle = False
        pthread_mutex_unlock(&self.lock)
        if asleep:
            pthread_cond_signal(&self.work_to_do)
        return 0

    def fileno(self):
        """Readable when `collect` has something to do."""
        return self.read_end

    cdef bint has_come_further(self) noexcept:
        """Has `collect` more to report than when it was called last? A glance, without the lock."""
        return self.done_synced != self.synced or self.done_written != self.written

    cpdef int collect(self) except -1:
        """See how far the writer has come, and report it."""
        cdef char octets[64]
        cdef Chunk* chunk
        cdef uint64_t synced, written
        cdef int failure
        while read(self.read_end, octets, sizeof(octets)) == sizeof(octets):
            pass
        pthread_mutex_lock(&self.lock)
        written, synced, failure = self.done_written, self.done_synced, self.failure
        self.buffered -= self.freed
        self.freed = 0
        chunk, self.consumed = self.consumed, NULL
        pthread_mutex_unlock(&self.lock)
        self.keep_spare(chunk)
        trouble = f"{os.strerror(failure)}: {self.folder}" if failure else None
        unprepared = self.unprepared
        short = None
        if unprepared is not None:
            nbytes = self.pool.segment_bytes
            short = f"{unprepared.strerror}: no file of {nbytes:,} bytes can be made ahead in {self.folder}"
        if written != self.written or synced != self.synced or trouble != self.trouble or short != self.short:
            self.written, self.synced, self.trouble, self.short = written, synced, trouble, short
            if self.counted and synced >= self.reclaimed_at:
                self.reclaim()
            if self.compaction_waits and synced >= self.compacts_at:
                self.begin_compaction()
            self.progressed()
        if self.compaction is not None and self.compaction.done:
            self.take_over()
        return 0

    cdef int keep_spare(self, Chunk* chunk) noexcept:
        """Keep one chunk of those that are free, for the next that is needed."""
        cdef Chunk* following
        while chunk is not NULL:
            following = chunk.next
            if self.spare is NULL and chunk.capacity == CHUNK_BYTES:
                chunk.next = NULL
                self.spare = chunk
            else:
                deallocate(chunk)
            chunk = following
        return 0

    # -- too little room ---------------------------------------------------------------------------------------------

    @property
    def segment_bytes(self):
        """Of a file."""
        return self.pool.segment_bytes

    cdef bint has_dead(self, uint64_t above, uint64_t below) except -1:
        """Has a lot nothing live that is before the floor `below`, and not before `above`?"""
        cdef Py_ssize_t index
        for index in range(len(self.lots) - 1):
            if (<Lot> self.lots[index]).live == 0 and not self.is_before_floor(index, above) \
                    and self.is_before_floor(index, below):
                return True
        return False

    @property
    def stuck(self):
        """Has a lot that is not before the floor nothing live?"""
        return self.has_dead(self.pool.floor, <uint64_t> -1)

    def spread_floor(self):
        """Do files wait for another header with the floor? Then the entry that is written next begins a file."""
        cdef uint64_t floor = self.pool.floor
        self.must_be_replayed()
        if not self.has_dead(self.pool.safe_floor(), floor):
            return False
        if not self.rotates:
            if self.spread == floor or self.lot.first > self.synced:
                return False
            self.spread, self.rotates = floor, True
        return True

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self):
        """Seal, write what can be written, and end. What is not synced then is lost."""
        if self.ready:
            self.seal()
            self.ready = False
            if self.compaction is not None:
                self.compaction.stopping = True
            pthread_mutex_lock(&self.lock)
            self.stopping = self.retrying = self.sync_asked = True
            self.idle = False
            pthread_cond_signal(&self.work_to_do)
            pthread_mutex_unlock(&self.lock)
            if self.threaded:
                self.jobs.put(None)
                for thread in self.threads:
                    thread.join()
            while not self.threaded and self.has_work():
                self.write_one()
            self.limit = self.at = self.entry + ENTRY_HEADER
            self.collect()
        self.close_files()

    cdef int close_files(self) except -1:
        self.pool.close()
        if self.read_end >= 0:
            close(self.read_end)
            close(self.wake_end)
        self.read_end = self.wake_end = -1
        self.folder_lock.close()
        return 0

    # -- by hand, or in a thread --------------------------------------------------------------------------------------

    def write_group(self):
        """Without a thread: write a group, sync it and `collect`. False: there is none, or the disk fails."""
        cdef bint done = not self.threaded and self.has_work() and self.write_one()
        self.collect()
        return done

    def prepare(self):
        """Without a thread: make files ahead of time, and remove those that are too many. OSError: the disk's.

        And do what `compact` has asked for, and write indexes.
        """
        try:
            self.prepare_files()
        finally:
            self.collect()
        if self.compaction is not None and not self.compaction_waits:
            self.compaction.run()
            self.collect()
        self.write_indexes()

    def prepare_until_stopped(self):
        """The thread that does it. If it fails, the writer makes its own file, and has the trouble."""
        while (job := self.jobs.get()) is not None:
            if job is not True:
                job.run()
                self.wake()
            elif self.pool.ready:
                # A file was begun, perhaps by a session that has come back after a restart: what waits for it is read
                # from the disk now, and 64 MiB of zeros are not needed yet.
                sleep(PREPARE_SECONDS)
            with contextlib.suppress(OSError):  # `short` says it
                self.prepare_files()
            self.wake()
            self.write_indexes()

    cdef int prepare_files(self) except -1:
        try:
            self.pool.prepare()
        except OSError as error:
            self.unprepared = error
            raise
        self.unprepared = None
        return 0

    def prepare_again(self):
        """After `short`: have the thread try once more."""
        if self.jobs is not None:
            self.jobs.put(True)
