# cython: language_level=3, annotation_typing=False
"""Arrow's C data interface: structs moved out of capsules, and released. Drawn in arrow.pxd."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.string cimport memset

NAMES = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64", "z": "binary", "Z": "large binary",
    "vz": "binary view", "u": "utf8", "U": "large utf8", "vu": "utf8 view", "+l": "list", "+L": "large list",
    "+vl": "list view", "+vL": "large list view", "+s": "struct", "+m": "map", "+r": "run-end encoded",
}  # fmt: skip
BEGINNINGS = {
    "d:": "decimal", "w:": "fixed-size binary", "td": "date", "tt": "time", "ts": "timestamp", "tD": "duration",
    "ti": "interval", "+w": "fixed-size list", "+u": "union",
}  # fmt: skip


cdef str type_name(const char* format):
    spelled = (<bytes> format).decode("utf-8", "backslashreplace")
    return NAMES.get(spelled) or BEGINNINGS.get(spelled[:2]) or repr(spelled)


cdef class ArrowType:
    def __dealloc__(self) -> None:
        if self.schema.release != NULL:
            self.schema.release(&self.schema)


cdef class ArrowRows:
    def __dealloc__(self) -> None:
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef class Stream:
    cdef ArrowArrayStream stream

    def __dealloc__(self) -> None:
        if self.stream.release != NULL:
            self.stream.release(&self.stream)

    cdef object failed(self, int status):
        cdef const char* reason = self.stream.get_last_error(&self.stream)
        said = "" if reason == NULL else (<bytes> reason).decode("utf-8", "backslashreplace")
        return ValueError(f"the Arrow stream failed with status {status}: {said}")

    cdef list rows(self, ArrowType type_):
        """All arrays; the type is filled in."""
        cdef ArrowRows next
        cdef list made = []
        cdef int status = self.stream.get_schema(&self.stream, &type_.schema)
        if status != 0:
            memset(&type_.schema, 0, sizeof(ArrowSchema))
            raise self.failed(status)
        while True:
            next = ArrowRows()
            status = self.stream.get_next(&self.stream, &next.array)
            if status != 0:
                memset(&next.array, 0, sizeof(ArrowArray))
                raise self.failed(status)
            if next.array.release == NULL:
                return made
            made.append(next)


cdef tuple take_arrow(object source):
    cdef ArrowType type_ = ArrowType()
    cdef ArrowRows rows
    cdef Stream stream
    cdef ArrowSchema* schema
    cdef ArrowArray* array
    cdef ArrowArrayStream* given
    if hasattr(source, "__arrow_c_array__"):
        pair = source.__arrow_c_array__()
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("__arrow_c_array__ returns a tuple of two capsules")
        schema = <ArrowSchema*> PyCapsule_GetPointer(pair[0], "arrow_schema")
        array = <ArrowArray*> PyCapsule_GetPointer(pair[1], "arrow_array")
        if schema.release == NULL or array.release == NULL:
            raise ValueError("the Arrow array was released already")
        rows = ArrowRows()
        type_.schema = schema[0]
        schema.release = NULL
        rows.array = array[0]
        array.release = NULL
        return type_, [rows]
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    capsule = source.__arrow_c_stream__()
    given = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if given.release == NULL:
        raise ValueError("the Arrow stream was released already")
    stream = Stream()
    stream.stream = given[0]
    given.release = NULL
    return type_, stream.rows(type_)
