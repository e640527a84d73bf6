# How many values were how large: a histogram that a thread without the GIL fills, and the loop reads without a lock.

from libc.stdint cimport uint64_t

cdef enum:
    BUCKETS_MAX = 24

cdef double seconds_now() noexcept nogil

cdef class Tally:
    cdef:
        double bounds[BUCKETS_MAX]
        uint64_t counts[BUCKETS_MAX + 1]    # the last: above all bounds
        int size                            # bounds
        readonly double sum

    cdef void observe(self, double value) noexcept nogil
