# cython: language_level=3
"""The format of one connection whose client accepts Topic Aliases: 5.0, with a number in place of a known topic.

First come, first served: the first topics get an alias, as many as the client allows, and keep it as long as the
connection lasts [MQTT-3.3.2-7]; later topics are sent by name. A copy that defines an alias counts only when it is in
the outbox, and is firm there: it may have been encoded and then wait in a queue, or be dropped.

Variants of this format are the connection's own, so a message is encoded for each such client, once. That is what the
bytes saved cost: it pays on a narrow line, not in a fan-out to thousands.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp

from fanlight_broker.wire.ledger cimport Pot
from fanlight_broker.wire.message cimport Message, Variant

from fanlight_broker.protocols.mqtt.format cimport PublishFormat, write_publish

from fanlight_broker.protocols.mqtt.version import V5
from fanlight_broker.wire.message import Variants

# What messages on a topic look like to all connections that know it by the same alias, so that batches may join them.
cdef object STEADY = Variants()
cdef dict KNOWN = {}    # alias -> its KnownAlias: as many as there are aliases


cdef class KnownAlias(PublishFormat):
    """PUBLISH packets on a topic that the client knows by this alias."""

    def __init__(self, int alias):
        PublishFormat.__init__(self, V5)
        self.alias = alias

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        return write_publish(variant, message, True, again, now, self.alias, False)


cdef enum:
    TOPIC_LEAST = 4         # bytes; a shorter one is no longer than its alias
    TOPIC_MOST = 1024       # bytes; so alias_max topics are a bounded number of bytes
    KNOWN_BYTES = 256       # of a topic that is known beside its octets: the objects and its places in two tables


# It counts bytes until it is freed, and the collector must not take the pot from it before.
@cython.no_gc_clear
cdef class AliasFormat(PublishFormat):
    """Of one connection.

    alias_max   topics that get an alias: at most the client's Topic Alias Maximum [MQTT-3.1.2-26]
    packet_max  the client's Maximum Packet Size, None for none: telling an alias must not make a packet too large
    pot         where its topics are counted; when there is no room, topics get no alias any more
    """

    def __init__(self, int alias_max, packet_max=None, Pot pot=None):
        if not 0 <= alias_max <= 65_535:
            raise ValueError(f"{alias_max} topic aliases; there are 65535")
        PublishFormat.__init__(self, V5, stateful=True)
        self.alias_max = alias_max
        self.packet_max = (1 << 62) if packet_max is None else packet_max
        self.known = {}
        self.pot = pot
        self.steadies = {}

    def __dealloc__(self):
        if self.pot is not None:
            self.pot.force(-self.octets)

    def forget(self):
        """The connection is over, and with it what its client knows [MQTT-3.3.2-7]. No topic gets an alias any more."""
        self.known = {}
        self.steadies = {}
        self.last = self.proposed = None
        self.alias_max = 0
        if self.pot is not None:
            self.pot.force(-self.octets)
        self.octets = 0

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        cdef int alias
        variant.firm = False
        if not TOPIC_LEAST <= message.topic_size <= TOPIC_MOST:
            return write_publish(variant, message, True, again, now, 0, True)
        alias = self.alias_of(message)
        if alias:
            return write_publish(variant, message, True, again, now, alias, False)
        if len(self.known) < self.alias_max and self.has_room(message.topic_size) \
                and write_publish(variant, message, True, again, now, <int> len(self.known) + 1, True) \
                and variant.head_size + variant.body_size <= self.packet_max:
            self.proposed = PyBytes_FromStringAndSize(message.topic_at, message.topic_size)
            variant.firm = True
            return True
        return write_publish(variant, message, True, again, now, 0, True)

    cdef bint has_room(self, Py_ssize_t topic_size) noexcept:
        return self.pot is None or self.pot.admits(KNOWN_BYTES + topic_size)

    cdef int alias_of(self, Message message) except -1:
        """The alias of its topic, or 0."""
        cdef bytes topic
        if self.last is None or PyBytes_GET_SIZE(self.last) != message.topic_size \
                or memcmp(PyBytes_AS_STRING(self.last), message.topic_at, message.topic_size) != 0:
            topic = PyBytes_FromStringAndSize(message.topic_at, message.topic_size)
            alias = self.known.get(topic)
            if alias is None:
                return 0
            self.last = topic
            self.last_alias = alias
        return self.last_alias

    cdef Variant steady(self, Message message, Variant variant):
        cdef Variant found
        cdef int alias
        if not TOPIC_LEAST <= message.topic_size <= TOPIC_MOST:
            return None
        alias = self.alias_of(message)
        if alias == 0:
            return None
        found = self.steadies.get(self.last)
        if found is None or found.qos != variant.qos or found.retain != variant.retain \
                or found.identifiers != variant.identifiers:
            if alias not in KNOWN:
                KNOWN[alias] = KnownAlias(alias)
            found = self.steadies[self.last] = STEADY.of(
                KNOWN[alias], variant.qos, <int> variant.retain, variant.identifiers)
        return found

    cdef int sent(self, Variant variant) except -1:
        if variant.firm and self.proposed is not None:
            self.known[self.proposed] = len(self.known) + 1
            if self.pot is not None:
                self.octets += KNOWN_BYTES + PyBytes_GET_SIZE(self.proposed)
                self.pot.force(KNOWN_BYTES + PyBytes_GET_SIZE(self.proposed))
            self.proposed = None
        return 0
