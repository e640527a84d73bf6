# cython: language_level=3, annotation_typing=False, cdivision=True, boundscheck=False, wraparound=False
"""JSON objects to columns: of each row of octets the values of some keys, where it is as it should be.

    keys   symbol TEXT   close REAL   volume INTEGER   venue PRESENCE

    {"symbol": "A", "close": 1.5, "volume": 7}      A     1.5   7      absent
    {"symbol": "B", "close": 2, "venue": ["x"]}     B     2.0   null   ARRAY
    {"symbol": "C", "close": "2"}                   odd: a text is no REAL

A row is odd where its octets are no JSON object (RFC 8259, as json_body has it), where a value is not of its key's
kind, where a key is there twice, has an escape or is none of those here (unless its value is null), and where what it
has is larger than is read here. Of an odd row nothing is known: whoever asks reads it otherwise, and finds out why.
Drawn in json_columns.pxd.

Objects of one publisher have their keys in one order. So each key is compared with the one that was behind the last
before; one that is another is looked up in a table.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free

import numpy as np

from matchcore.bodies cimport BodyFault
from matchcore.fields cimport FIELD_ABSENT, FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, Field
from matchcore.json_text cimport (
    JsonString, decode_string, json_open_locale, pass_blanks, pass_container, take_name, take_scalar,
)

__all__ = ["KEYS_MOST", "KINDS", "PRESENT", "JsonColumns"]

if not json_open_locale():
    raise MemoryError("no room for the C locale")

cdef enum:
    # What a key's values are.
    BOOLEAN = 0
    INTEGER                # of 64 bits, written without a point
    REAL                   # a number
    TEXT
    PRESENCE               # anything: what it is, one of PRESENT, and not the value

    MOST = 4_096           # keys
    SLOTS = 4 * MOST       # a power of two
    LEVELS = 8             # arrays and objects inside each other that are passed over
    PASSED_MOST = 4_096    # octets of one of them: no number is as long as Python's largest

#: Kinds of keys, by number; and what a PRESENCE has for a value: 0 is absent or null.
KINDS = ("boolean", "integer", "real", "text", "presence")
PRESENT = (None, "boolean", "number", "string", "array", "object")
KEYS_MOST = MOST

cdef inline uint32_t _hash(const char* name, Py_ssize_t size) noexcept nogil:
    cdef uint32_t hash = 2166136261
    cdef Py_ssize_t i
    for i in range(size):
        hash = (hash ^ <uint8_t> name[i]) * 16777619
    return hash ^ hash >> 15


cdef inline void _set(uint8_t* bits, int64_t at) noexcept nogil:
    bits[at >> 3] |= <uint8_t> (1 << (at & 7))


cdef inline int _number(JsonColumns self, const JsonString* name, int next) noexcept nogil:
    """Of the key of that name, which may be `next`; -1: there is no such."""
    cdef const JsonKey* key
    cdef uint32_t slot
    if next < self.count:
        key = &self.keys[next]
        if key.size == name.size and memcmp(key.name, name.at, name.size) == 0:
            return next
    slot = _hash(<const char*> name.at, name.size) & (SLOTS - 1)
    while self.slots[slot] != 0:
        key = &self.keys[self.slots[slot] - 1]
        if key.size == name.size and memcmp(key.name, name.at, name.size) == 0:
            return self.slots[slot] - 1
        slot = (slot + 1) & (SLOTS - 1)
    return -1


cdef inline const uint8_t* _passed(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Behind the null of a key that is not here; NULL: it is no null."""
    return at + 4 if end - at >= 4 and memcmp(at, b"null", 4) == 0 else NULL


cdef inline const uint8_t* _value(
    JsonKey* key, const uint8_t* at, const uint8_t* end, const uint8_t* text, int64_t row
) noexcept nogil:
    """Behind the value of a key, which is kept; NULL: it is not of its kind."""
    cdef const uint8_t* begin = at
    cdef JsonString string
    cdef Field found
    cdef BodyFault fault
    cdef uint8_t kind = key.kind
    if at[0] == c"{" or at[0] == c"[":
        if kind != PRESENCE:
            return NULL
        at = pass_container(at, end, LEVELS, &fault)
        key.present[row] = 5 if begin[0] == c"{" else 4
        return at if at is not NULL and at - begin <= PASSED_MOST else NULL
    found.kind = FIELD_ABSENT
    string.at = NULL
    at = take_scalar(at, end, &found, &string)
    if at is NULL:
        return NULL
    if string.at is not NULL:
        if kind == TEXT:
            key.integers[2 * row] = string.at - text
            key.integers[2 * row + 1] = -1 - string.size if string.escaped else string.size
            _set(key.valid, row)
            return at
        if kind == PRESENCE:
            key.present[row] = 3
            return at
        return NULL
    if found.kind == FIELD_ABSENT:
        # null, or a number that no float is as large as.
        return at if begin[0] == c"n" else NULL
    if kind == REAL and found.kind == FIELD_FLOAT:
        key.reals[row] = found.real
    elif kind == REAL and found.kind == FIELD_INTEGER:
        key.reals[row] = <double> found.integer
    elif kind == INTEGER and found.kind == FIELD_INTEGER:
        key.integers[row] = found.integer
    elif kind == BOOLEAN and found.kind == FIELD_BOOLEAN:
        if begin[0] == c"t":
            _set(key.bits, row)
    elif kind == PRESENCE:
        key.present[row] = 1 if found.kind == FIELD_BOOLEAN else 2
        return at
    else:
        return NULL
    _set(key.valid, row)
    return at


cdef class JsonColumns:
    """keys   different ones, in UTF-8; KEYS_MOST at most
    kinds     of each a number of KINDS
    """

    def __cinit__(self, object keys, object kinds):
        cdef int number
        cdef uint32_t slot
        cdef bytes name
        self.names = tuple(keys)
        kinds = bytes(kinds)
        if len(self.names) != len(kinds) or len(self.names) > MOST or len(set(self.names)) < len(self.names):
            raise ValueError(f"{len(self.names)} keys and {len(kinds)} kinds: as many of both, and {MOST} at most")
        if kinds and max(kinds) > PRESENCE:
            raise ValueError(f"{max(kinds)} is no kind: {PRESENCE} is the last")
        self.count = <int> len(self.names)
        self.keys = <JsonKey*> PyMem_Calloc(self.count or 1, sizeof(JsonKey))
        self.slots = <uint16_t*> PyMem_Calloc(SLOTS, sizeof(uint16_t))
        if self.keys == NULL or self.slots == NULL:
            raise MemoryError
        for number in range(self.count):
            name = self.names[number]
            self.keys[number].name = PyBytes_AS_STRING(name)
            self.keys[number].size = PyBytes_GET_SIZE(name)
            self.keys[number].kind = kinds[number]
            slot = _hash(self.keys[number].name, self.keys[number].size) & (SLOTS - 1)
            while self.slots[slot] != 0:
                slot = (slot + 1) & (SLOTS - 1)
            self.slots[slot] = <uint16_t> (number + 1)

    def __dealloc__(self):
        PyMem_Free(self.keys)
        PyMem_Free(self.slots)

    def read(self, const int32_t[::1] ends not None, const uint8_t[::1] data not None):
        """([values, ...], odd) of the rows that lie in `data` between each two of `ends`.

        odd is an array of booleans. values, by the kind, with bits of validity first, as Arrow has them:
            BOOLEAN (valid, bits)   INTEGER, REAL (valid, array of 64 bits)   TEXT (valid, offsets of 32 bits, octets)
            PRESENCE (array of 8 bits,)
        A row is read without the GIL. ValueError: `ends` do not ascend within `data`. It is not reentrant.
        """
        cdef Py_ssize_t rows = ends.shape[0] - 1
        cdef int64_t row
        cdef bint falls = rows < 0 or ends[0] < 0
        cdef const uint8_t* text = &data[0] if data.shape[0] else NULL
        cdef uint8_t[::1] odd
        cdef list made
        for row in range(rows):
            falls |= ends[row + 1] < ends[row]
        if falls or ends[rows] > data.shape[0]:
            raise ValueError(f"offsets of {rows} rows do not ascend within {data.shape[0]} octets")
        strange = np.zeros(rows, np.uint8)
        odd = strange
        made = [self._room(number, rows) for number in range(self.count)]
        if rows:
            with nogil:
                for row in range(rows):
                    if not self._row(text, ends[row], ends[row + 1], row):
                        odd[row] = 1
        for number in range(self.count):
            if self.keys[number].kind == TEXT:
                made[number] = self._texts(number, made[number], text, odd)
        return made, strange.view(np.bool_)

    cdef tuple _room(self, int number, Py_ssize_t rows):
        """Arrays for the values of a key, which keep their memory. All are absent so far."""
        cdef JsonKey* key = &self.keys[number]
        cdef uint8_t[::1] octets
        cdef int64_t[::1] integers
        cdef double[::1] reals
        key.row = -1
        if key.kind == PRESENCE:
            present = np.zeros(rows or 1, np.uint8)
            octets = present
            key.present = &octets[0]
            return (present[:rows],)
        valid = np.zeros((rows + 7 >> 3) or 1, np.uint8)
        octets = valid
        key.valid = &octets[0]
        if key.kind == BOOLEAN:
            values = np.zeros_like(valid)
            octets = values
            key.bits = &octets[0]
        elif key.kind == REAL:
            values = np.zeros(rows or 1, np.float64)
            reals = values
            key.reals = &reals[0]
        else:
            values = np.zeros((2 * rows if key.kind == TEXT else rows) or 1, np.int64)
            integers = values
            key.integers = &integers[0]
        return valid, values

    cdef bint _row(self, const uint8_t* text, int64_t start, int64_t stop, int64_t row) noexcept nogil:
        """Read a row; False: it is odd."""
        cdef const uint8_t* at = text + start
        cdef const uint8_t* end = text + stop
        cdef JsonString name
        cdef int next = 0, number
        cdef JsonKey* key
        at = pass_blanks(at, end)
        if at >= end or at[0] != c"{":
            return False
        at = pass_blanks(at + 1, end)
        if at < end and at[0] == c"}":
            return pass_blanks(at + 1, end) == end
        while True:
            at = take_name(at, end, &name)
            if at is NULL or name.escaped:
                return False
            number = _number(self, &name, next)
            if number < 0:
                at = _passed(at, end)
            else:
                next = number + 1
                key = &self.keys[number]
                if key.row == row:
                    return False
                key.row = row
                at = _value(key, at, end, text, row)
            if at is NULL:
                return False
            at = pass_blanks(at, end)
            if at >= end:
                return False
            if at[0] == c"}":
                return pass_blanks(at + 1, end) == end
            if at[0] != c",":
                return False
            at = pass_blanks(at + 1, end)

    cdef tuple _texts(self, int number, tuple room, const uint8_t* text, uint8_t[::1] odd):
        """The texts of a key, one behind the other; a row with half of a surrogate pair becomes odd."""
        cdef JsonKey* key = &self.keys[number]
        cdef Py_ssize_t rows = odd.shape[0], size
        cdef int64_t row, total = 0
        cdef int32_t[::1] ends
        cdef uint8_t[::1] octets
        cdef uint8_t* into
        cdef JsonString string
        for row in range(rows):
            size = key.integers[2 * row + 1]
            total += size if size >= 0 else -1 - size
        offsets = np.empty(rows + 1, np.int32)
        ends = offsets
        characters = np.empty(total or 1, np.uint8)
        octets = characters
        into = &octets[0]
        ends[0] = 0
        with nogil:
            for row in range(rows):
                size = key.integers[2 * row + 1]
                if size >= 0:
                    memcpy(into, text + key.integers[2 * row], size)
                else:
                    string.at, string.size = text + key.integers[2 * row], -1 - size
                    size = decode_string(&string, <char*> into)
                    if size < 0:
                        odd[row] = 1
                        size = 0
                into += size
                ends[row + 1] = <int32_t> (into - &octets[0])
        return room[0], offsets, characters[:ends[rows]]
