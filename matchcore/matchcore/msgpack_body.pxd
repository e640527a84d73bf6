# A body in msgpack that is a map (https://github.com/msgpack/msgpack/blob/master/spec.md). See bodies.pxd.

from libc.stdint cimport uint8_t, uint32_t

from matchcore.bodies cimport BodyFault, Guesses
from matchcore.fields cimport Attributes, Field, Fields

cdef BodyFault read_msgpack(
    const uint8_t* body, Py_ssize_t size, Attributes attributes, Fields fields, uint32_t missing, Guesses* guesses
) noexcept nogil
cdef const uint8_t* take_value(
    const uint8_t* at, const uint8_t* end, int levels, Field* found, BodyFault* fault
) noexcept nogil
