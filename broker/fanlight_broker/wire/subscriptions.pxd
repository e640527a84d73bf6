# The subscriptions of one client, found by their number, or by their filter and queue group.
#
#   key --> slots  [ . | T | . | T | T | . ]    open addressing, linear probing, at most three quarters full
#           hashes [   | h |   | h | h |   ]    four octets of each key's hash, so that a probe seldom looks at a Target
#                        |
#                        Target.number, or Target.filter and the name of its group
#
# A dict of a million would hold 50 bytes for each and 30 more for a number; this holds 16 to 32 in all.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.target cimport Target

@cython.final
cdef class Subscriptions:
    cdef:
        readonly bint by_filter
        void** slots                # Targets, each with a reference
        uint32_t* hashes
        Py_ssize_t mask, count
        Py_ssize_t place            # where `any_left` looks next
        uint64_t version            # changes with every change: who iterates notices

    cdef bint enter(self, Target target) except -1
    cdef bint take_out(self, Target target) except -1
    cdef Py_ssize_t seek(self, uint32_t hash, uint32_t number, bytes filter, object group) except -2
    cdef Py_ssize_t place_of(self, Target target) except -2
    cdef void put(self, void* target, uint32_t hash) noexcept
    cdef bint resize(self, Py_ssize_t capacity) noexcept
