# cython: language_level=3, cdivision=True
"""What a test is in the rows of a selector pool. Drawn in condition_tests.pxd."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from matchcore.condition_rows cimport (
    ROW_ABSENT, ROW_CELL, ROW_DEFAULT, ROW_FALSE, ROW_NUMBERS, ROW_TEXTS, ROW_TRUE, ROW_VALUE, VALUE_AT_MOST, cell_of,
    list_of_test, row_of_text,
)
from matchcore.fields cimport FIELD_OTHER, FIELD_TEXT, Field, field_boolean, field_text
from matchcore.glance cimport view_of_text
from matchcore.program cimport (
    MASK_ABOVE, MASK_ALL, MASK_BELOW, MASK_EQUAL, NEGATED, TEST_FLOAT, TEST_IN, TEST_INTEGER, TEST_PRESENT, TEST_TEXT,
    Program, Step, ValueList, step_float, step_holds, step_integer, step_text,
)
from matchcore.values cimport ordered_float

cdef double EXACTLY = 9007199254740992.0  # 2^53: smaller integers are floats


cdef bint end_of_test(const Step* step, uint64_t* end) noexcept nogil:
    if step.code == TEST_INTEGER:
        end[0] = ordered_float(<double> step_integer(step))
    elif step.code == TEST_FLOAT:
        end[0] = ordered_float(step_float(step))
    else:
        return False
    return True


cdef int _is_compared(const Program* program, const Step* step, int kind) noexcept nogil:
    """What a test is of values of a kind that are no texts nor numbers: never MIXED."""
    cdef Field field
    memset(&field, 0, sizeof(Field))
    if kind == ROW_FALSE or kind == ROW_TRUE:
        field_boolean(&field, kind == ROW_TRUE)
    elif kind != ROW_ABSENT:
        field.kind = FIELD_OTHER
    return _holds_of(program, step, &field)


cdef inline int _holds_of(const Program* program, const Step* step, Field* field) noexcept nogil:
    # A step reads the field of its attribute.
    return ALWAYS_TRUE if step_holds(program, step, field - step.attribute) else NEVER_TRUE


cdef int _in_texts(
    const ConditionRows* rows, const PoolAttribute* one, const Program* program, const Step* step
) noexcept nogil:
    """Of texts that are not listed."""
    cdef ValueList sizes
    cdef const uint32_t* texts
    cdef uint32_t i
    cdef bint is_listed
    if step.code == TEST_PRESENT:
        return NEVER_TRUE if step.mask & NEGATED else ALWAYS_TRUE
    if step.code == TEST_TEXT:
        if step.mask == 0 or step.mask == MASK_ALL:
            return NEVER_TRUE if step.mask == 0 else ALWAYS_TRUE
        if step.mask != MASK_EQUAL and step.mask != MASK_BELOW | MASK_ABOVE:
            return MIXED
        if not _has_row(rows, one, step_text(program, step), step.high):
            return MIXED
        return NEVER_TRUE if step.mask == MASK_EQUAL else ALWAYS_TRUE
    if step.code == TEST_IN:
        texts = list_of_test(program, step, &sizes) + 2 * (sizes.integers + sizes.floats)
        is_listed = True
        for i in range(sizes.texts):
            is_listed = is_listed and _has_row(rows, one, <const char*> program + texts[2 * i], texts[2 * i + 1])
        if not is_listed:
            return MIXED
        return ALWAYS_TRUE if step.mask & NEGATED and sizes.texts != 0 else NEVER_TRUE
    return NEVER_TRUE if step.code < TEST_TEXT else MIXED


cdef inline bint _has_row(
    const ConditionRows* rows, const PoolAttribute* one, const char* text, size_t size
) noexcept nogil:
    return size <= VALUE_AT_MOST and row_of_text(rows, one, view_of_text(text, size), text, size) != 0


cdef bint _has_in_cell(
    const PoolAttribute* one, uint32_t cell, const Program* program, const Step* step
) noexcept nogil:
    """Whether a number of an IN is in a cell."""
    cdef ValueList sizes
    cdef const uint32_t* values = list_of_test(program, step, &sizes)
    cdef uint32_t i
    cdef int64_t integer
    cdef double real
    for i in range(sizes.integers + sizes.floats):
        if i < sizes.integers:
            memcpy(&integer, values + 2 * i, 8)
            real = <double> integer
        else:
            memcpy(&real, values + 2 * i, 8)
        if cell_of(one, ordered_float(real)) == cell:
            return True
    return False


cdef int _in_numbers(
    const PoolAttribute* one, const ConditionRow* row, const Program* program, const Step* step
) noexcept nogil:
    """Of all numbers, or of those of a cell."""
    cdef ValueList sizes
    cdef uint64_t end
    cdef uint32_t cell
    cdef int orders
    cdef double value
    if step.code == TEST_PRESENT:
        return NEVER_TRUE if step.mask & NEGATED else ALWAYS_TRUE
    if step.code == TEST_IN:
        list_of_test(program, step, &sizes)
        if sizes.integers + sizes.floats == 0:
            return NEVER_TRUE
        if row.kind == ROW_NUMBERS or _has_in_cell(one, row.cell, program, step):
            return MIXED
        return ALWAYS_TRUE if step.mask & NEGATED else NEVER_TRUE
    if not end_of_test(step, &end):
        return NEVER_TRUE
    orders = MASK_ALL
    if row.kind == ROW_CELL:
        cell = cell_of(one, end)
        if cell != row.cell:
            orders = MASK_ABOVE if row.cell > cell else MASK_BELOW
        elif cell != 0 and one.bounds[cell - 1] == end:
            # The cell begins with this number: nothing in it is below, unless rounding brought it there.
            value = <double> step_integer(step) if step.code == TEST_INTEGER else step_float(step)
            if -EXACTLY < value < EXACTLY:
                orders = MASK_EQUAL | MASK_ABOVE
    if step.mask & orders == 0:
        return NEVER_TRUE
    return ALWAYS_TRUE if step.mask & orders == orders else MIXED


cdef int test_in_row(
    const ConditionRows* rows, const PoolAttribute* one, const ConditionRow* row, const Program* program,
    const Step* step
) noexcept nogil:
    cdef Field field
    if row.kind == ROW_DEFAULT:
        # Kinds of which the test is true have rows, but for IS NOT NULL.
        return ALWAYS_TRUE if step.code == TEST_PRESENT and not step.mask & NEGATED else NEVER_TRUE
    if row.kind == ROW_CELL or row.kind == ROW_NUMBERS:
        return _in_numbers(one, row, program, step)
    if row.kind == ROW_VALUE and row.text != NULL:
        memset(&field, 0, sizeof(Field))
        field_text(&field, FIELD_TEXT, row.text, row.size)
        return _holds_of(program, step, &field)
    if row.kind == ROW_TEXTS or row.kind == ROW_VALUE:
        return _in_texts(rows, one, program, step)
    return _is_compared(program, step, row.kind)
