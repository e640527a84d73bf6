# The second step of making a FrozenIndex (frozen_write.pxd): hash tables made anew, holes cleared, checksum.

from libc.stdint cimport uint64_t

from matchcore.frozen_write cimport Draft

# Of a draft that was copied. -1: no memory, and the draft is given back.
cdef int draft_finish(Draft* draft) noexcept nogil

# Of `size` bytes from `start`, a multiple of 32.
cdef uint64_t checksum(const void* start, size_t size) noexcept nogil
