# cython: language_level=3
"""Histograms of the log's writer: see tally.pxd. What another thread reads may be one value behind."""

from math import inf


cdef extern from "<time.h>" nogil:
    cdef struct timespec:
        long tv_sec, tv_nsec
    enum:
        CLOCK_MONOTONIC
    int clock_gettime(int clock, timespec* now)


cdef double seconds_now() noexcept nogil:
    """Monotonic time, for a difference."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef class Tally:
    """bounds: upper bounds in ascending order, each included."""

    def __cinit__(self, bounds):
        if not 0 < len(bounds) <= BUCKETS_MAX or sorted(bounds) != list(bounds):
            raise ValueError(f"at most {BUCKETS_MAX} bounds in ascending order; got {bounds}")
        for bound in bounds:
            self.bounds[self.size] = bound
            self.size += 1

    cdef void observe(self, double value) noexcept nogil:
        cdef int at = 0
        while at < self.size and value > self.bounds[at]:
            at += 1
        self.counts[at] += 1
        self.sum += value

    def add(self, double value):
        """The same, for Python."""
        self.observe(value)

    def counted(self):
        """[(upper bound, how many are above the bound before it and not above it)]; the last bound is infinite."""
        cdef int at
        return [(self.bounds[at] if at < self.size else inf, self.counts[at]) for at in range(self.size + 1)]
