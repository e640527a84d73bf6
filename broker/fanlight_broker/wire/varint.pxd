# Integers in as few octets as they need: seven bits in each, the lowest first, and the eighth set in all but the last.
#
# MQTT calls it a Variable Byte Integer (1.5.5); records in memory and in the store have the same.

from libc.stdint cimport uint64_t

cdef inline char* put_varint(char* at, uint64_t value) noexcept nogil:
    """There is room for it: ten octets at most. Returns the place behind."""
    while value >= 0x80:
        at[0] = <char> (value & 0x7F | 0x80)
        value >>= 7
        at += 1
    at[0] = <char> value
    return at + 1
