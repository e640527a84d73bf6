# Walking over msgpack without decoding it (https://github.com/msgpack/msgpack/blob/master/spec.md).
#
# Every function takes a cursor and moves it past one value; it reads only between `at` and `end`.

from libc.stdint cimport uint32_t, uint64_t

cdef struct MsgpackCursor:
    const unsigned char* at
    const unsigned char* end

cdef enum Fault:
    NO_FAULT = 0
    TRUNCATED = 1         # a value continues behind the end
    TOO_DEEP = 2
    EXTENSION = 3         # an extension type, or the octet that is never used
    BAD_UTF8 = 4          # a str that is not UTF-8
    WRONG_TYPE = 5

cdef Fault skip(MsgpackCursor* cursor, int depth) noexcept nogil
cdef Fault array_header(MsgpackCursor* cursor, uint32_t* count) noexcept nogil
cdef Fault map_header(MsgpackCursor* cursor, uint32_t* count) noexcept nogil
cdef Fault octets(MsgpackCursor* cursor, bint allow_str, bint allow_bin, const unsigned char** start, Py_ssize_t* size,
                  bint* is_str) noexcept nogil
cdef Fault unsigned_integer(MsgpackCursor* cursor, uint64_t* value) noexcept nogil
cdef bint is_nil(MsgpackCursor* cursor) noexcept nogil
cdef bint is_utf8(const unsigned char* at, Py_ssize_t size) noexcept nogil
