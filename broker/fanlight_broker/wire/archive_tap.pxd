# Copies the messages of archived routes into columns.
#
#   Route.tap --record--> Columns    times   t t t t        one number a message
#                                  topics  aaabbbbcc      octets, and where each ends: as Arrow has strings
#                                  values  ......
#                                  publishers 0 0 1 0     numbers of those of this batch
#                                  extras  {row: Message} kept, if its fields say more than topic and payload
#
# A batch that is full, or old enough, is handed over whole: one copy of each message, and no object for it.

cimport cython
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState

cdef struct Octets:
    char* data
    int32_t* ends            # rows + 1 of them, the first is 0
    Py_ssize_t size, capacity

@cython.final
cdef class Columns:
    cdef:
        readonly Py_ssize_t rows, rows_max
        readonly Py_ssize_t octets       # what of the tap's bound they take
        readonly uint64_t first          # how many messages the tap had taken before
        readonly object owners           # list: the owners of the outboxes that published, None for the broker
        readonly dict extras
        int64_t* times                   # microseconds UTC
        int32_t* publishers              # numbers into `owners`
        int8_t* qos
        int8_t* retain
        int8_t* syntax
        Octets topics, values
        dict numbers                     # outbox -> number
        Outbox last                      # the publisher of the message before, and its number
        int32_t last_number

    cdef int add(self, FanoutState* publication, Outbox publisher, double now, bytes before) except -1
    cdef int32_t number_of(self, Outbox publisher) except -1
    cdef Py_ssize_t size(self) noexcept

@cython.final
cdef class ArchiveTap:
    cdef:
        readonly Columns batch           # being filled; None if nothing came since the last was handed over
        readonly Py_ssize_t rows_max, batch_bytes_max
        public Py_ssize_t bytes_max      # of messages recorded and not freed
        readonly Py_ssize_t bytes        # of these, now
        readonly uint64_t taken, dropped, unspellable
        public double utc                # what to add to the clock of `now` for seconds UTC
        public object begun              # called without arguments when a batch has its first message
        public object full               # called with a batch that is to be handed over

        ArchiveTap whole                 # that takes what comes here, or None
        tuple before                     # octets that it writes before the topics, by the numbers of syntaxes

    cdef inline ArchiveTap counted(self):
        """The tap that counts what this one takes."""
        return self if self.whole is None else self.whole

    cdef int record(self, Ledger ledger, Outbox publisher, FanoutState* publication) except -1
    cdef int take(self, Ledger ledger, Outbox publisher, FanoutState* publication, Py_ssize_t size,
                  bytes before) except -1
    cdef int hand_over(self) except -1
