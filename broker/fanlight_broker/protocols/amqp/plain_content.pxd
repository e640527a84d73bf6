# A content header that asks for nothing of its own, read where it lies: see plain_content.pyx.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef struct PlainContent:
    uint64_t body_size
    const unsigned char* encoded      # flags and properties
    Py_ssize_t encoded_size
    const unsigned char* headers      # the entries of the table, without its length; not set if there are none
    Py_ssize_t headers_size
    const unsigned char* user         # the user-id; NULL: there is none
    Py_ssize_t user_size
    int64_t lifetime                  # milliseconds of its expiration; -1: it has none
    uint32_t priority
    bint persistent
    bint replies                      # it has a reply-to

cdef bint text_in_properties(
    const unsigned char* at, const unsigned char* end, const char* name, Py_ssize_t name_size, const char** value,
    Py_ssize_t* size) noexcept
cdef bint read_plain(const unsigned char* at, Py_ssize_t size, PlainContent* content) noexcept
