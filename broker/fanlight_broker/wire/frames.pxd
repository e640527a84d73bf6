# The frames of one outbox, oldest first: where their bytes are.
#
#   inline bytes   ....[aaaa][bb][cccccc][d][eeeeeee].....      one growing buffer: small frames, and the heads of large
#                                                               ones
#                  ^head                            ^tail
#   frames         {a}{b}{c}{d*}{r*}{e}                         a ring of records, one a frame; * has something shared
#   bodies         [d's body, a batch]                            each shared by all outboxes it went to
#
# A batch (batch.pxd) contains several messages and has no inline bytes: `done` of its bytes are sent or dropped.
# Drop-oldest gives up frames from the front. Where frames that must stay stand before those it gives up, these are
# marked dead, and the former move up to the rest as soon as the dead ones take more than they do:
#
#   [kept][dead][dead][dead][kept][dead][next ...]   -->   [kept][kept][next ...]       at most one octet moved for a
#                                                                                       dead one
#
# So what is dead is little, and is counted as long as it is there.

from libc.stdint cimport uint32_t

from fanlight_broker.wire.batch cimport Batch

cdef enum:
    MESSAGE = 1        # fire and forget: the slow policy may drop it
    SHARED = 2         # the rest of the frame is the next of `bodies`
    DEAD = 4           # dropped, not compacted away yet
    FIRM = 8           # a message that the slow policy must not drop: its client acknowledges it
    BATCH = 16           # the next of `bodies` is a batch, and the frame all that is left of it

ctypedef struct Frame:
    uint32_t inline_size
    uint32_t number    # the subscription it is for, if a message
    uint32_t flags
    uint32_t done      # bytes, of a batch

cdef class Frames:
    cdef:
        char* data
        Py_ssize_t head, tail
        readonly Py_ssize_t capacity
        Frame* frames
        Py_ssize_t first, count
        readonly Py_ssize_t frames_capacity    # of the ring: a power of two
        Py_ssize_t frames_max              # in the ring before it grows: up to a quarter less than its capacity
        Py_ssize_t scanned                 # leading frames known to be of no use to drop-oldest: kept, or dead
        Py_ssize_t passed                  # `bodies` of those of them that are kept
        readonly Py_ssize_t passed_bytes   # what those take that are kept, as in `dead`
        Py_ssize_t pinned                  # leading frames that may not be dropped: their counts have been reported
        object bodies                      # deque of bytes and batches
        readonly Py_ssize_t dead           # inline bytes of dead frames, or the place of those that have none

    cdef inline void pass_over(self) noexcept:
        """The first frame behind the scanned ones is to be kept."""
        cdef Frame* frame = &self.frames[(self.first + self.scanned) & (self.frames_capacity - 1)]
        self.scanned += 1
        if not frame.flags & DEAD:
            self.passed += (frame.flags & (SHARED | BATCH)) != 0
            self.passed_bytes += max(<Py_ssize_t> frame.inline_size, <Py_ssize_t> sizeof(Frame))

    cdef inline void drop_first(self) noexcept:
        """Forget the record of the first frame, its body, if it has one, and its bytes. It is not dead."""
        cdef Frame* frame = &self.frames[self.first]
        self.head += frame.inline_size
        if self.scanned:
            self.scanned -= 1
            self.passed -= (frame.flags & (SHARED | BATCH)) != 0
            self.passed_bytes -= max(<Py_ssize_t> frame.inline_size, <Py_ssize_t> sizeof(Frame))
        if self.pinned:
            self.pinned -= 1
        self.first = (self.first + 1) & (self.frames_capacity - 1)
        self.count -= 1

    cdef inline void record(self, Py_ssize_t inline_size, uint32_t number, uint32_t flags) noexcept:
        """Append the record of a frame. There is room for it: `reserve_record`."""
        cdef Frame* frame = &self.frames[(self.first + self.count) & (self.frames_capacity - 1)]
        frame.inline_size = <uint32_t> inline_size
        frame.number = number
        frame.flags = flags
        frame.done = 0
        self.count += 1

    cdef int reserve(self, Py_ssize_t inline_size) except -1
    cdef int reserve_record(self) except -1
    cdef int append_body(self, body) except -1
    cdef int squeeze(self) except -1
    cdef int forget_all(self) except -1
    cdef int gather(self, char** starts, Py_ssize_t* sizes, int most) except -1
    cdef Py_ssize_t front(self, double messages, double octets) except -1
    cdef Py_ssize_t shared_part(self, Frame* frame, Py_ssize_t nth, const char** at) except -1
    cdef int free_buffers(self) except -1
