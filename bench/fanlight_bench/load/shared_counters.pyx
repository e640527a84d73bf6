# cython: language_level=3, boundscheck=False, wraparound=False
"""The Python side of the shared counters: see shared_counters.pxd."""

from libc.stdint cimport uint8_t, uint64_t

import mmap


cdef class SharedCounters:
    """The counters of `workers` and the numbers of `streams`, in writable memory of at least `size` bytes.

    Raises ValueError when the memory is too small.
    """

    def __cinit__(self, memory, int workers, int streams):
        cdef uint8_t[::1] view = memory
        if workers < 1 or streams < 0 or view.shape[0] < self.size(workers, streams):
            raise ValueError(f"{view.shape[0]} bytes for {workers} workers and {streams} streams")
        self.memory = view
        self.workers = workers
        self.streams = streams
        self.counters = <Counters*>&view[0]
        self.sequences = <volatile uint64_t*>(<uint8_t*>&view[0] + workers * sizeof(Counters))

    @staticmethod
    def size(int workers, int streams):
        """The memory that they need, in bytes."""
        return workers * sizeof(Counters) + streams * sizeof(uint64_t)

    def worker(self, int number):
        """The counters of one worker."""
        if not 0 <= number < self.workers:
            raise IndexError(f"worker {number} of {self.workers}")
        cdef Counters c = self.counters[number]
        return {name: count for name, count in dict(c).items() if name != "waiting"}

    def totals(self):
        """The counters of all workers, added up."""
        workers = [self.worker(number) for number in range(self.workers)]
        return {name: sum(worker[name] for worker in workers) for name in workers[0]}


def private(int streams):
    """Counters for one worker, in private memory."""
    return SharedCounters(mmap.mmap(-1, SharedCounters.size(1, streams)), 1, streams)
