# cython: language_level=3
"""The ledger: bytes held by all connections together, counters of what passed, and the turn's to-do lists."""

cimport cython
from libc.math cimport INFINITY

NO_QUOTA = 1 << 62

cdef class PendingBatches:
    cdef int flush_batch(self) except -1:
        raise NotImplementedError("batches that nobody flushes")


cdef class JournalHead:
    cdef int begin_writing(self) except -1:
        raise NotImplementedError("a journal that begins nothing")


cdef class Pot:
    """A bound on memory, shared by all owners of one kind of state.

    An owner calls `charge` before it keeps something, refuses what it cannot keep, and calls `refund` when it drops it.
    `force` is for what is there already, such as bytes that have been read: the owner looks at `full` afterwards.
    What one user may take of it is bounded by a PotShare.
    """

    def __init__(self, str name not None, Py_ssize_t limit=1 << 62):
        self.name = name
        self.limit = limit
        self.share = 1

    cdef bint charge(self, Py_ssize_t octets) noexcept:
        if self.used + octets > self.limit and octets > 0:
            self.refused += 1
            return False
        self.used += octets
        return True

    cdef void force(self, Py_ssize_t octets) noexcept:
        self.used += octets

    def reserve(self, Py_ssize_t octets):
        """`charge`, for Python: False if there is no room, and nothing is taken then. Less than 0 always fits."""
        return self.charge(octets)

    def add(self, Py_ssize_t octets):
        """`force`, for Python: count what is there already; less than 0 for what is gone."""
        self.force(octets)

    def refund(self, Py_ssize_t octets):
        """They are not kept any more."""
        self.force(-octets)

    @property
    def full(self):
        return self.used > self.limit
cdef class Meter:
    """Messages and bytes in and out."""


@cython.final
@cython.no_gc
cdef class PotShare(Pot):
    """What one principal takes of a pot: at most a share of what the others leave. root: it is a joint one."""

    def __init__(self, Pot whole not None, PotShare root=None):
        Pot.__init__(self, whole.name)
        self.whole = whole
        self.most = NO_QUOTA
        self.root = root
        self.wider = None if root is None else ()

    cdef bint fits(self, Py_ssize_t octets) noexcept:
        if self.root is not None:
            return self.all_fit(octets)
        return self.used + octets <= self.most \
            and self.used + octets <= self.whole.share * (self.whole.limit - self.whole.used + self.used)

    cdef bint all_fit(self, Py_ssize_t octets) noexcept:
        cdef PotShare each
        for each in self.wider:
            if not each.fits(octets):
                return False
        return self.root.fits(octets)

    cdef bint charge(self, Py_ssize_t octets) noexcept:
        cdef PotShare each
        if octets > 0 and not self.fits(octets):
            self.refused += 1
            self.whole.refused_shares += 1
            if self.root is not None:
                for each in self.wider:
                    each.refused += not each.fits(octets)
                self.root.refused += not self.root.fits(octets)
            return False
        if not (self.whole.charge(octets) if self.root is None else self.root.charge(octets)):
            return False
        self.used += octets
        if self.wider is not None:
            self.spread(octets)
        return True

    cdef void force(self, Py_ssize_t octets) noexcept:
        self.used += octets
        if self.root is None:
            self.whole.force(octets)
        else:
            self.root.force(octets)
            self.spread(octets)

    cdef void spread(self, Py_ssize_t octets) noexcept:
        cdef PotShare each
        for each in self.wider:
            each.force(octets)

    def join(self, tuple wider not None):
        """Count what a joint one takes for these holders, and no longer for those before."""
        self.spread(-self.used)
        self.wider = wider
        self.spread(self.used)

    def adopt(self, Py_ssize_t octets):
        """Count for a joint one, and for its other holders, what its principal has counted already."""
        self.used += octets
        self.spread(octets)


@cython.final
@cython.no_gc
cdef class Account:
    """What the messages that one principal keeps take. root: it is a joint one. by_quota: no principal's."""

    def __cinit__(self, Account root=None, bint by_quota=False):
        self.most = self.retained_most = NO_QUOTA
        self.root, self.by_quota = root, by_quota
        self.wider = None if root is None else ()

    cdef bint all_admit(self, Py_ssize_t octets, Ledger ledger) noexcept:
        cdef Account each
        for each in self.wider:
            if not each.admits(octets, ledger):
                return False
        return self.root.admits(octets, ledger)

    cdef void spread(self, Py_ssize_t octets) noexcept:
        cdef Account each
        for each in self.wider:
            each.stored += octets

    cdef int refuse(self, Ledger ledger) except -1:
        """Count a message that found it full; of a joint one, where it is."""
        cdef Account each
        if self.root is not None:
            for each in (self.root, *self.wider):
                if each.over(ledger):
                    each.refuse(ledger)
            return 0
        self.refused += 1
        if self.refused == 1:
            ledger.short.append(self)
        return 0

    def keep(self, Py_ssize_t octets):
        """Count bytes kept beside messages; less than 0 for what is gone."""
        self.count_for_all(octets)

    def retain(self, Py_ssize_t octets):
        """Count bytes in the retained store; less than 0 for what is gone."""
        cdef Account each
        self.retained += octets
        if self.root is not None:
            for each in (self.root, *self.wider):
                each.retained += octets

    def join(self, tuple wider not None):
        """Count what a joint one keeps for these holders, and no longer for those before."""
        cdef Account each
        for each in self.wider:
            each.stored -= self.stored
            each.retained -= self.retained
        self.wider = wider
        for each in self.wider:
            each.stored += self.stored
            each.retained += self.retained


cdef class Ledger:
    """Shared by all outboxes of one broker.

    limit         bytes that all outboxes together may hold
    schedule      called without arguments when the first outbox of a turn becomes dirty; must arrange for a flush
    stored_limit  bytes that the messages kept in queues, windows and the retained store may take together
    """

    def __cinit__(self, Py_ssize_t limit, schedule, Py_ssize_t stored_limit=1 << 62):
        self.limit = limit
        self.stored_limit = stored_limit
        self.stored_share = 1
        self.short = []
        self._schedule = schedule
        self.inboxes = Pot("inboxes")
        self.secured = Pot("secured")
        self.handshakes = Pot("handshakes")
        self.sessions = Pot("sessions")
        self.subscriptions = Pot("subscriptions")
        self.meter = Meter()
        self.dirty = []
        self.attention = []
        self.ended = []
        self.faults = []
        self.graves = []
        self.turn_ends = INFINITY

    cdef bint is_over(self) except -1:
        return self.clock is not None and <double> self.clock() >= self.turn_ends

    def turn_over(self):
        """Has this turn of the loop lasted for long enough?"""
        return self.is_over()

    def awake(self, double now):
        """The time of a clock that stands still while the loop does: for what a peer must do before its time is
        over.
        """
        return now - self.standstill

    @property
    def pots(self):
        """All of them."""
        return self.inboxes, self.secured, self.handshakes, self.sessions, self.subscriptions

    def pop_dirty(self):
        """The outboxes that got something since the last call."""
        cdef list dirty = self.dirty
        self.dirty = []
        return dirty

    def pop_attention(self):
        """The outboxes that overflowed since the last call, each at most once until it is asked again."""
        cdef list attention = self.attention
        self.attention = []
        return attention

    def pop_short(self):
        """The accounts that reached their share since the last call, each at most once in its life."""
        cdef list short = self.short
        self.short = []
        return short

    def pop_ended(self):
        """The targets that have had their last message since the last call."""
        cdef list ended = self.ended
        self.ended = []
        return ended

    def pop_graves(self):
        """The named queues that have discarded messages since the last call, each once."""
        cdef list graves = self.graves
        self.graves = []
        return graves

    def pop_faults(self):
        """The outboxes that a delivery failed for since the last call, each once in its life; `Outbox.fault` says
        why.
        """
        cdef list faults = self.faults
        self.faults = []
        return faults

    def keep(self, Py_ssize_t octets):
        """Count what is stored beside messages, such as an index of them; less than 0: it is gone."""
        self.stored += octets

    def count_in(self, Py_ssize_t octets):
        """Count `octets` bytes received."""
        self.bytes_in += octets

    def count_out(self, Py_ssize_t octets):
        """Count `octets` bytes written to sockets."""
        self.bytes_out += octets

    def count_receipt(self):
        self.receipts += 1

    def messages_by_recipients(self):
        """(most recipients, messages) of each bucket; the last has no bound."""
        cdef int i
        return [(0 if i == 0 else 10.0 ** (i - 1) if i < RECIPIENTS - 1 else float("inf"), self.by_recipients[i])
                for i in range(RECIPIENTS)]
