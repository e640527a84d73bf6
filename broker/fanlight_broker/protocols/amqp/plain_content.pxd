# A content header that asks for nothing of its own, read where it lies: see plain_content.pyx.

from libc.stdint cimport uint32_t, uint64_t

cdef struct PlainContent:
    uint64_t body_size
    const unsigned char* encoded      # flags and properties
    Py_ssize_t encoded_size
    uint32_t priority
    bint persistent
    bint replies                      # it has a reply-to

cdef bint read_plain(const unsigned char* at, Py_ssize_t size, PlainContent* content) noexcept
