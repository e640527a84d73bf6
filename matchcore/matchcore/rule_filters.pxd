# The topic filters of rules, each once: a number while any rule has it.

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Allocator, Numbers


cdef class RuleFilters:
    cdef:
        object index           # FilterIndex: filter -> number
        list texts             # by number: (filter, syntax); None: free
        list holders           # by number: rules
        list free
        dict numbers           # (filter in bytes, syntax) -> number
        dict limits

    # The number of a filter, which has one holder more; NONE of None. Raises InvalidFilter.
    cdef uint32_t acquire(self, object topic, object syntax) except? 0xFFFFFFFE
    cdef int release(self, uint32_t number) except -1

    # The numbers of the filters that match, and NONE, into `found`. Raises InvalidTopic.
    cdef int match(self, object topic, object syntax, Allocator* allocator, Numbers* found) except -1
    cdef tuple words(self, object topic, object syntax)
