# cython: language_level=3
"""METHOD frames whose fields are numbers, bits and strings, written in compiled code: most answers.

methods.py writes the others: with a table, with a value that its field cannot have, or too long for the room here.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef enum:
    ROOM = 1024          # bytes of a frame: two short strings, and all else
    HEAD = 7             # bytes of a frame before its payload
    METHOD = 1
    FRAME_END = 0xCE
    SHORT_STRING_MAX = 255


def method_frame(int channel, bytes ids not None, bytes wires not None, method not None):
    """The frame; None: it is for Python.

    ids: of class and method, as they are written. wires: a letter for each field, of method_types.Wire. method: a tuple
    with these fields
    """
    cdef unsigned char[ROOM] frame
    cdef const unsigned char* letters = <const unsigned char*> PyBytes_AS_STRING(wires)
    cdef const char* octets
    cdef Py_ssize_t at = HEAD, number, size
    cdef int mask = 0
    cdef tuple values = <tuple> method    # of a class of its own, so that `tuple` in place of this cast refuses it
    if not isinstance(method, tuple) or len(values) != PyBytes_GET_SIZE(wires):
        raise TypeError(f"{method!r} is no method with {len(wires)} fields")
    memcpy(&frame[at], PyBytes_AS_STRING(ids), PyBytes_GET_SIZE(ids))
    at += PyBytes_GET_SIZE(ids)
    for number in range(PyBytes_GET_SIZE(wires)):
        if at > ROOM - SHORT_STRING_MAX - 2:
            return None
        value = values[number]
        if letters[number] == c"t":
            if mask == 0 or mask == 1 << 8:
                frame[at] = 0
                at += 1
                mask = 1
            if value:
                frame[at - 1] |= <unsigned char> mask
            mask <<= 1
            continue
        mask = 0
        if letters[number] == c"s":
            if type(value) is not str:
                return None
            octets = PyUnicode_AsUTF8AndSize(value, &size)
            if size > SHORT_STRING_MAX:
                return None
            frame[at] = <unsigned char> size
            at += 1
        elif letters[number] == c"S":
            if type(value) is not bytes or PyBytes_GET_SIZE(value) > SHORT_STRING_MAX - 4:
                return None
            octets, size = PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)
            at += write_number(&frame[at], 4, size)
        elif letters[number] == c"F":
            return None
        else:
            size = letters[number] - c"0"
            if not isinstance(value, int) or value < 0 or value.bit_length() > 8 * size:
                return None
            at += write_number(&frame[at], size, value)
            continue
        memcpy(&frame[at], octets, size)
        at += size
    frame[0] = METHOD
    write_number(&frame[1], 2, channel)
    write_number(&frame[3], 4, at - HEAD)
    frame[at] = FRAME_END
    return PyBytes_FromStringAndSize(<const char*> frame, at + 1)


cdef Py_ssize_t write_number(unsigned char* at, Py_ssize_t size, uint64_t value) noexcept:
    cdef Py_ssize_t place
    for place in range(size):
        at[place] = <unsigned char> (value >> 8 * (size - 1 - place))
    return size
