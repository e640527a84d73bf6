# cython: language_level=3
"""Which numbers are live: see live_numbers.pxd."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport uint64_t


cdef class LiveNumbers:
    """None is, before it is marked."""

    def __cinit__(self, uint64_t first, uint64_t end):
        self.first, self.end = first, end
        self.bits = bytearray((end - first + 7) // 8)
        self.at = <unsigned char*> PyByteArray_AS_STRING(self.bits)
