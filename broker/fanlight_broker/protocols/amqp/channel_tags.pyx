# cython: language_level=3
"""The deliveries of one channel that are not acknowledged: drawn in channel_tags.pxd.

A delivery is (number of the consumer, tag of the queue). What they take is bounded by the prefetch of the consumers.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from fanlight_broker.wire.flight cimport SENT, Flight
from fanlight_broker.wire.tag_row cimport TagRow, TagSlot, append, discard, find, following, oldest, take_out
from fanlight_broker.wire.window cimport Window

cdef uint32_t GETTERS = 1 << 31    # numbers from here on are those of basic.get: options.GETTERS
cdef enum:
    TOGETHER = 32        # consumers that one acknowledgement is looked up for here; of more it is for Python
    COUNTED = 256        # whose deliveries are counted at a time

cdef struct ConsumerCount:
    uint64_t last
    Py_ssize_t count
    uint32_t number
    bint known           # False: it is nobody's yet
    bint kept            # its deliveries are left out


cdef inline int add_count(dict found, ConsumerCount* of) except -1:
    """Add what was counted of a consumer, if anything was."""
    if of.count:
        last, count = found[of.number]
        found[of.number] = max(last, of.last), count + of.count
    return 0


cdef dict count_deliveries(ChannelTags tags, uint64_t tag, bint take, object kept):
    """Up to a tag, 0: all. kept: the numbers of consumers whose deliveries are left out."""
    cdef ConsumerCount[COUNTED] counts    # by the end of their number: a new one makes room by going to `found`
    cdef ConsumerCount* of
    cdef dict found = {}
    cdef TagSlot* slot = oldest(&tags.row)
    cdef TagSlot* counted
    cdef int i
    memset(counts, 0, sizeof(counts))
    while slot is not NULL and (tag == 0 or slot.tag <= tag):
        of = &counts[slot.number & (COUNTED - 1)]
        if not of.known or of.number != slot.number:
            add_count(found, of)
            of.number, of.last, of.count, of.known = slot.number, 0, 0, True
            of.kept = slot.number in kept
            if not of.kept:
                found.setdefault(slot.number, (0, 0))    # in its place
        counted = slot
        slot = following(&tags.row, slot)
        if not of.kept:
            of.last = max(of.last, counted.inner)
            of.count += 1
            if take:
                take_out(&tags.row, counted)
    for i in range(COUNTED):
        add_count(found, &counts[i])
    return found


cdef inline void copy(const TagSlot* slot, TagSlot* into) noexcept:
    into.inner, into.number = slot.inner, slot.number


cdef bint append_all(TagRow* row, TagRow* more) except -1:
    """Append the entries of another row. False: they are not in order."""
    cdef TagSlot* slot = oldest(more)
    cdef bint ordered = slot is NULL or row.count == 0 or row.slots[row.end - 1].tag < slot.tag
    while slot is not NULL:
        copy(slot, append(row, slot.tag))
        slot = following(more, slot)
    return ordered


cdef int compare(const void* left, const void* right) noexcept nogil:
    return 1 if (<const TagSlot*> left).tag > (<const TagSlot*> right).tag else -1    # no tag is there twice


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

    def take_apart(self, uint64_t tag, *, bint multiple):
        """The delivery with this tag, which is there; multiple: those up to it, 0: all. As tags of their own, for
        `put_back`, or until they are dealt with. No list of them is made: there may be 10,000 for each consumer.
        """
        cdef ChannelTags taken = ChannelTags()
        cdef TagSlot* slot = oldest(&self.row) if multiple else find(&self.row, tag)
        if multiple and slot is not NULL and 2 * self.row.count >= self.row.capacity \
                and (tag == 0 or tag >= self.row.slots[self.row.end - 1].tag):
            taken.row = self.row    # all, and it has no more room than they pay for
            memset(&self.row, 0, sizeof(TagRow))
            slot = NULL
        while slot is not NULL and (not multiple or slot.tag <= tag):
            copy(slot, append(&taken.row, slot.tag))
            take_out(&self.row, slot)
            slot = oldest(&self.row) if multiple else NULL
        if taken.row.count:
            taken.last = taken.row.slots[taken.row.end - 1].tag
        return taken

    def counts_up_to(self, uint64_t tag, *, bint take=False):
        """Of each consumer with deliveries up to this tag: (its last one, how many). The first with the oldest comes
        first. take: they are dealt with now.
        """
        return count_deliveries(self, tag, take, ())

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
        """`counts_up_to` of all deliveries of consumers that are none of these, which are dealt with now."""
        return count_deliveries(self, 0, True, numbers)

    def put_back(self, list taken not None):
        """What was taken apart is not acknowledged after all. taken: all of it at once, for each call goes over all."""
        cdef TagRow row
        cdef ChannelTags part
        cdef bint ordered
        memset(&row, 0, sizeof(row))
        try:
            ordered = True
            for part in [*taken, self]:
                ordered = append_all(&row, &part.row) and ordered
            if not ordered:
                qsort(row.slots, row.count, sizeof(TagSlot), compare)
        except MemoryError:
            discard(&row)
            raise
        discard(&self.row)
        self.row = row

    def clear(self):
        discard(&self.row)
