# cython: language_level=3
"""Targets: how one subscription gets its copies. What runs for the ordinary copy is in fanout.pyx (`pass_on`)."""

from collections import deque

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.debug cimport check
from fanlight_broker.wire.frames cimport FIRM, MESSAGE
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.message cimport Message, Variant, uint32_into
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport (
    FanoutState, begin, encode, finish, for_format, prepare, raised, share_body,
)
from fanlight_broker.wire.consumers cimport Consumers
from fanlight_broker.wire.window cimport Window

cdef enum:
    WAITING_OBJECT = 56      # bytes of a frame that waits for credit beside its own: the object, and its place in the
                             # deque

UNLIMITED = UNLIMITED_CREDIT

cdef enum:
    LATE_BODY = 256    # bytes, from which on a body is shared by those whose outbox is full: a reference costs less


@cython.no_gc
cdef class Members(Consumers):
    cdef int renew_consumer(self, Target member) except -1:
        """A member that acknowledges takes from the group's queue, as its variant says."""
        raise NotImplementedError("members without a group")

    cdef bint give(self, Outbox publisher, FanoutState* publication) except -1:
        """Give a message to one of those that take. False if nobody gets it."""
        raise NotImplementedError("members that are given nothing")

    cdef Outbox blocker(self, Outbox publisher):
        """An outbox that holds the publisher back, if all of them do."""
        raise NotImplementedError("members that hold nobody back")

    cdef bint refuses(self, Message message) except -1:
        """Must a message of this size not be published, because there is no room for it?"""
        return False

    cdef int stamp(self, uint64_t serial) except -1:
        """Note in the outboxes of those that take that they get more than one copy: see Batcher."""
        raise NotImplementedError("members without outboxes")


@cython.no_gc
cdef class Extras:
    """What few subscriptions have."""


@cython.no_gc
cdef class Target:
    """A subscription, or a merged target for several of one session on a route.

    destination  the Outbox of its connection, or the Window of its session
    variant      how its copies are written
    number       as the client chose it
    filter       as the client wrote it, in the syntax of this number
    credit       messages it may get before more is granted, or UNLIMITED
    after        messages until it ends, or UNLIMITED
    waiting_max  messages that may wait for credit; further ones are dropped and counted
    condition    on the content of its messages, for those who look; None: it gets all
    """

    def __cinit__(self, destination not None, Variant variant not None, uint32_t number, bytes filter=b"",
                  unsigned char syntax=0, bint no_echo=False, *, bint only_echo=False, int64_t credit=UNLIMITED_CREDIT,
                  int64_t after=UNLIMITED_CREDIT, Py_ssize_t waiting_max=0, list parts=None,
                  condition=None):
        if isinstance(destination, Window):
            self.window = <Window> destination
        else:
            self.direct = <Outbox?> destination
        self.variant = variant
        self.number = number
        self.filter = filter
        self.syntax_number = syntax
        self.echo = ONLY_OWN if only_echo else NOT_OWN if no_echo else ALL
        self.credit = credit
        self.remaining = after
        if parts is not None:
            self.extra().parts = unseen(parts)
            self.merged = True
        if condition is not None:
            self.extra().condition = condition
        if credit != UNLIMITED_CREDIT:
            self.extra().waiting = unseen(deque())
            self.extras.waiting_max = waiting_max

    cdef Extras extra(self):
        if self.extras is None:
            self.extras = Extras.__new__(Extras)
        return self.extras

    cdef int join_group(self, Members group) except -1:
        self.extra().group = group
        self.grouped = True
        return 0

    cdef int leave_group(self) except -1:
        self.extras.group = None
        self.grouped = False
        return 0

    @property
    def waiting_messages(self):
        """Messages that wait for credit."""
        return len(self.extras.waiting) if self.credit != UNLIMITED_CREDIT else 0

    @property
    def waiting_max(self):
        """Messages that may wait for credit."""
        return self.extras.waiting_max if self.credit != UNLIMITED_CREDIT else 0

    @property
    def parts(self):
        """Of a merged target: the targets that it replaces; else None."""
        return self.extras.parts if self.merged else None

    @property
    def condition(self):
        """On the content of its messages, or None."""
        return self.extras.condition if self.extras is not None else None

    @property
    def group(self):
        """The queue group that it is a member of, or None."""
        return self.extras.group if self.grouped else None

    @property
    def outbox(self):
        """Of its connection, or None if its client is away."""
        return self.direct if self.window is None else self.window.outbox

    @property
    def owner(self):
        """Whose it is: the core's subscriber, which outlives connections."""
        return (self.direct.owner if self.window is None else self.window.owner).subscriber

    @property
    def ended(self):
        """It delivers nothing more: it has ended, or its session or connection has."""
        return self.done or (self.direct.closed if self.window is None else self.window.ended)

    @property
    def no_echo(self):
        return self.echo == NOT_OWN

    @property
    def delivered(self):
        """Messages handed to the connection, those that its slow policy took back not counted."""
        return self.handed - <uint64_t> self.box().evicted.get(self.number, 0)

    @property
    def dropped(self):
        """Messages it would have got, but for its slow policy or its credit."""
        return self.lost + <uint64_t> self.box().evicted.get(self.number, 0)

    cdef bint joins(self, int qos) noexcept:
        """Is whether it fits the only thing to decide about a message of this quality?"""
        if self.window is not None and (not self.window.open or (qos and self.variant.qos)):
            return False
        return self.credit == UNLIMITED_CREDIT and self.remaining < 0

    cdef bint stalled(self) noexcept:
        """Would a message have to wait, be dropped, or hold its publisher back?"""
        cdef Outbox outbox = self.box()
        return self.credit == 0 or outbox.pausing or not outbox.admits(0)

    cdef Py_ssize_t pending(self):
        """Bytes that would leave before a message given to this target now."""
        cdef Outbox outbox = self.box()
        return outbox.size + outbox.awaiting_credit

    cdef int deliver(self, FanoutState* publication, Variant variant) except -1:
        cdef Outbox outbox = self.direct
        if self.window is not None:
            if publication.qos and variant.qos:
                self.window.offer(publication, variant, self.consumer())
                return self.count()
            outbox = self.window.box
            if not self.window.open:
                # QoS 0 is not kept for a client that is away (MQTT 5, 4.1 allows either).
                outbox.ledger.dropped_absent += 1
                return 0
        cdef Py_ssize_t size
        cdef uint32_t flags
        if not prepare(publication, variant):
            self.lost += 1
            outbox.ledger.dropped_unspellable += 1
            return 0
        size = variant.head_size + variant.body_size
        if size > outbox.frame_max:
            self.lost += 1
            outbox.ledger.dropped_too_large += 1
            return 0
        if variant.hole_size == 4:
            uint32_into(variant.head + variant.hole, self.number)
        if self.credit == 0 or (self.credit > 0 and self.extras.waiting):
            return self.wait_for_credit(variant, (<Message> publication.message).payload_size)
        if not outbox.admits(size):
            if not outbox.make_room(size):
                self.lost += 1
                return 0
            if variant.shared is NULL and variant.body_size >= LATE_BODY:
                # A consumer that is this late has many messages waiting, and so have others: they share one copy.
                share_body(publication, variant, for_format(publication, variant.format))
        check(variant.serial == publication.serial, b"a template of another publication is copied")
        flags = MESSAGE | FIRM if variant.firm else MESSAGE
        if variant.shared is NULL:
            outbox.put(variant.head, variant.head_size, variant.body, variant.body_size, self.number, flags)
        else:
            outbox.put_shared(variant.head, variant.head_size, <bytes> variant.shared, self.number, flags)
        outbox.ledger.payload_out += (<Message> publication.message).payload_size
        if variant.stateful:
            variant.format.sent(variant)
        if self.credit > 0:
            self.credit -= 1
        return self.count()

    cdef int count(self) except -1:
        self.delivered_more(1)
        if self.remaining > 0:
            self.remaining -= 1
            if self.remaining == 0:
                self.end()
        return 0

    cdef int failed(self) except -1:
        """`fault`, of what an unchecked call has left."""
        try:
            raised()
        except Exception as error:
            self.fault(error)
        return 0

    cdef int fault(self, error) except -1:
        """`deliver` has raised: the message is lost for this target, and its connection is closed after the turn."""
        self.lost += 1
        return self.box().note_fault(error)

    cdef int wait_for_credit(self, Variant variant, Py_ssize_t payload) except -1:
        """Out of credit: keep the frame until some is granted, within the bounds; else drop it, the newest."""
        cdef Py_ssize_t size = variant.head_size + variant.body_size
        cdef bytes frame
        if len(self.extras.waiting) >= self.extras.waiting_max or not self.direct.admits(WAITING_OBJECT + size):
            self.lost += 1
            self.direct.dropped += 1
            self.direct.ledger.dropped_credit += 1
            return 0
        frame = PyBytes_FromStringAndSize(NULL, size)
        memcpy(PyBytes_AS_STRING(frame), variant.head, variant.head_size)
        memcpy(PyBytes_AS_STRING(frame) + variant.head_size, variant.body, variant.body_size)
        self.extras.waiting.append(frame)
        if not self.direct.over_half(0) and self.direct.over_half(WAITING_OBJECT + size):
            self.direct.ledger.attention.append(self.direct)    # nothing is flushed, which would see it: net.flush
        self.direct.awaiting_credit += WAITING_OBJECT + size
        self.direct.ledger.used += WAITING_OBJECT + size
        self.direct.ledger.payload_out += payload
        return 0

    def grant(self, int64_t messages):
        """Add credit and send what waited for it. Raises ValueError where the protocol forbids the grant."""
        cdef bytes frame
        if self.credit == UNLIMITED:
            raise ValueError(f"subscription {self.number} was made without a credit limit")
        if messages < 0 or self.credit + messages > 0xFFFFFFFF:
            raise ValueError(f"a credit of {self.credit} + {messages} messages is beyond 2^32-1")
        self.credit += messages
        while self.credit and self.extras.waiting and not self.done:
            frame = self.extras.waiting.popleft()
            self.direct.awaiting_credit -= WAITING_OBJECT + PyBytes_GET_SIZE(frame)
            self.direct.ledger.used -= WAITING_OBJECT + PyBytes_GET_SIZE(frame)
            self.direct.put(PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame), NULL, 0, self.number, MESSAGE)
            self.credit -= 1
            self.count()
        if self.done:
            self.discard()

    def lift_credit(self):
        """Lift the credit limit, and send what waited for credit."""
        if self.credit != UNLIMITED:
            self.grant(len(self.extras.waiting) if self.extras.waiting else 0)
            self.credit = UNLIMITED

    def end_after(self, uint64_t messages):
        """End when `messages` have been delivered, counted from the start. True if there were that many already."""
        if messages <= self.handed:
            return True
        self.remaining = <int64_t> min(messages - self.handed, <uint64_t> 0x7FFFFFFFFFFFFFFF)
        return False

    def end(self):
        """Deliver nothing more, and notify the core at the end of the turn."""
        if not self.done:
            self.done = True
            self.box().ledger.ended.append(self)

    def cancel(self):
        """Deliver nothing more; the core knows."""
        self.done = True
        self.discard()

    cpdef int discard(self) except -1:
        """Drop and count the messages that wait for credit."""
        cdef Py_ssize_t lost
        if self.credit != UNLIMITED_CREDIT and self.extras.waiting:
            lost = len(self.extras.waiting)
            for frame in self.extras.waiting:
                self.direct.awaiting_credit -= WAITING_OBJECT + PyBytes_GET_SIZE(frame)
                self.direct.ledger.used -= WAITING_OBJECT + PyBytes_GET_SIZE(frame)
            self.extras.waiting.clear()
            self.lost += lost
            self.direct.dropped += lost
            self.direct.ledger.dropped_credit += lost
        return 0

    cpdef int send(self, Message message, Variant variant, double now) except -1:
        """One message for this target alone, written as `variant`: a retained one."""
        cdef FanoutState publication
        begin(&publication, message)
        try:
            encode(&publication, variant, False, now)
            self.deliver(&publication, variant)
        except Exception as error:
            self.fault(error)
        finally:
            finish(&publication)
        return 0

    def rebind(self, Variant variant not None, bint no_echo):
        """Its client has changed the options of the subscription."""
        self.variant = variant
        self.echo = NOT_OWN if no_echo else ALL
        if self.grouped:
            self.extras.group.renew_consumer(self)
