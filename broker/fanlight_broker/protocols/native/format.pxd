# How the native protocol writes a MESSAGE:
#
#   head   N | 9x 04 | ce number(u32)                        the number is the hole; x is the Message's `mark`
#   body   topic payload headers syntax reply                `fields`, as the PUBLISH had them or `write` made them

from fanlight_broker.wire.message cimport Format, Message, Variant

#
# and a DELIVERY, of a named queue, with three holes, of which `address` fills in all:
#
#   head   N | 9x 20 | ce number(u32) | cf sequence(u64) | ce attempt(u32)        x is 2 more than that of a MESSAGE

cdef class MessageFormat(Format):
    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1

cdef class DeliveryFormat(MessageFormat):
    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1
