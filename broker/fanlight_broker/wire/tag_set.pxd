# Tags of 16 bits that a client has used and not released: 65,535 bits, in pages that are made when they are needed.
#
#   pages  [ p | . | . | ... | . ]      PAGES of them; a page of 256 bytes has 2,048 identifiers, in_page how many are
#                                       set
#
# Clients count upwards, so a session needs a page or two. The worst one has all of them: 8 KiB.

from libc.stdint cimport uint16_t

from fanlight_broker.wire.ledger cimport Pot

cdef enum:
    PAGES = 32
    PAGE_BYTES = 256
    TABLES_BYTES = PAGES * 10     # of the two tables below

cdef class TagSet:
    cdef:
        Pot pot
        unsigned char** pages
        uint16_t* in_page
        readonly Py_ssize_t nbytes    # entered in the pot
        Py_ssize_t count

    cdef bint has(self, int identifier) noexcept
    cpdef bint reserve(self, int identifier) except -1
    cpdef bint add(self, int identifier) except -1
    cpdef bint discard(self, int identifier) except -1
    cdef bint open_page(self, int page) except -1
    cdef void close_page(self, int page) noexcept
    cdef void close(self) noexcept
