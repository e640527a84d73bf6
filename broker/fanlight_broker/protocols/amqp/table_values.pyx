# cython: language_level=3
"""Field tables (4.2.5.5), and the fields of methods, that are well-formed, read in compiled code. field_table.py and
methods.py read the others, and say what is wrong with them.

A frame has room for a table with 43,000 entries. In Python each takes half a microsecond, and nobody else has a turn.
"""

from decimal import Decimal

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.protocols.amqp.table_octets cimport (
    nested_size, short_string_size, uint32_at, uint64_at, value_size,
)
from fanlight_broker.wire.msgpack cimport is_utf8

cdef enum:
    IDS_SIZE = 4         # bytes in front of a method's fields: its class and its number


def read(bytes octets not None, Py_ssize_t at, Py_ssize_t end, int depth, timestamp not None):
    """The table that begins at a place, its length in front, and the place behind it; None: it is not well-formed.

    depth: of the table, from 1. timestamp: what makes a value of the type T.
    """
    cdef const unsigned char* begin
    cdef Py_ssize_t size
    if not 0 <= at <= end <= PyBytes_GET_SIZE(octets):
        return None
    begin = <const unsigned char*> PyBytes_AS_STRING(octets) + at
    size = nested_size(begin, begin + (end - at), True, depth)
    if size < 0:
        return None
    return table(begin + 4, begin + size, timestamp), at + size


def read_method(dict layouts not None, bytes payload not None, timestamp not None):
    """The method of a payload, by the layouts of their ids; None: none has its ids, or it is not well-formed."""
    layout = layouts.get(payload[:IDS_SIZE])
    if layout is None:
        return None
    found = fields(layout.letters, payload, IDS_SIZE, timestamp)
    return None if found is None else tuple.__new__(layout.kind, found)


cdef list fields(bytes wires, bytes octets, Py_ssize_t begin, timestamp):
    """What a method has in its fields, from a place to the end; None: it is not well-formed.

    wires: a letter for each field, of method_types.Wire
    """
    cdef const unsigned char* at = <const unsigned char*> PyBytes_AS_STRING(octets) + begin
    cdef const unsigned char* end = <const unsigned char*> PyBytes_AS_STRING(octets) + PyBytes_GET_SIZE(octets)
    cdef const unsigned char* letters = <const unsigned char*> PyBytes_AS_STRING(wires)
    cdef Py_ssize_t number, size
    cdef int bits = 0, mask = 0
    cdef list found = []
    if not 0 <= begin <= PyBytes_GET_SIZE(octets):
        return None
    for number in range(PyBytes_GET_SIZE(wires)):
        if letters[number] == c"t":
            if mask == 0 or mask == 1 << 8:
                if at >= end:
                    return None
                bits, mask = at[0], 1
                at += 1
            found.append((bits & mask) != 0)
            mask <<= 1
            continue
        mask = 0
        size = field_size(letters[number], at, end)
        if size < 0:
            return None
        if letters[number] == c"s":
            found.append(text(at + 1, size - 1))
        elif letters[number] == c"S":
            found.append(PyBytes_FromStringAndSize(<const char*> at + 4, size - 4))
        elif letters[number] == c"F":
            found.append(table(at + 4, at + size, timestamp))
        elif size == 8:
            found.append(uint64_at(at))
        elif size == 4:
            found.append(uint32_at(at))
        else:
            found.append(at[0] if size == 1 else <int> at[0] << 8 | at[1])
        at += size
    return found if at == end else None


cdef Py_ssize_t field_size(unsigned char letter, const unsigned char* at, const unsigned char* end) noexcept:
    """Of a field that is no bit; -1: it is not well-formed, or too long."""
    cdef Py_ssize_t size
    if letter == c"s":
        return short_string_size(at, end)
    if letter == c"F":
        return nested_size(at, end, True, 1)
    if letter == c"S":
        size = 4 + <Py_ssize_t> uint32_at(at) if end - at >= 4 else -1
    else:
        size = 1 if letter == c"1" else 2 if letter == c"2" else 4 if letter == c"4" else 8
    return size if size <= end - at else -1


def raw(bytes encoded not None):
    """The entries of a table with its length in front, each value as it is written; None: it is not well-formed."""
    cdef const unsigned char* at = <const unsigned char*> PyBytes_AS_STRING(encoded)
    cdef const unsigned char* end = at + PyBytes_GET_SIZE(encoded)
    cdef Py_ssize_t size = nested_size(at, end, True, 1)
    cdef dict found = {}
    if size < 0:
        return None
    end = at + size
    at += 4
    while at < end:
        name = text(at + 1, at[0])
        at += 1 + at[0]
        size = value_size(at, end, 1)
        found[name] = PyBytes_FromStringAndSize(<const char*> at, size)
        at += size
    return found


cdef str text(const unsigned char* at, Py_ssize_t size):
    return PyUnicode_DecodeUTF8(<const char*> at, size, NULL)


cdef dict table(const unsigned char* at, const unsigned char* end, timestamp):
    """From its first entry to its end, which `nested_size` has found well-formed, as all that is in it."""
    cdef dict found = {}
    while at < end:
        name = text(at + 1, at[0])
        at += 1 + at[0]
        found[name] = value(&at, timestamp)
    return found


cdef list array(const unsigned char* at, const unsigned char* end, timestamp):
    cdef list found = []
    while at < end:
        found.append(value(&at, timestamp))
    return found


cdef object value(const unsigned char** place, timestamp):
    """The value with its letter here; the place is behind it then."""
    cdef unsigned char letter = place[0][0]
    cdef const unsigned char* at = place[0] + 1
    cdef Py_ssize_t size
    if letter == c"S" or letter == c"x" or letter == c"F" or letter == c"A":
        size = uint32_at(at)
        at += 4
        place[0] = at + size
        if letter == c"F":
            return table(at, at + size, timestamp)
        if letter == c"A":
            return array(at, at + size, timestamp)
        if letter == c"S" and is_utf8(at, size):
            return text(at, size)
        return PyBytes_FromStringAndSize(<const char*> at, size)
    if letter == c"D":
        place[0] = at + 5
        return Decimal(uint32_at(at + 1)).scaleb(-<int> at[0])
    if letter == c"V":
        place[0] = at
        return None
    return number(letter, at, place, timestamp)


cdef object number(unsigned char letter, const unsigned char* at, const unsigned char** behind, timestamp):
    cdef uint32_t bits
    cdef uint64_t long_bits
    cdef float single
    cdef double real
    if letter == c"t" or letter == c"b" or letter == c"B":
        behind[0] = at + 1
        if letter == c"t":
            return at[0] != 0
        return <int8_t> at[0] if letter == c"b" else <int> at[0]
    if letter == c"s" or letter == c"u":
        behind[0] = at + 2
        bits = <uint32_t> at[0] << 8 | at[1]
        return <int16_t> bits if letter == c"s" else <int> bits
    if letter == c"I" or letter == c"i" or letter == c"f":
        behind[0] = at + 4
        bits = uint32_at(at)
        if letter == c"f":
            memcpy(&single, &bits, sizeof(float))
            return single
        return <int64_t> <int32_t> bits if letter == c"I" else <int64_t> bits
    behind[0] = at + 8
    long_bits = uint64_at(at)
    if letter == c"T":
        return timestamp(long_bits)
    if letter == c"d":
        memcpy(&real, &long_bits, sizeof(double))
        return real
    return <int64_t> long_bits
