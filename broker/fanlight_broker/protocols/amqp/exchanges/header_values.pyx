# cython: language_level=3
"""Values of headers as keys, made of their octets: what arguments.canonical makes of the values."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport floor, isnan
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.protocols.amqp.table_octets cimport uint32_at, uint64_at

from fanlight_broker.protocols.amqp.data_types import OctetReader
from fanlight_broker.protocols.amqp.exchanges.arguments import canonical
from fanlight_broker.protocols.amqp.field_table import read_value

cdef double ALL_BELOW = 18446744073709551616.0    # 2**64: what is an integer of 64 bits, with a sign or without
cdef double SIGNED_BELOW = 9223372036854775808.0


cdef inline bytes lettered(char letter, const void* at, Py_ssize_t size):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + 1)
    PyBytes_AS_STRING(made)[0] = letter
    memcpy(PyBytes_AS_STRING(made) + 1, at, size)
    return made


cdef inline bytes of_signed(int64_t value):
    return lettered(c"i", &value, 8)


cdef inline bytes of_unsigned(uint64_t value):
    return lettered(c"u" if value >> 63 else c"i", &value, 8)


cdef bytes of_double(double value):
    if isnan(value):
        return b"N"
    if value == floor(value) and -SIGNED_BELOW <= value < ALL_BELOW:
        return of_signed(<int64_t> value) if value < SIGNED_BELOW else of_unsigned(<uint64_t> value)
    return lettered(c"d", &value, 8)


cdef bytes canonical_octets(const unsigned char* at, Py_ssize_t size):
    """Of a value with its letter, of which `value_size` has said that it is one."""
    cdef unsigned char letter = at[0]
    cdef uint32_t four
    cdef uint64_t eight
    cdef float single
    cdef double double_
    if letter == c"S" or letter == c"x":
        return lettered(c"s", at + 5, size - 5)
    if letter == c"I":
        return of_signed(<int32_t> uint32_at(at + 1))
    if letter == c"l" or letter == c"L":
        return of_signed(<int64_t> uint64_at(at + 1))
    if letter == c"t":
        return b"t\x01" if at[1] else b"t\x00"
    if letter == c"V":
        return b"V"
    if letter == c"b":
        return of_signed(<int8_t> at[1])
    if letter == c"B":
        return of_signed(at[1])
    if letter == c"s":
        return of_signed(<int16_t> (at[1] << 8 | at[2]))
    if letter == c"u":
        return of_signed(at[1] << 8 | at[2])
    if letter == c"i":
        return of_signed(uint32_at(at + 1))
    if letter == c"T":
        return of_unsigned(uint64_at(at + 1))
    if letter == c"f":
        four = uint32_at(at + 1)
        memcpy(&single, &four, 4)
        return of_double(single)
    if letter == c"d":
        eight = uint64_at(at + 1)
        memcpy(&double_, &eight, 8)
        return of_double(double_)
    if letter == c"D":
        return lettered(c"D", at + 1, 5)
    return canonical(read_value(OctetReader((<const char*> at)[:size], "a header"), 1))


def canonical_of(bytes value not None):
    """`canonical_octets` for tests: of a value with its letter in front."""
    return canonical_octets(<const unsigned char*> PyBytes_AS_STRING(value), len(value))
