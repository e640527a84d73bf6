# CRC-32C of any range of some bytes, in a time that hardly depends on its length.
#
#   data   | 64 bytes | 64 bytes | 64 bytes | ...        marks: the checksum of all that is before each
#
#   crc(data[a:b], seed) = crc(data[:b]) ^ shift(seed ^ crc(data[:a]), b - a)
#
# `shift` is what n zeros do to a checksum: a multiplication by x^8n modulo the polynomial, in log n steps. It is zlib's
# crc32_combine (Mark Adler, crc32.c), for another polynomial.

from libc.stdint cimport uint32_t

cdef class RangeCrc:
    cdef:
        const char* data
        size_t size
        uint32_t* marks

    cdef int begin(self, const char* data, size_t size) except -1
    cdef uint32_t before(self, size_t position) noexcept nogil
    cdef uint32_t of(self, uint32_t seed, size_t first, size_t end) noexcept nogil
