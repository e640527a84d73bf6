# cython: language_level=3, cdivision=True
"""The number that a text without a type spells: what a selector's numbers are compared with.

    [+-] digits [. digits] [e [+-] digits], or . digits; nothing else, no space       as kleene.NUMBER

Digits alone are an integer of 64 bits, or no number. The others are the nearest float, or no number if that is not
finite. Where both the digits and the power of ten are exact as floats, one multiplication or division rounds correctly
(Clinger, "How to read floating point numbers accurately", 1990); the rest is CPython's own conversion.
"""

from libc.math cimport isfinite

cdef double[23] TENS
TENS[0] = 1.0
for _n in range(1, 23):
    TENS[<int> _n] = 10.0 * TENS[<int> _n - 1]  # exact up to 10^22

cdef enum:
    POWER_AT_MOST = 100_000  # of ten; beyond it lies no float, and the sum of two stays an int


# What the parts of a number are.
cdef struct Spelling:
    bint negative
    bint whole           # digits alone
    bint exact           # all digits are in `digits`
    uint64_t digits
    int power            # of ten


cdef inline bint _is_digit(char character) noexcept nogil:
    return c"0" <= character <= c"9"


cdef size_t _digits(const char* text, size_t at, size_t size, Spelling* spelling, int each) noexcept nogil:
    """Digits from `at` on; the power of ten changes by `each` for one that is taken."""
    cdef uint8_t digit
    while at < size and _is_digit(text[at]):
        digit = <uint8_t> (text[at] - c"0")
        if spelling.digits > (<uint64_t> 0xFFFFFFFFFFFFFFFF - digit) // 10:
            spelling.exact = False
        else:
            spelling.digits = 10 * spelling.digits + digit
        spelling.power += each
        at += 1
    return at


cdef bint _spelled(const char* text, size_t size, Spelling* spelling) noexcept nogil:
    """Whether the text is a number."""
    cdef size_t at = 0
    cdef size_t start
    cdef size_t digits
    cdef int power = 0
    cdef bint below = False
    spelling.negative = size != 0 and text[0] == c"-"
    spelling.whole = spelling.exact = True
    spelling.digits = 0
    spelling.power = 0
    if size >= <size_t> 1 << 30:
        return False
    if size != 0 and (text[0] == c"-" or text[0] == c"+"):
        at = 1
    start = at
    at = _digits(text, at, size, spelling, 0)
    digits = at - start
    if at < size and text[at] == c".":
        spelling.whole = False
        start = at + 1
        at = _digits(text, start, size, spelling, -1)
        digits += at - start
    if digits == 0:
        return False
    if at < size and (text[at] == c"e" or text[at] == c"E"):
        spelling.whole = False
        at += 1
        if at < size and (text[at] == c"-" or text[at] == c"+"):
            below = text[at] == c"-"
            at += 1
        start = at
        while at < size and _is_digit(text[at]):
            power = min(10 * power + (text[at] - c"0"), <int> POWER_AT_MOST)
            at += 1
        if at == start:
            return False
        spelling.power += -power if below else power
    return at == size


cdef double _converted(const char* text, size_t size) except? -1 with gil:
    return float(text[:size])


cdef double _float_of(const char* text, size_t size, const Spelling* spelling) except? -1 nogil:
    cdef double value
    if not spelling.exact or spelling.digits > <uint64_t> 1 << 53 or not -22 <= spelling.power <= 22:
        return _converted(text, size)
    value = <double> spelling.digits
    value = value / TENS[-spelling.power] if spelling.power < 0 else value * TENS[spelling.power]
    return -value if spelling.negative else value


cdef uint8_t read_number(Field* field) noexcept nogil:
    cdef Spelling spelling
    cdef uint64_t limit = <uint64_t> 1 << 63
    field.number = FIELD_OTHER
    if not _spelled(field.text, field.size, &spelling):
        return FIELD_OTHER
    if spelling.whole:
        if spelling.exact and spelling.digits < limit + spelling.negative:
            field.integer = <int64_t> (-spelling.digits if spelling.negative else spelling.digits)
            field.number = FIELD_INTEGER
        return field.number
    field.real = _float_of(field.text, field.size, &spelling)
    if isfinite(field.real):
        field.number = FIELD_FLOAT
    return field.number


def _number_of(text: bytes) -> int | float | None:
    """For tests: the number of a text without a type."""
    cdef Field field
    field.kind = FIELD_UNTYPED
    field.number = 0
    field.text = text
    field.size = <uint32_t> len(text)
    if read_number(&field) == FIELD_OTHER:
        return None
    return field.integer if field.number == FIELD_INTEGER else field.real
