# cython: language_level=3, cdivision=True
"""Fields out of a body in msgpack, where it lies.

    nil, NaN                   absent
    true, false                boolean
    integers                   integer; an unsigned one above 2^63 - 1 the nearest float
    float 32, float 64         float
    str                        text
    bin, array, map, ext       other: present, and no more

An integer above 2^63 - 1 is larger than all integers that a selector can name, and so is its float: only a comparison
with a float of that size can be off, by half the distance of two floats there (1,024 at least). JSON has the same rule.
"""

from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from matchcore.bodies cimport (
    LEVELS_MOST, MALFORMED, SOUND, TOO_DEEP, BodyFault, Guess, Guesses, is_text, keep_found, look_up,
)
from matchcore.fields cimport (
    FIELD_ABSENT, FIELD_OTHER, FIELD_TEXT, PAYLOAD_ROOT, Attributes, Field, Fields, field_boolean, field_float,
    field_integer, field_text,
)

# By a value's first octet: how many it takes, if that is fixed and nothing has to be checked; else 0.
cdef uint8_t[256] FIXED
cdef int octet, taken
for octet in range(256):
    FIXED[octet] = octet < 0x80 or octet >= 0xE0 or octet in (0xC0, 0xC2, 0xC3)
for octet, taken in (
    (0xCA, 5), (0xCB, 9), (0xCC, 2), (0xCD, 3), (0xCE, 5), (0xCF, 9), (0xD0, 2), (0xD1, 3), (0xD2, 5), (0xD3, 9),
    (0xD4, 3), (0xD5, 4), (0xD6, 6), (0xD7, 10), (0xD8, 18),    # these are fixext 1 to 16
):
    FIXED[octet] = taken


cdef inline uint64_t number_at(const uint8_t* at, int size) noexcept nogil:
    """A big-endian integer."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return value


cdef inline bint is_map(uint8_t kind) noexcept nogil:
    return kind & 0xF0 == 0x80 or kind == 0xDE or kind == 0xDF


cdef inline const uint8_t* take_text(
    const uint8_t* at, const uint8_t* end, const uint8_t** text, Py_ssize_t* size
) noexcept nogil:
    """Where a str ends, at whose first octet `at` is; NULL: it is cut short, or no UTF-8."""
    cdef uint8_t kind = at[0]
    cdef int width
    cdef uint64_t announced
    if kind & 0xE0 == 0xA0:
        announced = kind & 0x1F
        at += 1
    else:
        width = 1 << (kind - 0xD9)
        if end - at <= width:
            return NULL
        announced = number_at(at + 1, width)
        at += 1 + width
    if announced > <uint64_t> (end - at) or not is_text(at, <Py_ssize_t> announced):
        return NULL
    text[0] = at
    size[0] = <Py_ssize_t> announced
    return at + announced


cdef inline bint is_str(uint8_t kind) noexcept nogil:
    return kind & 0xE0 == 0xA0 or 0xD9 <= kind <= 0xDB


cdef inline const uint8_t* take_count(
    const uint8_t* at, const uint8_t* end, uint64_t* values
) noexcept nogil:
    """Behind the header of an array or a map; `values`: how many it has. NULL: it is cut short, or lies.

    Each value takes an octet at least: a header that announces more than there is ends here, not after a long loop.
    """
    cdef uint8_t kind = at[0]
    cdef int width
    if kind < 0xA0:
        values[0] = kind & 0x0F
        width = 0
    else:
        width = 2 if kind == 0xDC or kind == 0xDE else 4
        if end - at <= width:
            return NULL
        values[0] = number_at(at + 1, width)
    if is_map(kind):
        values[0] *= 2
    at += 1 + width
    if values[0] > <uint64_t> (end - at):
        return NULL
    return at


cdef const uint8_t* pass_value(
    const uint8_t* at, const uint8_t* end, int levels, BodyFault* fault
) noexcept nogil:
    """Where one value of any type ends, which may have `levels` inside each other; NULL: `fault` says why."""
    cdef uint64_t[LEVELS_MOST] left
    cdef uint64_t values = 1, size
    cdef const uint8_t* text
    cdef Py_ssize_t text_size
    cdef int depth = 0, width
    cdef uint8_t kind
    fault[0] = MALFORMED
    while True:
        while values == 0:
            if depth == 0:
                fault[0] = SOUND
                return at
            depth -= 1
            values = left[depth]
        values -= 1
        if at >= end:
            return NULL
        kind = at[0]
        if FIXED[kind]:
            if FIXED[kind] > end - at:
                return NULL
            at += FIXED[kind]
        elif is_str(kind):
            at = take_text(at, end, &text, &text_size)
            if at is NULL:
                return NULL
        elif 0xC4 <= kind <= 0xC9:
            # bin, and ext, which has an octet more: its type
            width = 1 << (kind - (0xC4 if kind < 0xC7 else 0xC7))
            if end - at <= width:
                return NULL
            size = number_at(at + 1, width) + (kind >= 0xC7)
            at += 1 + width
            if size > <uint64_t> (end - at):
                return NULL
            at += size
        elif kind == 0xC1:
            return NULL
        else:
            if depth >= levels:
                fault[0] = TOO_DEEP
                return NULL
            left[depth] = values
            depth += 1
            at = take_count(at, end, &values)
            if at is NULL:
                return NULL


cdef const uint8_t* take_value(
    const uint8_t* at, const uint8_t* end, int levels, Field* found, BodyFault* fault
) noexcept nogil:
    """Where one value ends, put into `found`, a map as other; NULL: `fault` says why."""
    cdef uint8_t kind
    cdef uint64_t number
    cdef uint32_t bits
    cdef float single
    cdef double real
    cdef const uint8_t* text
    cdef Py_ssize_t size
    found.kind = FIELD_ABSENT
    fault[0] = MALFORMED
    if at >= end:
        return NULL
    kind = at[0]
    if kind < 0x80 or kind >= 0xE0:
        field_integer(found, <int8_t> kind)
        return at + 1
    if is_str(kind):
        at = take_text(at, end, &text, &size)
        if at is not NULL:
            field_text(found, FIELD_TEXT, <const char*> text, <uint32_t> size)
        return at
    if not (0xC0 <= kind <= 0xD3) or 0xC4 <= kind <= 0xC9 or kind == 0xC1:
        found.kind = FIELD_OTHER
        return pass_value(at, end, levels, fault)
    if FIXED[kind] > end - at:
        return NULL
    if kind == 0xC2 or kind == 0xC3:
        field_boolean(found, kind == 0xC3)
    elif kind == 0xCB:
        number = number_at(at + 1, 8)
        memcpy(&real, &number, 8)
        field_float(found, real)
    elif kind == 0xCA:
        bits = <uint32_t> number_at(at + 1, 4)
        memcpy(&single, &bits, 4)
        field_float(found, single)
    elif kind == 0xCC:
        field_integer(found, at[1])
    elif kind == 0xCD:
        field_integer(found, <int64_t> number_at(at + 1, 2))
    elif kind == 0xCE:
        field_integer(found, <int64_t> number_at(at + 1, 4))
    elif kind == 0xCF:
        number = number_at(at + 1, 8)
        if number > <uint64_t> INT64_MAX:
            field_float(found, <double> number)
        else:
            field_integer(found, <int64_t> number)
    elif kind == 0xD0:
        field_integer(found, <int8_t> at[1])
    elif kind == 0xD1:
        field_integer(found, <int16_t> number_at(at + 1, 2))
    elif kind == 0xD2:
        field_integer(found, <int32_t> number_at(at + 1, 4))
    elif kind == 0xD3:
        field_integer(found, <int64_t> number_at(at + 1, 8))
    return at + FIXED[kind]


cdef BodyFault read_msgpack(
    const uint8_t* body, Py_ssize_t size, Attributes attributes, Fields fields, uint32_t missing, Guesses* guesses
) noexcept nogil:
    """Read the fields that are asked for, `missing` of them. After a fault `fields` may have some of them."""
    cdef const uint8_t* at = body
    cdef const uint8_t* end = body + size
    cdef const uint8_t* name
    cdef const Guess* asked
    cdef uint64_t[LEVELS_MOST] left
    cdef int[LEVELS_MOST] nodes
    cdef uint64_t pairs
    cdef Py_ssize_t name_size
    cdef int depth = 0, node = PAYLOAD_ROOT
    cdef Field found
    cdef BodyFault fault
    if size == 0 or not is_map(at[0]):
        return MALFORMED
    at = take_count(at, end, &pairs)
    if at is NULL:
        return MALFORMED
    pairs >>= 1
    while True:
        while pairs == 0:
            if depth == 0:
                return SOUND if at == end else MALFORMED
            depth -= 1
            pairs, node = left[depth], nodes[depth]
        pairs -= 1
        if at >= end:
            return MALFORMED
        asked = NULL
        if is_str(at[0]):
            at = take_text(at, end, &name, &name_size)
            if at is NULL:
                return MALFORMED
            asked = look_up(attributes, guesses, node, <const char*> name, name_size)
        else:
            at = pass_value(at, end, LEVELS_MOST - 1 - depth, &fault)    # a key that no path can name
            if at is NULL:
                return fault
        if at >= end:
            return MALFORMED
        if asked is NULL or asked.node < 0:
            at = pass_value(at, end, LEVELS_MOST - 1 - depth, &fault)
            if at is NULL:
                return fault
        elif asked.below and is_map(at[0]):
            found.kind = FIELD_OTHER
            if not keep_found(fields, asked.number, &found, &missing):
                return SOUND
            if depth + 1 == LEVELS_MOST:
                return TOO_DEEP
            left[depth], nodes[depth] = pairs, node
            depth += 1
            node = asked.node
            at = take_count(at, end, &pairs)
            if at is NULL:
                return MALFORMED
            pairs >>= 1
        else:
            at = take_value(at, end, LEVELS_MOST - 1 - depth, &found, &fault)
            if at is NULL:
                return fault
            if not keep_found(fields, asked.number, &found, &missing):
                return SOUND
