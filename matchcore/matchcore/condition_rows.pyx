# cython: language_level=3, cdivision=True
"""The rows of a selector pool, and which of them a message has. Drawn in condition_rows.pxd."""

from libc.string cimport memcmp, memcpy, memset

from matchcore.allocator cimport allocate, allocate_zeros, deallocate, reallocate
from matchcore.fields cimport (
    FIELD_ABSENT, FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_TEXT, FIELD_UNTYPED,
)
from matchcore.glance cimport view_of_text
from matchcore.program cimport (
    IN_FALSE, IN_TRUE, MASK_ABOVE, MASK_BELOW, MASK_EQUAL, NEGATED, TEST_BOOLEAN, TEST_FLOAT, TEST_IN, TEST_INTEGER,
    TEST_PRESENT, TEST_TEXT, step_text,
)
from matchcore.values cimport UNKNOWN, as_boolean, number_kind, ordered_float

cdef enum:
    PLACES = 2 * VALUES_LISTED  # of the table of listed texts


cdef int condition_rows_init(ConditionRows* rows, Allocator* allocator) noexcept nogil:
    memset(rows, 0, sizeof(ConditionRows))
    rows.allocator = allocator
    if _reserve_rows(rows, 64) < 0:
        return -1
    memset(&rows.rows[0], 0, sizeof(ConditionRow))
    rows.row_count = 1
    return 0


cdef void condition_rows_free(ConditionRows* rows) noexcept nogil:
    cdef PoolAttribute* one
    cdef uint32_t i
    for i in range(rows.row_count):
        deallocate(rows.allocator, rows.rows[i].text, rows.rows[i].size + 1)
    for i in range(rows.attribute_count):
        one = &rows.attributes[i]
        deallocate(rows.allocator, one.table, PLACES * sizeof(uint16_t))
        deallocate(rows.allocator, one.bounds, (one.cells - 1) * sizeof(uint64_t))
    deallocate(rows.allocator, rows.rows, rows.row_capacity * sizeof(ConditionRow))
    deallocate(rows.allocator, rows.attributes, rows.attribute_capacity * sizeof(PoolAttribute))


cdef int _reserve_rows(ConditionRows* rows, uint32_t more) noexcept nogil:
    cdef uint32_t capacity
    cdef ConditionRow* made
    if rows.row_count + more <= rows.row_capacity:
        return 0
    capacity = rows.row_count + rows.row_count // 4 + more
    made = <ConditionRow*> reallocate(
        rows.allocator, rows.rows, rows.row_capacity * sizeof(ConditionRow), capacity * sizeof(ConditionRow)
    )
    if made == NULL:
        return -1
    rows.rows = made
    rows.row_capacity = capacity
    return 0


cdef uint32_t _add_row(ConditionRows* rows, PoolAttribute* one, int kind, uint32_t fallback) noexcept nogil:
    """A row of an attribute; there is room."""
    cdef uint32_t made = rows.row_count
    cdef ConditionRow* row = &rows.rows[made]
    memset(row, 0, sizeof(ConditionRow))
    row.kind = <uint8_t> kind
    row.fallback = <uint16_t> fallback
    row.next = one.first
    one.first = <uint16_t> made
    rows.row_count += 1
    return made


cdef int rows_seek(const ConditionRows* rows, uint32_t attribute) noexcept nogil:
    cdef uint32_t i
    for i in range(rows.attribute_count):
        if rows.attributes[i].attribute == attribute:
            return <int> i
    return -1


cdef int rows_attribute(ConditionRows* rows, uint32_t attribute) noexcept nogil:
    cdef int at = rows_seek(rows, attribute)
    cdef uint32_t capacity
    cdef PoolAttribute* made
    if at >= 0:
        return at
    if rows.attribute_count == ATTRIBUTES_OF_POOL or rows.row_count == ROWS_AT_MOST:
        return -1
    if _reserve_rows(rows, 1) < 0:
        return -2
    if rows.attribute_count == rows.attribute_capacity:
        capacity = rows.attribute_capacity + rows.attribute_capacity // 2 + 4
        made = <PoolAttribute*> reallocate(
            rows.allocator, rows.attributes, rows.attribute_capacity * sizeof(PoolAttribute),
            capacity * sizeof(PoolAttribute),
        )
        if made == NULL:
            return -2
        rows.attributes = made
        rows.attribute_capacity = capacity
    made = &rows.attributes[rows.attribute_count]
    memset(made, 0, sizeof(PoolAttribute))
    made.attribute = attribute
    made.kinds[ROW_DEFAULT] = <uint16_t> _add_row(rows, made, ROW_DEFAULT, 0)
    rows.attribute_count += 1
    return <int> rows.attribute_count - 1


# Cells

cdef int rows_make_cells(ConditionRows* rows, uint32_t at, const uint64_t* ends, uint32_t count) noexcept nogil:
    cdef PoolAttribute* one = &rows.attributes[at]
    cdef uint64_t[POOL_CELLS - 1] bounds
    cdef uint32_t wanted = min(count, <uint32_t> (POOL_CELLS - 1))
    cdef uint32_t made = 0
    cdef uint32_t i, row
    cdef uint64_t end
    for i in range(wanted):
        end = ends[<uint64_t> (2 * i + 1) * count // (2 * wanted)]
        if made == 0 or bounds[made - 1] != end:
            bounds[made] = end
            made += 1
    if made == 0 or rows.row_count + made + 1 > ROWS_AT_MOST:
        return 0
    if _reserve_rows(rows, made + 1) < 0:
        return -1
    one.bounds = <uint64_t*> allocate(rows.allocator, made * sizeof(uint64_t))
    if one.bounds == NULL:
        return -1
    memcpy(one.bounds, bounds, made * sizeof(uint64_t))
    one.cells = <uint16_t> (made + 1)
    one.first_cell = <uint16_t> rows.row_count
    for i in range(made + 1):
        row = _add_row(rows, one, ROW_CELL, one.kinds[ROW_DEFAULT])
        rows.rows[row].cell = <uint8_t> i
    return 0


cdef uint32_t cell_of(const PoolAttribute* one, uint64_t ordered) noexcept nogil:
    """How many bounds are not above the value."""
    cdef uint32_t low = 0
    cdef uint32_t count = one.cells - 1
    cdef uint32_t half
    while count != 0:
        half = (count + 1) // 2
        if one.bounds[low + half - 1] <= ordered:
            low += half
            count -= half
        else:
            count = half - 1
    return low


# Listed texts

cdef inline bint _is_text_of(const ConditionRow* row, uint16_t view, const char* text, size_t size) noexcept nogil:
    return row.view == view and row.size == size and row.text != NULL and memcmp(row.text, text, size) == 0


cdef uint32_t row_of_text(
    const ConditionRows* rows, const PoolAttribute* one, uint16_t view, const char* text, size_t size
) noexcept nogil:
    """The row of a text; 0: it is not listed."""
    cdef uint32_t place = view % PLACES
    if one.table == NULL:
        return 0
    while one.table[place] != 0:
        if _is_text_of(&rows.rows[one.table[place]], view, text, size):
            return one.table[place]
        place = (place + 1) % PLACES
    return 0


cdef uint32_t _free_value(const ConditionRows* rows, const PoolAttribute* one) noexcept nogil:
    cdef uint32_t row = one.first
    while row != 0 and (rows.rows[row].kind != ROW_VALUE or rows.rows[row].text != NULL):
        row = rows.rows[row].next
    return row


cdef bint rows_are_full(const ConditionRows* rows, uint32_t at) noexcept nogil:
    cdef const PoolAttribute* one = &rows.attributes[at]
    if one.values < VALUES_LISTED and rows.row_count < ROWS_AT_MOST:
        return False
    return _free_value(rows, one) == 0


cdef int _list(ConditionRows* rows, PoolAttribute* one, const char* text, size_t size) noexcept nogil:
    """Lists a text, if there is room; there is a row of other texts. -1: no memory."""
    cdef uint16_t view = view_of_text(text, size)
    cdef uint32_t place = view % PLACES
    cdef uint32_t row
    cdef char* copy
    if size > VALUE_AT_MOST or row_of_text(rows, one, view, text, size) != 0:
        return 0
    row = _free_value(rows, one)
    if row == 0 and (one.values == VALUES_LISTED or rows.row_count == ROWS_AT_MOST):
        return 0
    if one.table == NULL:
        one.table = <uint16_t*> allocate_zeros(rows.allocator, PLACES * sizeof(uint16_t))
        if one.table == NULL:
            return -1
    copy = <char*> allocate(rows.allocator, size + 1)
    if copy == NULL or (row == 0 and _reserve_rows(rows, 1) < 0):
        deallocate(rows.allocator, copy, size + 1)
        return -1
    if row == 0:
        row = _add_row(rows, one, ROW_VALUE, one.kinds[ROW_TEXTS])
        one.values += 1
    memcpy(copy, text, size)
    rows.rows[row].text = copy
    rows.rows[row].size = <uint32_t> size
    rows.rows[row].view = view
    while one.table[place] != 0:
        place = (place + 1) % PLACES
    one.table[place] = <uint16_t> row
    return 0


cdef void rows_unlist(ConditionRows* rows, uint32_t at, uint32_t row) noexcept nogil:
    cdef PoolAttribute* one = &rows.attributes[at]
    cdef uint32_t other = one.first
    cdef uint32_t place
    deallocate(rows.allocator, rows.rows[row].text, rows.rows[row].size + 1)
    rows.rows[row].text = NULL
    rows.rows[row].size = 0
    memset(one.table, 0, PLACES * sizeof(uint16_t))
    while other != 0:
        if rows.rows[other].text != NULL:
            place = rows.rows[other].view % PLACES
            while one.table[place] != 0:
                place = (place + 1) % PLACES
            one.table[place] = <uint16_t> other
        other = rows.rows[other].next


# Kinds of values

cdef const uint32_t* list_of_test(const Program* program, const Step* step, ValueList* sizes) noexcept nogil:
    """The lists of an IN, behind their sizes."""
    cdef const uint32_t* units = <const uint32_t*> program + step.low
    sizes[0] = (<const ValueList*> units)[0]
    return units + 3


cdef int type_of_test(const Program* program, const Step* step, bint* sharp) noexcept nogil:
    cdef ValueList sizes
    cdef int types
    sharp[0] = step.code <= TEST_TEXT or step.code == TEST_PRESENT or step.code == TEST_IN
    if step.code == TEST_PRESENT:
        return OF_ANY
    if step.code == TEST_INTEGER or step.code == TEST_FLOAT:
        return OF_NUMBER
    if step.code == TEST_BOOLEAN:
        return OF_BOOLEAN
    if step.code != TEST_IN:
        return OF_TEXT
    list_of_test(program, step, &sizes)
    types = (sizes.integers + sizes.floats != 0) + (sizes.texts != 0) + (step.mask & (IN_FALSE | IN_TRUE) != 0)
    if types > 1:
        # Text without a type may be comparable with all of them, and then it is in none of the lists.
        return OF_NO_ROWS if step.mask & NEGATED else OF_SEVERAL
    if sizes.texts != 0:
        return OF_TEXT
    return OF_NUMBER if sizes.integers + sizes.floats != 0 else OF_BOOLEAN

cdef int _make_kind(ConditionRows* rows, PoolAttribute* one, int kind) noexcept nogil:
    """0; 1: no room; -1: no memory."""
    if one.kinds[kind] != 0:
        return 0
    if rows.row_count == ROWS_AT_MOST:
        return 1
    if _reserve_rows(rows, 1) < 0:
        return -1
    one.kinds[kind] = <uint16_t> _add_row(rows, one, kind, one.kinds[ROW_DEFAULT])
    return 0


cdef int _make_kinds(ConditionRows* rows, PoolAttribute* one, int type) noexcept nogil:
    """Of those values of which tests of a type may be true."""
    cdef int done = 0
    if type == OF_ANY:
        return _make_kind(rows, one, ROW_ABSENT)
    if type == OF_BOOLEAN or type == OF_SEVERAL:
        done = _make_kind(rows, one, ROW_FALSE)
        if done == 0:
            done = _make_kind(rows, one, ROW_TRUE)
    if done == 0 and (type == OF_NUMBER or type == OF_SEVERAL) and one.first_cell == 0:
        done = _make_kind(rows, one, ROW_NUMBERS)
    if done == 0 and (type == OF_TEXT or type == OF_SEVERAL):
        done = _make_kind(rows, one, ROW_TEXTS)
    return done


cdef int rows_prepare(ConditionRows* rows, uint32_t at, const Program* program, const Step* step) noexcept nogil:
    cdef PoolAttribute* one = &rows.attributes[at]
    cdef ValueList sizes
    cdef const uint32_t* texts
    cdef uint32_t i
    cdef bint sharp
    cdef int done = _make_kinds(rows, one, type_of_test(program, step, &sharp))
    if done != 0:
        return done
    if step.code == TEST_TEXT and (step.mask == MASK_EQUAL or step.mask == MASK_BELOW | MASK_ABOVE):
        return _list(rows, one, step_text(program, step), step.high)
    if step.code == TEST_IN:
        texts = list_of_test(program, step, &sizes) + 2 * (sizes.integers + sizes.floats)
        if sizes.texts <= LISTED_IN_ONE:
            for i in range(sizes.texts):
                if _list(rows, one, <const char*> program + texts[2 * i], texts[2 * i + 1]) < 0:
                    return -1
    return 0


# Messages

cdef inline void _has(RowsOfValue* found, const PoolAttribute* one, uint32_t row, uint32_t marked) noexcept nogil:
    found.rows[found.count] = <uint16_t> (row if row != 0 else one.kinds[ROW_DEFAULT])
    found.marked[found.count] = <uint16_t> marked
    found.count += 1


cdef inline void _has_number(RowsOfValue* found, const PoolAttribute* one, double value) noexcept nogil:
    if one.first_cell != 0:
        _has(found, one, one.first_cell + cell_of(one, ordered_float(value)), 0)
    else:
        _has(found, one, one.kinds[ROW_NUMBERS], 0)


cdef inline void _has_text(
    const ConditionRows* rows, RowsOfValue* found, const PoolAttribute* one, const Field* field, uint16_t view
) noexcept nogil:
    cdef uint32_t row = row_of_text(rows, one, view, field.text, field.size)
    _has(found, one, row if row != 0 else one.kinds[ROW_TEXTS], one.kinds[ROW_TEXTS])


cdef void rows_of_value(
    const ConditionRows* rows, const PoolAttribute* one, Field* field, const FieldView* view, RowsOfValue* found
) noexcept nogil:
    cdef uint8_t kind = field.kind
    cdef int boolean
    found.count = 0
    if kind == FIELD_INTEGER:
        _has_number(found, one, <double> field.integer)
    elif kind == FIELD_FLOAT:
        _has_number(found, one, field.real)
    elif kind == FIELD_TEXT:
        _has_text(rows, found, one, field, view.value)
    elif kind == FIELD_BOOLEAN:
        _has(found, one, one.kinds[ROW_TRUE if field.integer else ROW_FALSE], 0)
    elif kind == FIELD_ABSENT:
        _has(found, one, one.kinds[ROW_ABSENT], 0)
    elif kind != FIELD_UNTYPED:
        _has(found, one, 0, 0)
    else:
        _has_text(rows, found, one, field, view_of_text(field.text, field.size))
        kind = number_kind(field)
        if kind == FIELD_INTEGER or kind == FIELD_FLOAT:
            _has_number(found, one, <double> field.integer if kind == FIELD_INTEGER else field.real)
        boolean = as_boolean(field)
        if boolean != UNKNOWN:
            _has(found, one, one.kinds[ROW_TRUE if boolean else ROW_FALSE], 0)
