# cython: language_level=3
"""A batch: bytes of several messages that many outboxes send from one place.

A hundred outboxes with a copy each of what came in one turn are megabytes, more than the second-level cache; one copy
that all of them send from stays in it. Only whole messages are sent or dropped, as if each had its own frame.
"""

from libc.stdint cimport uint32_t

from fanlight_broker.wire.allocator cimport allocate, deallocate, reallocate


cdef class Batch:
    """At most BATCH_BYTES bytes and BATCH_MESSAGES messages."""

    def __cinit__(self):
        self.data = <char*> allocate(BATCH_BYTES)
        self.ends = <uint32_t*> allocate(BATCH_MESSAGES * sizeof(uint32_t))
        if self.data is NULL or self.ends is NULL:
            raise MemoryError()

    def __dealloc__(self):
        deallocate(self.data)
        deallocate(self.ends)

    cdef int trim(self) noexcept:
        """It is complete: give back what it did not need, for a slow consumer may keep it for long."""
        cdef void* smaller
        if self.size < BATCH_BYTES // 2:
            smaller = reallocate(self.data, self.size)
            if smaller is not NULL:
                self.data = <char*> smaller
        if self.messages < BATCH_MESSAGES // 2:
            smaller = reallocate(self.ends, self.messages * sizeof(uint32_t))
            if smaller is not NULL:
                self.ends = <uint32_t*> smaller
        return 0

    cdef Py_ssize_t index(self, Py_ssize_t offset) noexcept:
        """How many of its messages end at or before `offset`."""
        cdef Py_ssize_t low = 0, high = self.messages, middle
        if offset == 0 or offset == self.size:
            return 0 if offset == 0 else high
        while low < high:
            middle = (low + high) // 2
            if <Py_ssize_t> self.ends[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    cdef Py_ssize_t between(self, Py_ssize_t start, Py_ssize_t end) noexcept:
        """How many messages there are from one end of a message to another."""
        return self.index(end) - self.index(start)

    cdef Py_ssize_t upto(self, Py_ssize_t start, Py_ssize_t octets, bint broken) noexcept:
        """The bytes of whole messages within the first `octets` behind `start`; `broken`: and of the one that ends
        behind.
        """
        cdef Py_ssize_t upto = self.index(start + octets), end = self.ends[upto - 1] if upto else 0
        if broken and end < start + octets:
            end = self.ends[upto]
        return end - start
