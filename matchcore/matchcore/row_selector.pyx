# cython: language_level=3
"""The interface of what asks selectors for many rows. Drawn in row_selector.pxd."""


cdef class RowSelector:
    cdef int prepare(self) except -1:
        raise TypeError("a RowSelector is an interface: see rows.pyx")

    cdef bint is_ready(self) noexcept:
        return False

    cdef int select(
        self, Topics given, uint32_t syntax, const RowsFound* plain, const RowsFound* found, Allocator* allocator,
        RowsFound* merged
    ) except -1 nogil:
        return NOT_READY

    cdef int build(self, const RowsFound* found) except -1:
        raise TypeError("a RowSelector is an interface: see rows.pyx")
