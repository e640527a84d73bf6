# The journal of durable queues over a log. What all queues report in one turn is gathered here, so that it is small:
#
#   message --enqueued--> pending, with the slots of its queues --next message, or seal--> MESSAGE
#   flight  --assigned, given_up, returned--> moves   --seal--> MOVES
#           --ended, removed----------------> ended   --seal--> ENDED, runs of numbers
#
# In an entry a MESSAGE is before the MOVES that speak of it, and those are before its ENDED, which is final.
#
# A restart has no consumers of named queues. So what is in flight from one waits as far as the log is concerned, and
# a delivery is a move that says how often it was delivered (TRIED): nobody waits for it.
#
# A slot is a queue and how its copies are written (a Variant, or None in a group's queue). More slots than four are a
# set, which is a record of its own the first time that it occurs: a message to 1,000 queues costs its body and a
# number.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.live_numbers cimport LiveNumbers
from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.records cimport Growing
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.journal cimport JournalPosition, QueueJournal
from fanlight_broker.wire.ledger cimport JournalHead, Ledger
from fanlight_broker.wire.message cimport Message, Variant

cdef enum Haste:
    NOTHING_TO_SEAL = 0
    SOME_TIME = 1        # nobody waits for what is in the open entry
    THIS_TURN = 2

cdef class QueueRecords(JournalHead):
    cdef:
        readonly Log log
        readonly JournalPosition position
        Ledger ledger
        public double wall              # seconds of wall-clock time minus `now`
        public uint64_t last_number, last_queue
        public uint32_t last_slot, last_set
        readonly object error           # that a change could not be appended: the first
        readonly bint closed            # the broker stops: what is reported from now on is not kept, as with a kill
        readonly Haste haste
        object begun                    # called with `haste` when it rises
        public object seal_now          # called without arguments to seal before the turn is over; None: never
        # The message that was enqueued last, and its slots.
        Message pending
        uint64_t pending_number
        uint64_t pending_came           # ms since 1970, if a named queue has it; else 0
        uint32_t* slots
        Py_ssize_t count, capacity
        dict sets                       # slots as bytes -> number
        Py_ssize_t sets_bytes
        Growing moves, ended             # of the records that are not written yet
        uint64_t moved_last, ended_last, ended_queue    # what the next number is relative to
        uint64_t run_first, run_last, run_queue         # numbers that are not in `ended` yet; run_queue 0: none
        readonly uint64_t messages      # MESSAGE records so far
        readonly Py_ssize_t backlog, backlog_bytes     # places in queues whose messages are on the disk only
        public LiveNumbers marking      # what moves is marked; None
        readonly uint64_t restated      # bytes of records so far that say once more what is known

    cdef uint64_t add(self, StoredQueueJournal journal, Message message, Variant variant) noexcept
    cdef int begin_message(self, Message message) except -1
    cpdef int between_frames(self) except -1
    cpdef int flush(self) except -1
    cpdef int finish(self) except -1
    cdef int more_slots(self) except -1
    cdef int move(self, int kind, uint64_t queue, uint64_t number, uint32_t slot, uint64_t tag) noexcept
    cdef bint room_for_move(self) noexcept
    cdef int end(self, uint64_t queue, uint64_t number) noexcept
    cdef int changed(self, Haste haste) noexcept
    cdef uint64_t in_ms(self, double when) noexcept
    cdef int write_all(self) except -1
    cdef int write_pending(self) except -1
    cdef uint32_t set_of(self) except 0
    cdef int end_run(self) except -1
    cdef int write(self, int type, Growing* octets) except -1
    cdef int restate_octets(self, int type, Growing* octets) except -1
    cdef int failed(self, error) noexcept

@cython.final
cdef class StoredQueueJournal(QueueJournal):
    cdef:
        QueueRecords records
        readonly uint64_t id
        readonly bint of_group          # its copies are written as the member that takes them says
        readonly bint named             # a named queue's: deliveries are counted, and what is in flight waits, too
        readonly dict tried             # number -> deliveries, of what waited before a restart and is in the backlog
        public bint active              # False: nobody needs what is in it after a restart
        public double left              # wall-clock time when its session's client left; 0: it is connected
        uint64_t newest                 # number put in last
        Variant variant                 # of the slot used last
        uint32_t slot                   # 0: none yet
        dict slots                      # (quality, retain rule, identifiers) -> slot, for a queue with several

    cdef int forget(self, uint64_t number) except -1

    cdef inline uint32_t slot_of(self, Variant variant) except 0:
        return self.slot if self.slot and (variant is self.variant or self.of_group) else self.other_slot(variant)

    cdef uint32_t other_slot(self, Variant variant) except 0
    cdef uint32_t other_slot_or_none(self, Variant variant) noexcept
