# The subscriptions of a FilterIndex that have a selector.
#
#     topic --filters--> numbers --screens--> Screen --fields--> ids
#
# `filters` is an index of its own, with each filter that has selectors once; its ids are numbers of screens. The index
# it belongs to has None in its place until a first selector comes, and again after the last has gone.
#
# match_many reads screens without the GIL. Whoever changes one, or the numbers of attributes, holds `filters` meanwhile
# (filter_table.pyx): those that read are waited for, and those that begin keep the GIL.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.fields cimport Attributes, Fields
from matchcore.filter_table cimport FilterTable
from matchcore.screen cimport IdList, Screen


cdef class Selecting:
    cdef:
        FilterTable filters    # a FilterIndex: filter -> number
        readonly Attributes attributes
        list screens           # by number; None: a free number, or not built yet
        void** built           # the same without a reference, for those without the GIL
        uint32_t room          # in `built`
        object stored          # what a frozen index has (frozen_selectors.py), or None
        list texts             # by number: id -> its selector as text; not of what is stored
        list free              # numbers
        dict numbers           # (filter in bytes, syntax) -> number
        readonly Py_ssize_t count  # of subscriptions
        Py_ssize_t text_bytes
        uint64_t version       # changes with each insert and removal
        Fields fields          # of one match, None while one is under way; and what it found
        IdList found

    cdef int _reserve(self, uint32_t count) except -1
    cdef void _set(self, uint32_t number, Screen screen) noexcept
    cdef int _build(self, object number) except -1
    cdef dict _texts_of(self, object number)
    cdef int _take(self, object filter, tuple key, Screen screen, dict texts) except -1
    cdef bint _insert(self, object filter, uint32_t id, object selector, str syntax) except -1
    cdef bint _asks_for_the_topic(self) noexcept
    cdef object _values(self, object topic, object fields, object syntax)
