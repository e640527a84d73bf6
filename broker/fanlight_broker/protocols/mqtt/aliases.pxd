# Topic Aliases that the broker gives to topics towards one client (MQTT 5, 3.3.2.3.4).
#
#   known     topic -> alias     the client knows the alias: a copy needs no topic
#   proposed  a topic            a template defines its alias; known when a copy of it is in the outbox

from fanlight_broker.wire.ledger cimport Pot
from fanlight_broker.wire.message cimport Message, Variant

from fanlight_broker.protocols.mqtt.format cimport PublishFormat

cdef class AliasFormat(PublishFormat):
    cdef:
        readonly int alias_max            # aliases, at most
        readonly Py_ssize_t packet_max    # the client's Maximum Packet Size, in bytes
        dict known
        Pot pot                           # counts the bytes of `known`; None: not counted
        readonly Py_ssize_t octets              # entered there
        bytes proposed
        dict steadies                     # topic -> variant of a KnownAlias, for the batches: as many as `known` at
                                          # most
        bytes last                        # topic, and its alias: many messages on one follow each other
        int last_alias

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1
    cdef bint has_room(self, Py_ssize_t topic_size) noexcept
    cdef int alias_of(self, Message message) except -1
    cdef int sent(self, Variant variant) except -1
    cdef Variant steady(self, Message message, Variant variant)

cdef class KnownAlias(PublishFormat):
    cdef:
        readonly int alias
