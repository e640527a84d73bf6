# FrozenIndex: an immutable copy of a FilterIndex, all of it in one piece of memory that anybody may own.
#
#     FilterIndex  --freeze-->  bytes of its own  --save-->  file  --open-->  pages shared by all who open it
#                                    |                                             |
#                                    v            pointers (frozen_read.pxd)       v
#                               FrozenIndex  ---------------------------------> header | sections
#                                                                               (frozen_layout.pxd)
#
# To the search it is a FilterIndex: the same structs, the same code.

from matchcore.filters cimport FilterIndex
from matchcore.frozen_layout cimport Header
from matchcore.frozen_read cimport Opened


cdef class FrozenIndex(FilterIndex):
    cdef:
        const Header* header
        Opened opened
        void* own                # memory of its own, if it was made by freeze
        size_t own_size
        object owner             # else the buffer: kept for as long as this
        bint is_opened

        int _open(self, const Header* header) except -1
        int _take_selectors(self, object section, bint verify, object source) except -1
        int _to_have_bytes(self) except -1
