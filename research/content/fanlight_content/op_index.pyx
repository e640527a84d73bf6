# cython: language_level=3, cdivision=True
"""OpIndex: Zhang, Chan, Tan: "An efficient publish/subscribe index for e-commerce databases", PVLDB 7(8), 2014.

A conjunction belongs to its pivot, the attribute that the fewest conjunctions have. Of a message only the partitions of
its own attributes are asked; inside one, criteria are indexed by operator, and true ones are counted. It is built at
once, so the pivots are the best ones: the paper inserts one after another, with the frequencies known so far. Left out:
the signature of attributes, in whose place each index knows which attributes it has values and bounds of.
"""

from libc.stdlib cimport calloc, free

from fanlight_content.selections cimport BY_TEST, Asked, Criterion, Seen
from matchcore.allocator cimport numbers_free, numbers_push
from matchcore.fields cimport FIELD_ABSENT
from matchcore.screen cimport IdList
from matchcore.table cimport NONE


cdef class OpIndex(Contender):
    """A Counting for each pivot."""

    def __cinit__(self, *_) -> None:
        self.held = []
        self.rest = Counting(self.selections, self.over_all)

    def __dealloc__(self) -> None:
        numbers_free(&self.allocator, &self.waiting)
        numbers_free(&self.allocator, &self.popular)
        free(self.by_pivot)

    cdef int add(self, uint32_t selection) except -1:
        cdef uint32_t first = self.selections.items[selection].first
        cdef uint32_t conjunction
        cdef size_t count, i
        cdef const Criterion* criteria
        while self.popular.size < self.selections.attributes.room:
            if numbers_push(&self.allocator, &self.popular, 0) < 0:
                raise MemoryError()
        for conjunction in range(first, first + self.selections.items[selection].conjunctions):
            criteria = self.criteria(conjunction, &count)
            for i in range(count):
                self.popular.items[criteria[i].attribute] += 1
            if numbers_push(&self.allocator, &self.waiting, conjunction) < 0:
                raise MemoryError()
        return 0

    cdef uint32_t _pivot(self, uint32_t conjunction) noexcept nogil:
        """NONE: it has no criterion that needs its attribute to be there."""
        cdef size_t count, i
        cdef const Criterion* criteria = self.criteria(conjunction, &count)
        cdef uint32_t best = NONE, popular = NONE
        for i in range(count):
            if criteria[i].kind != BY_TEST and self.popular.items[criteria[i].attribute] < popular:
                best = criteria[i].attribute
                popular = self.popular.items[best]
        return best

    cdef int finish(self) except -1:
        cdef size_t i
        cdef uint32_t pivot
        cdef Counting one
        self.attributes = self.selections.attributes.room
        self.by_pivot = <void**> calloc(self.attributes + 1, sizeof(void*))
        if self.by_pivot == NULL:
            raise MemoryError()
        for i in range(self.waiting.size):
            pivot = self._pivot(self.waiting.items[i])
            if pivot == NONE:
                self.rest.add_conjunction(self.waiting.items[i])
                continue
            if self.by_pivot[pivot] == NULL:
                one = Counting(self.selections, self.over_all)
                self.held.append(one)
                self.by_pivot[pivot] = <void*> one
            (<Counting> self.by_pivot[pivot]).add_conjunction(self.waiting.items[i])
        for one in self.held:
            one.finish()
        self.rest.finish()
        numbers_free(&self.allocator, &self.waiting)
        numbers_free(&self.allocator, &self.popular)
        return 0

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        cdef const Seen* seen = self.seen(asked)
        cdef uint32_t i, attribute
        self.begin(out)
        for i in range(seen.count):
            attribute = seen.numbers[i]
            if seen.at[attribute].kind != FIELD_ABSENT and self.by_pivot[attribute] != NULL:
                (<Counting> self.by_pivot[attribute]).count(asked, out)
        self.rest.count(asked, out)
        self.end(out)
        return 0

    @property
    def nbytes(self) -> int:
        """With its partitions."""
        counted = sum([one.nbytes for one in self.held])
        return super().nbytes + counted + self.rest.nbytes + self.attributes * sizeof(void*)
