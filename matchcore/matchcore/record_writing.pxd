# Writing the rows of a record index; see record_writing.pyx.

from libc.stdint cimport uint8_t


# A section while it is made: its rows one after the other.
cdef class Output:
    cdef:
        bytearray data
        size_t size

    cdef uint8_t* take(self, size_t more) except NULL
    cdef object whole(self, list ends)
