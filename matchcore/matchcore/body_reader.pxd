# Reads the fields of a body that selectors ask for, in the format that its content type names.
#
#     "application/json" --format_of--> BODY_JSON --.
#     octets of the body ----------------------------'--> json_body, msgpack_body --> Fields, all of them or none

cimport cython
from libc.stdint cimport uint8_t, uint64_t

from matchcore.bodies cimport Guesses, TextScratch
from matchcore.fields cimport Attributes, Fields

cdef enum BodyFormat:
    BODY_UNKNOWN = 0           # nothing is read
    BODY_MSGPACK = 1
    BODY_JSON = 2

# Of all readers of a broker, or of one question.
@cython.final
cdef class BodyCounts:
    cdef:
        readonly uint64_t decoded      # bodies from which the fields were read
        readonly uint64_t malformed    # bodies that are not what their content type or payload_format says, or no map
        readonly uint64_t too_large    # bodies of more than 64 KiB, or deeper than 8 levels

cdef class BodyReader:
    cdef:
        Attributes attributes
        readonly BodyCounts counts
        TextScratch scratch
        Guesses guesses

    # Sets what is asked for. Text is borrowed from the body and the scratch: until the next body is read.
    cdef void read(self, Fields fields, const uint8_t* body, Py_ssize_t size, int format) noexcept nogil

cdef int format_of(const char* content_type, Py_ssize_t size) noexcept nogil

# Adds the second to the first, and makes the second 0.
cdef void take_counts(BodyCounts to, BodyCounts counts) noexcept
