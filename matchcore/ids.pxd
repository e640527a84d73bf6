# The id argument of insert and remove: an int within 0..2**32-1.

from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport uint32_t

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


# Read in C from the digits: what a subclass of int says of itself changes nothing.
cdef inline uint32_t take_id(object id) except? 0xFFFFFFFF:
    cdef int overflow = 0
    cdef long long value
    if not isinstance(id, int):
        if not PyIndex_Check(id):
            raise TypeError(f"an id must be an int, not {type(id).__name__}")
        id = PyNumber_Index(id)
    value = PyLong_AsLongLongAndOverflow(id, &overflow)
    if overflow != 0 or value < 0 or value > 0xFFFFFFFF:
        raise ValueError(
            f"an id must be within 0..2**32-1, not {value if overflow == 0 else 'beyond 64 bits'}"
        )
    return <uint32_t> value
