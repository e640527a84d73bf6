# A batch: messages that went to the same subscribers one after the other, written once. Each of the outboxes holds a
# reference to it, in the place of a frame, and how far it has come: see Frame.done.
#
#   data   [aaaa|bb|cccccc|d|eeeeeee]
#   ends       4  6      12 ..              where each message ends
#
# It is filled by a Batcher, and never changes once an outbox has it.

cimport cython
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from fanlight_broker.wire.message cimport Variant

cdef enum:
    BATCH_BYTES = 64 * 1024      # of its buffer: a few of them fit into the second-level cache
    BATCH_MESSAGES = 1024

@cython.final
cdef class Batch:
    cdef:
        char* data
        uint32_t* ends
        readonly Py_ssize_t size, messages

    cdef inline bint takes(self, Py_ssize_t octets) noexcept:
        return self.size + octets <= BATCH_BYTES and self.messages < BATCH_MESSAGES

    cdef inline void add(self, Variant variant) noexcept:
        """Append what a variant's template says. The caller has asked `takes`."""
        memcpy(self.data + self.size, variant.head, variant.head_size)
        memcpy(self.data + self.size + variant.head_size, variant.body, variant.body_size)
        self.size += variant.head_size + variant.body_size
        self.ends[self.messages] = <uint32_t> self.size
        self.messages += 1

    cdef int trim(self) noexcept
    cdef Py_ssize_t index(self, Py_ssize_t offset) noexcept
    cdef Py_ssize_t between(self, Py_ssize_t start, Py_ssize_t end) noexcept
    cdef Py_ssize_t upto(self, Py_ssize_t start, Py_ssize_t octets, bint broken) noexcept
