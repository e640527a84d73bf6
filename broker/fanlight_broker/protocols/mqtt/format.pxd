# How MQTT writes a PUBLISH (section 3.3), in both versions:
#
#   head   3x N | topic | packet identifier | property length, identifiers, fields |       5.0; 3.1.1 has no properties
#                         ^ the hole, if the QoS is not 0      ^ of the Variant
#   body   payload
#
#   fields   the properties as the publisher encoded them and in its order, but for Topic Alias and Subscription
#            TagSet, which are a connection's own; at `expiry_hole` the value of the Message Expiry Interval

from libc.stdint cimport uint64_t

from fanlight_broker.wire.message cimport Format, Message, Variant

cdef enum:
    VARIABLE_MAX = 268_435_455        # four bytes of seven bits (1.5.5)
    STRING_MAX = 65_535               # bytes of a string (1.5.4)

cdef class PublishFormat(Format):
    cdef:
        readonly object version
        readonly bint has_properties
        public uint64_t left_out      # parts of other families' messages that MQTT cannot say

cdef bint write_publish(Variant variant, Message message, bint has_properties, bint again, double now, int alias,
                        bint named) except -1
