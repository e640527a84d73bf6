# How topics and filters are written: text -> tokens.
#
#     "forex.*.#"   ->   LITERAL forex | ONE | MANY          (AMQP: words between dots)
#     "site/+/#"    ->   LITERAL site  | ONE | MANY          (MQTT: levels between slashes)
#
# A token points into the text it was read from and lives no longer than that. Whoever scans gives an
# array of `limits.words` tokens; the grammar allocates nothing and cannot fail but by a Fault.

from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void* PyUnicode_1BYTE_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum Syntax:
    AMQP = 0
    MQTT = 1

cdef enum TokenKind:
    LITERAL = 0
    ONE = 1      # exactly one word: `*` in AMQP, `+` in MQTT
    MANY = 2     # zero or more words: `#`


cdef struct Token:
    const char* start
    uint64_t hash      # of the word as written
    uint64_t low       # the word itself as two numbers, if it has up to 16 bytes (hashing.pxd)
    uint64_t high
    uint32_t size      # bytes
    uint32_t kind      # TokenKind


cdef inline char separator_of(uint32_t syntax) noexcept nogil:
    return c"." if syntax == AMQP else c"/"


cdef struct Limits:
    uint32_t words
    uint32_t bytes


cdef enum FaultKind:
    NO_FAULT = 0
    EMPTY
    TOO_MANY_BYTES
    TOO_MANY_WORDS
    WILDCARD_IN_TOPIC
    WILDCARD_NOT_WHOLE
    MANY_NOT_LAST
    NUL_BYTE


cdef struct Fault:
    uint32_t kind
    size_t position    # byte offset, from 0


# A str or bytes as bytes. The owner of the bytes is the object itself.
cdef struct View:
    const char* start
    size_t size
    bint is_str


# Number of tokens, or -1 with `fault` filled in.
cdef int scan_topic(
    const char* text, size_t size, uint32_t syntax, const Limits* limits, Token* out, Fault* fault
) noexcept nogil
cdef int scan_filter(
    const char* text, size_t size, uint32_t syntax, const Limits* limits, Token* out, Fault* fault
) noexcept nogil

# In place, and the new number of tokens: in each run of wildcards that holds a MANY, all ONEs first,
# then one MANY (`#.*.#.b` becomes `*.#.b`). The filters that mean the same come out the same.
cdef int canonical(Token* tokens, int count) noexcept nogil

cdef int take_syntax(object syntax) except -1
cdef int take_text(object text, View* view, uint32_t syntax, bint is_filter) except -1

# The same, the usual cases without a call: a literal of the caller's, a str in ASCII.
cdef inline int syntax_of(object syntax) except -1:
    if syntax is "amqp":
        return AMQP
    if syntax is "mqtt":
        return MQTT
    return take_syntax(syntax)


cdef inline int view_of(object text, View* view, uint32_t syntax, bint is_filter) except -1:
    if PyUnicode_Check(text) and PyUnicode_IS_COMPACT_ASCII(text):
        view.start = <const char*> PyUnicode_1BYTE_DATA(text)
        view.size = <size_t> PyUnicode_GET_LENGTH(text)
        view.is_str = True
        return 0
    return take_text(text, view, syntax, is_filter)


cdef int take_limits(object max_words, object max_bytes, Limits* limits) except -1
cdef object syntax_name(uint32_t syntax)
cdef object topic_error(const View* view, uint32_t syntax, const Limits* limits, const Fault* fault, object row)
cdef object filter_error(const View* view, uint32_t syntax, const Limits* limits, const Fault* fault)
