# cython: language_level=3
"""The native protocol's compiled lane: frames out of the inbox, publishes into the outboxes.

A PUBLISH on a known route without reply topic, mark and options, with or without a receipt, never leaves this file,
and nor does an ACK.
Specification: docs/native-protocol.md, sections 2, 3.3 and 3.4.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

from fanlight_broker.wire cimport msgpack
from fanlight_broker.wire.route cimport LED_ON, Route
from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.lane cimport (
    BLOCKED, FAULT, FRAME, NEED_MORE, PUBLISH, TOO_LARGE, TURN_OVER, Lane,
)
from fanlight_broker.wire.message cimport Message, borrowed
from fanlight_broker.wire.window cimport Window
from fanlight_broker.wire.msgpack cimport (
    NO_FAULT, TOO_DEEP, WRONG_TYPE, MsgpackCursor, Fault,
)

from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.msgpack import FAULTS

# The fields of a PUBLISH by number, and what each must be (section 3.3): for the sentence that says what was wrong.
FIELDS = (
    ("type", "an integer"),
    ("request", "an integer from 0 to 4294967295, or nil"),
    ("topic", "a str, or a bin if it is not UTF-8"),
    ("payload", "a bin"),
    ("headers", "nil, or a map of str keys to scalars or arrays of scalars"),
    ("syntax", "an integer from 0 up, or nil"),
    ("reply", "a str, a bin if it is not UTF-8, or nil"),
    ("mark", "nil, or an array of a str of 1 to 255 bytes, batch and sequence from 0 to 2^64-1"),
    ("options", "nil, or a map"),
    ("fields behind options", "values"),
)

cdef enum:
    LENGTH = 4               # bytes of a frame's length, which does not count itself
    PUBLISH_TYPE = 3
    ACK_TYPE = 33
    ALL_SIZE = 6
    RECEIPT_TYPE = 5
    PUBLISH_FIELDS = 7       # type, request, topic, payload, headers, syntax, reply: those that a MESSAGE has, too
    MORE = 4                 # frames like the one at hand that follow it, for a batch to be worth while
    DEPTH = 8                # levels of nesting, the frame's own array the first
    HEADER_KEY_BYTES = 255
    PRODUCER_BYTES = 255
    FOR_PYTHON = 1           # values of `special`, a bit each
    WITH_OPTIONS = 2

cdef const char* ALL = b"\x81\xa3all\xc3"    # the options {"all": true}

cdef enum PublishFault:    # besides those of msgpack
    MISSING = 16
    LEFT_OVER = 17
    RESERVED_KEY = 18
    LONG_KEY = 19

PUBLISH_FAULTS = {
    MISSING: "a PUBLISH needs request (or nil), topic and payload at least",
    LEFT_OVER: "bytes left over behind the array of a PUBLISH",
    RESERVED_KEY: "PUBLISH headers: a key that begins with $, which is reserved; choose another name",
    LONG_KEY: f"PUBLISH headers: a key of more than {HEADER_KEY_BYTES} bytes; shorten it",
}


cdef class NativeLane(Lane):
    """The frames of one connection. A frame is as large as its body, without the 4 bytes of its length."""

    def __cinit__(self):
        self.message = borrowed(FORMAT)

    cdef int read_frames(self, double now) except -1:
        cdef Inbox inbox = self.inbox
        cdef const unsigned char* at
        cdef MsgpackCursor cursor
        cdef Py_ssize_t rest, size
        cdef Fault fault
        cdef Route route
        self.active = True    # whatever came
        while True:
            if self.unread():
                return BLOCKED
            at = <const unsigned char*> inbox.data + inbox.pos
            rest = inbox.end - inbox.pos
            inbox.wanted = 0
            if rest < LENGTH:
                self.stop()
                return NEED_MORE
            size = <Py_ssize_t> (<uint32_t> at[0] << 24 | <uint32_t> at[1] << 16 | <uint32_t> at[2] << 8 | at[3])
            self.frame_size = self.body_size = size
            if size > self.frame_max:
                return TOO_LARGE
            if size == 0:
                self.fault = "a frame of no bytes; the body is at least an array header"
                return FAULT
            if rest < LENGTH + size:
                inbox.wanted = LENGTH + size
                self.stop()
                return NEED_MORE
            self.body_at = cursor.at = at + LENGTH
            if not self.open or not is_publish(cursor.at, size):
                if self.consumers is None or not is_ack(cursor.at, size) or not self.acknowledged(now):
                    return self.check_frame()
                self.pass_frame()
                if self.ledger.worked(1):
                    return TURN_OVER
                continue
            cursor.end = cursor.at + size
            fault = self.parse_publish(&cursor)
            if fault:
                return self.report_publish(fault)
            self.set_message()
            if self.publish.special or self.publish.syntax > 1:
                return PUBLISH
            route = self.routes.find(<unsigned char> self.publish.syntax, <const char*> self.publish.topic,
                                     self.publish.topic_size)
            if route is None or self.decided(route) or not self.permitted(route, False, False):
                return PUBLISH
            if route.screens is not None:
                route = self.routes.screened(route, self.message, self.outbox.owner)
            elif route.decided & LED_ON:
                route = route.behind.joined_with(route)
            if route.refuses(self.ledger, self.message):
                return PUBLISH
            if self.publish.wants_receipt and self.receipts is not None:
                if (route.tap is not None or self.receipts.journaling) and not self.receipts.takes(route.tap):
                    return PUBLISH
                self.note_position()
            if not self.sent(self.batcher.publish(route, self.ledger, self.outbox, self.message,
                                                    rest > MORE * size), route):
                return BLOCKED
            self.acknowledge_sent(route)
            if self.ledger.worked(1):
                return TURN_OVER

    cdef int check_frame(self) except -1:
        """FRAME if the one at hand is one of the protocol's, whichever."""
        cdef MsgpackCursor cursor
        cdef uint32_t fields = 0
        cdef Fault fault
        cursor.at = self.body_at
        cursor.end = self.body_at + self.body_size
        fault = msgpack.skip(&cursor, DEPTH)
        if fault == NO_FAULT and cursor.at != cursor.end:
            self.fault = f"{cursor.end - cursor.at} bytes left over behind the frame's array"
            return FAULT
        cursor.at = self.body_at
        if fault == NO_FAULT:
            fault = msgpack.array_header(&cursor, &fields)
        if fault == NO_FAULT and (fields == 0 or cursor.at[0] > 0x7F):
            fault = WRONG_TYPE
        if fault == WRONG_TYPE:
            self.fault = "a frame's body must be an array that begins with the frame's type, 0 to 127 in one byte"
            return FAULT
        if fault:
            self.fault = FAULTS[fault]
            return FAULT
        return FRAME

    cdef bint acknowledged(self, double now) except -1:
        """An ACK in its plain form, with or without `all`: done here. False: it is for Python.

        One of a delivery that is not the client's (any more) has no effect: it may have been late.
        """
        cdef MsgpackCursor cursor
        cdef uint32_t fields = 0
        cdef uint64_t number = 0, sequence = 0
        cdef Window window
        cdef bint up_to = False
        cursor.at = self.body_at
        cursor.end = self.body_at + self.body_size
        if msgpack.array_header(&cursor, &fields) != NO_FAULT or not 3 <= fields <= 4:
            return False
        cursor.at += 1
        if msgpack.unsigned_integer(&cursor, &number) != NO_FAULT \
                or msgpack.unsigned_integer(&cursor, &sequence) != NO_FAULT:
            return False
        if fields == 4 and cursor.end - cursor.at == ALL_SIZE and memcmp(cursor.at, ALL, ALL_SIZE) == 0:
            up_to = True
            cursor.at += ALL_SIZE
        if cursor.at != cursor.end:
            return False
        window = self.consumers.get(number)
        if window is None:
            return False
        self.batcher.flush_batch()
        if up_to:
            window.acknowledge_up_to(sequence, now)
        else:
            window.acknowledge(sequence, now)
        return True

    cdef int report_publish(self, int fault) except -1:
        """Say which field of the PUBLISH at hand is wrong, and how."""
        name, expected = FIELDS[self.publish.at]
        if fault == WRONG_TYPE:
            self.fault = f"PUBLISH {name} must be {expected}"
        else:
            self.fault = PUBLISH_FAULTS.get(fault) or f"PUBLISH {name}: {FAULTS[fault]}"
        self.fault_request = self.request if self.publish.at > 1 else None
        return FAULT

    # -- the frame at hand, for Python ------------------------------------------------------------------------------

    @property
    def reply(self):
        """Its reply topic, as bytes, or None."""
        if self.publish.reply is NULL:
            return None
        return PyBytes_FromStringAndSize(<const char*> self.publish.reply, self.publish.reply_size)

    @property
    def syntax(self):
        """Its syntax, as the number in the frame."""
        return self.publish.syntax

    @property
    def request(self):
        """Its request, or None if it wants no receipt."""
        return self.publish.request if self.publish.wants_receipt else None

    @property
    def mark(self):
        """Its mark, as (producer, batch, sequence), or None."""
        if self.publish.producer is NULL:
            return None
        producer = PyUnicode_DecodeUTF8(<const char*> self.publish.producer, self.publish.producer_size, NULL)
        return producer, self.publish.batch, self.publish.sequence

    @property
    def options(self):
        """Its options, encoded; None if it has none."""
        if not self.publish.special & WITH_OPTIONS:
            return None
        return PyBytes_FromStringAndSize(<const char*> self.publish.options, self.publish.options_size)

    def waits(self, Route route not None):
        return self.receipts is not None and ((route.tap is not None and self.receipts.recording) or (
            self.receipts.journaling and (self.message.retain or route.stores(self.message.qos))))

    # -- inside -----------------------------------------------------------------------------------------------------

    cdef int pass_frame(self) noexcept:
        self.inbox.pos += LENGTH + self.body_size
        return 0

    cdef int set_message(self) noexcept:
        """Point the message at the PUBLISH at hand."""
        cdef Message message = self.message
        cdef PublishFields* publish = &self.publish
        message.syntax = <unsigned char> publish.syntax
        message.format_data = publish.fields
        message.topic_at, message.topic_size = <const char*> publish.topic, publish.topic_size
        message.payload_at, message.payload_size = <const char*> publish.payload, publish.payload_size
        message.fields_at, message.fields_size = <const char*> publish.tail, publish.tail_size
        return 0

    cdef bint sent(self, Py_ssize_t routed, Route route) except -1:
        if routed < 0:
            self.wait()
            return False
        self.routed = routed
        self.unkept = False    # no message of this protocol has a quality of service
        self.pass_frame()
        return True

    cdef bint acknowledge_sent(self, Route route) except -1:
        """RECEIPT, if it is wanted. Receipts say what they are for, and keep no order."""
        if not self.publish.wants_receipt:
            return True
        if self.receipts is not None and (route.tap is not None or self.receipts.position.appended != self.position):
            self.receipts.put(self, route.tap, self.position, self.publish.request, <uint32_t> self.routed)
        else:
            self.acknowledge(self.publish.request, <uint32_t> self.routed)
        return True

    cdef int acknowledge(self, uint32_t request, uint32_t routed) except -1:
        """RECEIPT, in its fixed-width form."""
        cdef unsigned char frame[16]
        cdef int i
        if self.outbox.closed:
            return 0
        frame[0], frame[1], frame[2], frame[3] = 0, 0, 0, 12
        frame[4], frame[5], frame[6], frame[11] = 0x93, RECEIPT_TYPE, 0xCE, 0xCE
        for i in range(4):
            frame[7 + i] = (request >> (24 - 8 * i)) & 0xFF
            frame[12 + i] = (routed >> (24 - 8 * i)) & 0xFF
        self.write(<const char*> frame, 16)
        self.ledger.receipts += 1
        return 0

    cdef Fault parse_publish(self, MsgpackCursor* cursor) noexcept:
        """Take a PUBLISH apart. Everything that is forwarded has been checked, so that subscribers can decode it."""
        cdef PublishFields* publish = &self.publish
        cdef uint32_t fields = 0, _
        cdef uint64_t number = 0
        cdef bint is_str
        cdef Fault fault
        publish.at = 0
        fault = msgpack.array_header(cursor, &fields)
        if fault:
            return fault
        if fields < 4:
            return <Fault> MISSING
        cursor.at += 1
        publish.at = 1
        publish.syntax = 0
        publish.special = 0
        publish.reply = publish.producer = NULL
        publish.wants_receipt = not msgpack.is_nil(cursor)
        if publish.wants_receipt:
            fault = msgpack.unsigned_integer(cursor, &number)
            if fault:
                return fault
            if number > 0xFFFFFFFF:
                return WRONG_TYPE
            publish.request = <uint32_t> number
        publish.tail = cursor.at
        publish.at = 2
        fault = msgpack.octets(cursor, True, True, &publish.topic, &publish.topic_size, &is_str)
        if fault:
            return fault
        publish.at = 3
        fault = msgpack.octets(cursor, False, True, &publish.payload, &publish.payload_size, &is_str)
        if fault:
            return fault
        publish.at = 4
        if fields > 4 and not msgpack.is_nil(cursor):
            fault = check_headers(cursor)
            if fault:
                return fault
        publish.at = 5
        if fields > 5 and not msgpack.is_nil(cursor):
            fault = msgpack.unsigned_integer(cursor, &publish.syntax)
            if fault:
                return fault
        publish.at = 6
        if fields > 6 and not msgpack.is_nil(cursor):
            fault = msgpack.octets(cursor, True, True, &publish.reply, &publish.reply_size, &is_str)
            if fault:
                return fault
            publish.special = FOR_PYTHON
        publish.tail_size = cursor.at - publish.tail
        publish.fields = min(fields, <uint32_t> PUBLISH_FIELDS)
        publish.at = 7
        if fields > 7 and not msgpack.is_nil(cursor):
            fault = parse_mark(cursor, publish)
            if fault:
                return fault
            publish.special = FOR_PYTHON
        publish.at = 8
        if fields > 8:
            fault = parse_rest(cursor, publish, fields)
            if fault:
                return fault
        return NO_FAULT if cursor.at == cursor.end else <Fault> LEFT_OVER


cdef Fault parse_rest(MsgpackCursor* cursor, PublishFields* publish, uint32_t fields) noexcept nogil:
    """The options, and the fields behind them, which are ignored."""
    cdef uint32_t count = 0, _
    cdef const unsigned char* start = cursor.at
    cdef bint given = not msgpack.is_nil(cursor)
    cdef Fault fault
    if given:
        fault = msgpack.map_header(cursor, &count)
        if fault:
            return fault
        cursor.at = start
        fault = msgpack.skip(cursor, DEPTH - 1)
        if fault:
            return fault
        publish.options, publish.options_size = start, cursor.at - start
        publish.special |= WITH_OPTIONS
    publish.at = 9
    for _ in range(9, fields):
        fault = msgpack.skip(cursor, DEPTH - 1)
        if fault:
            return fault
    return NO_FAULT


cdef Fault parse_mark(MsgpackCursor* cursor, PublishFields* publish) noexcept nogil:
    """[producer, batch, sequence], section 3.8."""
    cdef uint32_t count = 0
    cdef bint is_str
    cdef Fault fault = msgpack.array_header(cursor, &count)
    if fault == NO_FAULT and count != 3:
        return WRONG_TYPE
    if fault == NO_FAULT:
        fault = msgpack.octets(cursor, True, False, &publish.producer, &publish.producer_size, &is_str)
    if fault == NO_FAULT and not 1 <= publish.producer_size <= PRODUCER_BYTES:
        return WRONG_TYPE
    if fault == NO_FAULT:
        fault = msgpack.unsigned_integer(cursor, &publish.batch)
    if fault == NO_FAULT:
        fault = msgpack.unsigned_integer(cursor, &publish.sequence)
    return fault


cdef inline bint is_publish(const unsigned char* body, Py_ssize_t size) noexcept nogil:
    """Is the frame's type, behind an array header in any of its three forms, PUBLISH?"""
    if body[0] & 0xF0 == 0x90:
        return size > 1 and body[1] == PUBLISH_TYPE
    if body[0] == 0xDC:
        return size > 3 and body[3] == PUBLISH_TYPE
    return body[0] == 0xDD and size > 5 and body[5] == PUBLISH_TYPE


cdef inline bint is_ack(const unsigned char* body, Py_ssize_t size) noexcept nogil:
    """Is the frame's type, behind an array header in one byte, ACK?"""
    return size > 1 and body[0] & 0xF0 == 0x90 and body[1] == ACK_TYPE


cdef Fault check_headers(MsgpackCursor* cursor) noexcept nogil:
    """A map of str keys to scalars, or to arrays of scalars."""
    cdef uint32_t count = 0, _
    cdef const unsigned char* start
    cdef Py_ssize_t size
    cdef bint is_str
    cdef Fault fault = msgpack.map_header(cursor, &count)
    if fault:
        return fault
    for _ in range(count):
        fault = msgpack.octets(cursor, True, False, &start, &size, &is_str)
        if fault:
            return fault
        if size > HEADER_KEY_BYTES:
            return <Fault> LONG_KEY
        if size and start[0] == 0x24:    # $, section 8
            return <Fault> RESERVED_KEY
        fault = check_value(cursor)
        if fault:
            return fault
    return NO_FAULT


cdef inline bint is_array(unsigned char kind) noexcept nogil:
    return kind & 0xF0 == 0x90 or kind == 0xDC or kind == 0xDD


cdef Fault check_value(MsgpackCursor* cursor) noexcept nogil:
    """A scalar, or an array of scalars: nothing nested, whatever the frame's own bound."""
    cdef uint32_t count = 1
    cdef Fault fault
    if cursor.at < cursor.end and is_array(cursor.at[0]):
        fault = msgpack.array_header(cursor, &count)
        if fault:
            return fault
    while count:
        fault = msgpack.skip(cursor, 0)
        if fault:
            return WRONG_TYPE if fault == TOO_DEEP else fault
        count -= 1
    return NO_FAULT
