# cython: language_level=3, cdivision=True
"""The counting algorithm, as in Siena.

Carzaniga, Rosenblum, Wolf: "Design and evaluation of a wide-area event notification service", ACM TOCS 19(3), 2001;
Carzaniga, Wolf: "Forwarding in a content-based network", SIGCOMM 2003; before them Yan, Garcia-Molina: "Index
structures for selective dissemination of information", ACM TODS 19(2), 1994.

An index of criteria says which are true; each adds one to the counters of the conjunctions that have it, and a
conjunction is a candidate when its counter reaches the number of its criteria. The work grows with the number of true
criteria, that is with the number of selectors, however few of these are wholly true. Left out: the table of
attributes that lets a whole message be dropped early, which helps only where most messages match nobody.
"""

from libc.string cimport memset

from fanlight_content.criteria cimport Span
from fanlight_content.growth cimport grown
from fanlight_content.selections cimport Criterion
from matchcore.allocator cimport allocate_zeros, deallocate, numbers_free, numbers_push

cdef enum:
    NEEDED_AT_MOST = 255


cdef class Counting(Contender):
    """Counters of a byte."""

    def __cinit__(self, *_) -> None:
        self.index = CriteriaIndex(self.selections)
        self.index.allocator = &self.allocator

    def __dealloc__(self) -> None:
        deallocate(&self.allocator, self.needed, self.needed_capacity)
        deallocate(&self.allocator, self.counters, self.found.size)
        numbers_free(&self.allocator, &self.found)
        numbers_free(&self.allocator, &self.always)

    cdef int add(self, uint32_t selection) except -1:
        cdef uint32_t first = self.selections.items[selection].first
        cdef uint32_t conjunction
        for conjunction in range(first, first + self.selections.items[selection].conjunctions):
            self.add_conjunction(conjunction)
        return 0

    cdef int add_conjunction(self, uint32_t conjunction) except -1:
        cdef size_t count, i
        cdef const Criterion* criteria = self.criteria(conjunction, &count)
        cdef uint32_t number = <uint32_t> self.found.size
        cdef uint32_t selection = self.selections.conjunctions[conjunction].selection
        cdef int needed = 0, entries = 0
        if count == 0:
            if numbers_push(&self.allocator, &self.always, selection) < 0:
                raise MemoryError()
            return 0
        for i in range(count):
            entries = self.index.add(&criteria[i], number)
            if i == 0 or criteria[i].constraint != criteria[i - 1].constraint:
                needed += entries
        if needed > NEEDED_AT_MOST:
            raise OverflowError(f"{needed} criteria of one conjunction, more than a byte counts")
        self.needed = <uint8_t*> grown(&self.allocator, self.needed, &self.needed_capacity, number + 1, 1)
        self.needed[number] = <uint8_t> needed
        if numbers_push(&self.allocator, &self.found, selection) < 0:
            raise MemoryError()
        return 0

    cdef int finish(self) except -1:
        self.index.finish()
        self.counters = <uint8_t*> allocate_zeros(&self.allocator, self.found.size)
        if self.counters == NULL and self.found.size:
            raise MemoryError()
        return 0

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        self.begin(out)
        self.count(asked, out)
        self.end(out)
        return 0

    cdef int count(self, Asked asked, IdList out) except -1 nogil:
        cdef size_t spans = self.index.ask(self.seen(asked)), i, j
        cdef const Span* span
        cdef uint32_t number
        for i in range(spans):
            span = &self.index.spans[i]
            for j in range(span.count):
                number = span.items[j]
                self.counters[number] += 1
                if self.counters[number] == self.needed[number]:
                    self.check(self.found.items[number], asked, out)
        memset(self.counters, 0, self.found.size)
        for i in range(self.always.size):
            self.check(self.always.items[i], asked, out)
        return 0
