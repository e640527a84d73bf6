# Whether the sections of a FrozenIndex hold together: nothing they say leads a search out of them, or round in
# circles.

from matchcore.frozen_layout cimport Header

# Of bytes whose header has no fault (frozen_read.pxd). What is wrong, or NULL.
cdef const char* sections_fault(const Header* header) noexcept nogil
