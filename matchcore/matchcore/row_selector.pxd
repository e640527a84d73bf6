# The step of match_many that asks selectors: an interface, so that an index without selectors loads nothing of them.
#
#     topics --the index--> plain     ids without a selector, by row          \
#     topics --filters----> found     numbers of screens, by row               > select --> merged
#     fields --prepare----> columns   values by row                           /
#
# rows.pyx has the implementation. FilterIndex drives it, and sees to it that nobody changes the index meanwhile.

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Allocator
from matchcore.results cimport Results
from matchcore.topics cimport Topics

cdef enum:
    SELECTED = 0
    NOT_READY = 1          # a screen is not built yet


# Row i has results.ids from ends[i] to before ends[i + 1].
cdef struct RowsFound:
    Results results
    long long* ends


cdef class RowSelector:
    cdef:
        object filters         # FilterIndex: its ids are numbers of screens

    # What is needed for `select` is looked up. Python may run in it. RuntimeError: in vain, again and again.
    cdef int prepare(self) except -1
    # Whether that still holds; no Python runs in it.
    cdef bint is_ready(self) noexcept
    # Adds the rows to `merged`, which is empty. NOT_READY: `build`, then begin again.
    cdef int select(
        self, Topics given, uint32_t syntax, const RowsFound* plain, const RowsFound* found, Allocator* allocator,
        RowsFound* merged
    ) except -1 nogil
    cdef int build(self, const RowsFound* found) except -1
