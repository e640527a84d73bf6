# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The histogram's face for Python: see histogram.pxd."""

from libc.stdint cimport uint64_t


cdef class Histogram:
    """Times in nanoseconds, counted in steps of at most 0.8 %."""

    def record(self, uint64_t ns):
        """Count one time."""
        self.add(ns)

    def merge(self, Histogram other not None):
        """Add what another one has counted."""
        cdef int i
        for i in range(BUCKETS):
            self.counts[i] += other.counts[i]
        self.total += other.total
        self.highest = max(self.highest, other.highest)

    def clear(self):
        """Forget all."""
        cdef int i
        for i in range(BUCKETS):
            self.counts[i] = 0
        self.total = self.highest = 0

    def quantile(self, double share):
        """The time in ns, to 0.8 %, that this share of all values does not exceed; 0 without values."""
        cdef uint64_t wanted, seen = 0
        cdef int i
        if not self.total:
            return 0
        wanted = <uint64_t>(share * <double>self.total)
        for i in range(BUCKETS):
            seen += self.counts[i]
            if seen > wanted:
                return min(_top(i), self.highest)
        return self.highest

    def steps(self):
        """(step, count) of all steps that are not empty: what `of` makes the histogram from, elsewhere."""
        cdef int i
        return [(i, self.counts[i]) for i in range(BUCKETS) if self.counts[i]]

    @staticmethod
    def of(steps, uint64_t highest):
        """The histogram that said `steps()` and had this highest time. Raises ValueError."""
        cdef Histogram made = Histogram()
        cdef uint64_t count
        for step, count in steps:
            if not 0 <= step < BUCKETS:
                raise ValueError(f"step {step} of a histogram; there are {BUCKETS}")
            made.counts[<int>step] = count
            made.total += count
        made.highest = highest
        return made


cdef uint64_t _top(int step) noexcept:
    """The longest time that is counted in a step."""
    cdef int e
    if step < STEPS:
        return step
    e = step // STEPS + 6
    return ((<uint64_t>(STEPS + step % STEPS + 1)) << (e - 7)) - 1
