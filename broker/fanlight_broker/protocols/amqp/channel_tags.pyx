# cython: language_level=3
"""The deliveries of one channel that are not acknowledged: drawn in channel_tags.pxd.

A delivery is (number of the consumer, tag of the queue). What they take is bounded by the prefetch of the consumers.
"""

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.flight cimport SENT, Flight
from fanlight_broker.wire.tag_row cimport TagSlot, append, discard, find, following, oldest, take_out
from fanlight_broker.wire.window cimport Window

cdef uint32_t GETTERS = 1 << 31    # numbers from here on are those of basic.get: options.GETTERS
cdef enum:
    TOGETHER = 32        # consumers that one acknowledgement is looked up for here; of more it is for Python


cdef class ChannelTags:
    """shut: called, in the middle of other work, when the consumers together hold `most` messages: it pauses them."""

    def __cinit__(self):
        self.windows = {}

    def __dealloc__(self):
        discard(&self.row)

    cdef uint64_t give(self, uint32_t number, uint64_t tag, bint kept) except 0:
        """The next tag. kept: it is to be acknowledged."""
        cdef TagSlot* slot
        if kept:
            slot = append(&self.row, self.last + 1)
            slot.inner, slot.number = tag, number
        self.last += 1
        if kept and self.most and number < GETTERS:
            self.held += 1
            if self.held >= self.most:
                self.shut()
        return self.last

    # -- basic.ack, for the lane ------------------------------------------------------------------------------------

    cdef bint acknowledge(self, uint64_t tag, bint multiple, double now) except -1:
        """False: nothing was done, it is for Python. So is what is wrong."""
        cdef TagSlot* slot
        cdef Window window
        cdef Flight flight
        cdef uint64_t inner
        if self.most:
            return False
        if multiple:
            return self.acknowledge_up_to(tag, now)
        slot = find(&self.row, tag)
        if slot is NULL:
            return False
        window = self.windows.get(slot.number)
        if window is None:
            return False
        inner = slot.inner
        take_out(&self.row, slot)
        flight = window.find(inner)
        if flight is not None and flight.state == SENT:
            window.acknowledged(flight, now)
        return True

    cdef bint acknowledge_up_to(self, uint64_t tag, double now) except -1:
        cdef uint32_t[TOGETHER] numbers    # the consumers in the order of their oldest delivery
        cdef uint64_t[TOGETHER] inner      # and up to which tag of its queue each has acknowledged
        cdef Py_ssize_t i, at = 0, count = 0
        cdef TagSlot* slot = oldest(&self.row)
        cdef Window window
        if slot is NULL or (tag and find(&self.row, tag) is NULL):
            return False
        while slot is not NULL and (tag == 0 or slot.tag <= tag):
            if count == 0 or numbers[at] != slot.number:
                at = 0
                while at < count and numbers[at] != slot.number:
                    at += 1
                if at == count:
                    if count == TOGETHER or slot.number not in self.windows:
                        return False
                    numbers[at], inner[at] = slot.number, 0
                    count += 1
            inner[at] = max(inner[at], slot.inner)
            slot = following(&self.row, slot)
        slot = oldest(&self.row)
        while slot is not NULL and (tag == 0 or slot.tag <= tag):
            take_out(&self.row, slot)
            slot = oldest(&self.row)
        for i in range(count):
            window = self.windows.get(numbers[i])
            if window is not None:
                window.acknowledged_up_to(inner[i], now)
        return True

    # -- for Python -------------------------------------------------------------------------------------------------

    def assign(self, uint32_t number, uint64_t tag):
        """The tag of a delivery that is written in Python, and is to be acknowledged by its client."""
        return self.give(number, tag, True)

    def __len__(self):
        return self.row.count

    def __contains__(self, uint64_t tag):
        return find(&self.row, tag) is not NULL

    @property
    def oldest(self):
        """Tag of the oldest that is not acknowledged, or None."""
        cdef TagSlot* slot = oldest(&self.row)
        return slot.tag if slot is not NULL else None

    @property
    def of_consumers(self):
        """Deliveries that are not acknowledged, those of basic.get left out."""
        cdef TagSlot* slot = oldest(&self.row)
        cdef Py_ssize_t count = 0
        while slot is not NULL:
            count += slot.number < GETTERS
            slot = following(&self.row, slot)
        return count

    def up_to(self, uint64_t tag):
        """The tags up to this one, oldest first; 0: all."""
        cdef list found = []
        cdef TagSlot* slot = oldest(&self.row)
        while slot is not NULL and (tag == 0 or slot.tag <= tag):
            found.append(slot.tag)
            slot = following(&self.row, slot)
        return found

    def take(self, uint64_t tag):
        """The delivery with this tag, which is dealt with now. Raises KeyError."""
        cdef TagSlot* slot = find(&self.row, tag)
        if slot is NULL:
            raise KeyError(tag)
        take_out(&self.row, slot)
        return slot.number, slot.inner    # its place is as it was

    def take_up_to(self, uint64_t tag):
        """The deliveries up to this tag, oldest first, which are dealt with now; 0: all."""
        cdef list found = []
        cdef TagSlot* slot = oldest(&self.row)
        while slot is not NULL and (tag == 0 or slot.tag <= tag):
            found.append((slot.number, slot.inner))
            take_out(&self.row, slot)
            slot = oldest(&self.row)
        return found

    def counts_up_to(self, uint64_t tag, *, bint take=False):
        """Of each consumer with deliveries up to this tag: (its last one, how many). The first with the oldest comes
        first. take: they are dealt with now. No list of them is made: there may be 10,000 for each consumer.
        """
        cdef dict found = {}
        cdef TagSlot* slot = oldest(&self.row)
        cdef uint32_t number = 0
        cdef uint64_t last = 0
        cdef Py_ssize_t count = 0
        while slot is not NULL and (tag == 0 or slot.tag <= tag):
            if count == 0 or slot.number != number:
                if count:
                    found[number] = (last, count)
                number = slot.number
                last, count = found.get(number, (0, 0))
            last = max(last, slot.inner)
            count += 1
            if take:
                take_out(&self.row, slot)
                slot = oldest(&self.row)
            else:
                slot = following(&self.row, slot)
        if count:
            found[number] = (last, count)
        return found

    def take_newest(self, uint64_t tag, Py_ssize_t most):
        """So many deliveries up to this tag, newest first, which are dealt with now; and the tag of the last one."""
        cdef list found = []
        cdef TagSlot* slots = self.row.slots
        cdef Py_ssize_t low = self.row.first, high = self.row.end, middle
        while low < high:    # the first above it
            middle = (low + high) // 2
            if slots[middle].tag <= tag:
                low = middle + 1
            else:
                high = middle
        while most > 0 and low > self.row.first and self.row.count:
            low -= 1
            if slots[low].here:
                found.append((slots[low].number, slots[low].inner))
                tag = slots[low].tag
                take_out(&self.row, &slots[low])
                most -= 1
        return found, tag

    def take_all_but(self, numbers not None):
        """The deliveries of consumers that are none of these."""
        cdef list found = []
        cdef TagSlot* slot = oldest(&self.row)
        while slot is not NULL:
            if slot.number not in numbers:
                found.append((slot.number, slot.inner))
                take_out(&self.row, slot)
            slot = following(&self.row, slot) if self.row.count else NULL
        return found

    def put_back(self, list tags not None, list deliveries not None):
        """What was taken is not acknowledged after all."""
        cdef TagSlot* slot
        cdef dict known = dict(zip(tags, deliveries))
        for tag in self.up_to(0):
            slot = find(&self.row, tag)
            known[tag] = (slot.number, slot.inner)
        self.clear()
        for tag in sorted(known):
            slot = append(&self.row, tag)
            slot.number, slot.inner = known[tag]

    def clear(self):
        discard(&self.row)
