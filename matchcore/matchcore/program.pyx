# cython: language_level=3, cdivision=True
"""Selectors as programs, evaluated without the GIL. Drawn in program.pxd; compilation.pyx makes them."""

from libc.stdint cimport int16_t
from libc.string cimport memchr, memcmp

from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER
from matchcore.topic_test cimport text_is_on
from matchcore.values cimport (
    UNKNOWN, as_boolean, is_text, is_whole, number_kind, order_of_texts, order_to_boolean, order_to_float,
    order_to_integer, order_to_text,
)


# Evaluation

cdef bint program_holds(const Program* program, Field* at) noexcept nogil:
    cdef const Step* steps = program_steps(program)
    cdef const Step* step
    cdef uint32_t next = <uint16_t> <int16_t> program.first
    cdef uint8_t[COUNTERS] counters
    while next < ENDS_FALSE:
        step = &steps[next]
        if step.code < TESTS:
            next = step.on_true if step_holds(program, step, at) else step.on_false
        elif step.code == HITS_RESET:
            counters[step.mask] = 0
            next = step.on_true
        else:
            counters[step.mask] += 1
            next = step.on_true if counters[step.mask] == step.low else step.on_false
    return next == ENDS_TRUE


cdef bint step_holds(const Program* program, const Step* step, Field* at) noexcept nogil:
    cdef Field* field = &at[step.attribute]
    cdef uint64_t steps = 0
    cdef int order
    cdef bint found
    if step.code <= TEST_TEXT:
        if step.code == TEST_INTEGER:
            order = order_to_integer(field, step_integer(step))
        elif step.code == TEST_TEXT:
            order = order_to_text(field, step_text(program, step), step.high)
        elif step.code == TEST_FLOAT:
            order = order_to_float(field, step_float(step))
        else:
            order = order_to_boolean(field, <int> step.low)
        return order != UNKNOWN and step.mask >> (order + 1) & 1
    if step.code == TEST_PRESENT:
        return (field.kind != FIELD_ABSENT) != (step.mask & NEGATED)
    if step.code == TEST_IN:
        return _is_in(program, step, field)
    if not is_text(field):
        return False
    if step.code == TEST_LIKE:
        found = text_is_like(
            <const uint8_t*> field.text, field.size, <const uint8_t*> step_text(program, step), step.high, &steps
        )
    elif step.code == TEST_TOPIC:
        found = text_is_on(
            <const uint8_t*> field.text, field.size, <const uint8_t*> step_text(program, step), step.high,
            step.mask & IN_MQTT, &steps,
        )
    elif step.high > field.size:
        found = False
    elif step.code == TEST_PREFIX:
        found = memcmp(field.text, step_text(program, step), step.high) == 0
    else:
        found = memcmp(field.text + field.size - step.high, step_text(program, step), step.high) == 0
    return found != (step.mask & NEGATED)


ctypedef fused Number:
    int64_t
    double


cdef bint _has_number(const uint32_t* values, uint32_t count, Number wanted) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = count
    cdef uint32_t middle
    cdef Number value
    while low < high:
        middle = (low + high) // 2
        memcpy(&value, values + 2 * middle, sizeof(value))
        if value == wanted:
            return True
        if value < wanted:
            low = middle + 1
        else:
            high = middle
    return False


cdef bint _has_text(const Program* program, const uint32_t* values, uint32_t count, const Field* field) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = count
    cdef uint32_t middle
    cdef int order
    while low < high:
        middle = (low + high) // 2
        order = order_of_texts(
            <const char*> program + values[2 * middle], values[2 * middle + 1], field.text, field.size
        )
        if order == 0:
            return True
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return False


cdef bint _is_in(const Program* program, const Step* step, Field* field) noexcept nogil:
    """Equal to a value of the list; negated: it could be compared with each of them, and is equal to none."""
    cdef const uint32_t* units = <const uint32_t*> program + step.low
    cdef const ValueList* sizes = <const ValueList*> units
    cdef const uint32_t* integers = units + 3
    cdef const uint32_t* floats = integers + 2 * sizes.integers
    cdef const uint32_t* texts = floats + 2 * sizes.floats
    cdef bint equal = False
    cdef bint compared = True
    cdef int64_t whole
    cdef uint8_t kind
    cdef int boolean
    if sizes.integers + sizes.floats != 0:
        kind = number_kind(field)
        if kind == FIELD_INTEGER:
            equal = _has_number(integers, sizes.integers, field.integer)
        elif kind != FIELD_FLOAT:
            compared = False
        elif is_whole(field.real, &whole):
            equal = _has_number(integers, sizes.integers, whole)
        else:
            equal = _has_number(floats, sizes.floats, field.real)
    if sizes.texts != 0 and not equal:
        if is_text(field):
            equal = _has_text(program, texts, sizes.texts, field)
        else:
            compared = False
    if step.mask & (IN_FALSE | IN_TRUE) and not equal:
        boolean = as_boolean(field)
        if boolean == UNKNOWN:
            compared = False
        else:
            equal = step.mask & (IN_TRUE if boolean else IN_FALSE) != 0
    return compared and not equal if step.mask & NEGATED else equal


cdef inline size_t _character(const uint8_t* text, size_t at, size_t size) noexcept nogil:
    """Where the character behind the one at `at` begins."""
    at += 1
    while at < size and text[at] & 0xC0 == 0x80:
        at += 1
    return at


cdef bint text_is_like(
    const uint8_t* text, size_t size, const uint8_t* pattern, size_t pattern_size, uint64_t* steps
) noexcept nogil:
    # What lies between two `%` is looked for once, from the left: where it fits first is never worse than later. So
    # only the last `%` is ever gone back to, and each of the text's characters begins it once.
    cdef size_t at = 0
    cdef size_t p = 0
    cdef size_t part = 0           # of the pattern: behind the last `%`
    cdef size_t begun = 0          # of the text: where that part was begun last
    cdef bint free = False         # there was a `%`
    cdef const uint8_t* next
    while at < size:
        steps[0] += 1
        if p < pattern_size and pattern[p] == LIKE_ANY:
            p += 1
            if p == pattern_size:
                return True
            part = p
            begun = at
            free = True
        elif p < pattern_size and pattern[p] == LIKE_ONE:
            p += 1
            at = _character(text, at, size)
        elif p < pattern_size and pattern[p] == text[at]:
            p += 1
            at += 1
        elif not free:
            return False
        else:
            begun = _character(text, begun, size)
            if pattern[part] < LIKE_ONE and begun < size:
                next = <const uint8_t*> memchr(text + begun, pattern[part], size - begun)
                if next == NULL:
                    return False
                begun = <size_t> (next - text)
            at = begun
            p = part
    while p < pattern_size and pattern[p] == LIKE_ANY:
        p += 1
    return p == pattern_size


cdef void program_release(const Program* program, Attributes attributes) noexcept nogil:
    cdef const Step* steps = program_steps(program)
    cdef uint32_t i
    for i in range(program.steps):
        if steps[i].code < TESTS:
            attributes.drop(steps[i].attribute)
