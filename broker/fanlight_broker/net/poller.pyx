# cython: language_level=3
"""The poller: reads, processes and writes TCP connections, many in one turn of the loop, without entering Python.

asyncio's loop stays the master of time: it waits, and calls `turn` when one of the poller's sockets is ready. A turn
goes round until nothing is ready any more or its time is over, so that all else that the loop does gets its own.

What was put into outboxes is flushed here and now: nothing waits for a timer, or for a later turn. But under load not
all of it after each round of reads. A write costs some three reads, and half of it is the subscriber's to pay, so
when many sockets bring little each, one outbox is flushed for every eight reads, the one that has waited longest: it
takes more messages along. When nothing is ready the poller writes a few, and looks again before it writes on.
"""

from collections import deque

from libc.errno cimport errno
from libc.stdint cimport uint32_t

from fanlight_broker.net.flush cimport Flusher
from fanlight_broker.wire.ledger cimport Ledger

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec* time)
    int CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef extern from "<sys/epoll.h>" nogil:
    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event)
    int epoll_wait(int epfd, epoll_event* events, int maxevents, int timeout)
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL

cdef enum:
    FEW = 8                    # outboxes: up to this many are flushed at once, in some 20 µs
    READS_PER_WRITE = 8        # when there are more of them
    ENTRY_BYTES = 8 * 1024     # that were read, after which the journal may begin another entry
    SMALL_READ = 1024          # bytes: with more of them a socket, each write has enough to take along

# After this time everything is flushed and the loop runs: some hundred reads. The loop's timers and other transports
# wait no longer for it than for any other work of this program, and no message waits longer in an outbox.
cdef double TURN_SECONDS = 0.002

# The processor time at the beginning of a turn may be this old: reading it is a system call, some hundredths of a turn
# of one message. So the longest turn is reported at most this much longer than it was, never shorter.
cdef double CPU_READ_SECONDS = 0.0005


cdef double monotonic() noexcept nogil:
    """The clock of fanlight_broker.net.clock."""
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return <double> time.tv_sec + <double> time.tv_nsec * 1e-9


cdef double cpu() noexcept nogil:
    """Seconds of the processor that this thread has used."""
    cdef timespec time
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return <double> time.tv_sec + <double> time.tv_nsec * 1e-9


cdef class Watched:
    """Something with a file descriptor that can become ready."""

    cdef int attend(self, uint32_t events, double now) except -1:
        raise NotImplementedError

    cdef int fault(self) except -1:
        """`attend` has raised; the exception is being handled."""
        raise NotImplementedError

    cdef int lost(self, object error) except -1:
        """Its owner may hear now that it is over; see `end_later`."""
        raise NotImplementedError


cdef class Poller:
    """One epoll instance, in the turns of `loop`.

    flusher  empties the outboxes at the end of each round
    """

    def __cinit__(self, loop, Flusher flusher not None):
        self.loop = loop
        self.flusher = flusher
        self.watched = []
        self.behind = []
        self.ending = deque()
        self.fd = epoll_create1(EPOLL_CLOEXEC)
        if self.fd < 0:
            raise OSError(errno, "epoll_create1 failed")
        loop.add_reader(self.fd, self.turn)

    def __dealloc__(self):
        if self.fd >= 0:
            close(self.fd)

    def close(self):
        """Watch nothing any more."""
        if self.fd >= 0:
            self.loop.remove_reader(self.fd)
            close(self.fd)
            self.fd = -1
            self.behind.clear()

    def turn(self):
        """Attend to all that is ready, until nothing is or the time is over."""
        cdef int n
        cdef epoll_event* event
        cdef Watched it
        cdef Flusher flusher = self.flusher
        cdef unsigned long long before, written = self.flusher.ledger.bytes_in
        cdef double now = monotonic()
        cdef double begun = now, end = now + TURN_SECONDS
        if now - self.cpu_read_at > CPU_READ_SECONDS:
            self.read_cpu(now)
        self.turns += 1
        flusher.ledger.turn_ends = end
        flusher.expected = True
        try:
            while self.fd >= 0:
                if self.at == self.n:
                    self.at = 0
                    self.n = max(epoll_wait(self.fd, self.events, AT_ONCE, 0), 0)
                n = self.n - self.at
                if n == 0 and not flusher.ledger.dirty and not self.behind:
                    break
                self.rounds += 1
                before = flusher.ledger.bytes_in
                if self.behind:
                    it = self.behind.pop(0)
                    it.listed = False
                    self.attend_to(it, READABLE, now)
                    now = monotonic()
                while self.at < self.n:
                    event = &self.events[self.at]
                    self.at += 1
                    it = self.watched[event.data.fd]
                    if it is None:
                        continue
                    self.attend_to(it, event.events, now)
                    if flusher.ledger.bytes_in - written >= ENTRY_BYTES and flusher.ledger.journal is not None:
                        written = flusher.ledger.bytes_in
                        flusher.ledger.journal.begin_writing()
                    now = monotonic()
                    if now >= end:
                        break
                if <Py_ssize_t> (flusher.ledger.bytes_in - before) > n * SMALL_READ:
                    flusher.flush()
                else:
                    flusher.flush_oldest(FEW if n == 0 else max(1, n // READS_PER_WRITE), FEW)
                now = monotonic()
                if now >= end:
                    break
        finally:
            flusher.end_turn()
            if self.behind:
                self.call()
            self.note(begun)

    cdef int attend_to(self, Watched it, uint32_t events, double now) except -1:
        try:
            it.attend(events, now)
        except Exception:
            it.fault()
        return 0

    cdef int come_back_to(self, Watched it) except -1:
        """Attend to it in a round to come, whatever its socket says: it has received more than it handed on."""
        if not it.listed:
            it.listed = True
            self.behind.append(it)
            self.call()
        return 0

    cdef int call(self) except -1:
        """Arrange for a turn: the sockets of those that are behind need not be ready."""
        if not self.called and self.fd >= 0:
            self.called = True
            self.loop.call_soon(self.catch_up)
        return 0

    def catch_up(self):
        self.called = False
        self.turn()

    cdef int end_later(self, Watched it, object error) except -1:
        """End it in a turn of its own. Many may be over at once, and what an end asks of the broker takes 100 µs."""
        self.ending.append((it, error))
        if not self.ends:
            self.ends = True
            self.loop.call_soon(self.end_some)
        return 0

    def end_some(self):
        """End those that are over, in order, until the time of a turn is."""
        cdef Watched it
        cdef double now = monotonic()
        cdef double begun = now, end = now + TURN_SECONDS
        self.read_cpu(now)
        self.flusher.ledger.turn_ends = end
        try:
            while self.ending and now < end:
                it, error = self.ending.popleft()
                it.lost(error)
                now = monotonic()
        finally:    # an error in one must not stop those behind it
            self.ends = bool(self.ending)
            if self.ends:
                self.loop.call_soon(self.end_some)
            self.note(begun)

    cdef int note(self, double begun) except -1:
        """A turn is over that has begun then: it may be the longest."""
        cdef Ledger ledger = self.flusher.ledger
        cdef double now = monotonic()
        if now - begun > ledger.turn_cpu_max:    # else it cannot have used more
            ledger.turn_cpu_max = max(ledger.turn_cpu_max, min(now - begun, self.read_cpu(now)))
        return 0

    cdef double read_cpu(self, double now) noexcept:
        """Ask for the processor time. Returns how much was used since it was asked for last."""
        cdef double before = self.used
        self.used = cpu()
        self.cpu_read_at = now
        return self.used - before

    cdef int watch(self, Watched it, uint32_t events) except -1:
        """Report these events of it from now on, and no others; 0: none at all, not even that it has been reset."""
        cdef epoll_event event
        cdef int op
        if events == it.wanted or it.fd < 0 or self.fd < 0:
            return 0
        if it.wanted == 0:
            op = EPOLL_CTL_ADD
            while len(self.watched) <= it.fd:
                self.watched.append(None)
            if self.watched[it.fd] is None:
                self.count += 1
            self.watched[it.fd] = it
        else:
            op = EPOLL_CTL_MOD if events else EPOLL_CTL_DEL
        event.events = events
        event.data.fd = it.fd
        if epoll_ctl(self.fd, op, it.fd, &event) < 0:
            raise OSError(errno, "epoll_ctl failed")
        it.wanted = events
        return 0

    cdef int forget(self, Watched it) except -1:
        """Its descriptor is about to be closed."""
        self.watch(it, 0)
        if it.fd < len(self.watched) and self.watched[it.fd] is it:
            self.watched[it.fd] = None
            self.count -= 1
        return 0
