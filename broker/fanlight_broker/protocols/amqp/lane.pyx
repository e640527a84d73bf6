# cython: language_level=3
"""The compiled lane of AMQP: whole frames out of the inbox (2.3.5). Drawn in lane.pxd; frames.py does the same."""

from libc.stdint cimport uint32_t

from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.lane cimport BLOCKED, FAULT, FRAME, NEED_MORE, PUBLISH, TOO_LARGE, TURN_OVER, Lane
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.route cimport Route

cdef enum:
    GREETING = 8         # bytes of the protocol header
    HEAD = 7             # bytes of a frame before its payload
    OVERHEAD = 8         # and with its end
    FRAME_END = 0xCE
    METHOD = 1
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8
    TX = 90
    COMMIT = 20


cdef class AmqpLane(Lane):
    """The frames of one connection. A frame is as large as all of its bytes, its head and its end included."""

    cdef int read_frames(self, double now) except -1:
        cdef Inbox inbox = self.inbox
        cdef const unsigned char* at
        cdef Py_ssize_t rest, size
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
            return PUBLISH if self.kind in (HEADER, BODY) else FRAME

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
