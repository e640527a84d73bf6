# How the native protocol writes a MESSAGE:
#
#   head   N | 9x 04 | ce number(u32)                        the number is the hole; x is the Message's `mark`
#   body   topic payload headers syntax reply                `fields`, as the PUBLISH had them or `write` made them

from fanlight_broker.wire.message cimport Format, Message, Variant

cdef class MessageFormat(Format):
    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1
