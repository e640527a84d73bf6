# cython: language_level=3
"""The log of the store: see log.pxd. docs/store-format.md has its bytes.

After a failed write or sync nothing that was written to that file since the last sync is trusted: the group is still in
memory, and is written again to a new segment. If that fails, too, `trouble` says why, nothing more is synced, and the
caller calls `retry` now and then.

Segments are never continued after a restart: what a torn group has left behind the end could look like its sequel.
"""

import os
import threading
import time
from pathlib import Path

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from fanlight_broker.storage.disk cimport Disk, checked
from fanlight_broker.storage.log_reader cimport LogReader
from fanlight_broker.storage.segments cimport (
    ENTRY_HEADER, RECORD_HEADER_MAX, SEGMENT_HEADER, UNSYNCED_MAX, EntryHeader, Segment, entry_crc, entry_size,
)
from fanlight_broker.storage.folder_lock import FolderLock
from fanlight_broker.storage.segments import NAME, LogError
from fanlight_broker.wire.allocator cimport allocate, deallocate

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t* lock, void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* lock)
    int pthread_mutex_lock(pthread_mutex_t* lock)
    int pthread_mutex_unlock(pthread_mutex_t* lock)
    int pthread_cond_init(pthread_cond_t* condition, void* attributes)
    int pthread_cond_destroy(pthread_cond_t* condition)
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* lock)
    int pthread_cond_signal(pthread_cond_t* condition)

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t write(int fd, const void* data, size_t size)
    Py_ssize_t read(int fd, void* data, size_t size)
    int close(int fd)

cdef enum:
    CHUNK_BYTES = 256 << 10
    RECORD_MAX = 1 << 30        # a length of an entry has 32 bits


cdef inline char* data_of(Chunk* chunk) noexcept nogil:
    return <char*> chunk + sizeof(Chunk)


def milliseconds():
    """The wall clock."""
    return time.time_ns() // 1_000_000


cdef class Log:
    """The log in `folder`, which it makes and locks. `replay` comes first, then entries may be appended.

    progressed        called without arguments by `collect`, when `written`, `synced` or `trouble` has changed
    segment_bytes     of a file; a longer entry makes a longer one
    group_bytes_max   that are written before a sync, if there is more than one entry
    buffer_bytes_max  that wait for the disk, past which `full` says so
    clock             ms since 1970: the time of entries; None: the wall clock
    salt              of the checksums; None: a random one
    threaded          False: `work` writes, in the thread that calls it

    LogError: it is in use, or of a newer format. OSError: the disk's.
    """

    def __cinit__(
        self, folder, progressed, *, Py_ssize_t segment_bytes=64 << 20, Py_ssize_t group_bytes_max=1 << 20,
        Py_ssize_t buffer_bytes_max=64 << 20, clock=None, salt=None, Disk disk=None, bint threaded=True,
    ):
        pthread_mutex_init(&self.lock, NULL)
        pthread_cond_init(&self.work_to_do, NULL)
        self.read_end = self.write_end = -1
        self.folder, self.progressed, self.clock = Path(folder), progressed, clock or milliseconds
        self.segment_bytes, self.group_bytes_max = max(segment_bytes, SEGMENT_HEADER), group_bytes_max
        self.buffer_bytes_max, self.threaded = buffer_bytes_max, threaded
        self.disk = disk if disk is not None else Disk()
        self.salt = int.from_bytes(os.urandom(8)) if salt is None else salt
        self.segments = []
        self.folder_lock = FolderLock(self.folder)
        try:
            self.open_segments()
            self.read_end, self.write_end = os.pipe()
            os.set_blocking(self.read_end, False)
            os.set_blocking(self.write_end, False)
        except BaseException:
            self.close_files()
            raise

    def __dealloc__(self):
        close_pipe(self.read_end, self.write_end)
        free_chunks(self.consumed)
        free_chunks(self.cursor)
        free_chunks(self.spare)
        pthread_cond_destroy(&self.work_to_do)
        pthread_mutex_destroy(&self.lock)

    # -- opening ------------------------------------------------------------------------------------------------------

    cdef int open_segments(self) except -1:
        cdef Segment segment
        for path in sorted(self.folder.iterdir()):
            if NAME.fullmatch(path.name):
                segment = self.open_segment(path, False)
                self.segments.append(segment)
                segment.read_header(self.disk)
                self.generation = max(self.generation, segment.generation)
        self.segments.sort(key=generation_of)
        return 0

    cdef Segment open_segment(self, path, bint create):
        cdef bytes c_path = str(path).encode()
        cdef int fd = self.disk.open_file(c_path, create)
        checked(fd, path)
        return Segment(path, fd)

    def replay(self, uint64_t after=0):
        """Yield (sequence, ms since 1970, type, body) of each record behind the entry `after`; then one may append.

        `damage` says what is missing.
        """
        cdef LogReader reader = self.open_reader(after)
        while reader.next_record():
            yield reader.sequence, reader.time, reader.type, reader.body[:reader.size]
        self.begin()

    cdef LogReader open_reader(self, uint64_t after):
        """The same for compiled code, which calls `begin` when it has read all."""
        if self.reader is not None or self.ready:
            raise RuntimeError("the log was replayed already")
        self.reader = LogReader(self.disk, [one for one in self.segments if generation_of(one)], after)
        return self.reader

    cdef int begin(self) except -1:
        """All was replayed: append from now on."""
        cdef LogReader reader = self.reader
        cdef Segment segment = reader.reader.segment if reader.reader is not None else None
        if segment is not None and not segment.damaged and segment.end < segment.capacity:
            # What a torn group has left behind the end must not be taken for entries, ever.
            checked(self.disk.truncate(segment.fd, segment.end), segment.path)
            checked(self.disk.sync(segment.fd), segment.path)
            segment.capacity = segment.end
        self.appended = self.written = self.synced = self.sealed = self.taken = reader.last
        self.given = self.done_written = self.done_synced = reader.last
        self.number = reader.number
        self.new_chunk(CHUNK_BYTES)
        self.cursor = self.tail = self.last
        self.ready = True
        if self.threaded:
            self.thread = threading.Thread(target=self.write_until_stopped, name="log", daemon=True)
            self.thread.start()
        return 0

    @property
    def damage(self):
        """What `replay` has found missing: a list of Damage."""
        return [] if self.reader is None else self.reader.damage

    # -- the loop -----------------------------------------------------------------------------------------------------

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

    cdef int make_room(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t begun = self.at - self.entry
        if not self.ready:
            raise LogError(f"{self.folder} is closed, or was not replayed")
        if size < 0 or begun + size > RECORD_MAX:
            raise ValueError(f"an entry of {begun + size} bytes; at most {RECORD_MAX}")
        if size + RECORD_HEADER_MAX > self.limit - self.at:
            self.new_chunk(2 * (begun + size) + RECORD_HEADER_MAX)
        if begun == ENTRY_HEADER:
            self.appended = self.sealed + 1
            self.entry_number = self.number
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
        cdef size_t size = entry_size(length)
        if length <= 0:
            return 0
        header.length = length
        header.sequence = self.appended
        header.number = self.entry_number
        header.when = <uint64_t> self.clock() << 16
        memset(self.at, 0, self.entry + size - self.at)
        self.sealed = self.appended
        self.buffered += size
        self.entry += size
        self.at = self.entry + ENTRY_HEADER
        pthread_mutex_lock(&self.lock)
        self.last.used = self.entry - data_of(self.last)
        self.tail, self.tail_used, self.given = self.last, self.last.used, self.sealed
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

    def retry(self):
        """Try again, after `trouble`."""
        pthread_mutex_lock(&self.lock)
        self.retrying = True
        pthread_cond_signal(&self.work_to_do)
        pthread_mutex_unlock(&self.lock)

    def close(self):
        """Seal, write what can be written, and end. What is not synced then is lost."""
        if self.ready:
            self.seal()
            self.ready = False
            pthread_mutex_lock(&self.lock)
            self.stopping = True
            pthread_cond_signal(&self.work_to_do)
            pthread_mutex_unlock(&self.lock)
            if self.thread is not None:
                self.thread.join()
            else:
                while self.work():
                    pass
            self.at = self.entry + ENTRY_HEADER
            self.limit = self.at
            self.collect()
        self.close_files()

    cdef int close_files(self) except -1:
        cdef Segment segment
        for segment in self.segments:
            segment.close(self.disk)
        self.segments = []
        close_pipe(self.read_end, self.write_end)
        self.read_end = self.write_end = -1
        self.folder_lock.close()
        return 0

    # -- the writer ---------------------------------------------------------------------------------------------------

    def write_until_stopped(self):
        with nogil:
            while self.await_work():
                self.write_one()

    def work(self):
        """Without a writer thread: write one group. False: there is nothing to write, or the disk fails."""
        if self.threaded:
            raise RuntimeError("a log with a writer thread")
        return self.has_work() and self.write_one()

    cdef bint has_work(self) noexcept nogil:
        """Under the lock, if there is a thread."""
        return self.given != self.taken and (self.failure == 0 or self.retrying or self.stopping)

    cdef bint await_work(self) noexcept nogil:
        """Sleep until there is a group to write. False: the log is closed, and all is written that can be."""
        cdef bint found
        pthread_mutex_lock(&self.lock)
        while not self.has_work() and not self.stopping:
            self.idle = True
            pthread_cond_wait(&self.work_to_do, &self.lock)
        self.idle = False
        found = self.given != self.taken and not (self.stopping and self.failure)
        pthread_mutex_unlock(&self.lock)
        return found

    cdef bint write_one(self) noexcept nogil:
        """Write a group and sync it: if that fails, once more elsewhere. Tell the loop."""
        cdef Py_ssize_t size = 0
        cdef uint64_t before = self.taken
        cdef Chunk* done = NULL
        cdef Chunk* oldest = self.cursor
        cdef int result = self.write_group(&size)
        if result < 0:
            self.leave_segment()
            result = self.write_group(&size)
            if result < 0:
                self.leave_segment()
        pthread_mutex_lock(&self.lock)
        self.retrying = False
        self.failure = -result
        if result == 0:
            self.done_written = self.done_synced = self.taken
            self.freed += size
            self.groups += 1
            self.bytes_written += size
            while oldest is not self.cursor:
                done = oldest.next
                oldest.next = self.consumed
                self.consumed = oldest
                oldest = done
        pthread_mutex_unlock(&self.lock)
        write(self.write_end, b"\0", 1)
        return self.taken != before

    cdef int leave_segment(self) noexcept nogil:
        """Nothing that is written to this file from now on is trusted."""
        with gil:
            self.segment = None
        return 0

    cdef int write_group(self, Py_ssize_t* size) noexcept nogil:
        """Write and sync what was sealed, up to a group; `size`: its bytes. -errno: nothing has changed in memory."""
        cdef Chunk* chunk = self.cursor
        cdef Chunk* tail
        cdef size_t at = self.cursor_at, tail_used, begin, end
        cdef Py_ssize_t total = 0
        cdef uint64_t sequence = self.taken
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
            result = self.finish(data_of(chunk), &at, end, &total, &sequence)
            if result < 0:
                return result
            if at == begin:
                break
            result = self.disk.write(
                self.segment.fd, data_of(chunk) + begin, at - begin, self.segment.end + total - (at - begin)
            )
            if result < 0:
                return result
        result = self.disk.sync(self.segment.fd)
        if result < 0:
            return result
        if self.segment.first == 0:
            self.segment.first = self.taken + 1
        self.segment.last = self.taken = sequence
        self.segment.end += total
        self.cursor, self.cursor_at = chunk, at
        size[0] = total
        return 0

    cdef int finish(
        self, char* data, size_t* at, size_t end, Py_ssize_t* total, uint64_t* sequence
    ) noexcept nogil:
        """Give the next entries of a chunk, as many as the group and the segment take, their checksums."""
        cdef EntryHeader* header
        cdef Py_ssize_t size
        cdef int result
        while at[0] != end:
            header = <EntryHeader*> (data + at[0])
            size = entry_size(header.length)
            if total[0] and total[0] + size > self.group_bytes_max:
                break
            if self.segment is None or self.segment.end + total[0] + size > self.segment.capacity:
                if total[0]:
                    break
                result = self.next_segment(size)
                if result < 0:
                    return result
            header.when = header.when & ~<uint64_t> 0xFFFF | min(sequence[0] - self.taken, <uint64_t> UNSYNCED_MAX)
            header.crc = entry_crc(self.segment.seed, <char*> header, header.length)
            total[0] += size
            at[0] += size
            sequence[0] += 1
        return 0

    cdef int next_segment(self, Py_ssize_t size) noexcept nogil:
        """Go on in a new segment, with room for an entry of `size` bytes."""
        cdef int result
        with gil:
            try:
                result = self.make_segment(max(self.segment_bytes, SEGMENT_HEADER + size))
            except OSError as error:
                result = -error.errno
        return result

    cdef int make_segment(self, uint64_t capacity) except -1:
        """A new file, written with zeros: to write over them is quicker than to let the file grow."""
        cdef Segment segment
        cdef bytes zeros = bytes(1 << 20)
        cdef uint64_t offset = 0, size
        cdef int result = 0
        number = max((int(NAME.fullmatch(one.path.name)[1]) for one in self.segments), default=0) + 1
        segment = self.open_segment(self.folder / f"log-{number:08}", True)
        segment.capacity = capacity
        while offset < capacity and result == 0:
            size = min(<uint64_t> len(zeros), capacity - offset)
            result = self.disk.write(segment.fd, zeros, size, offset)
            offset += size
        if result == 0:
            result = self.disk.sync(segment.fd)
        if result == 0:
            self.generation += 1
            result = segment.write_header(self.disk, self.generation, self.salt)
        if result == 0:
            result = self.disk.sync_folder(str(self.folder).encode())
        if result < 0:
            segment.close(self.disk)
            self.disk.unlink(segment.c_path)
            checked(result, segment.path)
        self.segments.append(segment)
        self.segment = segment
        return 0


cdef void close_pipe(int read_end, int write_end) noexcept:
    if read_end >= 0:
        close(read_end)
        close(write_end)


cdef void free_chunks(Chunk* chunk) noexcept:
    cdef Chunk* following
    while chunk is not NULL:
        following = chunk.next
        deallocate(chunk)
        chunk = following


def generation_of(Segment segment):
    return segment.generation
