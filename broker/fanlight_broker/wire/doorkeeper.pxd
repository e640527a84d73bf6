# Which topics were seen lately: a full cache takes a topic at its second sighting.
#
#   now     [..1....1..1.]    two bits for each topic that was seen; once there are many, `now` becomes `before`,
#   before  [.1..11....1.]    and what was before is forgotten
#
# So a topic that is used once takes no place from those that are used often. It says yes to one new topic in a hundred
# to ten, which then enters at its first sighting.

cimport cython
from libc.stdint cimport uint64_t

@cython.final
cdef class Doorkeeper:
    cdef:
        uint64_t* now
        uint64_t* before
        Py_ssize_t marked

    cdef bint passes(self, Py_ssize_t hash) except -1
