"""A histogram of times: 64 linear steps per power of two, so a quantile is exact to 1.6 %, in 32 KiB."""

from libc.stdint cimport uint64_t

cdef enum:
    BUCKETS = 4096


cdef struct Histogram:
    uint64_t[BUCKETS] counts
    uint64_t total


cdef inline void record(Histogram* histogram, uint64_t ns) noexcept nogil:
    cdef uint64_t value = ns
    cdef int exponent = 0
    while value >= 128:
        value >>= 1
        exponent += 1
    if ns >= 64:
        histogram.counts[min((exponent + 1) * 64 + <int>(value & 63), BUCKETS - 1)] += 1
    else:
        histogram.counts[ns] += 1
    histogram.total += 1


cdef inline uint64_t quantile_ns(const Histogram* histogram, double share) noexcept nogil:
    """The least time that this share of all stays under; 0 when there are none."""
    cdef uint64_t wanted = <uint64_t>(share * <double>histogram.total), seen = 0
    cdef int i
    for i in range(BUCKETS):
        seen += histogram.counts[i]
        if seen > wanted:
            return i if i < 64 else (<uint64_t>(64 + (i & 63))) << (i // 64 - 1)
    return 0


cdef inline void forget(Histogram* histogram) noexcept nogil:
    cdef int i
    for i in range(BUCKETS):
        histogram.counts[i] = 0
    histogram.total = 0
