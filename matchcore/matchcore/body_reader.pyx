# cython: language_level=3
"""The fields of a body in msgpack or JSON. Drawn in body_reader.pxd; bodies.pxd has what holds of all bodies."""

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from matchcore.bodies cimport BODY_BYTES_MOST, SOUND, TOO_DEEP, BodyFault, Guesses
from matchcore.fields cimport FIELD_ABSENT, PAYLOAD_ROOT, Attributes, Fields
from matchcore.json_body cimport read_json
from matchcore.msgpack_body cimport read_msgpack

__all__ = ["BODY_FORMATS", "BodyCounts", "BodyReader", "body_format"]

BODY_FORMATS = {"msgpack": BODY_MSGPACK, "json": BODY_JSON}


cdef inline uint8_t lower(uint8_t character) noexcept nogil:
    return character | 0x20 if 0x41 <= character <= 0x5A else character


cdef bint is_same(const char* text, const char* name, Py_ssize_t size) noexcept nogil:
    """Whether a text is this name, which is in small letters, in whatever case."""
    cdef Py_ssize_t i
    for i in range(size):
        if lower(<uint8_t> text[i]) != <uint8_t> name[i]:
            return False
    return True


cdef int format_of(const char* content_type, Py_ssize_t size) noexcept nogil:
    """The format that a media type names: application/json and all with +json, application/msgpack and the names that
    it had before it was registered. Parameters do not matter (RFC 9110, section 8.3.1; RFC 6839, section 3.1).
    """
    cdef Py_ssize_t i
    for i in range(size):
        if content_type[i] == c";":
            size = i
            break
    while size and (content_type[size - 1] == c" " or content_type[size - 1] == c"\t"):
        size -= 1
    if size < 16 or not is_same(content_type, b"application/", 12):
        return BODY_UNKNOWN
    content_type += 12
    size -= 12
    if size == 4:
        return BODY_JSON if is_same(content_type, b"json", 4) else BODY_UNKNOWN
    if size == 7 and is_same(content_type, b"msgpack", 7):
        return BODY_MSGPACK
    if size == 9 and is_same(content_type, b"x-msgpack", 9):
        return BODY_MSGPACK
    if size == 11 and is_same(content_type, b"vnd.msgpack", 11):
        return BODY_MSGPACK
    return BODY_JSON if size > 5 and is_same(content_type + size - 5, b"+json", 5) else BODY_UNKNOWN


def body_format(str content_type not None):
    """The number of the format that a content type names, 0: none that can be read."""
    cdef Py_ssize_t size = 0
    cdef const char* text = PyUnicode_AsUTF8AndSize(content_type, &size)
    return format_of(text, size)


@cython.final
cdef class BodyCounts:
    """How many bodies were read, and were not."""


cdef void take_counts(BodyCounts to, BodyCounts counts) noexcept:
    to.decoded += counts.decoded
    to.malformed += counts.malformed
    to.too_large += counts.too_large
    counts.decoded = counts.malformed = counts.too_large = 0


cdef class BodyReader:
    """attributes  that its selectors ask for
    counts         where bodies are counted
    """

    def __cinit__(self, Attributes attributes not None, BodyCounts counts not None):
        self.attributes = attributes
        self.counts = counts
        self.scratch.data = <char*> malloc(BODY_BYTES_MOST)
        if self.scratch.data is NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.scratch.data)

    cdef void read(self, Fields fields, const uint8_t* body, Py_ssize_t size, int format) noexcept nogil:
        """Its fields, all that are asked for, or none."""
        cdef uint32_t before = fields.count, missing = self.attributes.asked[PAYLOAD_ROOT], number
        cdef BodyFault fault
        if size > BODY_BYTES_MOST:
            self.counts.too_large += 1
            return
        self.scratch.used = self.guesses.at = 0
        if self.guesses.changes != self.attributes.changes:
            memset(&self.guesses, 0, sizeof(Guesses))
            self.guesses.changes = self.attributes.changes
        if format == BODY_MSGPACK:
            fault = read_msgpack(body, size, self.attributes, fields, missing, &self.guesses)
        else:
            fault = read_json(body, size, self.attributes, fields, missing, &self.guesses, &self.scratch)
        if fault == SOUND:
            self.counts.decoded += 1
            return
        if fault == TOO_DEEP:
            self.counts.too_large += 1
        else:
            self.counts.malformed += 1
        while fields.count > before:
            fields.count -= 1
            number = fields.numbers[fields.count]
            fields.at[number].kind = FIELD_ABSENT
            fields.present[number >> 6] &= ~(<uint64_t> 1 << (number & 63))
