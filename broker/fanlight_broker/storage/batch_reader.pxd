# Messages of many numbers at a time: where they are, and their entries, read without the GIL.
#
#   numbers, sorted --index--> pieces of files, joined if they are near --announced, read, checked--> records
#
# A busy loop does not return the GIL soon, so it is given away once for all pieces, and not for each. While a batch is
# read the next is announced, a piece for each: a disk is quicker the more it is asked for at once, and is never idle.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.log cimport Log

cdef struct Found:
    uint64_t number
    const char* body        # of its MESSAGE record; NULL: it is not where the index says, or not whole
    Py_ssize_t size

cdef struct Piece:
    int fd
    uint32_t seed           # of the checksums of its entries
    uint64_t offset
    size_t size
    Py_ssize_t first, end   # of `found`, those that are in it

cdef class BatchReader:
    cdef:
        Log log
        list segments       # whose files are read
        Found* found
        Piece* pieces
        Py_ssize_t count, piece_count
        Py_ssize_t announced    # pieces that the kernel was asked to read ahead
        uint64_t until      # the numbers that follow and are less are in the last piece, too
        size_t filled       # bytes of the pieces
        char* buffer

    cdef Py_ssize_t plan(self, const uint64_t* numbers, Py_ssize_t start, Py_ssize_t end, size_t most) except -1
    cdef bint add(self, uint64_t number, size_t most) except -1
    cdef void announce(self, Py_ssize_t pieces) noexcept nogil
    cdef int read(self, BatchReader following) except -1
    cdef int release(self) noexcept
