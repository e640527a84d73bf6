# A bit for each number from `first` up to `end`: is a copy of the message in a queue or window? For compaction.

cimport cython
from libc.stdint cimport uint64_t

@cython.final
cdef class LiveNumbers:
    cdef:
        readonly uint64_t first, end
        readonly bytearray bits
        unsigned char* at

    cdef inline int mark(self, uint64_t number) noexcept:
        if self.first <= number < self.end:
            self.at[(number - self.first) >> 3] |= 1 << ((number - self.first) & 7)
        return 0
