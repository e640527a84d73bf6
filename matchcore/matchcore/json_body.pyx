# cython: language_level=3, cdivision=True
"""Fields out of a body in JSON, where it lies.

    null                              absent
    true, false                       boolean
    a number without . and exponent   integer; outside of 64 bits the nearest float
    another number                    the nearest float; absent if that is infinite
    a string                          text; other, if half of a surrogate pair is in it, which no UTF-8 is
    an array, an object               other: present, and no more

The grammar is that of RFC 8259 and nothing beside it: no NaN, no comments, no comma at the end, no byte order mark.
Strings must be UTF-8, also those that nobody asks for. A string without escapes stays in the body, another one is
decoded into the scratch. Numbers of up to 19 digits with an exponent that a float has exactly need one multiplication
or division, which is then rounded correctly (W. D. Clinger, How to read floating point numbers accurately, 1990); the
others are the C library's.
"""

from libc.stdint cimport uint8_t, uint32_t

from matchcore.bodies cimport (
    LEVELS_MOST, MALFORMED, SOUND, TOO_DEEP, BodyFault, Guess, Guesses, TextScratch, is_wanted, keep_found,
    look_up,
)
from matchcore.fields cimport FIELD_ABSENT, FIELD_OTHER, FIELD_TEXT, PAYLOAD_ROOT, Attributes, Field, Fields, field_text
from matchcore.json_text cimport (
    JsonString, decode_string, json_open_locale, pass_blanks, pass_container, take_name, take_scalar,
)

if not json_open_locale():
    raise MemoryError("no room for the C locale")


cdef inline const Guess* asked_for(
    Attributes attributes, Guesses* guesses, int parent, const JsonString* name, TextScratch* scratch
) noexcept nogil:
    """What is asked for by a member's name; NULL: nothing, for no name in UTF-8 is like it."""
    cdef Py_ssize_t size
    if not name.escaped:
        return look_up(attributes, guesses, parent, <const char*> name.at, name.size)
    size = decode_string(name, scratch.data + scratch.used)
    return look_up(attributes, guesses, parent, scratch.data + scratch.used, size) if size >= 0 else NULL


cdef void keep_string(const JsonString* string, Field* found, TextScratch* scratch) noexcept nogil:
    cdef Py_ssize_t size
    if not string.escaped:
        field_text(found, FIELD_TEXT, <const char*> string.at, <uint32_t> string.size)
        return
    size = decode_string(string, scratch.data + scratch.used)
    if size < 0:
        found.kind = FIELD_OTHER
    else:
        field_text(found, FIELD_TEXT, scratch.data + scratch.used, <uint32_t> size)
        scratch.used += size


cdef BodyFault read_json(
    const uint8_t* body, Py_ssize_t size, Attributes attributes, Fields fields, uint32_t missing, Guesses* guesses,
    TextScratch* scratch
) noexcept nogil:
    """Read the fields that are asked for, `missing` of them. After a fault `fields` may have some of them."""
    cdef const uint8_t* end = body + size
    cdef const uint8_t* at = pass_blanks(body, end)
    cdef const Guess* asked
    cdef int[LEVELS_MOST] nodes
    cdef int depth = 0, node = PAYLOAD_ROOT
    cdef bint first = True    # is the object at hand without a member so far?
    cdef bint wanted
    cdef JsonString string
    cdef Field found
    cdef BodyFault fault
    if at >= end or at[0] != c"{":
        return MALFORMED
    at += 1
    while True:
        # Behind a value, or behind the brace that begins an object.
        at = pass_blanks(at, end)
        if at >= end:
            return MALFORMED
        if at[0] == c"}":
            first = False
            at += 1
            if depth == 0:
                return SOUND if pass_blanks(at, end) == end else MALFORMED
            depth -= 1
            node = nodes[depth]
            continue
        if not first:
            if at[0] != c",":
                return MALFORMED
            at = pass_blanks(at + 1, end)
        first = False
        at = take_name(at, end, &string)
        if at is NULL:
            return MALFORMED
        asked = asked_for(attributes, guesses, node, &string, scratch)
        found.kind = FIELD_ABSENT
        if at[0] == c"{" and asked is not NULL and asked.below:
            if depth + 1 == LEVELS_MOST:
                return TOO_DEEP
            nodes[depth] = node
            depth += 1
            node = asked.node
            at += 1
            first = True
            found.kind = FIELD_OTHER
        elif at[0] == c"{" or at[0] == c"[":
            at = pass_container(at, end, LEVELS_MOST - 1 - depth, &fault)
            if at is NULL:
                return fault
            found.kind = FIELD_OTHER
        else:
            wanted = asked is not NULL and is_wanted(fields, asked.number)
            string.at = NULL
            at = take_scalar(at, end, &found if wanted else NULL, &string)
            if at is NULL:
                return MALFORMED
            if wanted and string.at is not NULL:
                keep_string(&string, &found, scratch)
        if asked is not NULL and not keep_found(fields, asked.number, &found, &missing):
            return SOUND
