# The compiled half of an MQTT connection: finds the packets in what arrived.
#
#   Inbox.data   [ CONNECT ][ PUBLISH ][ PUBACK ][ SUBSCRIBE ][ PUB..
#                  |          |          |         |
#                  +----------+----------+---------+-----> Python decodes and decides
#
# Bytes that cannot be the beginning of a packet are refused as early as framing.PacketDecoder refuses them, in its words.

from broker.wire.inbox cimport Inbox
from broker.wire.ledger cimport Ledger
from broker.wire.outbox cimport Outbox
from broker.wire.routes cimport RouteCache

cdef class Lane:
    cdef:
        readonly Inbox inbox
        readonly Outbox outbox
        RouteCache routes
        Ledger ledger
        public Py_ssize_t packet_max      # bytes of a packet, its fixed header included
        public Py_ssize_t control_max     # bytes of answers that may pile up before reading stops
        readonly object blocker           # the outbox that holds this client back, after BLOCKED
        readonly str fault                # what is wrong, after FAULT
        readonly int fault_reason         # the same as a reason code
        # The packet at hand.
        readonly unsigned char first_byte
        readonly Py_ssize_t packet_size   # the fixed header included
        const unsigned char* body_at
        Py_ssize_t body_size

    cdef int find_packet(self) except -1
    cdef int refuse(self, str fault, int reason) except -1
    cdef int pass_packet(self) noexcept
    cdef int stop(self) except -1
