# cython: language_level=3
"""The body of a plain CONNECT, in C: without a will, a user name, a password and properties, as most are.

Accepts nothing that codec.decode does not accept, and reads it alike: the tests compare the two for mutated packets.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memchr, memcmp

from fanlight_broker.wire.msgpack cimport is_utf8

cdef enum:
    NAME_SIZE = 6           # 3.1.2.1
    CLEAN_START = 0x02      # 3.1.2.4
    HEADER_SIZE = 10        # name, level, flags, Keep Alive
    V3 = 4
    V5 = 5

cdef const char* NAME = b"\0\4MQTT"


def plain_connect(bytes body not None):
    """Protocol Level, Clean Start, Keep Alive and Client Identifier. None: the codec is to look at it."""
    cdef const unsigned char* octets = <const unsigned char*> PyBytes_AS_STRING(body)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(body), at = HEADER_SIZE, size
    cdef int level
    if end < HEADER_SIZE or memcmp(octets, NAME, NAME_SIZE) != 0:
        return None
    level = octets[6]
    if octets[7] & ~CLEAN_START:
        return None
    if level == V5:
        if end == at or octets[at]:
            return None
        at += 1
    elif level != V3:
        return None
    if end - at < 2:
        return None
    size = octets[at] << 8 | octets[at + 1]
    at += 2
    if end - at != size or memchr(octets + at, 0, size) != NULL or not is_utf8(octets + at, size):
        return None
    return (level, octets[7] == CLEAN_START, octets[8] << 8 | octets[9],
            PyUnicode_DecodeUTF8(<const char*> octets + at, size, NULL))
