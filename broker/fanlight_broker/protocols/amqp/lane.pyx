# cython: language_level=3
"""The compiled lane of AMQP: whole frames out of the inbox (2.3.5), plain publishes to the queues, acknowledgements to
the windows of consumers. Drawn in lane.pxd.

frames.py and publish.py do the same in Python, and are what tests compare with. A basic.publish is taken here if all of
its frames have come, and nothing about it asks for a decision; else the method is at hand for Python, as it came.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from libc.math cimport INFINITY as NEVER
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.badge cimport MAY_PUBLISH, MAY_REQUEST, REVOKED, Badge
from fanlight_broker.wire.frames cimport Frame
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.lane cimport (
    BLOCKED, FAULT, FRAME, NEED_MORE, PASSED, PUBLISH, TOO_LARGE, TURN_OVER, Lane,
)
from fanlight_broker.wire.message cimport Message, borrowed, uint32_into
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.route cimport RULED, TRACED, Route

from fanlight_broker.protocols.amqp.plain_content cimport PlainContent, read_plain
from fanlight_broker.protocols.amqp.publish_sites cimport LaneChannel, PublishCounts, PublishSite

from fanlight_broker.protocols.amqp.fields import SYNTAX
from fanlight_broker.protocols.amqp.format import FORMAT

cdef enum:
    GREETING = 8         # bytes of the protocol header
    HEAD = 7             # bytes of a frame before its payload
    OVERHEAD = 8         # and with its end
    FRAME_END = 0xCE
    METHOD = 1
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8
    BASIC = 60
    PUBLISH_ID = 40
    ACK_ID = 80
    ACK_BODY = 13        # bytes of basic.ack: class, method, tag, `multiple`
    TX = 90
    COMMIT = 20
    MANDATORY = 1        # of the bits of basic.publish
    ACK_SIZE = 21        # bytes of basic.ack with its frame
    HEADERS_A_COPY = 4   # 16 bytes of headers, looked at and looked up, take as long as a copy
    REFUSED = 1 << 31    # of what `acknowledge` is given, beside the channel and its serial

cdef unsigned char SYNTAX_NUMBER = SYNTAX


cdef class AmqpLane(Lane):
    """The frames of one connection. A frame is as large as all of its bytes, its head and its end included."""

    def __cinit__(self):
        self.counts = PublishCounts()
        self.own = borrowed(FORMAT)
        self.own.syntax = SYNTAX_NUMBER
        self.channels = {}

    def __dealloc__(self):
        deallocate(self.fields)

    cdef int read_frames(self, double now) except -1:
        cdef Inbox inbox = self.inbox
        cdef const unsigned char* at
        cdef Py_ssize_t rest, size
        cdef int event
        self.active = True    # whatever came
        while True:
            if self.unread():
                return BLOCKED
            at = <const unsigned char*> inbox.data + inbox.pos
            rest = inbox.end - inbox.pos
            inbox.wanted = 0
            if not self.greeted:
                if rest < GREETING:
                    self.stop()
                    return NEED_MORE
                self.body_at, self.frame_size, self.body_size = at, GREETING, GREETING
                return FRAME
            if rest < HEAD:
                self.stop()
                return NEED_MORE
            self.kind = at[0]
            self.channel = at[1] << 8 | at[2]
            size = <Py_ssize_t> (<uint32_t> at[3] << 24 | <uint32_t> at[4] << 16 | <uint32_t> at[5] << 8 | at[6])
            if self.kind not in (METHOD, HEADER, BODY, HEARTBEAT):
                self.fault = f"a frame of the unknown type {self.kind}"
                return FAULT
            self.frame_size = size + OVERHEAD
            if self.frame_size > self.frame_max:
                return TOO_LARGE
            if rest < self.frame_size:
                inbox.wanted = self.frame_size
                self.stop()
                return NEED_MORE
            if at[HEAD + size] != FRAME_END:
                self.fault = f"a frame that ends with {at[HEAD + size]}, not with {FRAME_END}"
                return FAULT
            self.body_at, self.body_size = at + HEAD, size
            if self.kind == HEARTBEAT and self.channel == 0 and size == 0:
                self.pass_frame()
                if self.ledger.worked(1):
                    return TURN_OVER
                continue
            if self.kind == METHOD and size == 4 and at[HEAD + 1] == TX and at[HEAD + 3] == COMMIT \
                    and at[HEAD] == 0 and at[HEAD + 2] == 0:
                return PUBLISH    # tx.commit: it stays at hand while it is held back
            if self.kind == METHOD:
                if self.sites is None:
                    return FRAME
                if self.body_size == ACK_BODY and at[HEAD + 1] == BASIC and at[HEAD + 3] == ACK_ID:
                    event = self.acknowledge_deliveries(at, now)
                else:
                    event = self.forward_publish(at, rest)
                if event != PASSED:
                    return event
                if self.ledger.worked(self.work):
                    return TURN_OVER
                continue
            return PUBLISH if self.kind in (HEADER, BODY) else FRAME

    # -- channels ---------------------------------------------------------------------------------------------------

    def open_channel(self, int number):
        """A channel is open: what the lane and Python both know of it."""
        self.channels_opened = (self.channels_opened + 1) & 0x7FFF
        made = self.channels[number] = LaneChannel(number, self.channels_opened)
        unseen(self.channels)    # it is seen again with each that is put in
        return made

    def track(self, int number, tags):
        """The deliveries of an open channel: what is acknowledged there needs no Python then."""
        (<LaneChannel?> self.channels[number]).tags = tags

    def close_channel(self, int number):
        """Nothing is sent on it any more but its end, and what comes on it is for Python."""
        self.last_channel = None
        self.channels.pop(number, None)

    cdef LaneChannel open_channel_of(self, int number):
        cdef LaneChannel found = self.last_channel
        if found is None or found.number != number:
            found = self.channels.get(number)
            if found is not None:
                self.last_channel = found
        return found

    # -- basic.ack ---------------------------------------------------------------------------------------------------

    cdef int acknowledge_deliveries(self, const unsigned char* at, double now) except -1:
        """The basic.ack at hand: PASSED, or FRAME if it is for Python."""
        cdef LaneChannel channel = self.open_channel_of(self.channel)
        cdef uint64_t tag = 0
        cdef int i
        if at[HEAD] or at[HEAD + 2] or channel is None or channel.tags is None or channel.plain or channel.under_way:
            return FRAME
        for i in range(8):
            tag = tag << 8 | at[HEAD + 4 + i]
        if not channel.tags.acknowledge(tag, at[HEAD + 12] & 1, now):
            return FRAME
        self.work = 1    # what it sends, the window has counted
        self.pass_frame()
        return PASSED

    # -- basic.publish ----------------------------------------------------------------------------------------------

    cdef int forward_publish(self, const unsigned char* at, Py_ssize_t rest) except -1:
        """The method at hand: PASSED, BLOCKED, or FRAME if it is for Python."""
        cdef LaneChannel channel
        cdef PlainContent content
        cdef PublishSite site
        cdef Route route, wanted
        cdef Py_ssize_t method_size = self.frame_size, size, routed
        if self.body_size < 4 or at[HEAD] or at[HEAD + 2] or (at[HEAD + 1] != BASIC and at[HEAD + 1] != TX):
            return FRAME
        channel = self.open_channel_of(self.channel)
        if at[HEAD + 1] == TX:    # what comes on it waits for tx.commit from now on
            if channel is not None:
                channel.plain = True
            return FRAME
        if at[HEAD + 3] != PUBLISH_ID or self.body_size < 9 or channel is None or channel.under_way \
                or channel.plain or channel.published >= 0xFFFFFFFE:
            return FRAME
        content.headers_size = 0
        size = self.content_size(at + method_size, rest - method_size, &content)
        self.work = 1 + (content.headers_size >> HEADERS_A_COPY)
        if size < 0 or (content.user is not NULL and not self.is_login(content.user, content.user_size)):
            return FRAME
        site = self.site_of(at + HEAD + 4, self.body_size - 4)
        if site is None:
            return FRAME
        route = site.route
        if site.by_headers is not None:
            route = site.by_headers.by_headers(content.headers, content.headers_size)
        elif route is None:
            route = self.routes.find(SYNTAX_NUMBER, PyBytes_AS_STRING(site.topic), PyBytes_GET_SIZE(site.topic))
        if route is None:
            return FRAME
        wanted = route
        if site.onward is not None:
            if route.screens is not None:
                return FRAME
            wanted = site.joined_with(route)
        if at[method_size - 2] & MANDATORY and not PyList_GET_SIZE(wanted.groups):
            return FRAME
        self.frame_size = method_size + size
        self.point(site, &content, at + method_size)
        # The exchanges have led it on already.
        if self.decided(route, RULED | TRACED) or not self.may_publish(site, route, content.replies):
            self.frame_size = method_size
            return FRAME
        if route.screens is not None:
            wanted = self.routes.screened(route, self.message, self.outbox.owner)
        if wanted.refuses(self.ledger, self.message) or (self.receipts is not None and not (
            self.receipts.takes(wanted.tap)
        )):
            self.frame_size = method_size
            return FRAME
        self.note_position()
        routed = self.batcher.publish_alone(wanted, self.ledger, self.outbox, self.message)
        if not self.sent(routed, wanted):
            return BLOCKED
        self.answer_publish(channel, wanted)
        return PASSED

    cdef bint is_login(self, const unsigned char* user, Py_ssize_t size) noexcept:
        """Is it who has logged in? None else may be named as a message's user-id."""
        return self.login is not None and PyBytes_GET_SIZE(self.login) == size \
            and memcmp(PyBytes_AS_STRING(self.login), user, size) == 0

    cdef Py_ssize_t content_size(self, const unsigned char* at, Py_ssize_t rest, PlainContent* content) noexcept:
        """Of the frames behind the method; -1 if not all have come, they are more than two, or they are for Python."""
        cdef Py_ssize_t size, body
        if rest < OVERHEAD or at[0] != HEADER or (at[1] << 8 | at[2]) != self.channel:
            return -1
        size = <Py_ssize_t> (<uint32_t> at[3] << 24 | <uint32_t> at[4] << 16 | <uint32_t> at[5] << 8 | at[6])
        if size + OVERHEAD > min(rest, self.frame_max) or at[HEAD + size] != FRAME_END \
                or not read_plain(at + HEAD, size, content):
            return -1
        size += OVERHEAD
        if content.body_size == 0:
            return size
        if content.body_size > self.body_max or content.body_size + OVERHEAD > <uint64_t> min(rest, self.frame_max):
            return -1
        body = <Py_ssize_t> content.body_size
        at += size
        if rest < size + body + OVERHEAD or at[0] != BODY or (at[1] << 8 | at[2]) != self.channel \
                or <Py_ssize_t> (
                    <uint32_t> at[3] << 24 | <uint32_t> at[4] << 16 | <uint32_t> at[5] << 8 | at[6]
                ) != body or at[HEAD + body] != FRAME_END:
            return -1
        return size + body + OVERHEAD

    cdef PublishSite site_of(self, const unsigned char* octets, Py_ssize_t size):
        cdef PublishSite site = self.last_site
        if site is not None and PyBytes_GET_SIZE(self.last_arguments) == size \
                and memcmp(PyBytes_AS_STRING(self.last_arguments), octets, size) == 0 and site.usable():
            return site
        site = self.sites.find(octets, size)
        self.last_site = site
        if site is not None:
            self.last_arguments = PyBytes_FromStringAndSize(<const char*> octets, size)
        return site

    cdef bint may_publish(self, PublishSite site, Route route, bint replies) except -1:
        """`permitted`, for routes that are not in the cache: a site knows one class that may publish there."""
        cdef Badge badge = self.badge
        if badge is None or (site.route is None and site.by_headers is None):
            return self.permitted(route, False, replies)
        if self.frame_size > self.publish_max or badge.validity.over or badge.number >= REVOKED \
                or (self.outbox.pace is not None and self.outbox.pace.owes(self.ledger.now, True)):
            return False
        if site.publishes is not badge:
            if not badge.ask(MAY_PUBLISH, site.topic, SYNTAX_NUMBER):
                return False
            site.publishes = badge
        if replies and site.asks is not badge:
            if not badge.ask(MAY_REQUEST, site.topic, SYNTAX_NUMBER):
                return False
            site.asks = badge
        return True

    cdef int point(self, PublishSite site, PlainContent* content, const unsigned char* frame) except -1:
        """Point the lane's message at the content whose HEADER frame this is."""
        cdef Message message = self.own
        cdef Py_ssize_t names = PyBytes_GET_SIZE(site.names), size = names + content.encoded_size
        cdef char* fields = self.fields
        if size > self.fields_capacity:
            fields = <char*> reallocate(self.fields, size + 256)
            if fields is NULL:
                raise MemoryError()
            self.fields, self.fields_capacity = fields, size + 256
        memcpy(fields, PyBytes_AS_STRING(site.names), names)
        memcpy(fields + names, content.encoded, content.encoded_size)
        message.fields_at, message.fields_size = fields, size
        message.topic_octets = site.topic    # all that are kept have the same
        message.topic_at, message.topic_size = PyBytes_AS_STRING(site.topic), PyBytes_GET_SIZE(site.topic)
        message.payload_at = <const char*> content.encoded + content.encoded_size + 1 + HEAD
        message.payload_size = <Py_ssize_t> content.body_size
        message.expires_at = self.ledger.now + content.lifetime / 1_000. if content.lifetime >= 0 else NEVER
        message.qos = content.persistent
        message.format_data = content.priority
        self.message = message
        return 0

    cdef int answer_publish(self, LaneChannel channel, Route route) except -1:
        """Confirm what was sent, now or when it is stored; what nobody had room for is refused."""
        cdef uint32_t answer = channel.number | channel.serial << 16
        if not channel.confirming:
            self.counts.discarded += self.unkept
            return 0
        channel.published += 1
        if self.unkept:
            answer |= REFUSED
        if self.receipts is None:
            return self.acknowledge(<uint32_t> channel.published, answer)
        return self.receipts.put(self, route.tap, self.position, <uint32_t> channel.published, answer)

    cdef int acknowledge(self, uint32_t number, uint32_t answer) except -1:
        """basic.ack of one message, or basic.nack. An ack that is still unsent, of the one before, is made to say both.
        """
        cdef LaneChannel channel = self.open_channel_of(<int> (answer & 0xFFFF))
        cdef char[ACK_SIZE] frame
        if channel is None or channel.serial != <int> (answer >> 16 & 0x7FFF):
            return 0    # it is closed
        if answer & REFUSED:
            self.counts.confirm_refusals += 1
        else:
            self.counts.confirms += 1
            if self.extend_ack(channel.number, number):
                return 0
        memcpy(frame, b"\x01\x00\x00\x00\x00\x00\x0d\x00\x3c\x00\x50\x00\x00\x00\x00", 15)
        frame[1], frame[2] = <char> (channel.number >> 8), <char> (channel.number & 0xFF)
        if answer & REFUSED:
            frame[10] = 120
        uint32_into(&frame[15], number)
        frame[19] = 0
        frame[20] = <char> FRAME_END
        return self.write(frame, ACK_SIZE)

    cdef bint extend_ack(self, int channel, uint64_t number) noexcept:
        """Is the last that is unsent the ack of the message before? Then it is of both from now on."""
        cdef Outbox outbox = self.outbox
        cdef Frame* last
        cdef unsigned char* at
        if outbox.count == 0 or outbox.tail - outbox.head < ACK_SIZE:
            return False
        last = &outbox.frames[(outbox.first + outbox.count - 1) & (outbox.frames_capacity - 1)]
        at = <unsigned char*> outbox.data + outbox.tail - ACK_SIZE
        if last.inline_size != ACK_SIZE or last.flags or at[0] != METHOD or (at[1] << 8 | at[2]) != channel \
                or at[8] != 60 or at[10] != 80 or at[20] != FRAME_END or (
                    <uint64_t> at[15] << 24 | <uint64_t> at[16] << 16 | <uint64_t> at[17] << 8 | at[18]
                ) != number - 1:
            return False
        uint32_into(<char*> at + 15, <uint32_t> number)
        at[19] = 1
        return True

    # -- the frame at hand, for Python ------------------------------------------------------------------------------

    def payload(self):
        """The payload of the frame at hand, which stays at hand."""
        return (<const char*> self.body_at)[:self.body_size]

    def offer(self, Message message not None):
        """The message that `forward` is to send: the content that ends with the frame at hand."""
        self.message = message

    def waits(self, Route route not None):
        return self.receipts is not None and ((route.tap is not None and self.receipts.recording) or (
            self.receipts.journaling and route.stores(self.message.qos)))

    # -- inside -----------------------------------------------------------------------------------------------------

    cdef bint sent(self, Py_ssize_t routed, Route route) except -1:
        if routed < 0:
            self.wait()
            return False
        self.routed = routed
        self.unkept = self.ledger.unkept
        self.pass_frame()
        return True

    cdef bint acknowledge_sent(self, Route route) except -1:
        return False    # a confirm is written by Python
