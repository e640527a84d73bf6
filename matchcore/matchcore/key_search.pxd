# Which selectors of a large screen are true of a message, of those under its access keys.
#
# Each step asks for the memory of the next one, for all keys: table, buckets, slots, selections, programs. A selector
# under several keys is marked when it is met, so that it is verified once.

from matchcore.allocator cimport Allocator, Numbers
from matchcore.fields cimport Fields
from matchcore.selections cimport LargeScreen, Selection


# What a search needs beside the screen: of one search at a time. `ids` is its answer.
cdef struct KeyScratch:
    Allocator* allocator
    Numbers* ids
    Numbers* tags
    Numbers* marks         # bits by slot, all 0 before and after; there is room
    Numbers* marked        # which are set


# Adds the ids of which the selector is true; what it marks stays marked. The fields' views are made. -1: no memory.
cdef int find_under_keys(
    const LargeScreen* large, const Selection* selections, Fields fields, KeyScratch* scratch
) noexcept nogil
