# cython: language_level=3
"""The numbers that wait in a queue, while a log is replayed: see waiting_numbers.pxd."""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.number_list cimport NumberList, Runs, begin_runs, next_run


cdef class WaitingNumbers:
    def __cinit__(self):
        self.numbers = NumberList.__new__(NumberList)

    def __len__(self):
        cdef Py_ssize_t count = self.numbers.length
        if self.gone is not None:
            count -= len(self.gone)
        if self.again is not None:
            count += len(self.again)
        return count

    def __contains__(self, uint64_t number):
        if self.again is not None and number in self.again:
            return True
        return self.numbers.has(number) and not self.is_gone(number)

    @property
    def returned(self):
        """{number: slot} of what was in flight and waits again, in no order."""
        return self.again if self.again is not None else {}

    @property
    def has_gaps(self):
        """Is it more than `numbers`, or less?"""
        return bool(self.gone) or bool(self.again)

    cdef uint64_t first(self) noexcept:
        return self.numbers.blocks[self.numbers.head].first if self.numbers.length else 0

    cdef bint is_gone(self, uint64_t number) except -1:
        return self.gone is not None and number in self.gone

    cpdef int add(self, uint64_t number, uint32_t slot, uint64_t octets, double expires_at=INFINITY) except -1:
        """A message that has come. One that is there stays."""
        if number > self.numbers.last_number():
            return self.numbers.add(number, slot, octets, expires_at)
        return self.put_again(number, slot)

    cpdef int put_again(self, uint64_t number, uint32_t slot) except -1:
        """It was in flight."""
        if self.is_gone(number):
            self.gone.remove(number)
        elif not self.numbers.has(number):
            if self.again is None:
                self.again = {}
            self.again[number] = slot
        return 0

    cpdef bint remove(self, uint64_t number) except -1:
        """False: it is not there."""
        if self.again is not None and self.again.pop(number, None) is not None:
            return True
        if self.numbers.length and number == self.first():
            self.numbers.take()
            while self.gone and self.is_gone(self.first()):
                self.gone.remove(self.first())
                self.numbers.take()
            return True
        if not self.numbers.has(number) or self.is_gone(number):
            return False
        if self.gone is None:
            self.gone = set()
        self.gone.add(number)
        return True

    def replace(self, NumberList numbers not None):
        """These wait, and no others."""
        self.numbers = numbers
        self.again = self.gone = None

    def restate(self, NumberList numbers not None):
        """These wait in a group's queue, and so do those that are here and not among them: they are on loan to sessions
        that do not survive, which are restated later, or not at all if the broker was killed before.
        """
        cdef dict others = {}
        cdef list runs = numbers.runs()
        cdef Py_ssize_t at = 0
        cdef uint64_t number, first, last, stop
        for slot, first, last in self.numbers.runs():
            number = first
            while number <= last:
                while at < len(runs) and runs[at][2] < number:
                    at += 1
                if at < len(runs) and runs[at][1] <= number:
                    number = runs[at][2] + 1
                    continue
                stop = min(last + 1, <uint64_t> runs[at][1]) if at < len(runs) else last + 1
                for number in range(number, stop):
                    if not self.is_gone(number):
                        others[number] = slot
                number = stop
        for number, slot in self.returned.items():
            if not numbers.has(number):
                others[number] = slot
        self.replace(numbers)
        self.again = others or None

    def count_live(self, Log log not None):
        """Each is a copy of its message that a log has to keep."""
        cdef uint64_t number
        log.live_in(self.numbers)
        for number in self.again or ():
            log.live(number, 1)
        for number in self.gone or ():
            log.live(number, -1)

    def items(self):
        """[(number, slot), ...] in order."""
        found = [each for each in self.numbers.first(self.numbers.length) if not self.is_gone(each[0])]
        return sorted([*found, *self.returned.items()])

    def merged(self, sizes):
        """All in one list, in order. sizes: (bytes, expiry) of what has `returned`; what is not there is left out."""
        cdef NumberList result = NumberList()
        cdef list more = sorted(self.returned, reverse=True)
        cdef Py_ssize_t i
        cdef uint64_t number, share
        cdef Runs runs
        for i in range(self.numbers.head, self.numbers.n):
            begin_runs(&runs, &self.numbers.blocks[i])
            share = runs.block.nbytes // runs.block.count
            while next_run(&runs):
                for number in range(runs.first, runs.last + 1):
                    while more and more[len(more) - 1] < number:
                        self.move(result, more.pop(), sizes)
                    if not self.is_gone(number):
                        result.add(number, runs.block.slot, share, runs.block.latest)
        while more:
            self.move(result, more.pop(), sizes)
        return result

    cdef int move(self, NumberList result, uint64_t number, dict sizes) except -1:
        found = sizes.get(number)
        if found is not None:
            result.add(number, self.again[number], found[0], found[1])
        return 0
