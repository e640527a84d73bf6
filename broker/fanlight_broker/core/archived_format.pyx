# cython: language_level=3
"""Messages out of the archive, for selectors. Drawn in archived_format.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

from fanlight_broker.wire.message cimport Format, HeaderWalk, Message
from fanlight_broker.wire.msgpack cimport is_utf8

__all__ = ["ARCHIVED", "ArchivedFormat", "archived_message"]

cdef enum:
    NOTHING = 0xFFFFFFFF       # in place of a size: there is no content type
    TEXT = 0
    OCTETS = 1                 # encoded as msgpack's bin 32, which selectors know as present


cdef inline uint32_t take_size(HeaderWalk* walk) noexcept nogil:
    cdef uint32_t size
    memcpy(&size, walk.at, sizeof(size))
    walk.at += sizeof(size)
    return size


cdef class ArchivedFormat(Format):
    """There is one of this class: ARCHIVED. `archived_message` makes its messages, so their fields are sound."""

    cdef void walk_headers(self, Message message, HeaderWalk* walk) noexcept:
        cdef uint32_t size
        walk.content_type = NULL
        walk.at = <const uint8_t*> message.fields_at
        walk.end = walk.at + message.fields_size
        if walk.at == walk.end:
            return
        size = take_size(walk)
        if size != NOTHING:
            walk.content_type, walk.content_type_size = <const char*> walk.at, size
            walk.at += size

    cdef bint next_header(self, HeaderWalk* walk) noexcept:
        if walk.at == walk.end:
            return False
        walk.name_size = take_size(walk)
        walk.name = <const char*> walk.at
        walk.at += walk.name_size
        walk.encoded = walk.at[0] == OCTETS
        walk.at += 1
        walk.value_size = take_size(walk)
        walk.value = <const char*> walk.at
        walk.at += walk.value_size
        return True


ARCHIVED = ArchivedFormat("archived")


cdef inline bytes sized(bytes octets):
    return len(octets).to_bytes(4, "little") + octets


def archived_message(bytes topic not None, int syntax, bytes payload not None, headers not None, content_type, int qos,
                     bint retain):
    """A row of the archive.

    headers       (name, octets of the value or None) in their order
    content_type  a text, or None
    """
    cdef list parts = []
    cdef bytes value
    cdef str name
    if headers or content_type is not None:
        parts.append(sized(content_type.encode()) if content_type is not None else b"\xff\xff\xff\xff")
    for name, value in headers:
        if value is None:
            continue
        parts.append(sized(name.encode()))
        if is_utf8(<const uint8_t*> PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)):
            parts += b"\x00", sized(value)
        else:
            parts += b"\x01", sized(b"\xc6" + len(value).to_bytes(4, "big") + value)
    return Message(ARCHIVED, topic, syntax, payload, fields=b"".join(parts), qos=qos, retain=retain)
