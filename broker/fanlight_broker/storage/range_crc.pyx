# cython: language_level=3
"""Checksums of ranges: see range_crc.pxd."""

from libc.stdint cimport uint32_t

from fanlight_broker.storage.crc32c cimport extend_crc
from fanlight_broker.wire.allocator cimport allocate, deallocate

cdef enum:
    MARKED = 64     # bytes for each mark

cdef uint32_t POLYNOMIAL = 0x82F63B78   # reflected: the highest bit is x^0
cdef uint32_t ONE = 0x80000000

cdef uint32_t[32] squares               # x^1, x^2, x^4, x^8 ...


cdef uint32_t product(uint32_t one, uint32_t other) noexcept nogil:
    """Modulo the polynomial."""
    cdef uint32_t bit = ONE, found = 0
    while bit:
        if one & bit:
            found ^= other
        other = other >> 1 ^ (POLYNOMIAL if other & 1 else <uint32_t> 0)
        bit >>= 1
    return found


cdef int fill_squares() noexcept:
    cdef int i
    squares[0] = ONE >> 1
    for i in range(1, 32):
        squares[i] = product(squares[i - 1], squares[i - 1])
    return 0


fill_squares()


cdef uint32_t shift(uint32_t crc, size_t octets) noexcept nogil:
    """What this many zeros behind it make of a checksum that is not inverted."""
    cdef int power = 3      # x^8 for each octet
    while octets:
        if octets & 1:
            crc = product(squares[power & 31], crc)
        octets >>= 1
        power += 1
    return crc


cdef class RangeCrc:
    """The data must stay where it is."""

    def __dealloc__(self):
        deallocate(self.marks)

    cdef int begin(self, const char* data, size_t size) except -1:
        cdef size_t i, count = size // MARKED + 1
        cdef uint32_t crc = 0
        deallocate(self.marks)
        self.marks = <uint32_t*> allocate(count * sizeof(uint32_t))
        if self.marks is NULL:
            raise MemoryError()
        self.data, self.size = data, size
        with nogil:
            for i in range(count):
                self.marks[i] = crc
                if i + 1 < count:
                    crc = extend_crc(crc, data + i * MARKED, MARKED)
        return 0

    cdef uint32_t before(self, size_t position) noexcept nogil:
        """The checksum of all that is before it."""
        cdef size_t i = position // MARKED
        return extend_crc(self.marks[i], self.data + i * MARKED, position - i * MARKED)

    cdef uint32_t of(self, uint32_t seed, size_t first, size_t end) noexcept nogil:
        """The checksum of what is from `first` up to `end`, continued from `seed`."""
        return self.before(end) ^ shift(seed ^ self.before(first), end - first)


def crc_of_range(bytes data not None, Py_ssize_t first, Py_ssize_t end, uint32_t crc=0):
    """The checksum of `data[first:end]`, continued from `crc`. ValueError: that is no range of it."""
    cdef RangeCrc ranges = RangeCrc()
    if not 0 <= first <= end <= len(data):
        raise ValueError(f"{first} to {end} is no range of {len(data)} bytes")
    ranges.begin(data, len(data))
    return ranges.of(crc, first, end)
