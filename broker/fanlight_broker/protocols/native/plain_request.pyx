# cython: language_level=3
"""The plain forms of SUBSCRIBE and UNSUBSCRIBE, in C; the tests compare with frames.parse. Drawn in
plain_request.pxd.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

from fanlight_broker.wire.msgpack cimport (
    NO_FAULT, MsgpackCursor, array_header, is_nil, map_header, octets, unsigned_integer,
)

cdef enum:    # docs/native-protocol.md, section 3
    SUBSCRIBE = 6
    UNSUBSCRIBE = 8
    SYNTAX_MAX = 1
    U32_MAX = 0xFFFFFFFF


def plain_request(bytes body not None):
    """(type, request, subscription, filter, syntax); in an UNSUBSCRIBE b"" and 0. None: the codec is to look at it."""
    cdef MsgpackCursor cursor
    cdef uint32_t count = 0
    cdef uint64_t kind = 0, request = 0, number = 0, syntax = 0
    cdef const unsigned char* start = NULL
    cdef const unsigned char* key = NULL
    cdef Py_ssize_t size = 0, key_size = 0
    cdef bint is_str = False, asked
    cursor.at = <const unsigned char*> PyBytes_AS_STRING(body)
    cursor.end = cursor.at + PyBytes_GET_SIZE(body)
    if array_header(&cursor, &count) != NO_FAULT or unsigned_integer(&cursor, &kind) != NO_FAULT:
        return None
    if not (kind == SUBSCRIBE and (count == 4 or count == 5)) and not (kind == UNSUBSCRIBE and count == 3):
        return None
    asked = not is_nil(&cursor)
    if asked and (unsigned_integer(&cursor, &request) != NO_FAULT or request > U32_MAX):
        return None
    if unsigned_integer(&cursor, &number) != NO_FAULT or number > U32_MAX:
        return None
    if kind == SUBSCRIBE and octets(&cursor, True, True, &start, &size, &is_str) != NO_FAULT:
        return None
    if count == 5:
        if map_header(&cursor, &count) != NO_FAULT or count > 1:
            return None
        if count == 1 and (
            octets(&cursor, True, False, &key, &key_size, &is_str) != NO_FAULT or key_size != 6
            or memcmp(key, b"syntax", 6) != 0
            or unsigned_integer(&cursor, &syntax) != NO_FAULT or syntax > SYNTAX_MAX
        ):
            return None
    if cursor.at != cursor.end:
        return None
    return kind, request if asked else None, number, PyBytes_FromStringAndSize(<const char*> start, size), syntax
