# cython: language_level=3
"""Names of what the broker knows of a message, `$qos` and `$word[2]`, as Attributes has them: a size, then bytes."""

from libc.string cimport strlen

from matchcore.selector import MESSAGE

cdef list _KNOWN_BYTES = [name.encode() for name in MESSAGE]  # of MESSAGE_WORDS and so on (fields.pxd), in their order
cdef const char* _KNOWN[16]
cdef int _COUNT = <int> len(MESSAGE)
for _at, _name in enumerate(_KNOWN_BYTES):
    _KNOWN[<int> _at] = <const char*> (<bytes> _name)


cdef int known_name(const uint32_t* block) noexcept nogil:
    """Which of MESSAGE_WORDS and so on a name is, -1: none."""
    cdef int n
    for n in range(_COUNT):
        if is_name(block, _KNOWN[n], strlen(_KNOWN[n])):
            return n
    return -1


cdef int index_name(const uint32_t* block) noexcept nogil:
    """The number that a name spells, as 7 or 128; -1: none."""
    cdef const char* digits = <const char*> (block + 1)
    cdef uint32_t i
    cdef int n = 0
    if not 1 <= block[0] <= 3 or digits[0] == c"0":
        return -1
    for i in range(block[0]):
        if not c"0" <= digits[i] <= c"9":
            return -1
        n = 10 * n + digits[i] - c"0"
    return n
