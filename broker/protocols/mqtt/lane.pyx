# cython: language_level=3
"""MQTT's compiled lane: packets out of the inbox.

`advance` runs until it needs more bytes or Python. The packet at hand stays at hand, and the inbox must not change,
until `packet` or the next `advance`. The rules of the fixed header are section 2.1 (3.1.1: 2.2); framing.py has the
same ones for bytes in plain Python, and the tests compare.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize

from broker.wire.inbox cimport Inbox
from broker.wire.ledger cimport Ledger
from broker.wire.outbox cimport Outbox
from broker.wire.routes cimport RouteCache

from broker.protocols.mqtt.fixed_header import VALID_FIRST_BYTES, first_byte_error
from broker.protocols.mqtt.reason_codes import ReasonCode

# What `advance` returns.
NEED_MORE = 0     # the rest is an incomplete packet, or nothing
PACKET = 1        # a packet for Python: `first_byte` and `packet()`
PUBLISH = 2       # a PUBLISH for Python
BLOCKED = 3       # an outbox holds this client back: `blocker`
FAULT = 4         # malformed: `fault`, `fault_reason`; nothing more can be read
TOO_LARGE = 5     # a packet of `packet_size` bytes, above the limit; nothing more can be read

cdef bint[256] VALID
cdef int octet
for octet in range(256):
    VALID[octet] = octet in VALID_FIRST_BYTES


cdef class Lane:
    """The packets of one connection.

    packet_max   largest packet accepted, in bytes, its fixed header included (Maximum Packet Size, 3.1.2.11.4)
    control_max  bytes of unsent answers beyond which this connection is not read any further
    """

    def __cinit__(self, Inbox inbox not None, Outbox outbox not None, RouteCache routes not None,
                  Ledger ledger not None, *, Py_ssize_t packet_max, Py_ssize_t control_max):
        self.inbox = inbox
        self.outbox = outbox
        self.routes = routes
        self.ledger = ledger
        self.packet_max = packet_max
        self.control_max = control_max

    def advance(self, double now):
        """Process packets until one needs Python, or none is left. Returns one of the numbers above."""
        self.blocker = None
        while True:
            if self.outbox.control_size > self.control_max:
                self.outbox.begin_pause()
                self.blocker = self.outbox
                self.stop()
                return BLOCKED
            return self.find_packet()

    def packet(self):
        """The body of the packet at hand: all behind its Remaining Length. It is done with that."""
        cdef bytes body = PyBytes_FromStringAndSize(<const char*> self.body_at, self.body_size)
        self.pass_packet()
        return body

    # -- inside -----------------------------------------------------------------------------------------------------

    cdef int find_packet(self) except -1:
        """Put the next packet at hand: PACKET, or what is in the way of it."""
        cdef Inbox inbox = self.inbox
        cdef const unsigned char* at = <const unsigned char*> inbox.data + inbox.pos
        cdef Py_ssize_t rest = inbox.end - inbox.pos, remaining = 0
        cdef int size = 0
        inbox.wanted = 0
        if rest == 0:
            self.stop()
            return 0
        self.first_byte = at[0]
        if not VALID[at[0]]:
            return self.refuse(first_byte_error(at[0]), ReasonCode.MALFORMED_PACKET)
        while True:
            size += 1
            if size > 4:
                return self.refuse("a Remaining Length that does not end within 4 bytes", ReasonCode.MALFORMED_PACKET)
            if size >= rest:
                self.stop()
                return 0
            remaining |= <Py_ssize_t> (at[size] & 0x7F) << 7 * (size - 1)
            if at[size] < 0x80:
                break
        if at[size] == 0 and size > 1:    # [MQTT-1.5.5-1]
            return self.refuse(f"a Remaining Length of {remaining} in {size} bytes, which fewer could say",
                               ReasonCode.MALFORMED_PACKET)
        self.body_at = at + 1 + size
        self.body_size = remaining
        self.packet_size = 1 + size + remaining
        if self.packet_size > self.packet_max:
            return 5
        if rest < self.packet_size:
            inbox.wanted = self.packet_size
            self.stop()
            return 0
        return 1

    cdef int refuse(self, str fault, int reason) except -1:
        self.fault = fault
        self.fault_reason = reason
        return 4

    cdef int pass_packet(self) noexcept:
        self.inbox.pos += self.packet_size
        return 0

    cdef int stop(self) except -1:
        """Nothing more can be done now: keep what is left until the next read."""
        return self.inbox.keep_rest()
