# The subscriptions of a FilterIndex that have a selector.
#
#     topic --filters--> numbers --screens--> Screen --fields--> ids
#
# `filters` is an index of its own, with each filter that has selectors once; its ids are numbers of screens. The index
# it belongs to has None in its place until a first selector comes, and again after the last has gone.

from libc.stdint cimport uint64_t

from matchcore.fields cimport Attributes, Fields
from matchcore.screen cimport IdList, Screen


cdef class Selecting:
    cdef:
        object filters         # FilterIndex: filter -> number
        readonly Attributes attributes
        list screens           # by number; None: a free number
        list texts             # by number: id -> its selector as text
        list free              # numbers
        dict numbers           # (filter in bytes, syntax) -> number
        readonly Py_ssize_t count  # of subscriptions
        Py_ssize_t text_bytes
        uint64_t version       # changes with each insert and removal
        Fields fields          # of one match, None while one is under way; and what it found
        IdList found

    cdef int _take(self, object filter, tuple key, Screen screen, dict texts) except -1
    cdef bint _asks_for_the_topic(self) noexcept
    cdef object _values(self, object topic, object fields, object syntax)
