# cython: language_level=3, boundscheck=False, wraparound=False
"""The board's face for Python: see board.pxd."""

from libc.stdint cimport uint8_t, uint64_t

import mmap


cdef class Board:
    """The counters of so many parts, and the numbers of so many streams, in writable memory of at least `size` bytes.

    Raises ValueError when the memory is too small.
    """

    def __cinit__(self, memory, int parts, int streams):
        cdef uint8_t[::1] view = memory
        if parts < 1 or streams < 0 or view.shape[0] < self.size(parts, streams):
            raise ValueError(f"{view.shape[0]} bytes for {parts} parts and {streams} streams")
        self.memory = view
        self.parts = parts
        self.streams = streams
        self.counters = <Counters*>&view[0]
        self.sequences = <volatile uint64_t*>(<uint8_t*>&view[0] + parts * sizeof(Counters))

    @staticmethod
    def size(int parts, int streams):
        """The memory that a board needs, in bytes."""
        return parts * sizeof(Counters) + streams * sizeof(uint64_t)

    def part(self, int number):
        """The counters of one part."""
        if not 0 <= number < self.parts:
            raise IndexError(f"part {number} of {self.parts}")
        cdef Counters c = self.counters[number]
        return {name: count for name, count in dict(c).items() if name != "waiting"}

    def totals(self):
        """The counters of all parts, added up."""
        parts = [self.part(number) for number in range(self.parts)]
        return {name: sum(part[name] for part in parts) for name in parts[0]}


def private(int streams):
    """A board of one part, in memory of its own."""
    return Board(mmap.mmap(-1, Board.size(1, streams)), 1, streams)
