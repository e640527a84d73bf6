# cython: language_level=3, cdivision=True
"""Le Subscribe: Fabret, Jacobsen, Llirbat, Pereira, Ross, Shasha: "Filtering algorithms and implementation for very
fast publish/subscribe systems", SIGMOD 2001.

First all criteria that are true of the message are marked in a vector of bits. Then the clusters of those values that
are access predicates are scanned: a conjunction is a candidate if the bits of its other criteria are set. The access
predicate of a conjunction is its rarest value; the paper also takes sets of values, by a cost model, which would need a
workload known before. A conjunction without a value is in the cluster that is always scanned.
"""

from libc.math cimport HUGE_VAL
from libc.stdlib cimport qsort

from fanlight_content.criteria cimport Span
from fanlight_content.growth cimport grown
from fanlight_content.selections cimport BY_RANGE, BY_VALUE, Asked, Criterion
from matchcore.allocator cimport deallocate, numbers_free, numbers_push
from matchcore.screen cimport IdList
from matchcore.table cimport NONE, table_first, table_free, table_next, table_put, table_reserve


cdef int _before(const void* one, const void* other) noexcept nogil:
    cdef const Clustered* a = <const Clustered*> one
    cdef const Clustered* b = <const Clustered*> other
    if a.access != b.access:
        return 1 if a.access > b.access else -1
    if a.others != b.others:
        return 1 if a.others > b.others else -1
    return (a.conjunction > b.conjunction) - (a.conjunction < b.conjunction)


cdef class LeSubscribe(Contender):
    """Clusters by column."""

    def __cinit__(self, *_) -> None:
        self.index = CriteriaIndex(self.selections)
        self.index.allocator = &self.allocator
        self._fresh(0)  # no criterion has this number

    def __dealloc__(self) -> None:
        table_free(&self.allocator, &self.table)
        deallocate(&self.allocator, self.hashes, self.hash_capacity * sizeof(uint64_t))
        deallocate(&self.allocator, self.waiting, self.waiting_capacity * sizeof(Clustered))
        numbers_free(&self.allocator, &self.popular)
        numbers_free(&self.allocator, &self.numbers)
        numbers_free(&self.allocator, &self.clusters)
        numbers_free(&self.allocator, &self.begins)
        numbers_free(&self.allocator, &self.bits)

    cdef uint32_t _fresh(self, uint64_t hash) except? 0:
        """A new number."""
        cdef uint32_t number = <uint32_t> self.popular.size
        self.hashes = <uint64_t*> grown(&self.allocator, self.hashes, &self.hash_capacity, number + 1, sizeof(uint64_t))
        self.hashes[number] = hash
        self._push(&self.popular, 0)
        return number

    cdef int _push(self, Numbers* numbers, uint32_t item) except -1:
        if numbers_push(&self.allocator, numbers, item) < 0:
            raise MemoryError()
        return 0

    cdef uint32_t _value(self, const Criterion* criterion) except 0:
        """The number of a value, which the conjunctions that have it share."""
        cdef uint32_t tag = <uint32_t> (criterion.value >> 32)
        cdef uint32_t at
        cdef uint32_t known = table_first(&self.table, tag, &at)
        while known != NONE:
            if self.hashes[known] == criterion.value:
                return known
            known = table_next(&self.table, tag, &at)
        if table_reserve(&self.allocator, &self.table) < 0:
            raise MemoryError()
        known = self._fresh(criterion.value)
        table_put(&self.table, tag, known)
        self.index.add(criterion, known)
        return known

    cdef int add(self, uint32_t selection) except -1:
        cdef uint32_t first = self.selections.items[selection].first
        cdef uint32_t conjunction
        for conjunction in range(first, first + self.selections.items[selection].conjunctions):
            self._add(conjunction)
        return 0

    cdef int _add(self, uint32_t conjunction) except -1:
        cdef size_t count, i = 0, more, start = self.numbers.size
        cdef const Criterion* criteria = self.criteria(conjunction, &count)
        cdef Criterion half
        cdef uint32_t number
        while i < count:
            more = i + 1
            while more < count and criteria[more].constraint == criteria[i].constraint:
                more += 1
            if criteria[i].kind == BY_VALUE and more == i + 1:
                number = self._value(&criteria[i])
                self.popular.items[number] += 1
                self._push(&self.numbers, number)
            elif criteria[i].kind == BY_RANGE and criteria[i].low > -HUGE_VAL and criteria[i].high < HUGE_VAL:
                half = criteria[i]
                half.high = HUGE_VAL
                self._alone(&half, 1)
                half.high = criteria[i].high
                half.low = -HUGE_VAL
                self._alone(&half, 1)
            else:
                self._alone(&criteria[i], more - i)
            i = more
        self.waiting = <Clustered*> grown(
            &self.allocator, self.waiting, &self.waiting_capacity, self.waiting_count + 1, sizeof(Clustered)
        )
        self.waiting[self.waiting_count] = Clustered(
            0, <uint32_t> (self.numbers.size - start), conjunction, <uint32_t> start
        )
        self.waiting_count += 1
        return 0

    cdef int _alone(self, const Criterion* criteria, size_t count) except -1:
        """A number of its own for one constraint, which any of these criteria meets."""
        cdef uint32_t number = self._fresh(0)
        cdef size_t i
        for i in range(count):
            self.index.add(&criteria[i], number)
        return self._push(&self.numbers, number)

    cdef int finish(self) except -1:
        cdef size_t i, j, until
        cdef uint32_t number, place, column, access
        cdef Clustered* one
        for i in range(self.waiting_count):
            one = &self.waiting[i]
            for place in range(one.first, one.first + one.others):
                number = self.numbers.items[place]
                if self.popular.items[number] != 0 and (
                    one.access == 0 or self.popular.items[number] < self.popular.items[one.access]
                ):
                    one.access = number
        for i in range(self.waiting_count):
            one = &self.waiting[i]
            if one.access != 0:  # the last of its criteria takes its place
                for place in range(one.first, one.first + one.others):
                    if self.numbers.items[place] == one.access:
                        one.others -= 1
                        self.numbers.items[place] = self.numbers.items[one.first + one.others]
                        break
        qsort(self.waiting, self.waiting_count, sizeof(Clustered), _before)
        for i in range(self.popular.size):
            self._push(&self.begins, 0)
        i = 0
        while i < self.waiting_count:
            access = self.waiting[i].access
            self.begins.items[access] = <uint32_t> self.clusters.size + 1
            while i < self.waiting_count and self.waiting[i].access == access:
                until = i
                while until < self.waiting_count and self.waiting[until].access == access \
                        and self.waiting[until].others == self.waiting[i].others:
                    until += 1
                self._push(&self.clusters, self.waiting[i].others)
                self._push(&self.clusters, <uint32_t> (until - i))
                for j in range(i, until):
                    self._push(
                        &self.clusters, self.selections.conjunctions[self.waiting[j].conjunction].selection
                    )
                for column in range(self.waiting[i].others):
                    for j in range(i, until):
                        self._push(&self.clusters, self.numbers.items[self.waiting[j].first + column])
                i = until
            self._push(&self.clusters, 0)
            self._push(&self.clusters, 0)
        for i in range(self.popular.size // 32 + 1):
            self._push(&self.bits, 0)
        deallocate(&self.allocator, self.waiting, self.waiting_capacity * sizeof(Clustered))
        self.waiting = NULL
        self.waiting_capacity = 0
        deallocate(&self.allocator, self.hashes, self.hash_capacity * sizeof(uint64_t))
        self.hashes = NULL
        self.hash_capacity = 0
        table_free(&self.allocator, &self.table)
        numbers_free(&self.allocator, &self.numbers)
        numbers_free(&self.allocator, &self.popular)
        return self.index.finish()

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        cdef size_t spans = self.index.ask(self.seen(asked)), i, j
        cdef const uint32_t* values_end = self.index.payloads + self.index.tested
        cdef const Span* span
        self.begin(out)
        for i in range(spans):
            span = &self.index.spans[i]
            for j in range(span.count):
                self.bits.items[span.items[j] >> 5] |= <uint32_t> 1 << (span.items[j] & 31)
        if self.begins.items[0] != 0:
            self._scan(self.begins.items[0] - 1, asked, out)
        for i in range(spans):
            span = &self.index.spans[i]
            if span.items < values_end:
                for j in range(span.count):
                    if self.begins.items[span.items[j]] != 0:
                        self._scan(self.begins.items[span.items[j]] - 1, asked, out)
        self.end(out)
        for i in range(spans):
            span = &self.index.spans[i]
            for j in range(span.count):
                self.bits.items[span.items[j] >> 5] = 0
        return 0

    cdef int _scan(self, uint32_t place, Asked asked, IdList out) except -1 nogil:
        """The clusters that begin there."""
        cdef const uint32_t* at = self.clusters.items + place
        cdef uint32_t others, count, i, column, number
        while at[1] != 0:
            others, count = at[0], at[1]
            at += 2
            for i in range(count):
                for column in range(others):
                    number = at[count * (column + 1) + i]
                    if not self.bits.items[number >> 5] >> (number & 31) & 1:
                        break
                else:
                    self.check(at[i], asked, out)
            at += <size_t> count * (others + 1)
        return 0
