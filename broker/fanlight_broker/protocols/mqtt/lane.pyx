# cython: language_level=3
"""MQTT's compiled lane: packets out of the inbox, publishes into the outboxes.

A PUBLISH on a known route, with any properties, and acknowledgements of success never leave this file. What is retained
and the identifiers of QoS 2 are kept by the core (`wire.RetainedTable`, `core.Session`).
Fixed headers are section 2.1 (3.1.1: 2.2); framing.py has the same rules in plain Python, and the tests compare.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.lane cimport BLOCKED, FAULT, FRAME, NEED_MORE, PASSED, PUBLISH, TOO_LARGE, TURN_OVER, Lane
from fanlight_broker.wire.message cimport Format, Message, borrowed
from fanlight_broker.wire.msgpack cimport is_utf8
from fanlight_broker.wire.retained cimport RetainedTable
from fanlight_broker.wire.route cimport LED_ON, Route

from fanlight_broker.protocols.mqtt.publish_body cimport WITH_DELAY, parse_body
from fanlight_broker.protocols.mqtt.qos2 cimport puback, pubcomp, pubrec

from fanlight_broker.protocols.mqtt.codec import decode
from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.fixed_header import VALID_FIRST_BYTES, first_byte_error
from fanlight_broker.protocols.mqtt.format import MQTT_3_1_1
from fanlight_broker.protocols.mqtt.from_client import check_from_client
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode

cdef enum:
    PUBLISH_TYPE = 3
    PUBACK = 0x40
    PUBREC = 0x50
    PUBREL = 0x62
    PUBCOMP = 0x70
    PINGREQ = 0xC0
    NO_MATCHING_SUBSCRIBERS = 0x10
    QUOTA_EXCEEDED = 0x97
    MQTT_SYNTAX = 1             # of topics, by its number in the core
    MORE = 4                    # packets like the one at hand that follow it, for a batch to be worth while
    TOPIC_OBJECT = 33           # bytes of a bytes object beside its octets

cdef bint[256] VALID
cdef int octet
for octet in range(256):
    VALID[octet] = octet in VALID_FIRST_BYTES


# It counts bytes in a pot until it is freed, and the collector must not take the pot from it before.
@cython.no_gc_clear
cdef class MqttLane(Lane):
    """The packets of one connection. Sizes include the fixed header, as a Maximum Packet Size does (3.1.2.11.4)."""

    def __cinit__(self):
        self.alias_pot = self.ledger.inboxes
        self.message = borrowed(MQTT_3_1_1)
        self.user_properties_max = WITH_DELAY - 1

    def __dealloc__(self):
        deallocate(self.spliced)
        if self.alias_pot is not None:
            self.alias_pot.force(-self.aliases_bytes)

    def begin(self, Format format not None, Window window not None, *, int alias_max,
              Py_ssize_t alias_bytes_max=64 * 1024, int maximum_qos=2, session=None, RetainedTable retained=None,
              Py_ssize_t unreleased_max=0):
        """CONNECT is accepted.

        format       of the messages that come: FORMATS[version]
        alias_max    the Topic Alias Maximum of CONNACK
        alias_bytes_max  what its topics may take
        maximum_qos  its Maximum QoS
        session      None: a PUBLISH of QoS 2, or with RETAIN, is for Python
        retained     of the broker
        unreleased_max  the Receive Maximum of CONNACK
        """
        self.message.format = format
        self.version = format.version
        self.has_properties = format.has_properties
        self.window = window
        self.alias_max = alias_max
        self.maximum_qos = maximum_qos
        self.alias_bytes_max = alias_bytes_max
        if session is not None:
            self.session, self.share, self.origin = session, session.share, session.name
            self.unreleased, self.outlives = session.unreleased, session.outlives
            self.retained, self.unreleased_max = retained, unreleased_max
        self.open = True

    def forget_aliases(self):
        """The connection has ended: free them, and the session."""
        self.aliases = self.session = None
        self.alias_pot.force(-self.aliases_bytes)
        self.aliases_bytes = self.alias_max = 0

    cdef int read_frames(self, double now) except -1:
        cdef int event
        self.body.properties_size = 0    # what they pointed at is gone
        while not self.unread():
            event = self.next_frame()
            if event == FRAME and self.open:
                if self.first_byte >> 4 == PUBLISH_TYPE:
                    event = self.forward_publish(now)
                else:
                    self.batcher.flush_batch()
                    if self.acknowledged(now):
                        event = PASSED
            if event != PASSED:
                return event
            if self.ledger.worked(1):
                return TURN_OVER
        return BLOCKED

    # -- the packet at hand, for Python -----------------------------------------------------------------------------

    @property
    def packet_id(self):
        """Of the PUBLISH at hand; None with QoS 0."""
        return self.body.packet_id or None

    @property
    def dup(self):
        return bool(self.first_byte & 8)

    @property
    def is_text(self):
        """Does the PUBLISH at hand say that its payload is UTF-8? (3.3.2.3.2)"""
        return self.body.is_text

    @property
    def has_delay(self):
        """Has the PUBLISH at hand the User Property of a delayed message?"""
        return bool(self.body.user_properties & <Py_ssize_t> WITH_DELAY)

    @property
    def has_response(self):
        """Has it a Response Topic?"""
        return self.body.has_response

    def waits(self, Route route not None):
        return self.receipts is not None and (
            self.message.qos == 2 or self.pending_acks > 0 or (route.tap is not None and self.receipts.recording)
            or (self.receipts.journaling and (self.message.retain or route.stores(self.message.qos)))
        )

    cdef bint may_wait(self, Route route) noexcept:
        """May PUBACK have to wait? For what is to be stored; and while an earlier acknowledgement waits, because they
        are sent in the order of their PUBLISH packets [MQTT-4.6.0-2].
        """
        return route.tap is not None or self.receipts.journaling or self.pending_acks > 0

    # -- packets ----------------------------------------------------------------------------------------------------

    cdef int next_frame(self) except -1:
        """Put the next packet at hand: FRAME, or what is in the way of it."""
        cdef Inbox inbox = self.inbox
        cdef const unsigned char* at = <const unsigned char*> inbox.data + inbox.pos
        cdef Py_ssize_t rest = inbox.end - inbox.pos, remaining = 0
        cdef int size = 0
        inbox.wanted = 0
        if rest == 0:
            self.stop()
            return NEED_MORE
        self.first_byte = at[0]
        if not VALID[at[0]]:
            return self.refuse(first_byte_error(at[0]), ReasonCode.MALFORMED_PACKET)
        while True:
            size += 1
            if size > 4:
                return self.refuse("a Remaining Length of more than 4 bytes", ReasonCode.MALFORMED_PACKET)
            if size >= rest:
                self.stop()
                return NEED_MORE
            remaining |= <Py_ssize_t> (at[size] & 0x7F) << 7 * (size - 1)
            if at[size] < 0x80:
                break
        if at[size] == 0 and size > 1:    # [MQTT-1.5.5-1]
            return self.refuse(
                f"Remaining Length {remaining} is encoded in {size} bytes; the shortest form is required",
                ReasonCode.MALFORMED_PACKET,
            )
        self.body_at = at + 1 + size
        self.body_size = remaining
        self.frame_size = 1 + size + remaining
        if self.frame_size > self.frame_max:
            return TOO_LARGE
        if rest < self.frame_size:
            inbox.wanted = self.frame_size
            self.stop()
            return NEED_MORE
        return FRAME

    cdef bint acknowledged(self, double now) except -1:
        """An acknowledgement of success that the window knows, or a PINGREQ. False: it is for Python."""
        cdef int identifier
        cdef unsigned char first = self.first_byte
        if self.body_size == 0 and first == PINGREQ:
            self.write(b"\xd0\x00", 2)
        elif self.body_size != 2 or not (first == PUBACK or first == PUBREC or first == PUBCOMP or first == PUBREL):
            return False
        else:
            identifier = self.body_at[0] << 8 | self.body_at[1]
            self.body.packet_id = identifier
            if first == PUBACK:
                if not puback(self.window, identifier, now):
                    return False
            elif first == PUBCOMP:
                if not pubcomp(self.window, identifier, now):
                    return False
            elif first == PUBREL:
                if not self.released(identifier):
                    return False
            elif not pubrec(self.window, identifier):
                return False
            elif self.receipts is None or self.window.queue.journal is None:
                self.answer(PUBREL, identifier, 0)
            else:
                # Not before the journal has what PUBREC says: a restart would send the PUBLISH again, to a receiver
                # that has forgotten its identifier.
                self.receipts.put(self, None, 0, identifier, PUBREL << 8)
        self.pass_frame()
        return True

    cdef bint released(self, int identifier) except -1:
        """PUBREL: PUBCOMP, and the identifier may be used again. False: it is not in use, or PUBCOMP is Python's."""
        cdef uint64_t before
        if self.session is None or not self.unreleased.has(identifier) or (self.receipts is not None and (
            self.receipts.recording or (self.pending_acks and self.receipts.is_full())
        )):
            return False
        self.unreleased.discard(identifier)
        if self.window.queue.journal is not None:
            self.session.journal.released(self.session, identifier)
        if self.receipts is None:
            return not self.answer(PUBCOMP, identifier, 0)
        # Of a session that is kept, PUBCOMP also waits for what an earlier connection of it has begun.
        before = self.receipts.position.appended - 1 if self.outlives else self.receipts.position.appended
        return not self.receipts.put(self, None, before, identifier, PUBCOMP << 8)

    # -- PUBLISH ----------------------------------------------------------------------------------------------------

    cdef int forward_publish(self, double now) except -1:
        """Send the PUBLISH at hand if it needs no decision."""
        cdef Message message = self.message
        cdef PublishBody* body = &self.body
        cdef int qos = self.first_byte >> 1 & 3
        cdef Route route, wanted
        cdef bint more, for_python = False
        if not parse_body(self.body_at, self.body_size, qos, self.has_properties, self.batcher.last, body):
            return self.refuse_publish()
        if qos > self.maximum_qos:
            return self.refuse(f"PUBLISH: QoS {qos}; the Maximum QoS is {self.maximum_qos} (mqtt_maximum_qos)",
                               ReasonCode.QOS_NOT_SUPPORTED)
        if body.user_properties > self.user_properties_max:
            if not self.check_user_properties():
                return FAULT
            for_python = True
        message.syntax = MQTT_SYNTAX
        message.qos = qos
        message.retain = self.first_byte & 1
        message.topic_at, message.topic_size = body.topic, body.topic_size
        message.payload_at, message.payload_size = body.payload, body.payload_size
        message.fields_at, message.fields_size = body.properties, body.properties_size
        message.expiry_hole = body.expiry_at
        message.expires_at = INFINITY if body.expiry_at < 0 else now + body.expiry
        if body.alias and not self.resolve_alias():
            return FAULT
        if for_python or (self.check_text and body.is_text and not self.is_valid_text()):
            return PUBLISH
        if body.again:
            route = self.batcher.last
            self.routes.hits += 1
        else:
            route = self.routes.find(MQTT_SYNTAX, message.topic_at, message.topic_size)
        if route is None or self.decided(route) or not self.permitted(route, message.retain, body.has_response):
            return PUBLISH
        wanted = route if route.screens is None else self.routes.screened(route, message, self.outbox.owner)
        wanted = route.behind.joined_with(route) if route.decided & LED_ON else wanted
        if wanted.refuses(self.ledger, message):
            return PUBLISH
        if qos == 2 or message.retain:
            return self.forward_kept(route, wanted, now)
        if qos and self.receipts is not None:
            if self.may_wait(wanted) and not self.receipts.takes(wanted.tap):
                return PUBLISH
            self.note_position()
        more = self.inbox.end - self.inbox.pos > MORE * self.frame_size
        if not self.sent(self.batcher.publish(wanted, self.ledger, self.outbox, message, more), wanted):
            return BLOCKED
        if qos:
            self.acknowledge_sent(wanted)
        return PASSED

    cdef int forward_kept(self, Route route, Route wanted, double now) except -1:
        """The same for QoS 2, or with RETAIN: what `Publishing.accept` does, in the same order.

        wanted  of this message, where `route` is its topic's
        """
        cdef Message kept = None
        cdef bint more
        cdef int qos = self.message.qos, identifier = self.body.packet_id
        if not self.may_keep(route):
            return PUBLISH
        if self.message.retain:
            kept = self.message.kept()    # forwarding invalidates what the message at hand points at
        self.note_position()
        more = self.inbox.end - self.inbox.pos > MORE * self.frame_size
        if not self.sent(self.batcher.publish(wanted, self.ledger, self.outbox, self.message, more), wanted):
            return BLOCKED
        if kept is not None and not self.unkept:
            self.retain(route, kept, now)
        if qos == 2 and not self.unkept:
            self.unreleased.add(identifier)
            if self.window.queue.journal is not None:
                self.session.journal.received(self.session, identifier)
        if qos:
            self.confirm_sent(route, PUBREC if qos == 2 else PUBACK)
        return PASSED

    cdef bint may_keep(self, Route route) except -1:
        """Has the PUBLISH at hand nothing about it that is for Python?"""
        cdef int qos = self.message.qos
        if self.session is None or (self.message.retain and not self.retained.retains):
            return False
        if qos == 2 and (
            self.unreleased.has(self.body.packet_id) or self.unreleased.count >= self.unreleased_max
            or not self.unreleased.reserve(self.body.packet_id)
        ):
            return False
        if self.receipts is None:
            return True
        if qos == 0:
            return not (self.receipts.position.full or self.receipts.position.refusing)
        return self.receipts.takes(route.tap)

    cdef int retain(self, Route route, Message kept, double now) except -1:
        """After the fan-out, which decides last whether there is room."""
        if not self.retained.replace(route.retained, kept, self.share, self.origin, now):
            route.retained = self.retained.enter(kept, self.share, self.origin, now)
        return 0

    cdef bint check_user_properties(self) except -1:
        """One of them delays the message, or they are too many: False, and `fault` says so."""
        cdef Py_ssize_t count = self.body.user_properties & ~<Py_ssize_t> WITH_DELAY
        if count <= self.user_properties_max:
            return True
        self.refuse(f"PUBLISH: {count} User Properties; at most {self.user_properties_max} (mqtt_user_properties_max)",
                    ReasonCode.QUOTA_EXCEEDED)
        return False

    cdef bint is_valid_text(self) noexcept:
        return is_utf8(<const unsigned char*> self.body.payload, self.body.payload_size)

    cdef bint resolve_alias(self) except -1:
        """The topic that the alias stands for, or keep the topic for it. False: `fault` says what is wrong."""
        cdef Message message = self.message
        cdef bytes topic
        cdef int alias = self.body.alias
        if alias > self.alias_max:    # [MQTT-3.3.2-9]
            self.refuse(f"PUBLISH: Topic Alias {alias}; the Topic Alias Maximum is {self.alias_max}",
                        ReasonCode.TOPIC_ALIAS_INVALID)
            return False
        if self.aliases is None:
            self.aliases = [None] * (self.alias_max + 1)
            # The size of the table is the operator's choice; only the topics are bounded.
            self.aliases_bytes = 8 * (self.alias_max + 1)
            self.alias_bytes_max += self.aliases_bytes
            self.alias_pot.force(self.aliases_bytes)
        topic = self.aliases[alias]
        if message.topic_size:
            if not self.keep_alias(alias, topic):
                return False
            topic = self.aliases[alias]
        elif topic is None:
            self.refuse(f"PUBLISH: Topic Alias {alias}, which was not sent with a Topic Name before",
                        ReasonCode.PROTOCOL_ERROR)
            return False
        message.topic_at, message.topic_size = PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic)
        self.cut_alias_out()
        return True

    cdef bint keep_alias(self, int alias, bytes before) except -1:
        """Keep the topic at hand for an alias, in place of the one `before`. False: there is no room."""
        cdef Message message = self.message
        cdef Py_ssize_t more = TOPIC_OBJECT + message.topic_size
        if before is not None:
            more -= TOPIC_OBJECT + PyBytes_GET_SIZE(before)
        if self.aliases_bytes + more > self.alias_bytes_max:
            self.refuse(f"PUBLISH: topic aliases of {self.aliases_bytes + more} bytes; at most {self.alias_bytes_max} "
                        "on one connection (mqtt_topic_alias_bytes_max)", ReasonCode.QUOTA_EXCEEDED)
            return False
        if not self.alias_pot.charge(more):
            self.refuse(f"PUBLISH: no room for a topic alias; all connections together may keep "
                        f"{self.alias_pot.limit} bytes (inboxes_bytes_max)", ReasonCode.QUOTA_EXCEEDED)
            return False
        self.aliases_bytes += more
        self.aliases[alias] = PyBytes_FromStringAndSize(message.topic_at, message.topic_size)
        return True

    cdef int cut_alias_out(self) except -1:
        """The fields without the alias: subscribers have aliases of their own."""
        cdef Message message = self.message
        cdef Py_ssize_t at = self.body.alias_at, rest = self.body.properties_size - at - 3
        cdef char* spliced
        message.fields_size -= 3
        if message.expiry_hole > at:
            message.expiry_hole -= 3
        if at == 0:
            message.fields_at += 3
        elif rest:
            spliced = <char*> reallocate(self.spliced, at + rest)
            if spliced is NULL:
                raise MemoryError()
            self.spliced = spliced    # no larger than the packet, and given back with it
            memcpy(spliced, self.body.properties, at)
            memcpy(spliced + at, self.body.properties + at + 3, rest)
            message.fields_at = spliced
        return 0

    cdef bint sent(self, Py_ssize_t routed, Route route) except -1:
        """False with `blocker` None: no queue has room."""
        if routed < 0:
            self.wait()
            return False
        self.routed = routed
        if self.message.qos == 0:
            self.unkept = False
            self.pass_frame()
            return True
        self.unkept = self.ledger.unkept
        if self.unkept and not self.has_properties:
            # 3.1.1 has no word for it: the publisher waits. Nobody got the message, so it may be published again.
            self.ledger.messages_in -= 1
            uncount_published(self.ledger, self.outbox, self.message.topic_size + self.message.payload_size)
            self.ledger.payload_in -= self.message.payload_size
            self.ledger.count_recipients(routed, -1)
            return False
        self.pass_frame()
        return True

    cdef bint acknowledge_sent(self, Route route) except -1:
        """PUBACK. PUBREC of a PUBLISH that Python forwarded is Python's, an error if `unkept`."""
        if self.message.qos == 2:
            return False
        if self.message.qos == 1:
            self.confirm_sent(route, PUBACK)
        return True

    cdef int confirm_sent(self, Route route, int kind) except -1:
        """PUBACK or PUBREC of the PUBLISH that was sent last."""
        cdef int reason = 0
        if self.unkept:
            reason = QUOTA_EXCEEDED
        elif self.has_properties and self.routed == 0:
            reason = NO_MATCHING_SUBSCRIBERS
        if self.receipts is not None:
            return self.receipts.put(self, route.tap, self.position, self.body.packet_id, kind << 8 | reason)
        return self.answer(kind, self.body.packet_id, reason)

    cdef int acknowledge(self, uint32_t number, uint32_t answer) except -1:
        return self.answer(answer >> 8, number, answer & 0xFF)

    cdef int answer(self, int kind, uint32_t identifier, int reason) except -1:
        """An acknowledgement, in as few bytes as it may have (3.4.2.1)."""
        cdef unsigned char octets[5]
        octets[0] = kind
        octets[1] = 3 if reason else 2
        octets[2] = (identifier >> 8) & 0xFF
        octets[3] = identifier & 0xFF
        octets[4] = reason
        return self.write(<const char*> octets, 5 if reason else 4)

    # -- trouble ----------------------------------------------------------------------------------------------------

    cdef int refuse(self, str fault, int reason) except -1:
        self.fault = fault
        self.fault_reason = reason
        return FAULT

    cdef int refuse_publish(self) except -1:
        """Let the codec say what is wrong with the PUBLISH at hand."""
        try:
            check_from_client(decode(self.first_byte, PyBytes_FromStringAndSize(
                <const char*> self.body_at, self.body_size), self.version))
        except PacketError as error:
            return self.refuse(error.text, error.reason_code)
        raise AssertionError("a PUBLISH that the codec accepts and the lane does not")

    cdef int pass_frame(self) noexcept:
        self.inbox.pos += self.frame_size
        self.active = True    # an incomplete packet does not count (3.1.2.10)
        if self.spliced is not NULL:
            deallocate(self.spliced)
            self.spliced = NULL
        return 0
