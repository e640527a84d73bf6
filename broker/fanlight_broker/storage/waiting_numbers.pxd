# The numbers that wait in a queue, as the records of a log say it one after the other: mostly they are added behind the
# others, and the first goes.
#
#   numbers   what was added in order
#   gone      of these, what waits no more and is not the first
#   returned  what was in flight and waits again, in no order: {number: slot}

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.number_list cimport NumberList

@cython.final
@cython.no_gc
cdef class WaitingNumbers:
    cdef:
        readonly NumberList numbers
        dict again    # `returned`, or None
        set gone      # or None

    cpdef int add(self, uint64_t number, uint32_t slot, uint64_t octets, double expires_at=*) except -1
    cpdef int put_again(self, uint64_t number, uint32_t slot) except -1
    cpdef bint remove(self, uint64_t number) except -1
    cdef uint64_t first(self) noexcept
    cdef bint is_gone(self, uint64_t number) except -1
    cdef int move(self, NumberList result, uint64_t number, dict sizes) except -1
