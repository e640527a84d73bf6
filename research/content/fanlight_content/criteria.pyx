# cython: language_level=3, cdivision=True
"""An index of criteria, as the first step of Siena's counting, of Le Subscribe and of OpIndex. Drawn in criteria.pxd."""

from libc.math cimport HUGE_VAL
from libc.stdlib cimport free, malloc, qsort

from fanlight_content.growth cimport grown
from fanlight_content.selections cimport BY_TEST, BY_VALUE
from matchcore.allocator cimport allocate, allocate_zeros, deallocate
from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER, Field
from matchcore.hashing cimport hash_secret
from matchcore.program cimport program_holds
from matchcore.table cimport NONE, table_first, table_free, table_next, table_put, table_reserve
from matchcore.values cimport hash_field, number_kind, ordered_float


cdef int _before(const void* one, const void* other) noexcept nogil:
    cdef const CriterionEntry* a = <const CriterionEntry*> one
    cdef const CriterionEntry* b = <const CriterionEntry*> other
    if a.group != b.group:
        return 1 if a.group > b.group else -1
    if a.key != b.key:
        return 1 if a.key > b.key else -1
    return (a.payload > b.payload) - (a.payload < b.payload)


cdef class CriteriaIndex:
    """Filled, finished, asked. `owner` counts its memory and outlives it."""

    def __cinit__(self, Selections selections not None) -> None:
        self.selections = selections

    def __dealloc__(self) -> None:
        if self.allocator == NULL:
            return
        deallocate(self.allocator, self.entries, self.capacity * sizeof(CriterionEntry))
        deallocate(self.allocator, self.keys, self.places * sizeof(uint64_t))
        deallocate(self.allocator, self.payloads, self.places * sizeof(uint32_t))
        deallocate(self.allocator, self.ends, self.valued * sizeof(uint32_t))
        deallocate(self.allocator, self.bounds, self.attributes * sizeof(BoundsOfOne))
        table_free(self.allocator, &self.table)
        free(self.spans)

    cdef int _entry(self, uint32_t group, uint64_t key, uint32_t payload) except -1:
        self.entries = <CriterionEntry*> grown(
            self.allocator, self.entries, &self.capacity, self.count + 1, sizeof(CriterionEntry)
        )
        self.entries[self.count] = CriterionEntry(group, payload, key)
        self.count += 1
        return 0

    cdef int add(self, const Criterion* criterion, uint32_t payload) except -1:
        cdef int made = 0
        if self.bounds == NULL:
            self.attributes = self.selections.attributes.room
            self.bounds = <BoundsOfOne*> allocate_zeros(self.allocator, self.attributes * sizeof(BoundsOfOne))
            if self.bounds == NULL:
                raise MemoryError()
        if criterion.kind == BY_VALUE:
            self.bounds[criterion.attribute].values += 1
            self._entry(0, criterion.value, payload)
            return 1
        if criterion.kind == BY_TEST:
            self._entry(1, criterion.value, payload)
            return 1
        if criterion.low > -HUGE_VAL or criterion.high == HUGE_VAL:
            self._entry(2 + 2 * <uint32_t> criterion.attribute, ordered_float(criterion.low), payload)
            made += 1
        if criterion.high < HUGE_VAL:
            self._entry(3 + 2 * <uint32_t> criterion.attribute, ordered_float(criterion.high), payload)
            made += 1
        return made

    cdef int finish(self) except -1:
        cdef size_t i, first = 0, distinct = 0
        cdef const CriterionEntry* entry
        cdef BoundsOfOne* one
        qsort(self.entries, self.count, sizeof(CriterionEntry), _before)
        self.places = self.count
        self.keys = <uint64_t*> allocate(self.allocator, self.places * sizeof(uint64_t))
        self.payloads = <uint32_t*> allocate(self.allocator, self.places * sizeof(uint32_t))
        while self.valued < self.count and self.entries[self.valued].group <= 1:
            self.valued += 1
        while self.tested < self.valued and self.entries[self.tested].group == 0:
            self.tested += 1
        self.ends = <uint32_t*> allocate(self.allocator, self.valued * sizeof(uint32_t))
        if (self.places and (self.keys == NULL or self.payloads == NULL)) or (self.valued != 0 and self.ends == NULL):
            raise MemoryError()
        for i in range(self.count):
            entry = &self.entries[i]
            self.keys[i] = entry.key
            self.payloads[i] = entry.payload
            if i < self.valued:
                if i == 0 or entry.key != self.entries[i - 1].key or entry.group != self.entries[i - 1].group:
                    first = i
                    distinct += 1
                    if entry.group == 0:
                        if table_reserve(self.allocator, &self.table) < 0:
                            raise MemoryError()
                        table_put(&self.table, <uint32_t> (entry.key >> 32), <uint32_t> i)
                self.ends[first] = <uint32_t> i + 1
                continue
            one = &self.bounds[(entry.group - 2) >> 1]
            if entry.group & 1:
                if one.most_end == 0:
                    one.most = <uint32_t> i
                one.most_end = <uint32_t> i + 1
            else:
                if one.least_end == 0:
                    one.least = <uint32_t> i
                one.least_end = <uint32_t> i + 1
        deallocate(self.allocator, self.entries, self.capacity * sizeof(CriterionEntry))
        self.entries = NULL
        self.capacity = 0
        self.spans = <Span*> malloc((4 * self.attributes + self.valued - self.tested + 1) * sizeof(Span))
        if self.spans == NULL:
            raise MemoryError()
        return 0

    cdef size_t _values(self, uint32_t attribute, Field* field, size_t count) noexcept nogil:
        cdef uint64_t[2] hashes
        cdef uint32_t at, place
        cdef int i, known = hash_field(hash_secret(), attribute, field, hashes)
        for i in range(known):
            place = table_first(&self.table, <uint32_t> (hashes[i] >> 32), &at)
            while place != NONE and self.keys[place] != hashes[i]:
                place = table_next(&self.table, <uint32_t> (hashes[i] >> 32), &at)
            if place != NONE:
                self.spans[count] = Span(&self.payloads[place], self.ends[place] - place)
                count += 1
        return count

    cdef size_t _bounds(self, const BoundsOfOne* one, double value, size_t count) noexcept nogil:
        cdef uint64_t key = ordered_float(value)
        cdef uint32_t low = one.least, high = one.least_end, middle
        while low < high:  # behind the last bound that is not above the value
            middle = (low + high) // 2
            if self.keys[middle] <= key:
                low = middle + 1
            else:
                high = middle
        if low > one.least:
            self.spans[count] = Span(&self.payloads[one.least], low - one.least)
            count += 1
        low, high = one.most, one.most_end
        while low < high:  # the first bound that is not below the value
            middle = (low + high) // 2
            if self.keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        if low < one.most_end:
            self.spans[count] = Span(&self.payloads[low], one.most_end - low)
            count += 1
        return count

    cdef size_t ask(self, const Seen* seen) noexcept nogil:
        cdef size_t count = 0, place
        cdef uint32_t i, attribute
        cdef Field* field
        cdef const BoundsOfOne* one
        cdef int kind
        for i in range(seen.count):
            attribute = seen.numbers[i]
            field = &seen.at[attribute]
            if field.kind == FIELD_ABSENT or attribute >= self.attributes:
                continue
            one = &self.bounds[attribute]
            if one.values != 0:
                count = self._values(attribute, field, count)
            if one.least_end or one.most_end:
                kind = number_kind(field)
                if kind == FIELD_INTEGER or kind == FIELD_FLOAT:
                    count = self._bounds(
                        one, <double> field.integer if kind == FIELD_INTEGER else field.real, count
                    )
        place = self.tested
        while place < self.valued:
            if program_holds(self.selections.tests[self.keys[place]], seen.at):
                self.spans[count] = Span(&self.payloads[place], self.ends[place] - place)
                count += 1
            place = self.ends[place]
        return count
