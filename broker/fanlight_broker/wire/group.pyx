# cython: language_level=3
"""Queue groups: subscriptions of which each message goes to one."""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Account
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState, kept
from fanlight_broker.wire.queue cimport Consumer, Queue
from fanlight_broker.wire.target cimport Members, Target
from fanlight_broker.wire.window cimport Window


cdef inline Account payer(Account account):
    """Who pays for what the members have together: the principal of one of them."""
    return account.root if account is not None and account.root is not None else account


@cython.no_gc
cdef class QueueGroup(Members):
    """A queue group: each message goes to one member.

    The one with the least pending (bytes that would leave first); ties go in turn; members that are stalled are passed
    over as long as another is not. A message that is to be acknowledged, and that no member has room for, waits in the
    group's own queue. The member that has room next takes it, so an unsent message never depends on one member.
    """

    def __cinit__(self, str name=""):
        self.name = name
        self.members = unseen([])

    def add(self, Target target not None, Queue queue=None):
        """Add a member. One with a window brings a queue; the group keeps that of the first."""
        self.members.append(target)
        target.join_group(self)
        if target.window is not None:
            if self.queue is None:
                self.queue = <Queue?> queue
                self.queue.group = self
            self.renew_consumer(target)

    def remove(self, Target target not None):
        """Remove a member. Raises ValueError if it is not a member.

        Returns the queue if nobody is left who takes from it: it has ended, and is to be drained. Else None.
        """
        cdef Queue queue = self.queue
        cdef Target heir
        del self.members[self.place_of(target)]
        if target.window is not None:
            self.forget_consumers(target.window)
        target.leave_group()
        if queue is None or target.window is None:
            return None
        heir = self.heir()
        if heir is None:
            self.queue = None
            queue.group = None
            return queue
        if payer(heir.window.queue.account) is not queue.account:
            queue.charge_to(payer(heir.window.queue.account))
        return None

    cdef Py_ssize_t place_of(self, Target target) except -1:
        """A loop of its own: list.remove compares each with the generic `==`, and a group may have 10,000 members."""
        cdef Py_ssize_t i
        for i in range(PyList_GET_SIZE(self.members)):
            if <void*> PyList_GET_ITEM(self.members, i) == <void*> target:
                return i
        raise ValueError("not a member of this group")

    cdef Target heir(self):
        """A member that takes from the queue: if there is one, of the principal that pays for it. None: there is none.
        """
        cdef Py_ssize_t i
        cdef Target member, found = None
        for i in range(PyList_GET_SIZE(self.members)):
            member = <Target> PyList_GET_ITEM(self.members, i)
            if member.window is None:
                continue
            if payer(member.window.queue.account) is self.queue.account:
                return member
            if found is None:
                found = member
        return found

    cdef int renew_consumer(self, Target member) except -1:
        """A member with a window takes from the queue as its variant says, if it acknowledges."""
        self.forget_consumers(member.window)
        if member.variant.qos:
            member.extras.consumer = Consumer(self.queue, member.variant)
            member.window.consumers.append(member.extras.consumer)
        else:
            member.extras.consumer = None
        return 0

    cdef int forget_consumers(self, Window window) except -1:
        cdef Consumer consumer
        window.consumers[:] = [consumer for consumer in window.consumers if consumer.queue is not self.queue]
        return 0

    cpdef feed(self, double now):
        """Messages have come back into the queue: let members with room take them."""
        cdef Target member
        if self.queue is not None:
            for member in self.members:
                if member.window is not None and self.queue.length:
                    member.window.pump(now)

    def __len__(self):
        return len(self.members)

    cdef Target pick(self, Outbox publisher, int qos, bint* waits):
        """The member to give a message to, or None. `waits`: all who acknowledge are stalled, keep it in the queue."""
        cdef Py_ssize_t i, at, n = PyList_GET_SIZE(self.members), least = 0, pending, best_at = 0
        cdef Target member, best = None
        cdef bint stalled, best_stalled = False
        waits[0] = False
        for i in range(n):
            at = (self.turn + i) % n
            member = <Target> PyList_GET_ITEM(self.members, at)
            if not member.listens(publisher) or member.box().fault is not None:
                continue
            if member.window is not None:
                if qos and member.variant.qos:
                    waits[0] = True
                    stalled = member.window.full()
                else:
                    stalled = member.stalled()
                if not member.window.open:
                    continue
            else:
                stalled = member.stalled()
            pending = member.pending()
            if best is None or (best_stalled and not stalled) or (best_stalled == stalled and pending < least):
                best, best_stalled, least, best_at = member, stalled, pending, at
        if best is not None:
            self.turn = best_at + 1
            waits[0] = waits[0] and best_stalled
        return best

    cdef bint give(self, Outbox publisher, FanoutState* publication) except -1:
        """Give a message to a member, or to the queue. False if nobody gets it.

        If it cannot be written for one member, another gets it; that member is not picked any more.
        """
        cdef bint waits = False
        cdef Target best = self.pick(publisher, publication.qos, &waits)
        cdef Flight flight
        while best is not None and not waits:
            try:
                best.deliver(publication, best.variant)
                return True
            except Exception as error:
                best.fault(error)
            best = self.pick(publisher, publication.qos, &waits)
        if not waits:
            return False
        flight = Flight.__new__(Flight)
        flight.message = kept(publication)
        flight.message.add_holder(self.queue.ledger, self.queue.account)
        self.queue.put(flight)
        return True

    cdef int stamp(self, uint64_t serial) except -1:
        cdef Target member
        for member in self.members:
            member.box().stamp = serial
        return 0

    cdef Outbox blocker(self, Outbox publisher):
        """An outbox that holds the publisher back, if every member does."""
        cdef Target member
        cdef Outbox found = None
        for member in self.members:
            if not member.listens(publisher):
                continue
            if not member.box().holds_back(publisher):
                return None
            found = member.box()
        return found
