# cython: language_level=3
"""The texts that most selectors have, read into their trees in C. What is none of these is left to where.py.

    region = 'eu' AND price BETWEEN 1 AND 2.5        NOT (urgent OR payload.order.id IN (1, 2))
    name LIKE 'a%'        $word[2] IS NOT NULL       a <> 1

One rule keeps it right: whatever is not read here, or is not sure, is None, and where.py decides. So all errors are
those of where.py, and here is no `AT LEAST`, no MATCHES, no ESCAPE, no literal before its operator, no quoted name and
no character beyond ASCII. A property test holds the two against each other.
"""

from libc.math cimport isfinite

from matchcore.selector import (
    KEYWORDS, MESSAGE, And, Attribute, Between, Compare, Constant, In, Like, Not, Or, Present, Source,
)

__all__ = ["read_quickly"]

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    int PyObject_GenericSetAttr(object thing, object name, object value) except -1

cdef enum:
    TEXT_AT_MOST = 4_096   # bytes, as in where.py
    TESTS_AT_MOST = 64
    DEPTH_AT_MOST = 16
    VALUES_AT_MOST = 1_000
    NAMES_AT_MOST = 8
    DIGITS_AT_MOST = 18    # of an integer, which then has 64 bits

cdef object _new = object.__new__
cdef object _And = And
cdef object _Attribute = Attribute
cdef object _Between = Between
cdef object _Compare = Compare
cdef object _Not = Not
cdef object _Or = Or
cdef object _HEADER = Source.HEADER
cdef object _PAYLOAD = Source.PAYLOAD
cdef object _MESSAGE = Source.MESSAGE


class Left(Exception):
    """Not read here."""


cdef struct Reading:
    const char* text       # ends with a zero byte
    Py_ssize_t size
    Py_ssize_t at          # of the next token: white space is skipped
    int depth
    int tests


cdef inline bint _begins_word(char c) noexcept:
    return c"a" <= c <= c"z" or c"A" <= c <= c"Z" or c == c"_"


cdef inline bint _is_digit(char c) noexcept:
    return c"0" <= c <= c"9"


cdef inline void _skip(Reading* reading) noexcept:
    while reading.text[reading.at] == c" " or c"\t" <= reading.text[reading.at] <= c"\r":
        reading.at += 1


cdef inline Py_ssize_t _word(const Reading* reading) noexcept:
    """Where the word that begins here ends; the same place: none does."""
    cdef Py_ssize_t at = reading.at
    if _begins_word(reading.text[at]):
        while _begins_word(reading.text[at]) or _is_digit(reading.text[at]):
            at += 1
    return at


cdef bint _took(Reading* reading, const char* keyword) noexcept:
    """Whether the next token is this keyword, in letters of any case; it is taken then."""
    cdef Py_ssize_t at = reading.at
    while keyword[0] != 0 and (reading.text[at] & ~32) == keyword[0]:
        at += 1
        keyword += 1
    if keyword[0] != 0 or _begins_word(reading.text[at]) or _is_digit(reading.text[at]):
        return False
    reading.at = at
    _skip(reading)
    return True


cdef bint _took_mark(Reading* reading, char mark) noexcept:
    if reading.text[reading.at] != mark:
        return False
    reading.at += 1
    _skip(reading)
    return True


cdef object _condition(Reading* reading):
    cdef object first = _all(reading)
    cdef list parts
    if not _took(reading, b"OR"):
        return first
    parts = [first, _all(reading)]
    while _took(reading, b"OR"):
        parts.append(_all(reading))
    return _of_parts(_Or, parts)


cdef object _all(Reading* reading):
    cdef object first = _one(reading)
    cdef list parts
    if not _took(reading, b"AND"):
        return first
    parts = [first, _one(reading)]
    while _took(reading, b"AND"):
        parts.append(_one(reading))
    return _of_parts(_And, parts)


cdef object _of_parts(object kind, list parts):
    made = _new(kind)
    PyObject_GenericSetAttr(made, "parts", tuple(parts))
    return made


cdef object _negated(object part):
    made = _new(_Not)
    PyObject_GenericSetAttr(made, "part", part)
    return made


cdef object _one(Reading* reading):
    if reading.depth > DEPTH_AT_MOST:
        raise Left
    reading.depth += 1
    if _took(reading, b"NOT"):
        found = _negated(_one(reading))
    elif _took_mark(reading, c"("):
        found = _condition(reading)
        if not _took_mark(reading, c")"):
            raise Left
    else:
        reading.depth -= 1
        return _primary(reading)
    reading.depth -= 1
    return found


cdef object _primary(Reading* reading):
    cdef bint negated
    if _took(reading, b"TRUE"):
        return _constant(reading, True)
    if _took(reading, b"FALSE"):
        return _constant(reading, False)
    reading.tests += 1
    if reading.tests > TESTS_AT_MOST:
        raise Left
    attribute = _attribute(reading)
    operator = _operator(reading)
    if operator is not None:
        value = _literal(reading)
        if isinstance(value, bool) and operator != "=" and operator != "<>":
            raise Left
        return _compare(attribute, operator, value)
    if _took(reading, b"IS"):
        negated = _took(reading, b"NOT")
        if not _took(reading, b"NULL"):
            raise Left
        return Present(attribute) if negated else _negated(Present(attribute))
    negated = _took(reading, b"NOT")
    if _took(reading, b"BETWEEN"):
        found = _between(reading, attribute)
    elif _took(reading, b"IN"):
        found = _in(reading, attribute)
    elif _took(reading, b"LIKE"):
        if reading.text[reading.at] != c"'":
            raise Left
        found = Like(attribute, _literal(reading))
    elif negated:
        raise Left
    else:
        found = _compare(attribute, "=", True)
    return _negated(found) if negated else found


cdef object _constant(Reading* reading, object value):
    if _operator(reading) is not None:
        raise Left
    return Constant(value)


cdef object _compare(object attribute, object operator, object value):
    made = _new(_Compare)
    PyObject_GenericSetAttr(made, "attribute", attribute)
    PyObject_GenericSetAttr(made, "operator", operator)
    PyObject_GenericSetAttr(made, "value", value)
    return made


cdef object _operator(Reading* reading):
    """Taken; None: the next token is none."""
    cdef char first = reading.text[reading.at]
    cdef char second
    if first != c"=" and first != c"<" and first != c">" and first != c"!":
        return None
    second = reading.text[reading.at + 1]
    if first == c"=":
        found = "="
    elif first == c"!":
        if second != c"=":
            raise Left
        found = "<>"
    elif first == c"<":
        found = "<=" if second == c"=" else "<>" if second == c">" else "<"
    else:
        found = ">=" if second == c"=" else ">"
    reading.at += 2 if first == c"!" else len(found)
    _skip(reading)
    return found


cdef object _between(Reading* reading, object attribute):
    low = _literal(reading)
    if not _took(reading, b"AND"):
        raise Left
    high = _literal(reading)
    if isinstance(low, bool) or isinstance(high, bool) or isinstance(low, str) is not isinstance(high, str):
        raise Left
    made = _new(_Between)
    PyObject_GenericSetAttr(made, "attribute", attribute)
    PyObject_GenericSetAttr(made, "low", low)
    PyObject_GenericSetAttr(made, "high", high)
    return made


cdef object _in(Reading* reading, object attribute):
    cdef dict values = {}
    if not _took_mark(reading, c"("):
        raise Left
    while True:
        value = _literal(reading)
        values.setdefault((isinstance(value, bool), value), value)  # 1 and TRUE are equal in Python
        if len(values) > VALUES_AT_MOST:
            raise Left
        if not _took_mark(reading, c","):
            break
    if not _took_mark(reading, c")"):
        raise Left
    return In(attribute, tuple(values.values()))


cdef object _literal(Reading* reading):
    cdef char first = reading.text[reading.at]
    if first == c"'":
        return _text(reading)
    if _is_digit(first) or first == c"+" or first == c"-" or first == c".":
        return _number(reading)
    if _took(reading, b"TRUE"):
        return True
    if _took(reading, b"FALSE"):
        return False
    raise Left


cdef object _text(Reading* reading):
    cdef Py_ssize_t start = reading.at + 1
    cdef Py_ssize_t end = start
    cdef bint doubled = False
    while True:
        while end < reading.size and reading.text[end] != c"'":
            end += 1
        if end >= reading.size:
            raise Left
        if reading.text[end + 1] != c"'":
            break
        doubled = True
        end += 2
    found = reading.text[start:end].decode("ascii")
    reading.at = end + 1
    _skip(reading)
    return found.replace("''", "'") if doubled else found


cdef object _number(Reading* reading):
    cdef Py_ssize_t start = reading.at
    cdef Py_ssize_t at = start
    cdef Py_ssize_t digits = 0
    cdef Py_ssize_t exponent
    cdef bint whole = True
    cdef long long integer = 0
    cdef double real
    if reading.text[at] == c"+" or reading.text[at] == c"-":
        at += 1
    while _is_digit(reading.text[at]):
        digits += 1
        if digits <= DIGITS_AT_MOST:
            integer = 10 * integer + (reading.text[at] - c"0")
        at += 1
    if reading.text[at] == c".":
        whole = False
        at += 1
        while _is_digit(reading.text[at]):
            digits += 1
            at += 1
    if digits == 0:
        raise Left
    if reading.text[at] == c"e" or reading.text[at] == c"E":
        exponent = at + 1
        if reading.text[exponent] == c"+" or reading.text[exponent] == c"-":
            exponent += 1
        if not _is_digit(reading.text[exponent]):
            raise Left
        whole = False
        at = exponent
        while _is_digit(reading.text[at]):
            at += 1
    reading.at = at
    if whole:
        if digits > DIGITS_AT_MOST:
            raise Left
        _skip(reading)
        return -integer if reading.text[start] == c"-" else integer
    real = float(reading.text[start:at])
    if not isfinite(real):
        raise Left
    _skip(reading)
    return real


cdef str _name(Reading* reading):
    """A word that is no keyword. White space behind it is not skipped."""
    cdef Py_ssize_t end = _word(reading)
    cdef str found
    if end == reading.at:
        raise Left
    found = reading.text[reading.at:end].decode("ascii")
    if found.upper() in KEYWORDS:
        raise Left
    reading.at = end
    return found


cdef object _attribute(Reading* reading):
    cdef str name
    cdef list path
    if reading.text[reading.at] == c"$":
        return _known(reading)
    name = _name(reading)
    path = [name]
    while reading.text[reading.at] == c".":
        reading.at += 1
        path.append(_name(reading))
    if name == "payload":
        if not 2 <= len(path) <= NAMES_AT_MOST + 1:
            raise Left
        made = _place(_PAYLOAD, tuple(path[1:]))
    else:
        made = _place(_HEADER, (name if len(path) == 1 else ".".join(path),))
    _skip(reading)
    if reading.text[reading.at] == c"(" or reading.text[reading.at] == c".":
        raise Left
    return made


cdef object _place(object source, tuple path):
    made = _new(_Attribute)
    PyObject_GenericSetAttr(made, "source", source)
    PyObject_GenericSetAttr(made, "path", path)
    return made


cdef object _known(Reading* reading):
    cdef Py_ssize_t start = reading.at + 1
    cdef Py_ssize_t end = start
    cdef int index = 0
    while c"a" <= reading.text[end] <= c"z" or reading.text[end] == c"_":
        end += 1
    name = reading.text[start:end].decode("ascii")
    reading.at = end
    if name != "word":
        if name not in MESSAGE or _word(reading) != end or _is_digit(reading.text[end]):
            raise Left
        _skip(reading)
        return _place(_MESSAGE, (name,))
    if reading.text[end] != c"[":
        raise Left
    end += 1
    while _is_digit(reading.text[end]) and index < 1_000:
        index = 10 * index + (reading.text[end] - c"0")
        end += 1
    if reading.text[end] != c"]" or not 1 <= index <= 128:
        raise Left
    reading.at = end + 1
    _skip(reading)
    return _place(_MESSAGE, ("word", str(index)))


def read_quickly(text: object) -> object:
    """The selector of a text; None: where.py is to read it."""
    cdef Reading reading
    if type(text) is not str or not PyUnicode_IS_ASCII(text):
        return None
    reading.text = PyUnicode_AsUTF8AndSize(text, &reading.size)
    if reading.size > TEXT_AT_MOST:
        return None
    reading.at = reading.depth = reading.tests = 0
    try:
        _skip(&reading)
        found = _condition(&reading)
    except Left:
        return None
    return found if reading.at == reading.size else None
