# Messages out of the archive, as selectors read them: what the archive has of the headers, and nothing to be sent.
#
#   fields   | size | content type | size | name | kind | size | value | ...      sizes: 4 octets, little-endian
#
# The archive has no types, so a value is text without one; what is no text is present, and no more.

from fanlight_broker.wire.message cimport Format, HeaderWalk, Message

cdef class ArchivedFormat(Format):
    pass
