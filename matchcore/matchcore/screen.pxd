# The selectors of one topic filter: which of them are true of a message.
#
#     selections   [ id 7, program | id 9, program | free -> 0 | ... ]      slots
#
# Up to 16 selectors are verified in a row, and nothing else is kept. From the 17th on:
#
#     ids          id -> slot
#     access       the selectors that have cheap keys, under these (access.pxd)
#     pool         the others that rows of bits can stand for (selector_pool.pxd), from the 256th of them on
#     row          [ 1 | 0 | ... ]    slots of the rest, which are verified in a row
#
# A message asks the columns of its fields: each value, prefix, suffix or cell of a number is a key, and what lies under
# it is verified, unless a glance at it (glance.pxd) shows that it is not true. A selector under several keys is marked
# when it is met, so that it is verified once.
#
# `find` changes nothing in the screen: what it needs beside it is in the IdList. So several threads may ask one screen
# at a time, each with Fields and an IdList of its own, while nobody inserts or removes.

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.draft cimport SelectorDraft
from matchcore.fields cimport Attributes, Field, Fields
from matchcore.glance cimport Glance
from matchcore.id_table cimport Ids
from matchcore.selections cimport LargeScreen, Selection

cdef enum:
    FEW_SELECTORS = 16


cdef class IdList:
    cdef:
        Allocator allocator
        Numbers ids
        Numbers marks          # bits by slot, all 0 between two messages
        Numbers marked         # which are set
        Numbers spare          # for putting ids in order
        Numbers tags           # of a message's keys

    cdef void clear(self) noexcept nogil
    cdef int _make_marks(self, uint32_t slots) noexcept nogil


cdef class Screen:
    cdef:
        readonly Attributes attributes
        Allocator allocator
        LargeScreen* large     # NULL: up to 16
        Selection* selections
        uint32_t count         # of slots ever used
        uint32_t capacity
        uint32_t free          # first free slot, NONE none
        uint32_t live
        Fields fields          # of `match`, and its answer: None while one is under way
        IdList found

    cdef uint32_t _slot_of(self, uint32_t id) noexcept nogil
    cdef Ids _ids(self) noexcept nogil
    cdef int _make_large(self) noexcept nogil
    cdef void _free_large(self) noexcept nogil
    cdef int _add(self, uint32_t id, SelectorDraft draft, const Glance* glance) noexcept
    cdef void _place(self, uint32_t slot, uint32_t place) noexcept nogil
    cdef int _reserve(self) noexcept nogil
    cdef void _drop_slot(self, uint32_t slot) noexcept nogil
    cdef int _verify(self, uint32_t slot, Fields fields, IdList out) noexcept nogil
    cdef int _ask_large(self, Fields fields, IdList out) noexcept nogil

    # Adds the ids whose selector is TRUE to `out`, each once, in no order; how many. MemoryError: `out` is as it was.
    # `fields` are of the same Attributes.
    cdef Py_ssize_t find(self, Fields fields, IdList out) except -1 nogil
