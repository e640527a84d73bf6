# cython: language_level=3
"""The backlog of a durable queue (wire/backlog.pxd) over the log: each message is two bytes in memory.

Its messages are read back by the pager (pager.py), which is asked once until it has answered.
"""

from fanlight_broker.storage.number_list cimport NumberList
from fanlight_broker.storage.stored_queue cimport StoredQueueJournal
from fanlight_broker.wire.flight cimport Flight


cdef class StoredBacklog(Backlog):
    """pager: its `ask` is called with this when messages are to be read."""

    def __cinit__(self, StoredQueueJournal journal not None, pager):
        self.journal, self.pager = journal, pager
        self.numbers = NumberList()

    cdef int counted(self) noexcept:
        self.length, self.nbytes = self.numbers.length, <Py_ssize_t> self.numbers.nbytes
        return 0

    def wanted(self, Py_ssize_t octets):
        """(number, slot) of the first messages: a head of them, of about so many bytes, one at least."""
        cdef Py_ssize_t most = self.head
        if self.length:
            most = min(most, max(1, octets * self.length // max(1, self.nbytes)))
        return self.numbers.first(most)

    def remove(self, Py_ssize_t count):
        """The first so many were read. Returns the bytes that they counted. The pager may be asked again."""
        cdef Py_ssize_t octets = <Py_ssize_t> self.numbers.remove_first(count)
        self.counted()
        self.asked = False
        return octets

    # -- wire.Backlog -----------------------------------------------------------------------------------------------

    cpdef add(self, Flight flight, Py_ssize_t octets):
        self.numbers.add(
            flight.number, self.journal.slot_of(flight.variant), <unsigned long long> octets, flight.message.expires_at
        )
        self.counted()

    cpdef Py_ssize_t drop_first(self) except -1:
        cdef Py_ssize_t octets
        self.journal.records.end(self.journal.id, self.numbers.blocks[self.numbers.head].first)
        octets = <Py_ssize_t> self.numbers.take()
        self.counted()
        return octets

    cpdef fetch(self):
        if not self.asked:
            self.asked = True
            self.pager.ask(self)

    cpdef clear(self):
        while self.length:
            self.drop_first()

    cpdef expire(self, double now):
        cdef Py_ssize_t messages = self.numbers.expired(now), octets = 0
        for _ in range(messages):
            octets += self.drop_first()
        return messages, octets
