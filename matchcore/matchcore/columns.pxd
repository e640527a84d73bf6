# The fields of many messages: a column for each attribute, in pieces, read row by row without the GIL.
#
#     Columns   price    [ piece 0: FLOAT64, rows 0 to 999 | piece 1: ... ]      Arrow's buffers, where they are
#               region   [ piece 0: INDICES -> dictionary of TEXT32 ]
#               tag      [ piece 0: FIELDS ]                                      of Python's values: a Field each
#
# Everything that can be checked is, before the first row is read: types, counts, offsets of text, indices. Arrow does
# not say how large its buffers are, so one that is shorter than its array says cannot be found out.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from matchcore.fields cimport Attributes, Fields

cdef enum:
    # Piece.kind
    ALL_ABSENT = 0
    BITS
    BYTES                  # booleans of numpy: one a byte
    INT8
    UINT8
    INT16
    UINT16
    INT32
    UINT32
    INT64
    UINT64
    FLOAT32
    FLOAT64
    TEXT32                 # offsets of 32 bits
    TEXT64
    INDICES                # into a dictionary
    FIELDS                 # values that are fields already


cdef struct Piece:
    int64_t first          # row of the column
    int64_t rows
    int64_t start          # of the first one in the buffers
    uint8_t kind
    uint8_t index_kind     # of INDICES
    const uint8_t* valid   # bits; NULL: all are there
    const void* values     # or offsets, or indices
    const char* text
    Piece* dictionary


# A column that is read: rows are read in ascending order.
cdef struct ColumnCursor:
    const Piece* pieces
    uint32_t at            # of the piece that was read last
    int32_t number         # of the attribute


cdef class FieldColumn:
    cdef:
        readonly object name
        object attribute
        object source          # what it is made of; None: it is made
        list owners            # of the buffers
        Piece* pieces
        uint32_t count

    cdef int _reserve(self, Py_ssize_t count) except -1
    cdef int make(self, Py_ssize_t rows) except -1
    cdef int _of_arrow(self, object type_, list rows, int64_t place) except -1
    cdef int _of_numpy(self, object array, uint8_t kind) except -1
    cdef int _of_values(self, object values) except -1


cdef class Columns:
    cdef:
        list columns
        Py_ssize_t rows
        ColumnCursor* cursors        # of the columns that a selector asks for
        uint32_t count

    # Makes the columns that a selector asks for, and gives them their numbers. Python runs in it.
    cdef int number(self, Attributes attributes) except -1

    # Clears the fields and sets those of a row. Rows are read in ascending order, until `rewind`.
    cdef void read(self, Py_ssize_t row, Fields fields) noexcept nogil
    cdef void rewind(self) noexcept nogil


# Columns of `rows` values each, of what match_many takes; None: there are no columns. Raises TypeError, ValueError.
cdef Columns take_columns(object fields, Py_ssize_t rows)
