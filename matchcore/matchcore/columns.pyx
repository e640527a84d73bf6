# cython: language_level=3, annotation_typing=False
"""Columns of fields, of Arrow, numpy or Python. Drawn in columns.pxd."""

from libc.string cimport memset

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport int8_t, int16_t, uint16_t, uint64_t

from matchcore.arrow cimport ArrowArray, ArrowRows, ArrowSchema, ArrowType, take_arrow, type_name
from matchcore.fields cimport (
    FIELD_OTHER, FIELD_TEXT, Field, field_boolean, field_float, field_integer, field_text,
)

from collections.abc import Mapping

from matchcore.kleene import attribute_of

KINDS = {
    b"n": ALL_ABSENT, b"b": BITS, b"c": INT8, b"C": UINT8, b"s": INT16, b"S": UINT16, b"i": INT32, b"I": UINT32,
    b"l": INT64, b"L": UINT64, b"f": FLOAT32, b"g": FLOAT64, b"u": TEXT32, b"U": TEXT64,
}  # fmt: skip
OF_NUMPY = {
    "b1": BYTES, "i1": INT8, "u1": UINT8, "i2": INT16, "u2": UINT16, "i4": INT32, "u4": UINT32, "i8": INT64,
    "u8": UINT64, "f4": FLOAT32, "f8": FLOAT64,
}  # fmt: skip
TAKEN = "booleans, integers, floats of 32 and 64 bits, utf8 and large utf8 are, also in dictionaries"

cdef enum:
    WHOLE = -1  # not a child of a struct: the array itself


# ---- reading -----------------------------------------------------------------------------------------

cdef inline bint _bit(const uint8_t* bits, int64_t at) noexcept nogil:
    return bits[at >> 3] >> (at & 7) & 1


cdef int64_t _integer(uint8_t kind, const void* values, int64_t at) noexcept nogil:
    """Of those that fit into 64 bits with a sign."""
    if kind == INT32:
        return (<const int32_t*> values)[at]
    if kind == INT64 or kind == UINT64:
        return (<const int64_t*> values)[at]
    if kind == INT8:
        return (<const int8_t*> values)[at]
    if kind == UINT8:
        return (<const uint8_t*> values)[at]
    if kind == INT16:
        return (<const int16_t*> values)[at]
    if kind == UINT16:
        return (<const uint16_t*> values)[at]
    return (<const uint32_t*> values)[at]


cdef inline void _text(const Piece* piece, int64_t start, int64_t end, Field* field) noexcept nogil:
    if end - start > <int64_t> 0xFFFFFFFF:  # as in Fields.load
        field.kind = FIELD_OTHER
    else:
        field_text(field, FIELD_TEXT, piece.text + start, <uint32_t> (end - start))


cdef void _read(const Piece* piece, int64_t row, Field* field) noexcept nogil:
    """The row of a piece, counted from its first, into a field that is absent so far."""
    cdef int64_t at = piece.start + row
    cdef uint8_t kind = piece.kind
    if kind == ALL_ABSENT or (piece.valid != NULL and not _bit(piece.valid, at)):
        return
    if kind == FLOAT64:
        field_float(field, (<const double*> piece.values)[at])
    elif kind == FLOAT32:
        field_float(field, (<const float*> piece.values)[at])
    elif kind == TEXT32:
        _text(piece, (<const int32_t*> piece.values)[at], (<const int32_t*> piece.values)[at + 1], field)
    elif kind == TEXT64:
        _text(piece, (<const int64_t*> piece.values)[at], (<const int64_t*> piece.values)[at + 1], field)
    elif kind == BITS:
        field_boolean(field, _bit(<const uint8_t*> piece.values, at))
    elif kind == BYTES:
        field_boolean(field, (<const uint8_t*> piece.values)[at] != 0)
    elif kind == FIELDS:
        field[0] = (<const Field*> piece.values)[at]
    elif kind == INDICES:
        _read(piece.dictionary, _integer(piece.index_kind, piece.values, at), field)
    elif kind == UINT64 and (<const uint64_t*> piece.values)[at] >> 63:
        field_float(field, <double> (<const uint64_t*> piece.values)[at])  # the nearest, as of Python's integers
    else:
        field_integer(field, _integer(kind, piece.values, at))


# ---- checking ----------------------------------------------------------------------------------------

cdef bint _ascends(const Piece* piece) noexcept nogil:
    """Whether the offsets of text begin at 0 or later, and none is below the one before it."""
    cdef const int32_t* narrow = <const int32_t*> piece.values
    cdef const int64_t* wide = <const int64_t*> piece.values
    cdef int64_t i
    cdef bint falls = False
    if piece.kind == TEXT32:
        for i in range(piece.start, piece.start + piece.rows):
            falls |= narrow[i + 1] < narrow[i]
        return not falls and narrow[piece.start] >= 0
    for i in range(piece.start, piece.start + piece.rows):
        falls |= wide[i + 1] < wide[i]
    return not falls and wide[piece.start] >= 0


cdef int64_t _last(const Piece* piece) noexcept nogil:
    """Where the text of all ends."""
    cdef int64_t at = piece.start + piece.rows
    return (<const int32_t*> piece.values)[at] if piece.kind == TEXT32 else (<const int64_t*> piece.values)[at]


cdef bint _in_dictionary(const Piece* piece, int64_t size) noexcept nogil:
    """Whether all indices are; those of what is absent may be anything."""
    cdef int64_t i, index
    for i in range(piece.start, piece.start + piece.rows):
        if piece.valid == NULL or _bit(piece.valid, i):
            index = _integer(piece.index_kind, piece.values, i)
            if index < 0 or index >= size:
                return False
    return True


cdef object _malformed(FieldColumn column, str why):
    return ValueError(f"the column {column.name!r} is no valid Arrow array: {why}")


cdef int _counted(FieldColumn column, const ArrowArray* array) except -1:
    """The numbers of an array: none may lead beyond what 64 bits count."""
    if array.length < 0 or array.offset < 0 or array.length > (<int64_t> 1 << 62) \
            or array.offset > (<int64_t> 1 << 62) or array.null_count < -1 or array.null_count > array.length:
        raise _malformed(column, f"length {array.length}, offset {array.offset}, {array.null_count} nulls")
    return 0


cdef int _take(
    FieldColumn column, const ArrowSchema* schema, const ArrowArray* array, int64_t start, int64_t rows, Piece* piece
) except -1:
    """Fills in a piece of `rows` rows of an array, from its row `start` on. It is zeros before."""
    if schema == NULL or array == NULL or schema.format == NULL:
        raise _malformed(column, "a part of it is missing")
    _counted(column, array)
    if start > array.length or rows > array.length - start:
        raise _malformed(column, f"it has {array.length} rows, and {start + rows} are needed")
    kind = KINDS.get(<bytes> schema.format)
    if kind is None:
        raise TypeError(
            f"the column {column.name!r} has type {type_name(schema.format)}, which no selector compares: {TAKEN}"
        )
    piece.rows = rows
    piece.start = array.offset + start
    piece.kind = kind
    if piece.kind == ALL_ABSENT:
        return 0
    wanted = 3 if piece.kind in (TEXT32, TEXT64) else 2
    if array.n_buffers != wanted or array.buffers == NULL:
        raise _malformed(column, f"{array.n_buffers} buffers, not {wanted}")
    piece.valid = <const uint8_t*> array.buffers[0]
    if piece.valid == NULL and array.null_count > 0:
        raise _malformed(column, f"{array.null_count} nulls, and no bitmap of them")
    if array.null_count == 0:
        piece.valid = NULL
    piece.values = array.buffers[1]
    if rows == 0:
        piece.kind = ALL_ABSENT
        return 0
    if piece.values == NULL:
        raise _malformed(column, "its values are missing")
    if wanted == 3:
        piece.text = <const char*> array.buffers[2]
        if not _ascends(piece):
            raise _malformed(column, "its offsets do not ascend")
        if piece.text == NULL:
            if _last(piece) != 0:
                raise _malformed(column, "its text is missing")
            piece.text = b""
    if schema.dictionary != NULL:
        _take_dictionary(column, schema, array, piece)
    return 0


cdef int _take_dictionary(
    FieldColumn column, const ArrowSchema* schema, const ArrowArray* array, Piece* piece
) except -1:
    if not INT8 <= piece.kind <= UINT64:
        raise _malformed(column, f"indices of type {type_name(schema.format)}")
    if array.dictionary == NULL:
        raise _malformed(column, "its dictionary is missing")
    if schema.dictionary.dictionary != NULL:
        raise TypeError(f"the column {column.name!r} has a dictionary within its dictionary")
    piece.dictionary = <Piece*> PyMem_Malloc(sizeof(Piece))
    if piece.dictionary == NULL:
        raise MemoryError()
    memset(piece.dictionary, 0, sizeof(Piece))
    _take(column, schema.dictionary, array.dictionary, 0, array.dictionary.length, piece.dictionary)
    piece.index_kind = piece.kind
    piece.kind = INDICES
    if not _in_dictionary(piece, array.dictionary.length):
        raise _malformed(column, "an index leads beyond its dictionary")
    return 0


# ---- columns -----------------------------------------------------------------------------------------

cdef class FieldColumn:
    """`name`: a key of `fields`, or an Attribute."""

    def __cinit__(self, object name, object source):
        self.name = name
        self.attribute = attribute_of(name) if isinstance(name, str) else name
        self.source = source
        self.owners = []

    def __dealloc__(self) -> None:
        cdef uint32_t i
        for i in range(self.count):
            PyMem_Free(self.pieces[i].dictionary)
        PyMem_Free(self.pieces)

    cdef int _reserve(self, Py_ssize_t count) except -1:
        cdef void* pieces = PyMem_Realloc(self.pieces, max(count, 1) * sizeof(Piece))
        if pieces == NULL:
            raise MemoryError()
        self.pieces = <Piece*> pieces
        memset(self.pieces, 0, max(count, 1) * sizeof(Piece))
        self.count = <uint32_t> count
        return 0

    cdef int make(self, Py_ssize_t rows) except -1:
        """Takes the values. Raises ValueError where they are not one a row."""
        cdef int64_t found = 0
        cdef uint32_t i
        source = self.source
        taken = None
        if isinstance(source, _Child):
            self._of_arrow(source.type_, source.rows, source.place)
        elif isinstance(source, (str, bytes)):
            raise TypeError(f"the column {self.name!r} is one {type(source).__name__}, not a value for each topic")
        elif hasattr(source, "__arrow_c_array__"):
            taken = take_arrow(source)
        elif hasattr(source, "__array_interface__") and hasattr(source, "dtype"):
            dtype = source.dtype
            kind = OF_NUMPY.get(f"{dtype.kind}{dtype.itemsize}") if source.ndim == 1 and dtype.isnative else None
            if kind is None:
                self._of_values(source.tolist())
            else:
                self._of_numpy(source, kind)
        elif hasattr(source, "__arrow_c_stream__"):
            taken = take_arrow(source)
        else:
            self._of_values(source.to_pylist() if hasattr(source, "to_pylist") else source)
        if taken is not None:
            self._of_arrow(taken[0], taken[1], WHOLE)
        for i in range(self.count):
            self.pieces[i].first = found
            found += self.pieces[i].rows
        if found != rows:
            raise ValueError(f"the column {self.name!r} has {found} values, and there are {rows} topics")
        self.source = None
        return 0

    cdef int _of_arrow(self, object type_, list rows, int64_t place) except -1:
        """`place`: of the child; WHOLE: of the arrays themselves."""
        cdef ArrowSchema* schema = &(<ArrowType> type_).schema
        cdef ArrowArray* array
        cdef Py_ssize_t i
        if place != WHOLE:
            schema = schema.children[place]
        self._reserve(len(rows))
        self.owners = [type_, rows]
        for i in range(len(rows)):
            array = &(<ArrowRows> rows[i]).array
            if place == WHOLE:
                _take(self, schema, array, 0, array.length, &self.pieces[i])
            else:
                _take(self, schema, array.children[place], array.offset, array.length, &self.pieces[i])
        return 0

    cdef int _of_numpy(self, object array, uint8_t kind) except -1:
        import numpy  # here: as in topics.pyx
        cdef const uint8_t[::1] octets
        array = numpy.ascontiguousarray(array)
        self._reserve(1)
        self.owners = [array]
        self.pieces[0].rows = len(array)
        if len(array) != 0:
            octets = array.view(numpy.uint8)
            self.pieces[0].kind = kind
            self.pieces[0].values = &octets[0]
        return 0

    cdef int _of_values(self, object values) except -1:
        """Of Python's, as Fields.load takes them."""
        cdef Fields one = Fields(Attributes())
        cdef Field* made
        cdef Py_ssize_t i
        held = tuple(values)
        room = bytearray(len(held) * sizeof(Field))
        cdef unsigned char[::1] octets = room
        one.texts = []
        self._reserve(1)
        self.owners = [held, one.texts, octets]
        self.pieces[0].rows = len(held)
        if len(held) == 0:
            return 0
        made = <Field*> &octets[0]
        for i in range(len(held)):
            one.clear()
            one._load(0, held[i])
            made[i] = one.at[0]
        self.pieces[0].kind = FIELDS
        self.pieces[0].values = made
        return 0


class _Child:
    """A column of record batches."""

    def __init__(self, type_: object, rows: list, place: int) -> None:
        self.type_, self.rows, self.place = type_, rows, place


cdef class Columns:
    def __dealloc__(self) -> None:
        PyMem_Free(self.cursors)

    cdef int number(self, Attributes attributes) except -1:
        cdef FieldColumn column
        cdef ColumnCursor* cursor
        cdef int32_t number
        self.count = 0
        if self.cursors == NULL:
            self.cursors = <ColumnCursor*> PyMem_Malloc((len(self.columns) + 1) * sizeof(ColumnCursor))
            if self.cursors == NULL:
                raise MemoryError()
        for column in self.columns:
            number = attributes.number(column.attribute)
            if number < 0:
                continue
            if column.source is not None:
                column.make(self.rows)
            cursor = &self.cursors[self.count]
            cursor.pieces = column.pieces
            cursor.number = number
            cursor.at = 0
            self.count += 1
        return 0

    cdef void read(self, Py_ssize_t row, Fields fields) noexcept nogil:
        cdef ColumnCursor* cursor
        cdef const Piece* piece
        cdef uint32_t i
        fields.clear()
        for i in range(self.count):
            cursor = &self.cursors[i]
            while row >= cursor.pieces[cursor.at].first + cursor.pieces[cursor.at].rows:
                cursor.at += 1
            piece = &cursor.pieces[cursor.at]
            _read(piece, row - piece.first, fields.set(cursor.number))

    cdef void rewind(self) noexcept nogil:
        cdef uint32_t i
        for i in range(self.count):
            self.cursors[i].at = 0


cdef list _children(ArrowType type_, list rows):
    """(name, place) of the columns of record batches."""
    cdef const ArrowSchema* schema = &type_.schema
    cdef const ArrowArray* array
    cdef int64_t place
    if schema.format == NULL or <bytes> schema.format != b"+s":
        said = "nothing" if schema.format == NULL else type_name(schema.format)
        raise TypeError(f"fields are columns: a record batch or a table of Arrow, or a dict; not an array of {said}")
    for one in rows:
        array = &(<ArrowRows> one).array
        if array.n_children != schema.n_children or (array.n_children != 0 and array.children == NULL):
            raise ValueError(f"a record batch has {array.n_children} columns, and its schema {schema.n_children}")
        if array.length < 0 or array.offset < 0 or array.offset > (<int64_t> 1 << 62):
            raise ValueError(f"a record batch has {array.length} rows from {array.offset} on")
        if array.null_count != 0 and array.n_buffers != 0 and array.buffers != NULL and array.buffers[0] != NULL:
            raise ValueError("a record batch has rows that are null")
    names = []
    for place in range(schema.n_children):
        if schema.children == NULL or schema.children[place] == NULL or schema.children[place].name == NULL:
            raise ValueError(f"column {place} of a record batch has no name")
        names.append(((<bytes> schema.children[place].name).decode("utf-8", "surrogateescape"), place))
    return names


cdef Columns take_columns(object fields, Py_ssize_t rows):
    cdef Columns made = Columns.__new__(Columns)
    made.rows = rows
    made.columns = []
    if fields is None:
        return made
    if not isinstance(fields, Mapping):
        taken = take_arrow(fields)
        if taken is not None:
            made.columns = [
                FieldColumn(name, _Child(taken[0], taken[1], place)) for name, place in _children(taken[0], taken[1])
            ]
            return made
        if not hasattr(fields, "items"):
            raise TypeError(
                f"fields are columns: a record batch or a table of Arrow, or a dict; not {type(fields).__name__}"
            )
    made.columns = [FieldColumn(name, source) for name, source in fields.items()]
    return made
