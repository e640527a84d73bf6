# cython: language_level=3, cdivision=True
"""Bitmaps for each filter: iMatix: "High-speed message matching" (2005), criteria as rows and subscriptions as columns.

    Bitmap            rows for values, ANDed; ranges are left to the program
    RangeBitmap       and rows for cells of numbers: Chan, Ioannidis: "Bitmap index design and evaluation", SIGMOD 1998
    CountingBitmap    the same rows, counted in bit slices: O'Neil, Quass: "Improved query performance with variant
                      indexes", SIGMOD 1997

Drawn in bitmaps.pxd. Of several conditions on one attribute the first has a bit; the program decides the rest, and `<>`,
LIKE and IS NULL. Rows are dense: with the number of selectors on a filter, both their length and their number grow.
They are built at once; a cell's bounds are quantiles of the bounds of all ranges.
"""

from libc.math cimport HUGE_VAL
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset

from fanlight_content.growth cimport grown
from fanlight_content.selections cimport BY_RANGE, BY_VALUE, Seen, is_first_of_attribute
from matchcore.allocator cimport allocate, deallocate, numbers_free
from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER, Field
from matchcore.hashing cimport hash_secret
from matchcore.table cimport NONE, table_first, table_free, table_next, table_put, table_reserve
from matchcore.values cimport hash_field, number_kind

cdef extern from *:
    """
    #define content_lowest(word) __builtin_ctzll(word)
    """
    int lowest "content_lowest" (uint64_t word) noexcept nogil


cdef int _ascending(const void* one, const void* other) noexcept nogil:
    return ((<const double*> one)[0] > (<const double*> other)[0]) \
        - ((<const double*> one)[0] < (<const double*> other)[0])


cdef inline uint32_t _cell(const RowsOfOne* one, double value) noexcept nogil:
    cdef uint32_t low = 0, high = one.cells - 1, middle
    while low < high:
        middle = (low + high) // 2
        if one.bounds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


cdef class Bitmap(Contender):
    """Rows of one filter, or over all."""

    def __dealloc__(self) -> None:
        cdef size_t i
        numbers_free(&self.allocator, &self.conjunctions)
        deallocate(&self.allocator, self.rows, self.row_capacity * sizeof(uint64_t))
        deallocate(&self.allocator, self.hashes, self.hash_capacity * sizeof(uint64_t))
        table_free(&self.allocator, &self.table)
        for i in range(self.attribute_count):
            if self.attributes[i].bounds != NULL:
                deallocate(&self.allocator, self.attributes[i].bounds, (MOST_CELLS - 1) * sizeof(double))
        deallocate(&self.allocator, self.attributes, self.attribute_capacity * sizeof(RowsOfOne))
        free(self.met)

    cdef int add(self, uint32_t selection) except -1:
        return self.list_conjunctions(selection, &self.conjunctions)

    cdef size_t _row(self, uint64_t hash) except? 0:
        """A new row of zeros."""
        cdef size_t row = self.row_count
        cdef size_t size = self.words
        self.rows = <uint64_t*> grown(
            &self.allocator, self.rows, &self.row_capacity, (row + 1) * size, sizeof(uint64_t)
        )
        memset(self.rows + row * size, 0, size * sizeof(uint64_t))
        self.hashes = <uint64_t*> grown(&self.allocator, self.hashes, &self.hash_capacity, row + 1, sizeof(uint64_t))
        self.hashes[row] = hash
        self.row_count += 1
        return row

    cdef void _set(self, size_t row, size_t column) noexcept nogil:
        self.rows[row * self.words + (column >> 6)] |= <uint64_t> 1 << (column & 63)

    cdef RowsOfOne* _of(self, uint32_t attribute) except NULL:
        cdef size_t i
        for i in range(self.attribute_count):
            if self.attributes[i].attribute == attribute:
                return &self.attributes[i]
        self.attributes = <RowsOfOne*> grown(
            &self.allocator, self.attributes, &self.attribute_capacity, self.attribute_count + 1, sizeof(RowsOfOne)
        )
        self.attributes[self.attribute_count] = RowsOfOne(attribute, NO_ROW, 0, NO_ROW, 0, NULL)
        self.attribute_count += 1
        return &self.attributes[self.attribute_count - 1]

    cdef int _cells(self) except -1:
        """The attributes that have conditions, and the cells of those that have ranges."""
        cdef size_t column, count, i, ends, at
        cdef const Criterion* criteria
        cdef RowsOfOne* one
        cdef double* sorted_ends
        for column in range(self.conjunctions.size):
            criteria = self.criteria(self.conjunctions.items[column], &count)
            for i in range(count):
                if is_first_of_attribute(criteria, i):
                    if criteria[i].kind == BY_VALUE:
                        one = self._of(criteria[i].attribute)
                        one.values += 1
                    elif self.with_ranges:
                        one = self._of(criteria[i].attribute)
                        one.cells += 1
        sorted_ends = <double*> malloc((2 * self.conjunctions.size + 1) * sizeof(double))
        if sorted_ends == NULL:
            raise MemoryError()
        for at in range(self.attribute_count):
            one = &self.attributes[at]
            if one.cells == 0:
                continue
            ends = 0
            for column in range(self.conjunctions.size):
                criteria = self.criteria(self.conjunctions.items[column], &count)
                for i in range(count):
                    if criteria[i].attribute == one.attribute and criteria[i].kind == BY_RANGE \
                            and is_first_of_attribute(criteria, i):
                        sorted_ends[ends] = criteria[i].low if criteria[i].low > -HUGE_VAL else criteria[i].high
                        sorted_ends[ends + 1] = criteria[i].high if criteria[i].high < HUGE_VAL else criteria[i].low
                        ends += 2
            qsort(sorted_ends, ends, sizeof(double), _ascending)
            one.cells = <uint32_t> min(ends + 1, <size_t> MOST_CELLS)
            one.bounds = <double*> allocate(&self.allocator, (MOST_CELLS - 1) * sizeof(double))
            if one.bounds == NULL:
                free(sorted_ends)
                raise MemoryError()
            for i in range(one.cells - 1):
                one.bounds[i] = sorted_ends[(i + 1) * ends // one.cells]
        free(sorted_ends)
        return 0

    cdef int _fill(self, size_t column, uint64_t* used) except -1:
        """The bits of a conjunction. `used`: a word for each attribute, not zero where it has a condition."""
        cdef size_t count, i, at, row, known
        cdef const Criterion* criteria = self.criteria(self.conjunctions.items[column], &count)
        cdef RowsOfOne* one
        cdef uint32_t cell, place, conditions = 0
        memset(used, 0, self.attribute_count * sizeof(uint64_t))
        for i in range(count):
            if not is_first_of_attribute(criteria, i) or (criteria[i].kind != BY_VALUE and not self.with_ranges):
                continue
            one = self._of(criteria[i].attribute)
            at = one - self.attributes
            conditions += used[at] == 0
            used[at] = 1
            if criteria[i].kind == BY_VALUE:
                known = table_first(&self.table, <uint32_t> (criteria[i].value >> 32), &place)
                while known != NONE and self.hashes[known] != criteria[i].value:
                    known = table_next(&self.table, <uint32_t> (criteria[i].value >> 32), &place)
                if known == NONE:
                    if table_reserve(&self.allocator, &self.table) < 0:
                        raise MemoryError()
                    known = self._row(criteria[i].value)
                    table_put(&self.table, <uint32_t> (criteria[i].value >> 32), <uint32_t> known)
                self._set(known, column)
                continue
            for cell in range(_cell(one, criteria[i].low), _cell(one, criteria[i].high) + 1):
                self._set(one.cell + cell, column)
        for at in range(self.attribute_count):
            if used[at] == 0 and not self.counts:
                self._set(self.attributes[at].rest, column)
        self._set(self.live, column)
        for row in range(self.slices):
            if conditions >> row & 1:
                self._set(self.needed + row, column)
        return 0

    cdef int finish(self) except -1:
        cdef size_t i, column
        cdef uint32_t cell
        cdef uint64_t* used
        self.words = (self.conjunctions.size + 64 * BLOCK - 1) // (64 * BLOCK) * BLOCK
        self._cells()
        self.live = self._row(0)
        self.needed = self.row_count
        if self.counts:
            while self.attribute_count >> self.slices:
                self._row(0)
                self.slices += 1
            if self.slices > SLICES:
                raise OverflowError(f"{self.attribute_count} attributes, more than counters of {SLICES} digits")
        for i in range(self.attribute_count):
            if not self.counts:
                self.attributes[i].rest = <uint32_t> self._row(0)
            if self.attributes[i].cells != 0:
                self.attributes[i].cell = <uint32_t> self.row_count
                for cell in range(self.attributes[i].cells):
                    self._row(0)
        used = <uint64_t*> malloc((self.attribute_count + 1) * sizeof(uint64_t))
        self.met = <RowsMet*> malloc((self.attribute_count + 1) * sizeof(RowsMet))
        if used == NULL or self.met == NULL:
            free(used)
            raise MemoryError()
        try:
            for column in range(self.conjunctions.size):
                self._fill(column, used)
        finally:
            free(used)
        for i in range(self.conjunctions.size):
            self.conjunctions.items[i] = self.selections.conjunctions[self.conjunctions.items[i]].selection
        return 0

    cdef size_t _meet(self, Asked asked) noexcept nogil:
        """The rows that the message has, in `met`; how many attributes there are."""
        cdef const Seen* seen = self.seen(asked)
        cdef size_t i, count = 0
        cdef const RowsOfOne* one
        cdef RowsMet* met
        cdef Field* field
        cdef uint64_t[2] hashes
        cdef uint32_t row, place
        cdef int j, known, kind
        for i in range(self.attribute_count):
            one = &self.attributes[i]
            field = &seen.at[one.attribute]
            met = &self.met[count]
            met.rest = NULL if one.rest == NO_ROW else self.rows + one.rest * self.words
            met.one = met.two = met.cell = NULL
            if field.kind != FIELD_ABSENT:
                known = hash_field(hash_secret(), one.attribute, field, hashes) if one.values != 0 else 0
                for j in range(known):
                    row = table_first(&self.table, <uint32_t> (hashes[j] >> 32), &place)
                    while row != NONE and self.hashes[row] != hashes[j]:
                        row = table_next(&self.table, <uint32_t> (hashes[j] >> 32), &place)
                    if row != NONE:
                        if met.one == NULL:
                            met.one = self.rows + row * self.words
                        else:
                            met.two = self.rows + row * self.words
                if one.cell != NO_ROW:
                    kind = number_kind(field)
                    if kind == FIELD_INTEGER:
                        met.cell = self.rows + (one.cell + _cell(one, <double> field.integer)) * self.words
                    elif kind == FIELD_FLOAT:
                        met.cell = self.rows + (one.cell + _cell(one, field.real)) * self.words
            # For counters a row of nothing is no row; one that is only `two` or `cell` is `one`.
            if met.one == NULL:
                met.one, met.cell = met.cell, NULL
            count += met.rest != NULL or met.one != NULL
        return count

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        self.begin(out)
        if self.counts:
            self._count(self._meet(asked), asked, out)
        else:
            self._and(self._meet(asked), asked, out)
        self.end(out)
        return 0

    cdef int _and(self, size_t count, Asked asked, IdList out) except -1 nogil:
        cdef uint64_t[BLOCK] block
        cdef size_t first, i, j
        cdef const RowsMet* met
        cdef const uint64_t* live = self.rows + self.live * self.words
        cdef uint64_t left
        first = 0
        while first < self.words:
            for j in range(BLOCK):
                block[j] = live[first + j]
            for i in range(count):
                met = &self.met[i]
                if met.one == NULL:
                    for j in range(BLOCK):
                        block[j] &= met.rest[first + j]
                elif met.cell == NULL and met.two == NULL:
                    for j in range(BLOCK):
                        block[j] &= met.rest[first + j] | met.one[first + j]
                else:
                    for j in range(BLOCK):
                        block[j] &= met.rest[first + j] | met.one[first + j] \
                            | (met.two[first + j] if met.two != NULL else 0) \
                            | (met.cell[first + j] if met.cell != NULL else 0)
                left = 0
                for j in range(BLOCK):
                    left |= block[j]
                if left == 0:
                    break
            else:
                self._found(block, first, asked, out)
            first += BLOCK
        return 0

    cdef int _count(self, size_t count, Asked asked, IdList out) except -1 nogil:
        cdef uint64_t[SLICES][BLOCK] counters
        cdef uint64_t[BLOCK] block
        cdef uint64_t carry, next
        cdef size_t first = 0, i, j, k
        cdef const RowsMet* met
        cdef const uint64_t* live = self.rows + self.live * self.words
        cdef const uint64_t* needed = self.rows + self.needed * self.words
        while first < self.words:
            memset(counters, 0, sizeof(counters))
            for i in range(count):
                met = &self.met[i]
                for j in range(BLOCK):
                    block[j] = met.one[first + j]
                if met.two != NULL:
                    for j in range(BLOCK):
                        block[j] |= met.two[first + j]
                if met.cell != NULL:
                    for j in range(BLOCK):
                        block[j] |= met.cell[first + j]
                for k in range(self.slices):
                    for j in range(BLOCK):
                        carry = counters[k][j] & block[j]
                        counters[k][j] ^= block[j]
                        block[j] = carry
            for j in range(BLOCK):
                next = live[first + j]
                for k in range(self.slices):
                    next &= ~(counters[k][j] ^ needed[k * self.words + first + j])
                block[j] = next
            self._found(block, first, asked, out)
            first += BLOCK
        return 0

    cdef int _found(self, const uint64_t* block, size_t first, Asked asked, IdList out) except -1 nogil:
        """The columns of a block that are left."""
        cdef size_t j
        cdef uint64_t word
        for j in range(BLOCK):
            word = block[j]
            while word != 0:
                self.check(self.conjunctions.items[((first + j) << 6) + <size_t> lowest(word)], asked, out)
                word &= word - 1
        return 0


cdef class RangeBitmap(Bitmap):
    """And rows for cells of numbers."""

    def __cinit__(self, *_) -> None:
        self.with_ranges = True


cdef class CountingBitmap(Bitmap):
    """Rows for values and cells, counted in bit slices."""

    def __cinit__(self, *_) -> None:
        self.with_ranges = self.counts = True
