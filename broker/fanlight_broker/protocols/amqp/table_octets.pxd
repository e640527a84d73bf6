# Field tables (4.2.5.5) walked through where they lie, without making values of them: see table_octets.pyx.
#
#   | size (4) | name | letter value | name | letter value | ...        name: a short string, its length in front

from libc.stdint cimport uint32_t, uint64_t

cdef inline uint32_t uint32_at(const unsigned char* at) noexcept:
    return <uint32_t> at[0] << 24 | <uint32_t> at[1] << 16 | <uint32_t> at[2] << 8 | at[3]

cdef inline uint64_t uint64_at(const unsigned char* at) noexcept:
    return <uint64_t> uint32_at(at) << 32 | uint32_at(at + 4)

cdef Py_ssize_t short_string_size(const unsigned char* at, const unsigned char* end) noexcept
cdef Py_ssize_t value_size(const unsigned char* at, const unsigned char* end, int depth) noexcept
cdef Py_ssize_t nested_size(const unsigned char* at, const unsigned char* end, bint named, int depth) noexcept
