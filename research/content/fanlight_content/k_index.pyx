# cython: language_level=3, cdivision=True
"""The k-index: Whang, Garcia-Molina, Brower, Shanmugasundaram, Vassilvitskii, Vee, Yerneni: "Indexing Boolean
expressions", PVLDB 2(1), 2009.

Conjunctions of k values are in the lists of each of these, in order. Of the lists that a message opens, a conjunction
is a candidate where it stands in k of them: the lists are kept in the order of their heads, and where the first and
the k-th differ, those before skip to the k-th. The paper has values; ranges are here in the lists of the dyadic
intervals that cover them, as it advises. `<>`, NOT IN, LIKE, IS NULL and further conditions on one attribute have no
list: the program decides.
"""

from libc.math cimport HUGE_VAL
from libc.stdlib cimport free, malloc, qsort

from fanlight_content.growth cimport grown
from fanlight_content.selections cimport BY_RANGE, BY_VALUE, Asked, Criterion, Seen, is_first_of_attribute
from matchcore.allocator cimport allocate, allocate_zeros, deallocate, numbers_free, numbers_push
from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER
from matchcore.hashing cimport hash_add, hash_secret
from matchcore.table cimport NONE, table_first, table_free, table_next, table_put, table_reserve
from matchcore.values cimport hash_field, number_kind


cdef int _before(const void* one, const void* other) noexcept nogil:
    cdef const Keyed* a = <const Keyed*> one
    cdef const Keyed* b = <const Keyed*> other
    if a.key != b.key:
        return 1 if a.key > b.key else -1
    return (a.conjunction > b.conjunction) - (a.conjunction < b.conjunction)


cdef inline uint64_t _key(uint64_t hash, uint32_t size) noexcept nogil:
    return hash_add(hash_secret(), hash, size)


cdef inline uint64_t _interval(uint32_t attribute, uint32_t level, uint32_t at) noexcept nogil:
    return hash_add(hash_secret(), <uint64_t> attribute << 16 | level << 8 | at, hash_secret()[1])


cdef inline uint32_t _cell(const Domain* domain, double value) noexcept nogil:
    if not value > domain.low:
        return 0
    if value >= domain.high:
        return GRID - 1
    # Halves: a difference of two finite floats may be none.
    return min(
        <uint32_t> ((value / 2 - domain.low / 2) / (domain.high / 2 - domain.low / 2) * GRID), <uint32_t> GRID - 1
    )


cdef class KIndex(Contender):
    """Built at once."""

    def __cinit__(self, *_) -> None:
        self.cursors = <Cursor*> malloc(LISTS * sizeof(Cursor))
        if self.cursors == NULL:
            raise MemoryError()

    def __dealloc__(self) -> None:
        deallocate(&self.allocator, self.domains, self.attributes * sizeof(Domain))
        deallocate(&self.allocator, self.keyed, self.keyed_capacity * sizeof(Keyed))
        deallocate(&self.allocator, self.keys, self.lists * sizeof(uint64_t))
        deallocate(&self.allocator, self.begins, (self.lists + 1) * sizeof(uint32_t))
        table_free(&self.allocator, &self.table)
        numbers_free(&self.allocator, &self.waiting)
        numbers_free(&self.allocator, &self.conjunctions)
        numbers_free(&self.allocator, &self.always)
        free(self.cursors)

    cdef int add(self, uint32_t selection) except -1:
        cdef uint32_t first = self.selections.items[selection].first
        cdef uint32_t conjunction
        cdef size_t count, i
        cdef const Criterion* criterion
        cdef Domain* domain
        if self.domains == NULL:
            self.attributes = self.selections.attributes.room
            self.domains = <Domain*> allocate_zeros(&self.allocator, self.attributes * sizeof(Domain))
            if self.domains == NULL:
                raise MemoryError()
            for i in range(self.attributes):
                self.domains[i].low, self.domains[i].high = HUGE_VAL, -HUGE_VAL
        for conjunction in range(first, first + self.selections.items[selection].conjunctions):
            if numbers_push(&self.allocator, &self.waiting, conjunction) < 0:
                raise MemoryError()
            criterion = self.criteria(conjunction, &count)
            for i in range(count):
                domain = &self.domains[criterion.attribute]
                if criterion.kind == BY_VALUE:
                    domain.values += 1
                elif criterion.kind == BY_RANGE:
                    domain.ranges += 1
                    if criterion.low > -HUGE_VAL:
                        domain.low, domain.high = min(domain.low, criterion.low), max(domain.high, criterion.low)
                    if criterion.high < HUGE_VAL:
                        domain.low, domain.high = min(domain.low, criterion.high), max(domain.high, criterion.high)
                criterion += 1
        return 0

    cdef int _put(self, uint64_t key, uint32_t conjunction) except -1:
        self.keyed = <Keyed*> grown(
            &self.allocator, self.keyed, &self.keyed_capacity, self.keyed_count + 1, sizeof(Keyed)
        )
        self.keyed[self.keyed_count] = Keyed(key, conjunction)
        self.keyed_count += 1
        return 0

    cdef int _add(self, uint32_t conjunction) except -1:
        cdef size_t count, i
        cdef const Criterion* criteria = self.criteria(conjunction, &count)
        cdef uint32_t size = 0, low, high, level
        cdef const Domain* domain
        for i in range(count):
            size += is_first_of_attribute(criteria, i) and (i == 0 or criteria[i].constraint != criteria[i - 1].constraint)
        self.sizes[size] += 1
        if size == 0 and numbers_push(&self.allocator, &self.always, conjunction) < 0:
            raise MemoryError()
        for i in range(count):
            if not is_first_of_attribute(criteria, i):
                continue
            if criteria[i].kind == BY_VALUE:
                self._put(_key(criteria[i].value, size), conjunction)
            else:
                domain = &self.domains[criteria[i].attribute]
                low = 0 if criteria[i].low == -HUGE_VAL else _cell(domain, criteria[i].low)
                high = GRID - 1 if criteria[i].high == HUGE_VAL else _cell(domain, criteria[i].high)
                level = 0
                high += 1
                while low < high:  # the fewest intervals of 1, 2, 4 ... cells
                    if low & 1:
                        self._put(_key(_interval(criteria[i].attribute, level, low), size), conjunction)
                        low += 1
                    if high & 1:
                        high -= 1
                        self._put(_key(_interval(criteria[i].attribute, level, high), size), conjunction)
                    low >>= 1
                    high >>= 1
                    level += 1
        return 0

    cdef int finish(self) except -1:
        cdef size_t i
        for i in range(self.waiting.size):
            self._add(self.waiting.items[i])
        numbers_free(&self.allocator, &self.waiting)
        qsort(self.keyed, self.keyed_count, sizeof(Keyed), _before)
        for i in range(self.keyed_count):
            self.lists += i == 0 or self.keyed[i].key != self.keyed[i - 1].key
        self.keys = <uint64_t*> allocate(&self.allocator, self.lists * sizeof(uint64_t))
        self.begins = <uint32_t*> allocate(&self.allocator, (self.lists + 1) * sizeof(uint32_t))
        if self.begins == NULL or (self.lists != 0 and self.keys == NULL):
            raise MemoryError()
        self.lists = 0
        for i in range(self.keyed_count):
            if i == 0 or self.keyed[i].key != self.keyed[i - 1].key:
                if table_reserve(&self.allocator, &self.table) < 0:
                    raise MemoryError()
                table_put(&self.table, <uint32_t> (self.keyed[i].key >> 32), <uint32_t> self.lists)
                self.keys[self.lists] = self.keyed[i].key
                self.begins[self.lists] = <uint32_t> self.conjunctions.size
                self.lists += 1
            elif self.keyed[i].conjunction == self.keyed[i - 1].conjunction:
                continue  # IN (1, 1.0)
            if numbers_push(&self.allocator, &self.conjunctions, self.keyed[i].conjunction) < 0:
                raise MemoryError()
        self.begins[self.lists] = <uint32_t> self.conjunctions.size
        deallocate(&self.allocator, self.keyed, self.keyed_capacity * sizeof(Keyed))
        self.keyed = NULL
        self.keyed_capacity = 0
        return 0

    cdef size_t _open(self, uint64_t key, size_t count) noexcept nogil:
        cdef uint32_t at
        cdef uint32_t list = table_first(&self.table, <uint32_t> (key >> 32), &at)
        while list != NONE and self.keys[list] != key:
            list = table_next(&self.table, <uint32_t> (key >> 32), &at)
        if list == NONE or count == LISTS:
            return count
        self.cursors[count] = Cursor(
            &self.conjunctions.items[self.begins[list]], &self.conjunctions.items[self.begins[list + 1]]
        )
        return count + 1

    cdef size_t _lists_of(self, const Seen* seen, uint32_t size) noexcept nogil:
        cdef size_t count = 0
        cdef uint64_t[2] hashes
        cdef uint32_t i, level, attribute, cell
        cdef Field* field
        cdef int j, known, kind
        for i in range(seen.count):
            attribute = seen.numbers[i]
            field = &seen.at[attribute]
            if field.kind == FIELD_ABSENT or attribute >= self.attributes:
                continue
            if self.domains[attribute].values != 0:
                known = hash_field(hash_secret(), attribute, field, hashes)
                for j in range(known):
                    count = self._open(_key(hashes[j], size), count)
            kind = number_kind(field)
            if self.domains[attribute].ranges != 0 and (kind == FIELD_INTEGER or kind == FIELD_FLOAT):
                cell = _cell(
                    &self.domains[attribute], <double> field.integer if kind == FIELD_INTEGER else field.real
                )
                for level in range(LEVELS + 1):
                    count = self._open(_key(_interval(attribute, level, cell >> level), size), count)
        return count

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        cdef const Seen* seen = self.seen(asked)
        cdef uint32_t size
        cdef size_t i
        self.begin(out)
        for size in range(1, LONGEST + 1):
            if self.sizes[size] != 0:
                self._merge(self._lists_of(seen, size), size, asked, out)
        for i in range(self.always.size):
            self.check_conjunction(self.always.items[i], asked, out)
        self.end(out)
        return 0

    cdef int _merge(self, size_t count, uint32_t size, Asked asked, IdList out) except -1 nogil:
        """The conjunctions that stand in `size` of the first `count` lists."""
        cdef Cursor* cursors = self.cursors
        cdef Cursor moved
        cdef size_t i, j, advanced
        cdef uint32_t wanted
        for i in range(1, count):
            moved = cursors[i]
            j = i
            while j > 0 and cursors[j - 1].at[0] > moved.at[0]:
                cursors[j] = cursors[j - 1]
                j -= 1
            cursors[j] = moved
        while count >= size:
            wanted = cursors[size - 1].at[0]
            advanced = 0
            if cursors[0].at[0] == wanted:
                self.check_conjunction(wanted, asked, out)
                while advanced < count and cursors[advanced].at[0] == wanted:
                    cursors[advanced].at += 1
                    advanced += 1
            else:
                while cursors[advanced].at[0] < wanted:
                    cursors[advanced].at = _skipped(cursors[advanced].at, cursors[advanced].end, wanted)
                    advanced += 1
            # Back into their order: the last one first, so that each passes those that stand behind it.
            i = advanced
            while i > 0:
                i -= 1
                moved = cursors[i]
                j = i
                while j + 1 < count and (moved.at == moved.end or cursors[j + 1].at[0] < moved.at[0]):
                    cursors[j] = cursors[j + 1]
                    j += 1
                cursors[j] = moved
                count -= moved.at == moved.end
        return 0


cdef inline const uint32_t* _skipped(const uint32_t* at, const uint32_t* end, uint32_t wanted) noexcept nogil:
    """The first place that is not below `wanted`, by steps that double."""
    cdef size_t step = 1
    cdef const uint32_t* middle
    while at + step < end and at[step] < wanted:
        at += step
        step *= 2
    if at + step < end:
        end = at + step
    while at < end:
        middle = at + (end - at) // 2
        if middle[0] < wanted:
            at = middle + 1
        else:
            end = middle
    return at
