# Messages in the columns of an Arrow record batch, and the fields of each that selectors ask for.
#
#     timestamp | topic | value | headers | client | syntax | ...      MessageRows: where they are in Arrow's buffers
#        |          |       |        |
#        v          v       v        v
#     $time    $word[n]  payload.x   x                                 MessageReader: of one row
#
# As of a live message (docs/selectors.md), but that a header is text without a type, and the publisher's user unknown.
# Nothing is copied, no message is made, and no Python runs: rows are read without the GIL.

from libc.stdint cimport int64_t, uint8_t

from matchcore.body_reader cimport BodyReader
from matchcore.fields cimport Attributes, Fields


# A column of text or octets, of lists, or of fixed values; row i is at `start + i`.
cdef struct MessageColumn:
    const uint8_t* valid   # bits; NULL: all are there
    const void* values     # or 32-bit ends of text and lists
    const char* text
    int64_t start


cdef struct Octets:
    const char* at         # NULL: null
    Py_ssize_t size


cdef class MessageRows:
    cdef:
        readonly Py_ssize_t count
        object type_           # with `rows`: owns the buffers
        object rows
        const uint8_t[::1] formats
        bint has_formats
        MessageColumn timestamp, topic, value, headers, names, contents, client, syntax, qos, retain, content_type

    cdef int _take(self, const char* name, const char* format, MessageColumn* column) except -1
    cdef int _take_headers(self) except -1
    cdef int format(self, Py_ssize_t row) noexcept nogil


cdef class MessageReader:
    cdef:
        readonly Attributes attributes
        readonly Fields fields     # of the row that was read last: as long as the rows and this reader are there
        BodyReader body

    cdef void read(self, MessageRows rows, Py_ssize_t row) noexcept nogil
    cdef void _read_message(self, MessageRows rows, Py_ssize_t row) noexcept nogil
    cdef void _read_words(self, MessageRows rows, Py_ssize_t row) noexcept nogil
    cdef void _read_headers(self, MessageRows rows, Py_ssize_t row) noexcept nogil
