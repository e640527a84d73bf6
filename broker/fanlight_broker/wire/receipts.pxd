# Acknowledgements that wait until what they acknowledge is stored, in the order in which they were asked for.
#
#   put --> [ 7 lane 12 | 9 lane 13 | 9 Python | 11 lane 14 | ... ] --> release(9): Receiver.acknowledge, or a call
#             |   |    number in the protocol
#             |   whose acknowledgement; nobody's once its connection has ended
#             sequence: stored when the store has come so far
#
# What is not to be stored waits too, if its connection has an acknowledgement before it that waits and the protocol
# keeps an order.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.archive_tap cimport ArchiveTap

cdef class Receiver:
    # Whose acknowledgements they are: a lane.
    cdef:
        readonly Py_ssize_t pending_acks    # of it that wait
        uint64_t newest                     # the last of them: its index and 1, or 0

    cdef int acknowledge(self, uint32_t number, uint32_t answer) except -1

cdef struct PendingReceipt:
    uint64_t sequence
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
        readonly uint64_t released  # up to which sequence
        uint64_t sequence           # of the last entry
        object begun                # called when there is one to wait for, after there was none

    cdef inline bint takes(self, ArchiveTap tap) noexcept:
        """May a message be published whose acknowledgement is to wait? Else Python decides."""
        return not self.closed and <Py_ssize_t> (self.tail - self.head) < self.most \
            and (tap is None or tap.bytes < tap.bytes_max)

    cdef inline int put(self, Receiver receiver, ArchiveTap tap, uint32_t number, uint32_t answer) except -1:
        """Acknowledge what this tap has recorded last, or None: what only waits for those before it."""
        cdef uint64_t sequence = tap.taken if tap is not None else 0
        if sequence <= self.released and receiver.pending_acks == 0:
            return receiver.acknowledge(number, answer)
        return self.append(sequence, receiver, NULL, number, answer)

    cdef int append(self, uint64_t sequence, Receiver receiver, void* then, uint32_t number, uint32_t answer) except -1
    cdef int grow(self) except -1
