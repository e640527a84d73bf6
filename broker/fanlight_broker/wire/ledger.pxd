# What all connections of one broker hold together, what passed, and which outboxes want attention.
#
#   Outbox --dirty-->  Ledger.dirty      --> flushed once at the end of the loop's turn
#          --full -->  Ledger.attention  --> the core is notified of a slow consumer, once
#   Target --last -->  Ledger.ended      --> the core ends a subscription that has had its last message
#   Outbox --fault-->  Ledger.faults     --> the core closes a connection that a message could not be written for
#   NamedQueue ----->  Ledger.graves     --> the core publishes what was discarded to the queue's dead-letter topic
#
# `pending` is set while messages are on their way to outboxes and not in them yet: see batcher.pxd.

cimport cython
from libc.stdint cimport uint64_t

cdef enum:
    COPIES_PER_LOOK = 4096     # at some 20 to 100 ns each
    CONVERSION = 4096          # what a message's conversion for another protocol counts as

cdef class PendingBatches:
    # Has messages that are joined and not in the outboxes yet: see batcher.pxd.
    cdef int flush_batch(self) except -1

cdef class JournalHead:
    # Has what was reported to a journal in this turn, and can give it to its disk before the turn is over.
    cdef int begin_writing(self) except -1

cdef class Pot:
    # Bytes that all owners of one kind take together, and how many they may take.
    cdef:
        readonly str name
        readonly Py_ssize_t used
        public Py_ssize_t limit
        readonly uint64_t refused         # times that there was no room
        public double share               # of what others leave of it, what one PotShare may take: 0 to 1
        readonly uint64_t refused_shares   # times that a PotShare had no room

    cdef inline bint admits(self, Py_ssize_t octets) noexcept:
        return self.used + octets <= self.limit

    cdef bint charge(self, Py_ssize_t octets) noexcept
    cdef void force(self, Py_ssize_t octets) noexcept

cdef enum:
    RECIPIENTS = 7    # buckets: messages that nobody got, one, up to 10, 100, 1,000, 10,000 got, and more

cdef class Meter:
    # What passed through the connections of one port. Their sum is what the ledger has.
    cdef readonly uint64_t messages_in, messages_out, bytes_in, bytes_out

# What one principal takes of a pot; it counts in both. Or what one client does whose quotas have several holders: a
# joint one, which counts in its principal's and in those of the `wider` holders (core.JointShare).
@cython.final
@cython.no_gc    # its owner drops it in its own __dealloc__
cdef class PotShare(Pot):
    cdef readonly Pot whole
    cdef public Py_ssize_t most       # its quota: what it may take, whatever the others leave
    cdef PotShare root                # of a joint one: its principal's; else None
    cdef tuple wider                  # of a joint one: PotShares of other holders; else None

    cdef bint fits(self, Py_ssize_t octets) noexcept
    cdef bint all_fit(self, Py_ssize_t octets) noexcept
    cdef void spread(self, Py_ssize_t octets) noexcept

# What the messages that one principal keeps take: each counted once for it, however many of its sessions keep it.
# Or those that one client keeps whose quotas have several holders: a joint one. Its principal's counts a message once,
# and each of the `wider` holders once for each of its clients, so that a client can move to others without a look at
# its messages.
@cython.final
@cython.no_gc
cdef class Account:
    cdef:
        readonly Py_ssize_t stored
        Account root                      # of a joint one: its principal's; else None
        tuple wider                       # of a joint one: accounts of other holders; else None
        bint by_quota                     # a holder's that is no principal: it has no share, only a quota
        public Py_ssize_t retained        # of these, in the retained store, with their places in its index
        public Py_ssize_t most, retained_most    # its quotas of both: what it may take, whatever the others leave
        readonly uint64_t refused         # messages that found its share full

    cdef inline bint over(self, Ledger ledger) noexcept:
        """Does it take more than its share, or its quota?"""
        return not self.admits(0, ledger)

    cdef inline bint admits(self, Py_ssize_t octets, Ledger ledger) noexcept:
        """Would it stay within its share and its quota with this many bytes more?"""
        cdef Py_ssize_t after = self.stored + octets
        if self.root is not None:
            return self.all_admit(octets, ledger)
        return after <= self.most and (
            self.by_quota or after <= ledger.stored_share * (ledger.stored_limit - ledger.stored + self.stored)
        )

    cdef bint all_admit(self, Py_ssize_t octets, Ledger ledger) noexcept
    cdef void spread(self, Py_ssize_t octets) noexcept
    cdef int refuse(self, Ledger ledger) except -1

    cdef inline void count(self, Py_ssize_t octets) noexcept:
        """Count bytes of a message; a joint one's principal counts them by itself."""
        self.stored += octets
        if self.wider is not None:
            self.spread(octets)

    cdef inline void count_for_all(self, Py_ssize_t octets) noexcept:
        """Count bytes beside messages."""
        self.count(octets)
        if self.root is not None:
            self.root.stored += octets

cdef class Ledger:
    cdef:
        public double now                 # of the read, or the tick, whose messages are being published
        # Seconds in which the loop stood still, so far. Time limits of peers do not count them: `awake`.
        public double standstill
        # When this turn of the loop must end, by `clock`.
        public double turn_ends
        public double turn_cpu_max        # seconds of CPU of the longest turn so far
        public bint restricted            # permissions are in force: a lane without a badge leaves all to Python
        public object clock               # a function without arguments, by its owner; None: no turn is ever over
        Py_ssize_t copies
        # Memory: bytes unsent or waiting for credit, of all outboxes.
        readonly Py_ssize_t used
        public Py_ssize_t limit
        # Other memory, each pot with its bound.
        readonly Pot inboxes              # received and not parsed yet, and topic aliases
        readonly Pot secured              # buffers of connections by TLS
        readonly Pot handshakes           # of clients that are not let in yet, above what each has for itself
        readonly Pot sessions             # identifiers, users, wills, tables of sessions
        readonly Pot subscriptions        # filters, their place in the index, queue groups
        # Messages kept in queues, windows and the retained store, each counted once, however many keep it.
        readonly Py_ssize_t stored, stored_messages
        public Py_ssize_t stored_limit
        public Py_ssize_t retained        # of these, in the retained store, with their places in its index
        public double stored_share        # of what others leave of that, what one account may take: 0 to 1
        list short                        # accounts that have reached it, each once in its life
        readonly Py_ssize_t pausing       # outboxes that hold their publishers back just now
        # Work for the end of the turn.
        readonly list dirty
        readonly list attention
        readonly list ended
        readonly list faults
        Py_ssize_t refusers               # named queues that refuse publishers when they are full
        readonly list graves              # named queues that have discarded messages, for the core to bury
        object absent                     # Outbox, of those without a connection: outbox.pxd, which cimports this file
        PendingBatches pending            # to be flushed before an outbox is looked at; None: nothing is under way
        public JournalHead journal        # to begin before outboxes are flushed, if its disk has nothing to do; or None
        readonly Meter meter              # of connections without a port, and of messages without a connection
        uint64_t[RECIPIENTS] by_recipients    # messages, by how many got each
        readonly uint64_t recipients      # of all of them
        object _schedule                  # a function without arguments: the first outbox of a turn has become dirty
        # Counters, monotonic.
        readonly uint64_t messages_in, messages_out, bytes_in, bytes_out
        readonly uint64_t receipts, unroutable
        readonly uint64_t filtered        # messages with subscriptions of which no selector was true
        readonly uint64_t dropped_newest, dropped_oldest, dropped_credit, dropped_disconnect
        readonly uint64_t dropped_unspellable, dropped_too_large, dropped_fault
        # Of sessions: no room in a queue; QoS 0 while the client is away; lost with the session; too old.
        readonly uint64_t dropped_queue, dropped_absent, dropped_session, expired
        readonly uint64_t dropped_share   # of those dropped by a queue, the ones that an account had no room for
        # Copies of QoS 1 and 2 that a queue had no room for; and whether nobody got the message published last.
        readonly uint64_t turned_away
        readonly bint unkept
        readonly uint64_t acknowledged, refused, redelivered
        # Octets of payloads: of messages published, and of copies put into outboxes.
        readonly uint64_t payload_in, payload_out

    cdef bint is_over(self) except -1

    cdef inline bint worked(self, Py_ssize_t copies) except -1:
        """Is the turn over, after this many more copies? Looks at the clock now and then."""
        self.copies += copies
        if self.copies < COPIES_PER_LOOK:
            return False
        self.copies = 0
        return self.is_over()

    cdef inline void count_recipients(self, Py_ssize_t count, int messages) noexcept:
        """`messages`: 1, or -1 to take one back."""
        cdef int i = count > 0
        cdef Py_ssize_t most = 1
        while count > most and i < RECIPIENTS - 1:
            i += 1
            most *= 10
        self.by_recipients[i] += messages
        self.recipients += messages * count
