# cython: language_level=3
# cython: wraparound=False
"""Frames: the store under an outbox. Bytes in one buffer, a ring of records, and what is shared with other outboxes.

It knows no limit, no policy and no counter: what may come in and what is given up, its outbox decides.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memmove

from fanlight_broker.wire.allocator cimport allocate, deallocate
from fanlight_broker.wire.batch cimport Batch

cdef enum:
    FIRST_BYTES = 512            # of the buffer, up to twice that; it grows, and is given back when the outbox is empty
    DOUBLES_UPTO = 64 * 1024     # bytes; from there on it grows by half
    FIRST_FRAMES = 16

# In place of a deque, which takes 600 bytes: most connections never have a large body or a batch waiting.
cdef tuple NOTHING = ()


cdef uint32_t phase = 0


cdef inline Py_ssize_t first_bytes() noexcept:
    """Each buffer begins with another size, spread evenly (by the golden ratio), and so they grow at different times.

    A hundred clients that read nothing have the same in their outboxes: buffers of one size would all be copied for the
    same message, a few hundred MB in one turn.
    """
    global phase
    phase += <uint32_t> 2654435769
    return FIRST_BYTES + (phase >> 23)    # of 32 bits the first 9: below FIRST_BYTES


cdef class Frames:
    """Whole frames, oldest first."""

    def __cinit__(self):
        self.bodies = NOTHING

    def __dealloc__(self):
        deallocate(self.data)
        deallocate(self.frames)

    cdef int reserve(self, Py_ssize_t inline_size) except -1:
        cdef Py_ssize_t capacity
        cdef char* data
        if self.tail + inline_size <= self.capacity:
            return 0
        if 4 * (self.tail - self.head + inline_size) <= 3 * self.capacity:
            # A quarter of it is free: what is moved now, at most three octets for one, is not moved soon again.
            memmove(self.data, self.data + self.head, self.tail - self.head)
        else:
            # Never more than twice what is in it, but for small ones.
            capacity = self.capacity if self.capacity else first_bytes()
            while 4 * (self.tail - self.head + inline_size) > 3 * capacity:
                capacity += capacity if capacity < DOUBLES_UPTO else capacity // 2
            data = <char*> allocate(capacity)
            if data is NULL:
                raise MemoryError()
            if self.tail > self.head:
                memcpy(data, self.data + self.head, self.tail - self.head)
            deallocate(self.data)
            self.data = data
            self.capacity = capacity
        self.tail -= self.head
        self.head = 0
        return 0

    cdef int reserve_record(self) except -1:
        """The ring is full: twice as large, and its first frame in the first place.

        Each is full at another count, for the reason that `first_bytes` has: 10,000 subscribers with the same 256
        frames unsent would all have their rings copied for the same message.
        """
        global phase
        cdef Py_ssize_t i, capacity = max(2 * self.frames_capacity, FIRST_FRAMES)
        cdef Frame* frames = <Frame*> allocate(capacity * sizeof(Frame))
        if frames is NULL:
            raise MemoryError()
        for i in range(self.count):
            frames[i] = self.frames[(self.first + i) & (self.frames_capacity - 1)]
        deallocate(self.frames)
        self.frames = frames
        self.frames_capacity = capacity
        phase += <uint32_t> 2654435769
        self.frames_max = capacity - ((<Py_ssize_t> phase * (capacity // 4)) >> 32)
        self.first = 0
        return 0

    cdef int append_body(self, body) except -1:
        """Something that the next frame shares with other outboxes."""
        if self.bodies is NOTHING:
            self.bodies = deque()
        self.bodies.append(body)
        return 0

    cdef int squeeze(self) except -1:
        """Take the dead frames out: those that are kept before and between them move up to the rest."""
        cdef Py_ssize_t i, read = self.head, write, kept = self.scanned, unpinned = 0
        cdef Py_ssize_t mask = self.frames_capacity - 1
        cdef Frame frame
        for i in range(self.scanned):
            read += self.frames[(self.first + i) & mask].inline_size
        write = read
        for i in range(self.scanned - 1, -1, -1):
            frame = self.frames[(self.first + i) & mask]
            read -= frame.inline_size
            if frame.flags & DEAD:
                unpinned += i < self.pinned
                continue
            kept -= 1
            write -= frame.inline_size
            memmove(self.data + write, self.data + read, frame.inline_size)
            self.frames[(self.first + kept) & mask] = frame
        self.head = write
        self.first = (self.first + kept) & mask
        self.count -= kept
        self.scanned -= kept
        self.pinned -= unpinned
        self.dead = 0
        return 0

    cdef int forget_all(self) except -1:
        """There is nothing in it any more."""
        if self.bodies:
            self.bodies.clear()
        self.count = self.first = self.head = self.tail = self.dead = 0
        self.scanned = self.passed = self.passed_bytes = self.pinned = 0
        return 0

    cdef int gather(self, char** starts, Py_ssize_t* sizes, int most) except -1:
        """The front of the outbox as at most `most` runs of bytes. Returns how many; valid until the next change."""
        cdef Py_ssize_t i, at = self.head, start = self.head, nth = 0, mask = self.frames_capacity - 1
        cdef Frame* frame
        cdef const char* body
        cdef Py_ssize_t body_size
        cdef int n = 0
        if self.dead:
            self.squeeze()
            at = start = self.head
        if not self.bodies:
            if self.tail == self.head:
                return 0
            starts[0] = self.data + self.head
            sizes[0] = self.tail - self.head
            return 1
        for i in range(self.count):
            frame = &self.frames[(self.first + i) & mask]
            at += frame.inline_size
            if frame.flags & (SHARED | BATCH):
                if n + 2 > most:
                    return n
                body_size = self.shared_part(frame, nth, &body)
                nth += 1
                if at > start:
                    starts[n] = self.data + start
                    sizes[n] = at - start
                    n += 1
                starts[n] = <char*> body
                sizes[n] = body_size
                n += 1
                start = at
        if at > start and n < most:
            starts[n] = self.data + start
            sizes[n] = at - start
            n += 1
        return n

    cdef Py_ssize_t front(self, double messages, double octets) except -1:
        """The bytes of the frames at the front up to the message for which a bucket has no token left: the last that
        passes may take more octets than there are.
        """
        cdef Py_ssize_t i, total = 0, nth = 0, size, done, mask = self.frames_capacity - 1
        cdef Frame* frame
        cdef const char* body
        cdef Batch batch
        if self.dead:
            self.squeeze()
        for i in range(self.count):
            frame = &self.frames[(self.first + i) & mask]
            if not frame.flags & MESSAGE:
                total += frame.inline_size
                continue
            if messages < 1 or octets < 1:
                return total
            size = frame.inline_size
            if frame.flags & BATCH:
                batch = <Batch> self.bodies[nth]
                nth += 1
                done = frame.done
                while done < batch.size:
                    if messages < 1 or octets < 1:
                        return total
                    size = batch.upto(done, 1, True)
                    done += size
                    total += size
                    messages -= 1
                    octets -= size
                continue
            if frame.flags & SHARED:
                size += self.shared_part(frame, nth, &body)
                nth += 1
            total += size
            messages -= 1
            octets -= size
        return total

    cdef Py_ssize_t shared_part(self, Frame* frame, Py_ssize_t nth, const char** at) except -1:
        """Where what a frame shares with other outboxes begins. Returns how many bytes of it are still to be sent."""
        cdef object body = self.bodies[nth]
        cdef Batch batch
        if frame.flags & BATCH:
            batch = <Batch> body
            at[0] = batch.data + frame.done
            return batch.size - frame.done
        at[0] = PyBytes_AS_STRING(body)
        return PyBytes_GET_SIZE(body)

    cdef int free_buffers(self) except -1:
        """Give the buffers back, if there is nothing in them."""
        if self.count == 0 and (self.capacity or self.frames_capacity):
            deallocate(self.data)
            self.data = NULL
            self.capacity = self.head = self.tail = 0
            deallocate(self.frames)
            self.frames = NULL
            self.frames_capacity = self.frames_max = self.first = 0
            self.bodies = NOTHING
        return 0
