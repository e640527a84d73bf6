# A first look at a selector: one condition that must hold if it is true, in six bytes beside each other in an array.
#
#     glance   region = 'eu' AND price < 50, found under (region = 'eu')        price from 0 to 0xC049
#     views    [ 0xC05E | absent | ... ]      by attribute: what the message has there, in 16 bits
#
# What lies under one key differs in the other conditions: most of it is passed over without looking at its program,
# which is elsewhere in memory. A glance may let through what is not true, and nothing that is gets lost: numbers of one
# order have views of that order, equal texts have equal views.

from libc.stdint cimport uint16_t, uint32_t

from matchcore.draft cimport SelectorDraft
from matchcore.fields cimport FieldView, Fields


cdef struct Glance:
    uint16_t attribute
    uint16_t low
    uint16_t span          # 0xFFFF from 0: lets all through


cdef inline bint glance_passes(const Glance* glance, const FieldView* views) noexcept nogil:
    cdef const FieldView* view = &views[glance.attribute]
    return <uint16_t> ((view.value - glance.low) & view.mask) <= glance.span


# Makes the views of the fields that are set, unless they are made already.
cdef void make_views(Fields fields) noexcept nogil

# Of a selector whose normals have the numbers of their attributes, and which of them have keys (cover.pxd).
cdef Glance glance_of(SelectorDraft draft) noexcept

# The view of a text.
cdef uint16_t view_of_text(const char* text, size_t size) noexcept nogil
