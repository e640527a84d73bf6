# Acknowledgements that wait until what they acknowledge is stored, in the order in which they were asked for.
#
#   put --> [ 7 3 lane 12 | 9 3 lane 13 | 9 4 Python | 9 6 lane 14 | ... ] --> release: Receiver.acknowledge, or a call
#             | |  |    number in the protocol
#             | |  whose acknowledgement; nobody's once its connection has ended
#             | synced: when the journal has come so far
#             recorded: and the archive, too
#
# One ring for both: both numbers only rise, so the head is released when both have come so far. What is not to be
# stored waits too, if its connection has an acknowledgement before it that waits and the protocol keeps an order.
#
# Where the journal was before a message was fanned out, and where it is behind that, says whether the message is in any
# durable queue. Without a store the position stays at 0, and nothing waits for it.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.journal cimport JournalPosition

cdef class Receiver:
    # Whose acknowledgements they are: a lane.
    cdef:
        readonly Py_ssize_t pending_acks    # of it that wait
        uint64_t newest                     # the last of them: its index and 1, or 0

    cdef int acknowledge(self, uint32_t number, uint32_t answer) except -1

cdef struct PendingReceipt:
    uint64_t recorded, synced
    void* receiver          # owned; NULL: nobody's any more, or a call that no connection waits with
    void* then              # owned, called in place of `acknowledge`; or NULL
    uint64_t before         # the entry of the same receiver before this: its index and 1, or 0
    uint32_t number, answer

cdef class Receipts:
    cdef:
        PendingReceipt* entries              # a ring; `head` and `tail` count upwards for good
        uint64_t head, tail
        uint64_t mask
        readonly Py_ssize_t count   # that wait
        public Py_ssize_t most      # past which `takes` says no
        public bint closed          # publishers are held back until there is room again
        public bint recording       # acknowledgements wait for the archive, too
        public bint journaling      # there is a store: any acknowledgement may have to wait
        public JournalPosition position
        readonly int durability     # AS_BROKER ...: what its acknowledgements wait for
        readonly uint64_t recorded  # how far the archive is
        uint64_t last_recorded, last_synced     # of the last entry
        public object begun         # called when there is one to wait for, after there was none; or None

    cdef inline bint takes(self, ArchiveTap tap) noexcept:
        """May a message be published whose acknowledgement is to wait? Else Python decides."""
        return not self.closed and <Py_ssize_t> (self.tail - self.head) < self.most \
            and not self.position.full and not self.position.refusing \
            and (tap is None or not self.recording or tap.counted().bytes < tap.counted().bytes_max)

    cdef inline bint is_full(self) noexcept:
        return <Py_ssize_t> (self.tail - self.head) >= self.most

    cdef inline int put(self, Receiver receiver, ArchiveTap tap, uint64_t before, uint32_t number,
                        uint32_t answer) except -1:
        """Acknowledge what this tap has recorded last, and what the journal got since it was at `before`.

        tap  None: what is not recorded, and only waits for the acknowledgements before it
        """
        cdef uint64_t recorded = tap.counted().taken if tap is not None and self.recording else 0
        cdef uint64_t synced = self.position.appended if self.position.appended != before else 0
        cdef uint64_t reached = self.position.reached(self.durability)
        if receiver.pending_acks == 0 and recorded <= self.recorded and synced <= reached:
            return receiver.acknowledge(number, answer)
        return self.append(recorded, synced, receiver, NULL, number, answer)

    cdef int append(self, uint64_t recorded, uint64_t synced, Receiver receiver, void* then, uint32_t number,
                    uint32_t answer) except -1
    cdef int grow(self) except -1
