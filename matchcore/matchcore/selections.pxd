# The selectors of a screen, each in a slot, and where those of a large screen are found (screen.pxd).

from libc.stdint cimport uint32_t

from matchcore.access cimport Access
from matchcore.allocator cimport Numbers
from matchcore.glance cimport Glance
from matchcore.id_table cimport IdTable
from matchcore.program cimport Program
from matchcore.selector_pool cimport SelectorPool

cdef enum:
    # Selection.place of those that are not in the row
    UNDER_ONE_KEY = 0xFFFFFFFE
    UNDER_SEVERAL = 0xFFFFFFFD
    IN_POOL = 0x80000000   # and the column; smaller than the two before


# `program` is a block of its own: the program, then its access entries.
cdef struct Selection:
    Program* program       # NULL: free, and `id` is the next free slot
    uint32_t id
    uint32_t place         # in the row
    Glance glance


cdef struct LargeScreen:
    Access access
    IdTable ids
    Numbers row
    uint32_t several       # selectors under several keys
    SelectorPool* pool     # NULL: none yet
    Numbers waiting        # slots of those that would be in the pool
