# cython: language_level=3, annotation_typing=False
"""Messages in an Arrow record batch, read row by row. Drawn in message_rows.pxd."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, strcmp

from matchcore.arrow cimport ArrowArray, ArrowRows, ArrowSchema, ArrowType, take_arrow, type_name
from matchcore.bodies cimport is_text, is_wanted
from matchcore.body_reader cimport BODY_UNKNOWN, BodyCounts, BodyReader, format_of
from matchcore.fields cimport (
    FIELD_OTHER, FIELD_TEXT, FIELD_UNTYPED, HEADERS_ROOT, MESSAGE_BYTES, MESSAGE_CLIENT, MESSAGE_CONTENT_TYPE,
    MESSAGE_QOS, MESSAGE_RETAIN, MESSAGE_ROOT, MESSAGE_TIME, MESSAGE_WORDS, PAYLOAD_ROOT, Field, field_boolean,
    field_float, field_integer, field_text,
)

__all__ = ["MessageReader", "MessageRows"]

# ---- rows --------------------------------------------------------------------------------------------

cdef inline bint _counts(int64_t count) noexcept nogil:
    """Whether it is a number of rows, or a place: what 64 bits add up without a look."""
    return 0 <= count < <int64_t> 1 << 40


cdef inline bint _bit(const uint8_t* bits, int64_t at) noexcept nogil:
    return bits[at >> 3] >> (at & 7) & 1


cdef inline bint _is_null(const MessageColumn* column, Py_ssize_t row) noexcept nogil:
    return column.valid != NULL and not _bit(column.valid, column.start + row)


cdef inline Octets _octets(const MessageColumn* column, Py_ssize_t row) noexcept nogil:
    cdef const int32_t* ends = <const int32_t*> column.values + column.start + row
    cdef Octets found
    if _is_null(column, row):
        found.at, found.size = NULL, 0
    else:
        found.at, found.size = column.text + ends[0], ends[1] - ends[0]
    return found


cdef bint _ascends(const int32_t* ends, int64_t first, int64_t rows) noexcept nogil:
    cdef int64_t i
    cdef bint falls = ends[first] < 0
    for i in range(first, first + rows):
        falls |= ends[i + 1] < ends[i]
    return not falls


cdef object _malformed(const char* name, str why):
    return ValueError(f"the column {name.decode()!r} is no valid Arrow array: {why}")


cdef int _fill(
    const char* name, const char* format, const ArrowSchema* schema, const ArrowArray* array, int64_t start,
    int64_t rows, MessageColumn* column
) except -1:
    """Fills in a column of `rows` rows of an array of that type, from its row `start` on."""
    cdef int64_t wanted = 3 if format[0] in (c"u", c"z") else 2
    if schema == NULL or array == NULL or schema.format == NULL:
        raise _malformed(name, "a part of it is missing")
    if strcmp(schema.format, format) != 0 or schema.dictionary != NULL:
        spelled = "a dictionary" if schema.dictionary != NULL else type_name(schema.format)
        raise TypeError(f"the column {name.decode()!r} is {spelled}, and not {type_name(format)}")
    if not (_counts(array.length) and _counts(array.offset)) or start + rows > array.length:
        raise _malformed(name, f"length {array.length}, offset {array.offset}; {start + rows} rows are needed")
    if array.n_buffers != wanted or array.buffers == NULL:
        raise _malformed(name, f"{array.n_buffers} buffers, not {wanted}")
    column.start = array.offset + start
    column.valid = <const uint8_t*> array.buffers[0] if array.null_count != 0 else NULL
    column.values = array.buffers[1]
    column.text = b""
    if rows == 0:
        return 0
    if column.values == NULL:
        raise _malformed(name, "its values are missing")
    if wanted == 3 or format[0] == c"+":
        if not _ascends(<const int32_t*> column.values, column.start, rows):
            raise _malformed(name, "its offsets do not ascend")
        if wanted == 3 and array.buffers[2] != NULL:
            column.text = <const char*> array.buffers[2]
        elif wanted == 3 and (<const int32_t*> column.values)[column.start + rows] != 0:
            raise _malformed(name, "its text is missing")
    return 0


cdef class MessageRows:
    """batch   a record batch with the columns of an archive's messages (docs/archive-format.md), by their names
    formats    of each row the format of a body without a content type (body_reader), octets; None: unknown

    TypeError, ValueError: it is none, or its columns are not these.
    """

    def __cinit__(self, object batch, object formats=None):
        cdef ArrowArray* array
        taken = take_arrow(batch)
        if taken is None or len(taken[1]) != 1:
            raise TypeError(f"messages are a record batch of Arrow, not {type(batch).__name__}")
        self.type_, rows = taken
        self.rows = rows[0]
        array = &(<ArrowRows> self.rows).array
        if (<ArrowType> self.type_).schema.format == NULL or <bytes> (<ArrowType> self.type_).schema.format != b"+s":
            raise TypeError("messages are a record batch of Arrow, and not one array")
        if array.offset != 0 or not _counts(array.length) or array.null_count > 0:
            raise ValueError(f"a record batch has {array.length} rows from {array.offset} on, null {array.null_count}")
        if array.n_children != (<ArrowType> self.type_).schema.n_children:
            raise ValueError(f"a record batch has {array.n_children} columns, and its schema differs")
        self.count = array.length
        self._take(b"timestamp", b"tsu:UTC", &self.timestamp)
        self._take(b"topic", b"u", &self.topic)
        self._take(b"value", b"z", &self.value)
        self._take(b"client", b"u", &self.client)
        self._take(b"syntax", b"u", &self.syntax)
        self._take(b"qos", b"c", &self.qos)
        self._take(b"retain", b"b", &self.retain)
        self._take(b"content_type", b"u", &self.content_type)
        self._take(b"headers", b"+l", &self.headers)
        self._take_headers()
        self.has_formats = formats is not None
        if self.has_formats:
            self.formats = formats
            if self.formats.shape[0] != self.count:
                raise ValueError(f"formats of {self.formats.shape[0]} bodies, and there are {self.count}")

    def __len__(self):
        return self.count

    cdef int _take(self, const char* name, const char* format, MessageColumn* column) except -1:
        cdef const ArrowSchema* schema = &(<ArrowType> self.type_).schema
        cdef const ArrowArray* array = &(<ArrowRows> self.rows).array
        cdef int64_t place = _place(schema, name)
        if place < 0:
            raise ValueError(f"messages have a column {name.decode()!r}, and these have none")
        return _fill(name, format, schema.children[place], array.children[place], 0, self.count, column)

    cdef int _take_headers(self) except -1:
        """The pairs that the lists are of: a struct of names and contents."""
        cdef int64_t place = _place(&(<ArrowType> self.type_).schema, b"headers"), first, rows, name, content
        cdef const ArrowSchema* schema = (<ArrowType> self.type_).schema.children[place]
        cdef const ArrowArray* array = (<ArrowRows> self.rows).array.children[place]
        cdef const int32_t* ends = <const int32_t*> self.headers.values
        if schema.n_children != 1 or array.n_children != 1 or schema.children[0] == NULL or array.children[0] == NULL:
            raise _malformed(b"headers", "a part of it is missing")
        schema, array = schema.children[0], array.children[0]
        name, content = _place(schema, b"key"), _place(schema, b"value")
        if schema.format == NULL or strcmp(schema.format, b"+s") != 0 or name < 0 or content < 0 \
                or array.n_children != schema.n_children:
            raise TypeError("the column 'headers' is no list of keys and values")
        if array.null_count > 0 or not _counts(array.offset) or not _counts(array.length):
            raise _malformed(b"headers", f"length {array.length}, offset {array.offset}, {array.null_count} nulls")
        first = ends[self.headers.start] if self.count != 0 else 0
        rows = ends[self.headers.start + self.count] - first if self.count != 0 else 0
        if first + rows > array.length:
            raise _malformed(b"headers", f"it has {array.length} pairs, and {first + rows} are needed")
        first += array.offset
        _fill(b"headers.key", b"u", schema.children[name], array.children[name], first, rows, &self.names)
        _fill(b"headers.value", b"z", schema.children[content], array.children[content], first, rows, &self.contents)
        if self.count != 0:  # a list's bounds count from the struct's beginning
            self.names.start -= ends[self.headers.start]
            self.contents.start -= ends[self.headers.start]
        return 0

    cdef int format(self, Py_ssize_t row) noexcept nogil:
        """The format of a body, by its content type, or by `formats` without one."""
        cdef Octets kind = _octets(&self.content_type, row)
        if kind.at != NULL:
            return format_of(kind.at, kind.size)
        return self.formats[row] if self.has_formats else BODY_UNKNOWN


cdef int64_t _place(const ArrowSchema* schema, const char* name) noexcept:
    """Of the child of that name; -1: there is no such."""
    cdef int64_t place
    for place in range(schema.n_children):
        if schema.children != NULL and schema.children[place] != NULL and schema.children[place].name != NULL \
                and strcmp(schema.children[place].name, name) == 0:
            return place
    return -1


# ---- fields ------------------------------------------------------------------------------------------

cdef class MessageReader:
    """attributes  that are asked for
    counts         where bodies are counted
    """

    def __cinit__(self, Attributes attributes not None, BodyCounts counts not None):
        self.attributes = attributes
        self.fields = Fields(attributes)
        self.body = BodyReader(attributes, counts)

    def read_row(self, MessageRows rows not None, Py_ssize_t row):
        """The fields of a row. They are the reader's own: the next row overwrites them. IndexError: there is none."""
        if not 0 <= row < rows.count:
            raise IndexError(row)
        self.read(rows, row)
        return self.fields

    cdef void read(self, MessageRows rows, Py_ssize_t row) noexcept nogil:
        cdef Octets value
        cdef int format
        self.fields.clear()
        if self.attributes.has_below(MESSAGE_ROOT):
            self._read_message(rows, row)
        if self.attributes.has_below(HEADERS_ROOT):
            self._read_headers(rows, row)
        if self.attributes.has_below(PAYLOAD_ROOT):
            format = rows.format(row)
            if format != BODY_UNKNOWN:
                value = _octets(&rows.value, row)
                self.body.read(self.fields, <const uint8_t*> value.at, value.size, format)

    cdef void _read_message(self, MessageRows rows, Py_ssize_t row) noexcept nogil:
        cdef Octets found
        cdef int number = self.attributes.message(MESSAGE_BYTES)
        if number >= 0:
            found = _octets(&rows.value, row)
            field_integer(self.fields.set(number), found.size)
        number = self.attributes.message(MESSAGE_QOS)
        if number >= 0:
            field_integer(self.fields.set(number), (<const int8_t*> rows.qos.values)[rows.qos.start + row])
        number = self.attributes.message(MESSAGE_RETAIN)
        if number >= 0:
            field_boolean(self.fields.set(number), _bit(<const uint8_t*> rows.retain.values, rows.retain.start + row))
        number = self.attributes.message(MESSAGE_TIME)
        if number >= 0:
            field_float(
                self.fields.set(number),
                <double> (<const int64_t*> rows.timestamp.values)[rows.timestamp.start + row] / 1e6,
            )
        number = self.attributes.message(MESSAGE_CLIENT)
        if number >= 0:
            found = _octets(&rows.client, row)
            if found.size != 0:
                field_text(self.fields.set(number), FIELD_TEXT, found.at, <uint32_t> found.size)
        number = self.attributes.message(MESSAGE_CONTENT_TYPE)
        if number >= 0:
            found = _octets(&rows.content_type, row)
            if found.at != NULL:
                field_text(self.fields.set(number), FIELD_TEXT, found.at, <uint32_t> found.size)
        self._read_words(rows, row)

    cdef void _read_words(self, MessageRows rows, Py_ssize_t row) noexcept nogil:
        """As many as the topic has, the empty ones, too; the empty topic has none."""
        cdef Octets topic = _octets(&rows.topic, row), syntax = _octets(&rows.syntax, row)
        cdef char separator = c"/" if syntax.size == 4 and memcmp(syntax.at, b"mqtt", 4) == 0 else c"."
        cdef const char* word = topic.at
        cdef Field* field
        cdef Py_ssize_t i
        cdef int words = 0, number
        if topic.size != 0:
            for i in range(topic.size + 1):
                if i == topic.size or topic.at[i] == separator:
                    words += 1
                    number = self.attributes.word(words)
                    if number >= 0:
                        field = self.fields.set(number)
                        if is_text(<const uint8_t*> word, topic.at + i - word):
                            field_text(field, FIELD_TEXT, word, <uint32_t> (topic.at + i - word))
                        else:
                            field.kind = FIELD_OTHER
                    word = topic.at + i + 1
        number = self.attributes.message(MESSAGE_WORDS)
        if number >= 0:
            field_integer(self.fields.set(number), words)

    cdef void _read_headers(self, MessageRows rows, Py_ssize_t row) noexcept nogil:
        """Of each name the first that has a value: text without a type, or octets that no text is."""
        cdef const int32_t* ends = <const int32_t*> rows.headers.values + rows.headers.start + row
        cdef Octets name, content
        cdef int32_t pair
        cdef int number
        if _is_null(&rows.headers, row):
            return
        for pair in range(ends[0], ends[1]):
            name = _octets(&rows.names, pair)
            number = self.attributes.header(name.at, name.size)
            if not is_wanted(self.fields, number):
                continue
            content = _octets(&rows.contents, pair)
            if content.at == NULL:
                continue
            if is_text(<const uint8_t*> content.at, content.size):
                field_text(self.fields.set(number), FIELD_UNTYPED, content.at, <uint32_t> content.size)
            else:
                self.fields.set(number).kind = FIELD_OTHER
