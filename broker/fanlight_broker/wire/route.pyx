# cython: language_level=3
"""Routes: who gets the messages on one topic, decided once."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.message cimport HOLDER, Message
from fanlight_broker.wire.msgpack cimport is_utf8
from fanlight_broker.wire.named_queue cimport NamedQueue
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.permits cimport permit_keep, permit_serial
from fanlight_broker.wire.screening cimport RouteScreens
from fanlight_broker.wire.target cimport Members, Target

cdef enum:
    ROUTE_BYTES = 312            # of a route without its topic and targets: two objects, a list, table entries
    MERGED_BYTES = 256           # of a target made for a route: two objects and a list
    JOINED_MOST = 64             # places of a joined route that is kept: to make one takes less than to deliver so many


cdef inline bint stores(Target target) noexcept:
    return target.window is not None and target.variant.qos and target.window.queue.journal is not None


@cython.final
@cython.no_gc
cdef class QueuesBehind:
    """queues: see route.pxd."""

    def __cinit__(self, list queues not None):
        self.queues = unseen(queues)

    cdef Route joined_with(self, Route route):
        """The route of the topic with these, for one message that counts there."""
        cdef Route made = self.joined
        route.hits += 1
        if made is not None and self.targets is route.targets and self.groups is route.groups and made.tap is route.tap:
            return made
        made = route.with_queues(self.queues)
        self.joined = None
        if len(made.targets) + len(made.groups) <= JOINED_MOST:
            self.joined, self.targets, self.groups = made, route.targets, route.groups
        return made


@cython.no_gc
cdef class Route:
    """The subscriptions of one topic."""

    def __cinit__(self, bytes key not None, list targets not None, list groups not None, RouteScreens screens=None):
        self.key = key
        self.place = -1
        self.set_targets(unseen(targets), unseen(groups), screens)
        self.is_text = is_utf8(<const unsigned char*> PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    cdef int set_targets(self, list targets, list groups, RouteScreens screens) except -1:
        """Replace who gets the messages; `nbytes` follows."""
        cdef Target target
        self.targets = targets
        self.groups = groups
        self.screens = screens
        self.nbytes = ROUTE_BYTES + PyBytes_GET_SIZE(self.key) + 8 * (len(targets) + len(groups))
        if screens is not None:
            self.nbytes += screens.bytes_held()
        for target in targets:
            if target.merged:
                self.nbytes += MERGED_BYTES + 8 * len(target.extras.parts)
                self.nbytes += PyBytes_GET_SIZE(target.variant.identifiers)
        return 0

    cdef int permit(self, int number, int kind) noexcept:
        """A class may do this, from now until `forget_permits`."""
        if number < 64:
            self.permitted[kind] |= <uint64_t> 1 << number
        else:
            if self.permitted_too[self.permitted_next]:    # it makes room, and is not forgotten
                if not self.permit_serial:
                    self.permit_serial = permit_serial()
                permit_keep(self.permit_serial, self.permitted_too[self.permitted_next])
            self.permitted_too[self.permitted_next] = 4 * <uint32_t> number + kind
            self.permitted_next = (self.permitted_next + 1) & 3
        return 0

    cdef int forget_permits(self) noexcept:
        cdef int i
        for i in range(3):
            self.permitted[i] = 0
        for i in range(4):
            self.permitted_too[i] = 0
        self.permit_serial = 0
        return 0

    def with_queues(self, list queues not None):
        """A route of no topic, which is not kept: with these queues besides, each once."""
        cdef object known = set(self.groups)
        cdef Route made = Route(b"", self.targets, self.groups + [each for each in queues if each not in known])
        made.tap = self.tap
        return made

    @property
    def ruled(self):
        """May a routing rule act on the topic's messages, or are there queues behind it?"""
        return self.decided & (RULED | LED_ON) != 0

    def trace(self):
        """Ask the sampler about its messages."""
        self.decided |= TRACED

    def __len__(self):
        """Subscriptions, and queue groups; those with selectors, too."""
        cdef Py_ssize_t screened = self.screens.subscriptions() if self.screens is not None else 0
        return len(self.targets) + len(self.groups) + screened

    cdef Outbox blocker(self, Outbox publisher):
        """An outbox on this route that holds publishers back, or None. Called only while there is such an outbox."""
        cdef Target target
        cdef Members group
        cdef Outbox found
        for target in self.targets:
            if target.listens(publisher) and target.box().holds_back(publisher):
                return target.box()
        for group in self.groups:
            found = group.blocker(publisher)
            if found is not None:
                return found
        return None

    cdef bint refused_by_queue(self, Ledger ledger, Message message) except -1:
        cdef list groups = self.groups
        cdef Members group
        cdef Account account = None
        cdef Py_ssize_t i, n = PyList_GET_SIZE(groups), octets = message.bytes_held()
        # What it takes if all of them keep it: else one queue would have it, and the next no room for its place.
        cdef Py_ssize_t most = octets + HOLDER * (n + (PyList_GET_SIZE(self.targets) if message.qos else 0))
        cdef bint room = ledger.stored + most <= ledger.stored_limit, alike = False
        for i in range(n):
            # A queue with room refuses nothing; and mostly all are of one principal, which is asked once.
            group = <Members> PyList_GET_ITEM(groups, i)
            if type(group) is NamedQueue and (<NamedQueue> group).recorder is None:
                if room and group.queue.has_place(octets, message.payload_size):
                    if not alike or group.queue.account is not account:
                        account = group.queue.account
                        alike = account is None or account.admits(most, ledger)
                    if alike:
                        continue
                if (<NamedQueue> group).refusing:
                    return True
            elif group.refuses(message):
                return True
        return False

    def is_refused(self, Ledger ledger not None, Message message not None):
        """`refuses`, for Python."""
        return self.refuses(ledger, message)

    def has_room(self, Ledger ledger not None, Outbox publisher, Message message not None):
        """Would any subscription or queue get a message? Also True if no subscription is left."""
        cdef Target target
        cdef Members group
        cdef Py_ssize_t size = message.bytes_held()
        cdef bint alone = True
        if self.refused_by_queue(ledger, message):
            return False
        for target in self.targets:
            if target.listens(publisher):
                alone = False
                if target.window is None or not (message.qos and target.variant.qos) or not target.window.full() \
                        or target.window.queue.has_room(size):
                    return True
        for group in self.groups:
            alone = False
            if group.queue is None or group.queue.has_room(group.queue.size_of(message)):
                return True
        return alone

    def stores(self, int qos):
        """Would a message of this quality be in a queue that a journal keeps?"""
        cdef Target target
        cdef Members group
        for group in self.groups:
            if (qos or group.takes_all) and group.queue is not None and group.queue.journal is not None:
                return True
        if not qos:
            return False
        for target in self.targets:
            if stores(target):
                return True
        for group in self.groups:
            for target in group.members:
                if stores(target):
                    return True
        return False

    def blocker_of(self, Outbox publisher):
        """`blocker` for Python: look before a message is published."""
        return self.blocker(publisher)
