# cython: language_level=3
"""The backlog of a durable queue (wire/backlog.pxd) over the log: each message is two bytes in memory.

Its messages are read back by the pager (pager.py), which is asked once until it has answered.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.number_list cimport Block, NumberList
from fanlight_broker.storage.stored_queue cimport StoredQueueJournal
from fanlight_broker.storage.wanted cimport Wanted
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.queue cimport Queue

cdef enum:
    BLOCKS_OF_TIME = 16    # in the time to live of a queue: a block expires at most so much of it late


cdef class StoredBacklog(Backlog):
    """pager: its `ask` is called with this when messages are to be read, `ask_since` when the time of the first is."""

    def __cinit__(self, StoredQueueJournal journal not None, pager):
        self.journal, self.pager = journal, pager
        self.numbers = NumberList()
        self.ttl = INFINITY
        self.calm = self.head

    def want(self, Wanted wanted not None, Py_ssize_t octets, uint64_t last, Py_ssize_t skip=0):
        """Ask for its first messages, or for those behind the first `skip`, none above `last`: a head of them, of about
        so many bytes for a consumer that is slower than the pager, one at least. Returns how many.
        """
        cdef Py_ssize_t most = min(self.head, self.length)
        cdef Py_ssize_t count
        if self.length:
            most = min(most, max(1, octets * self.head // self.calm * self.length // max(1, self.nbytes)))
        count = self.numbers.copy(wanted.room(most), skip, most, last)
        wanted.count += count
        return count

    def hand_over(self, Queue queue not None, Wanted wanted not None, Py_ssize_t begin, Py_ssize_t end,
                  dict variants not None, double now, double ahead, Py_ssize_t most):
        """Give its queue the messages from `begin` to `end` of what was wanted: these are its. Those that were not read
        are lost.

        variants  by slot
        ahead     seconds of wall-clock time minus `now`
        most      messages that are read at once for a consumer that takes them sooner than they come
        """
        cdef list taken = []
        cdef Py_ssize_t count = 0, octets = 0, place
        cdef uint64_t number
        cdef uint32_t slot, last_slot = 0
        cdef double since
        cdef Block* block
        variant = None
        if self.fed and len(queue) == self.length:
            self.head = min(2 * self.head, max(most, self.calm))    # the consumer has waited: read more at once
        while self.numbers.length:
            block = &self.numbers.blocks[self.numbers.head]
            number, slot = block.first, block.slot
            while begin < end and wanted.asked[begin] < number:
                begin += 1      # it was dropped meanwhile
            if begin == end:
                break
            octets += <Py_ssize_t> self.numbers.take()
            count += 1
            place = wanted.places[begin]
            message = wanted.messages[place] if wanted.asked[begin] == number else None
            if message is None:
                self.journal.records.end(self.journal.id, number)
                self.journal.forget(number)
                continue
            if slot != last_slot:
                last_slot, variant = slot, variants.get(slot)
            since = wanted.came[place] - ahead if wanted.came[place] else now
            tried = self.journal.tried.pop(number, 0) if self.journal.tried is not None else 0
            taken.append((message, variant, number, tried, since))
            self.known, self.known_since = number, since
        self.counted()
        self.asked = False
        self.fed = self.length > 0
        if not self.fed:
            self.head = self.calm
        queue.fetched(taken, count, octets, now)

    def forget(self):
        """Its queue has ended, with what it has."""
        self.journal.records.backlog -= self.length
        self.journal.records.backlog_bytes -= self.nbytes

    def restore(self, NumberList numbers not None):
        """What waited before a restart. There is nothing in it yet."""
        self.numbers = numbers
        self.counted()
        self.since()    # nobody has to wait for it later

    @property
    def first(self):
        """The number of the oldest; 0: nothing waits."""
        return self.first_number()

    def came(self, uint64_t number, since):
        """The message with this number was read: it came at this time; None: the disk does not have it."""
        self.known = number
        if since is not None:
            self.known_since = since

    # -- wire.Backlog -----------------------------------------------------------------------------------------------

    cdef int take(self, uint64_t number, Message message, Variant variant, Py_ssize_t octets) except -1:
        self.numbers.add(number, self.journal.slot_of(variant), <uint64_t> octets, message.expires_at)
        self.counted()
        return 0

    cpdef add(self, Flight flight, Py_ssize_t octets):
        cdef double expires_at = min(flight.message.expires_at, flight.since + self.ttl)
        if self.numbers.length == 0:
            self.known, self.known_since = flight.number, flight.since
        if self.ttl != INFINITY and expires_at > self.block_until:
            self.numbers.split()
            self.block_until = expires_at + self.ttl / BLOCKS_OF_TIME
        self.numbers.add(
            flight.number, self.journal.slot_of(flight.variant), <uint64_t> octets, expires_at
        )
        self.counted()

    cpdef Py_ssize_t drop_first(self) except -1:
        cdef Py_ssize_t octets
        cdef unsigned long long number = self.numbers.blocks[self.numbers.head].first
        self.journal.records.end(self.journal.id, number)
        self.journal.forget(number)
        octets = <Py_ssize_t> self.numbers.take()
        self.counted()
        return octets

    cpdef fetch(self):
        if not self.asked:
            self.asked = True
            self.pager.ask(self)

    cpdef expire(self, double now, Py_ssize_t most):
        cdef Py_ssize_t messages = min(<Py_ssize_t> self.numbers.expired(now), most), octets = 0
        if self.reads_expired:
            if messages:
                self.fetch()
            return 0, 0
        for _ in range(messages):
            octets += self.drop_first()
        return messages, octets

    cpdef since(self):
        if not self.journal.named or not self.length:
            return None
        if self.first_number() != self.known:
            self.pager.ask_since(self)
        return self.known_since if self.known else None
