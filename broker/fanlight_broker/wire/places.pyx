# cython: language_level=3, annotation_typing=False
"""Many ids of one part of a table, of which the first are taken and the rest is kept as a bit each. See Cursor."""

from cpython cimport array

__all__ = ["split_ids", "take_ids"]

cdef array.array UINT32 = array.array("I")


def split_ids(array.array ids not None, unsigned int first, Py_ssize_t most, Py_ssize_t size):
    """(the first `most` ids; the rest as bits, b"" if there is none).

    `ids` ascend from `first` on and are below `first + size`; `size` is a multiple of 8. Raises ValueError otherwise.
    """
    cdef Py_ssize_t count = len(ids), i
    cdef unsigned int place
    cdef unsigned char* octets
    if ids.typecode != "I":
        raise ValueError("ids are an array of I")
    for i in range(count):
        if ids.data.as_uints[i] < first or ids.data.as_uints[i] - first >= <size_t> size:
            raise ValueError(f"id {ids.data.as_uints[i]} is not among the {size} from {first} on")
    if count <= most:
        return ids, b""
    bits = bytearray(size // 8)
    octets = bits
    for i in range(most, count):
        place = ids.data.as_uints[i] - first
        octets[place >> 3] |= 1 << (place & 7)
    return ids[:most], bytes(bits)


def take_ids(const unsigned char[::1] bits not None, unsigned int first, Py_ssize_t most):
    """(the first `most` ids of these bits; the bits that are left, b"" if none is)."""
    cdef Py_ssize_t octet, found = 0
    cdef int bit
    cdef unsigned char* left
    cdef bint more = False
    cdef array.array ids = array.clone(UINT32, most, False)
    rest = bytearray(bits)
    left = rest
    for octet in range(bits.shape[0]):
        if left[octet] == 0:
            continue
        if found == most:
            more = True
            break
        for bit in range(8):
            if left[octet] >> bit & 1 and found < most:
                ids.data.as_uints[found] = first + <unsigned int> (8 * octet + bit)
                found += 1
                left[octet] &= <unsigned char> ~(1 << bit)
        more = left[octet] != 0
        if more:
            break
    array.resize(ids, found)
    return ids, bytes(rest) if more else b""
