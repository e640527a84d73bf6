# The compiled half of an MQTT connection: finds the packets in what arrived, and takes each PUBLISH to the outboxes.
#
#   Inbox.data   [ CONNECT ][ PUBLISH ][ PUBLISH ][ PUBACK ][ SUBSCRIBE ][ PUB..
#                  |          |          |          |  window, here and now: PUBACK, PUBREC, PUBCOMP of success; PUBREL
#                  |          |          |  route known: fan_out, retained store, PUBACK or PUBREC, here and now
#                  |          |  otherwise: Python finds the route, then calls `forward`
#                  +----------+-----------------------------> everything else: Python decodes and decides
#
# Bytes that cannot begin a packet are refused as early as framing.PacketDecoder refuses them, in its words.
# What is wrong with a PUBLISH the codec says: the body is read again, the connection is over anyway.

cimport cython
from libc.stdint cimport uint32_t

from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.lane cimport Lane
from fanlight_broker.wire.ledger cimport Pot
from fanlight_broker.wire.message cimport Format, Message
from fanlight_broker.wire.outbox cimport uncount_published
from fanlight_broker.wire.retained cimport RetainedTable
from fanlight_broker.wire.tag_set cimport TagSet
from fanlight_broker.wire.window cimport Window

from fanlight_broker.protocols.mqtt.publish_body cimport PublishBody

@cython.final
cdef class MqttLane(Lane):
    cdef:
        public Py_ssize_t user_properties_max    # of a PUBLISH
        public bint check_text            # a payload that is said to be UTF-8 and is not, is for Python
        readonly int fault_reason         # what is wrong, after FAULT, as a reason code
        # Of the session and its version, from `begin` on.
        Window window
        bint has_properties               # 5.0
        object version
        object session                    # core.Session; None: QoS 2 and RETAIN are for Python
        public object share               # of what it publishes: core.Share
        object origin                     # of that: its session's name
        TagSet unreleased                 # its identifiers of QoS 2
        Py_ssize_t unreleased_max         # the Receive Maximum of CONNACK
        bint outlives                     # is the session kept when the connection ends?
        RetainedTable retained
        # Topics by the Topic Alias that the client has given them (3.3.2.3.4): alias_max + 1, once there is one.
        int maximum_qos                   # as announced in CONNACK
        readonly int alias_max
        Pot alias_pot
        Py_ssize_t alias_bytes_max        # that they may take
        list aliases
        readonly Py_ssize_t aliases_bytes  # entered in `alias_pot`
        # The packet at hand.
        readonly unsigned char first_byte
        # If it is a PUBLISH.
        PublishBody body
        char* spliced                     # properties with the Topic Alias cut out of their middle

    cdef int next_frame(self) except -1
    cdef bint may_wait(self, Route route) noexcept
    cdef bint acknowledged(self, double now) except -1
    cdef int forward_publish(self, double now) except -1
    cdef int forward_kept(self, Route route, Route wanted, double now) except -1
    cdef bint may_keep(self, Route route) except -1
    cdef int retain(self, Route route, Message kept, double now) except -1
    cdef bint released(self, int identifier) except -1
    cdef int confirm_sent(self, Route route, int kind) except -1
    cdef bint check_user_properties(self) except -1
    cdef bint is_valid_text(self) noexcept
    cdef bint resolve_alias(self) except -1
    cdef bint keep_alias(self, int alias, bytes before) except -1
    cdef int cut_alias_out(self) except -1
    cdef int answer(self, int kind, uint32_t identifier, int reason) except -1
    cdef int refuse(self, str fault, int reason) except -1
    cdef int refuse_publish(self) except -1
