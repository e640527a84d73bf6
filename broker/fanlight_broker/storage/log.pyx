# cython: language_level=3
"""The log of the store: see log.pxd. docs/store-format.md has its bytes.

Segments are never continued after a restart: what a torn group has left behind the end could look like its sequel.
"""

import os
import queue
import threading
from pathlib import Path
from time import time

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from fanlight_broker.storage.disk cimport Disk
from fanlight_broker.storage.entry_reader cimport EntryReader
from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.log_writer cimport (
    BEGINS_SEGMENT, Chunk, LogWriter, data_of, pthread_cond_signal, pthread_mutex_lock, pthread_mutex_unlock,
)
from fanlight_broker.storage.segment_pool cimport SegmentPool
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, RECORD_HEADER_MAX, SEGMENT_HEADER, EntryHeader, Segment, entry_size, put_varint,
)
from fanlight_broker.storage.folder_lock import FolderLock
from fanlight_broker.storage.log_reader import Damage
from fanlight_broker.storage.segments import LogError
from fanlight_broker.wire.allocator cimport allocate, deallocate

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t read(int fd, void* data, size_t size)
    int close(int fd)

cdef enum:
    CHUNK_BYTES = 256 << 10
    ENTRY_MAX = 1 << 30         # its length has 32 bits


cdef class Lot:
    """Entries that are given back together."""


cdef class Log(LogWriter):
    """The log in `folder`, which it makes and locks. `replay` comes first, then entries may be appended.

    progressed        called without arguments by `collect`, when `written`, `synced` or `trouble` has changed
    segment_bytes     of a file; a longer entry makes a longer one
    group_bytes_max   that are written before a sync, if there is more than one entry
    buffer_bytes_max  that wait for the disk, past which `full` says so
    spares            files that are made ahead of time
    clock             seconds since 1970: the time of entries
    salt              of the checksums; None: a random one
    threaded          False: the caller calls `write_group` and `prepare`

    LogError: it is in use, or of a newer format. OSError: the disk's.
    """

    def __cinit__(
        self, folder, progressed, *, Py_ssize_t segment_bytes=64 << 20, Py_ssize_t group_bytes_max=1 << 20,
        Py_ssize_t buffer_bytes_max=64 << 20, Py_ssize_t spares=2, clock=time, salt=None, Disk disk=None,
        bint threaded=True,
    ):
        self.read_end = -1
        self.folder, self.progressed, self.clock, self.threaded = Path(folder), progressed, clock, threaded
        self.group_bytes_max, self.buffer_bytes_max = group_bytes_max, buffer_bytes_max
        self.lots, self.threads, self.unreadable = [], [], []
        self.disk = disk if disk is not None else Disk()
        salt = int.from_bytes(os.urandom(8), "little") if salt is None else salt
        self.pool = SegmentPool(self.folder, self.disk, segment_bytes, salt, spares)
        self.folder_lock = FolderLock(self.folder)
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
        """Yield (sequence, seconds since 1970, type, body) of each record behind the entry `after`; then append.

        `damage` says what is missing.
        """
        cdef LogReader reader = self.open_reader(after)
        while reader.next_record():
            yield reader.sequence, reader.time / 1000, reader.type, reader.body[:reader.size]
        self.begin()

    cdef LogReader open_reader(self, uint64_t after):
        """The same for compiled code, which calls `begin` when it has read all."""
        if self.opening is not None:
            raise RuntimeError("the log was replayed already")
        self.opening = LogReader(self.folder, self.disk, self.pool.used, after)
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
            elif segment.first and (self.lot is None or segment.first > self.lot.first):
                self.new_lot(segment.first, segment.first_number)
                self.lot.nbytes = (segment.end if segment.last else segment.capacity) - SEGMENT_HEADER
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

    def number_from(self, uint64_t number):
        """After `replay`, before anything is appended: the next message gets this number."""
        self.must_be_replayed()
        self.number = self.entry_number = self.lot.first_number = number

    cdef int must_be_replayed(self) except -1:
        if self.lot is None:
            raise LogError(f"{self.folder} was not replayed")
        return 0

    @property
    def damage(self):
        """What was found missing, as far as `replay` has come: a list of Damage."""
        return self.unreadable + (self.opening.damage if self.opening is not None else [])

    # -- appending ----------------------------------------------------------------------------------------------------

    @property
    def full(self):
        """More waits for the disk than should: whoever appends is held back."""
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
        if length <= 0:
            return 0
        size = entry_size(length)
        header.crc, header.length, header.sequence, header.number = 0, length, self.appended, self.entry_number
        header.when = <uint64_t> (<double> self.clock() * 1000) << 16
        if self.lot.nbytes and self.lot.nbytes + size > self.pool.segment_bytes - SEGMENT_HEADER:
            self.new_lot(self.appended, self.entry_number)
            header.when |= BEGINS_SEGMENT
        memset(self.at, 0, self.entry + size - self.at)
        self.lot.nbytes += size
        self.sealed = self.appended
        self.entry_number = self.number
        self.buffered += size
        self.entry += size
        self.at = self.entry + ENTRY_HEADER
        pthread_mutex_lock(&self.lock)
        self.tail, self.tail_used, self.given = self.last, self.entry - data_of(self.last), self.sealed
        if self.idle:
            self.idle = False
            pthread_cond_signal(&self.work_to_do)
        pthread_mutex_unlock(&self.lock)
        return 0

    def fileno(self):
        """Readable when `collect` has something to do."""
        return self.read_end

    def collect(self):
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
        if written != self.written or synced != self.synced or trouble != self.trouble:
            self.written, self.synced, self.trouble = written, synced, trouble
            self.progressed()

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

    # -- what is live -------------------------------------------------------------------------------------------------

    cdef int new_lot(self, uint64_t first, uint64_t number) except -1:
        cdef Lot lot = Lot()
        lot.first, lot.first_number = first, number
        self.lots.append(lot)
        self.lot = lot
        return 0

    cpdef int live(self, uint64_t number, Py_ssize_t change) except -1:
        """So many more are live, or fewer if it is negative, in the lot that has the message with this number."""
        cdef Py_ssize_t low = 0, high = len(self.lots), middle
        self.must_be_replayed()
        if number >= self.lot.first_number:
            self.lot.live += change
            return 0
        while high - low > 1:
            middle = (low + high) // 2
            if (<Lot> self.lots[middle]).first_number <= number:
                low = middle
            else:
                high = middle
        (<Lot> self.lots[low]).live += change
        return 0

    cpdef int live_at(self, uint64_t sequence, Py_ssize_t change) except -1:
        """The same for the lot that has this entry, or will have it: for what is not found by its number."""
        cdef Py_ssize_t low = 0, high = len(self.lots), middle
        self.must_be_replayed()
        while high - low > 1:
            middle = (low + high) // 2
            if (<Lot> self.lots[middle]).first <= sequence:
                low = middle
            else:
                high = middle
        (<Lot> self.lots[low]).live += change
        return 0

    def release_before(self, uint64_t sequence):
        """A checkpoint of all that is before the entry `sequence` is synced: give back lots that have nothing live.

        Returns the number of files.
        """
        cdef Lot lot, following
        cdef list kept = []
        cdef Py_ssize_t index, files = 0
        cdef bint written_to
        self.must_be_replayed()
        for index in range(len(self.lots) - 1):
            lot, following = self.lots[index], self.lots[index + 1]
            written_to = self.segment is not None and self.segment.first <= lot.first
            if lot.live or written_to or following.first > min(sequence, self.synced + 1):
                kept.append(lot)
            else:
                files += self.give_back(lot.first, following.first)
        kept.append(self.lot)
        self.lots = kept
        files += self.give_back(0, 1)
        if files and self.jobs is not None:
            self.jobs.put(True)
        return files

    cdef Py_ssize_t give_back(self, uint64_t first, uint64_t end) except -1:
        """The files that begin with one of these entries; with entry 0: those that were left before they had one."""
        cdef Segment segment
        cdef list found = []
        for segment in self.pool.used:
            if segment is self.segment or (first == 0 and segment.first >= (<Lot> self.lots[0]).first):
                break
            if first <= segment.first < end:
                found.append(segment)
        for segment in found:
            self.pool.give_back(segment)
        return len(found)

    # -- reading ------------------------------------------------------------------------------------------------------

    def locate(self, uint64_t number):
        """The position of an entry that is not behind the message with this number, and near. LogError: there is none.

        It is read from there: EntryReader.seek. What is not written yet has no position.
        """
        return self.position_of(number, -1)

    def locate_entry(self, uint64_t sequence):
        """The same for the entry with this sequence."""
        return self.position_of(-1, sequence)

    cdef uint64_t position_of(self, uint64_t number, uint64_t sequence) except? 0:
        cdef Segment segment, found = None
        for segment in self.pool.used:
            if segment.first and segment.first <= sequence and segment.first_number <= number:
                found = segment
        if found is None:
            raise LogError(f"{self.folder} does not go back so far")
        return found.generation << 32 | found.find(number, sequence)

    def reader(self, size_t read_bytes=16384):
        """An EntryReader, for one thread. It reads at least this much at once."""
        return EntryReader(self.disk, self.pool.used, read_bytes)

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self):
        """Seal, write what can be written, and end. What is not synced then is lost."""
        if self.ready:
            self.seal()
            self.ready = False
            pthread_mutex_lock(&self.lock)
            self.stopping = self.retrying = self.sync_asked = True
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
        """Without a thread: make files ahead of time, and remove those that are too many. OSError: the disk's."""
        self.pool.prepare()

    def prepare_until_stopped(self):
        """The thread that does it. If it fails, the writer makes its own file, and has the trouble."""
        while self.jobs.get() is not None:
            try:
                self.pool.prepare()
            except OSError as error:
                self.unprepared = error
            else:
                self.unprepared = None
