# Topic Aliases that the broker gives to topics towards one client (MQTT 5, 3.3.2.3.4).
#
#   known     topic -> alias     the client has been told: a copy needs no topic
#   proposed  a topic            a template tells its alias; known when a copy of it is in the outbox

from broker.wire.message cimport Message, Variant

from broker.protocols.mqtt.format cimport PublishFormat

cdef class AliasFormat(PublishFormat):
    cdef:
        readonly int alias_max            # aliases, at most
        readonly Py_ssize_t packet_max    # the client's Maximum Packet Size, in bytes
        dict known
        bytes proposed

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1
    cdef int sent(self, Variant variant) except -1
