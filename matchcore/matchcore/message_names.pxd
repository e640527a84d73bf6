# The names of `$qos` and `$word[2]`, as Attributes has them: a block with the size, then the bytes.

from libc.stdint cimport uint32_t
from libc.string cimport memcmp


cdef inline bint is_name(const uint32_t* block, const char* name, size_t size) noexcept nogil:
    return block[0] == size and memcmp(block + 1, name, size) == 0


# Which of MESSAGE_WORDS and so on (fields.pxd) a name is, -1: none.
cdef int known_name(const uint32_t* block) noexcept nogil

# The number that a name spells, as 7 or 128; -1: none.
cdef int index_name(const uint32_t* block) noexcept nogil
