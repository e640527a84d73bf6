# The backlog of a durable queue: numbers in memory, messages in the log. See stored_backlog.pyx.

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.storage.number_list cimport NumberList
from fanlight_broker.storage.stored_queue cimport StoredQueueJournal
from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.flight cimport Flight

@cython.final
cdef class StoredBacklog(Backlog):
    cdef:
        StoredQueueJournal journal
        object pager
        readonly NumberList numbers
        readonly bint asked         # the pager is to read the first
        Py_ssize_t calm             # `head` of a consumer that is slower than the pager
        bint fed                    # something was handed over since it began to be emptied
        public double ttl           # of the queue: seconds after which what came in is expired
        double block_until          # what expires later is in another block of `numbers`: they expire as a whole
        uint64_t known              # number of a message of which it is known when it came; 0: none
        double known_since          # when that was
        public bint reads_expired   # the queue has a use for what has expired: it is read, not dropped

    cdef inline uint64_t first_number(self) noexcept:
        return self.numbers.blocks[self.numbers.head].first if self.numbers.length else 0

    cdef inline int counted(self) noexcept:
        self.journal.records.backlog += self.numbers.length - self.length
        self.journal.records.backlog_bytes += <Py_ssize_t> self.numbers.nbytes - self.nbytes
        self.length, self.nbytes = self.numbers.length, <Py_ssize_t> self.numbers.nbytes
        return 0
