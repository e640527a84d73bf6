# cython: language_level=3
"""Fan-out: one message, encoded once, copied into the outbox of each subscription that gets it.

Python decides who is on a route, once; this file runs for each message and each copy. Both lanes of a publish, the
compiled one and the one through Python, end here, so that a message takes the same way whichever lane it came by.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from broker.wire.ledger cimport Ledger
from broker.wire.message cimport Message, Variant, begin, number_into, prepare
from broker.wire.outbox cimport MESSAGE, Outbox

UNLIMITED = -1


cdef class Target:
    """The hot half of a subscription.

    variant      how its copies are written
    number       as the client chose it
    credit       messages it may get before more is granted, or UNLIMITED
    after        messages until it ends by itself, or UNLIMITED
    waiting_max  messages that may wait for credit; further ones are dropped and counted
    """

    def __cinit__(self, Outbox outbox not None, Variant variant not None, uint32_t number, *, bint no_echo=False, int64_t credit=UNLIMITED,
                  int64_t after=UNLIMITED, Py_ssize_t waiting_max=0, subscription=None):
        self.outbox = outbox
        self.variant = variant
        self.number = number
        self.no_echo = no_echo
        self.credit = credit
        self.remaining = after
        self.waiting_max = waiting_max
        self.subscription = subscription
        self.waiting = deque() if credit != UNLIMITED else None

    @property
    def waiting_messages(self):
        """Messages that wait for credit."""
        return len(self.waiting) if self.waiting is not None else 0

    cdef bint listens(self, Outbox publisher) noexcept:
        return not (self.ended or self.outbox.closed or (self.no_echo and publisher is self.outbox))

    cdef bint stalled(self) noexcept:
        """Would a message have to wait, be dropped, or hold its publisher back?"""
        return self.credit == 0 or self.outbox.pausing or not self.outbox.admits(0)

    cdef Py_ssize_t pending(self):
        """Bytes that would leave before a message given to this target now."""
        return self.outbox.size + self.outbox.held

    cdef int deliver(self, Message message) except -1:
        cdef Outbox outbox = self.outbox
        cdef Variant variant = self.variant
        cdef Py_ssize_t size
        if not prepare(variant, message):
            self.dropped += 1
            outbox.ledger.dropped_unspellable += 1
            return 0
        size = variant.head_size + variant.body_size
        if size > outbox.frame_max:
            self.dropped += 1
            outbox.ledger.dropped_too_large += 1
            return 0
        if variant.hole_size == 4:
            number_into(variant.head + variant.hole, self.number)
        if self.credit == 0 or (self.credit > 0 and self.waiting):
            return self.hold(variant)
        if not outbox.admits(size) and not outbox.make_room(size):
            self.dropped += 1
            return 0
        if variant.shared is NULL:
            outbox.put(variant.head, variant.head_size, variant.body, variant.body_size, self.number, MESSAGE)
        else:
            outbox.put_shared(variant.head, variant.head_size, <bytes> variant.shared, self.number)
        if self.credit > 0:
            self.credit -= 1
        return self.count()

    cdef int count(self) except -1:
        self.delivered += 1
        if self.remaining > 0:
            self.remaining -= 1
            if self.remaining == 0:
                self.end()
        return 0

    cdef int hold(self, Variant variant) except -1:
        """Out of credit: keep the frame until some is granted, within the bounds; else drop it, the newest."""
        cdef Py_ssize_t size = variant.head_size + variant.body_size
        cdef bytes frame
        if len(self.waiting) >= self.waiting_max or not self.outbox.admits(size):
            self.dropped += 1
            self.outbox.dropped += 1
            self.outbox.ledger.dropped_credit += 1
            return 0
        frame = PyBytes_FromStringAndSize(NULL, size)
        memcpy(PyBytes_AS_STRING(frame), variant.head, variant.head_size)
        memcpy(PyBytes_AS_STRING(frame) + variant.head_size, variant.body, variant.body_size)
        self.waiting.append(frame)
        self.outbox.held += size
        self.outbox.ledger.used += size
        return 0

    def grant(self, int64_t messages):
        """Add credit and send what waited for it. Raises ValueError where the protocol forbids the grant."""
        cdef bytes frame
        if self.credit == UNLIMITED:
            raise ValueError(f"subscription {self.number} was made without a credit limit")
        if messages < 0 or self.credit + messages > 0xFFFFFFFF:
            raise ValueError(f"a credit of {self.credit} + {messages} messages is beyond 2^32-1")
        self.credit += messages
        while self.credit and self.waiting and not self.ended:
            frame = self.waiting.popleft()
            self.outbox.held -= PyBytes_GET_SIZE(frame)
            self.outbox.ledger.used -= PyBytes_GET_SIZE(frame)
            self.outbox.put(PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame), NULL, 0, self.number, MESSAGE)
            self.credit -= 1
            self.count()
        if self.ended:
            self.discard()

    def end_after(self, uint64_t messages):
        """End when `messages` have been delivered, counted from the start. Returns True if there were so many already."""
        if messages <= self.delivered:
            return True
        self.remaining = <int64_t> min(messages - self.delivered, <uint64_t> 0x7FFFFFFFFFFFFFFF)
        return False

    def end(self):
        """Deliver nothing more, and let the core know at the end of the turn."""
        if not self.ended:
            self.ended = True
            self.outbox.ledger.ended.append(self)

    def cancel(self):
        """Deliver nothing more; the core knows."""
        self.ended = True
        self.discard()

    def discard(self):
        """Drop and count the messages that wait for credit."""
        cdef Py_ssize_t lost
        if self.waiting:
            lost = len(self.waiting)
            for frame in self.waiting:
                self.outbox.held -= PyBytes_GET_SIZE(frame)
                self.outbox.ledger.used -= PyBytes_GET_SIZE(frame)
            self.waiting.clear()
            self.dropped += lost
            self.outbox.dropped += lost
            self.outbox.ledger.dropped_credit += lost


cdef class Group:
    """A queue group: each message goes to one member.

    The one with the least pending (bytes that would leave first); ties go in turn; members that are stalled are passed
    over as long as another is not.
    """

    def __cinit__(self):
        self.members = []

    def add(self, Target target not None):
        self.members.append(target)

    def remove(self, Target target not None):
        """Raises ValueError if it is no member."""
        self.members.remove(target)

    def __len__(self):
        return len(self.members)

    cdef Target pick(self, Outbox publisher):
        cdef Py_ssize_t i, at, n = PyList_GET_SIZE(self.members), least = 0, pending, best_at = 0
        cdef Target member, best = None
        cdef bint stalled, best_stalled = False
        for i in range(n):
            at = (self.turn + i) % n
            member = <Target> PyList_GET_ITEM(self.members, at)
            if not member.listens(publisher):
                continue
            stalled = member.stalled()
            pending = member.pending()
            if best is None or (best_stalled and not stalled) or (best_stalled == stalled and pending < least):
                best, best_stalled, least, best_at = member, stalled, pending, at
        if best is not None:
            self.turn = best_at + 1
        return best

    cdef Outbox blocker(self, Outbox publisher):
        """An outbox that holds the publisher back, if every member does."""
        cdef Target member
        cdef Outbox found = None
        for member in self.members:
            if not member.listens(publisher):
                continue
            if not member.outbox.holds_back():
                return None
            found = member.outbox
        return found


cdef class Route:
    """Who gets messages on one topic. Immutable; a change in the subscriptions makes a new one."""

    def __cinit__(self, bytes key not None, list targets not None, list groups not None):
        self.key = key
        self.targets = targets
        self.groups = groups

    def __len__(self):
        return len(self.targets) + len(self.groups)

    cdef Outbox blocker(self, Outbox publisher):
        """An outbox on this route that holds publishers back, or None. Asked only while there is such an outbox."""
        cdef Target target
        cdef Group group
        cdef Outbox found
        for target in self.targets:
            if target.listens(publisher) and target.outbox.holds_back():
                return target.outbox
        for group in self.groups:
            found = group.blocker(publisher)
            if found is not None:
                return found
        return None

    def blocker_of(self, Outbox publisher):
        """`blocker` for Python: look before a message is published."""
        return self.blocker(publisher)


cdef Py_ssize_t fan_out(Route route, Ledger ledger, Outbox publisher, Message message) except -1:
    """Give one message to all who get it. Returns the number of subscriptions, a queue group counting once."""
    cdef Py_ssize_t i, routed = 0, n = PyList_GET_SIZE(route.targets)
    cdef Target target
    cdef Group group
    route.hits += 1
    ledger.messages_in += 1
    begin(message)
    for i in range(n):
        target = <Target> PyList_GET_ITEM(route.targets, i)
        if target.listens(publisher):
            target.deliver(message)
            routed += 1
    for group in route.groups:
        target = group.pick(publisher)
        if target is not None:
            target.deliver(message)
            routed += 1
    if message.laden:
        message.finish()
    if routed == 0:
        ledger.unroutable += 1
    return routed


def publish(Route route not None, Ledger ledger not None, Outbox publisher, Message message not None):
    """`fan_out` for Python. `publisher` is the outbox of who publishes it, for those who want none of their own."""
    return fan_out(route, ledger, publisher, message)
