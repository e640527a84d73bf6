# A body in JSON that is an object (RFC 8259). See bodies.pxd.

from libc.stdint cimport uint8_t, uint32_t

from matchcore.bodies cimport BodyFault, Guesses, TextScratch
from matchcore.fields cimport Attributes, Fields

cdef BodyFault read_json(
    const uint8_t* body, Py_ssize_t size, Attributes attributes, Fields fields, uint32_t missing, Guesses* guesses,
    TextScratch* scratch
) noexcept nogil
