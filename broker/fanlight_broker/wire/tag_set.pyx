# cython: language_level=3
"""A set of 16-bit tags, 1 to 65,535, in at most 9 KiB; it counts what it takes in a pot. Drawn in tag_set.pxd."""

from libc.stdint cimport uint16_t

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate
from fanlight_broker.wire.ledger cimport Pot


cdef class TagSet:
    """An empty one takes nothing beside the object."""

    def __cinit__(self, Pot pot not None):
        self.pot = pot

    def __dealloc__(self):
        self.close()

    def __len__(self):
        return self.count

    def __contains__(self, int identifier):
        return 1 <= identifier <= 65_535 and self.has(identifier)

    cpdef bint reserve(self, int identifier) except -1:
        """Room for an identifier. False if the pot has none. Raises ValueError if it is no identifier."""
        if not 1 <= identifier <= 65_535:
            raise ValueError(f"tag {identifier}; it is 1 to 65535")
        return self.open_page(identifier >> 11)

    cpdef bint add(self, int identifier) except -1:
        """False if there is no room for it."""
        if not self.reserve(identifier):
            return False
        if not self.has(identifier):
            self.pages[identifier >> 11][(identifier & 2047) >> 3] |= 1 << (identifier & 7)
            self.in_page[identifier >> 11] += 1
            self.count += 1
        return True

    cpdef bint discard(self, int identifier) except -1:
        """False if it is not in it."""
        if not 1 <= identifier <= 65_535 or not self.has(identifier):
            return False
        self.pages[identifier >> 11][(identifier & 2047) >> 3] &= ~(1 << (identifier & 7))
        self.in_page[identifier >> 11] -= 1
        self.count -= 1
        if self.count == 0:
            self.close()
        elif self.in_page[identifier >> 11] == 0:
            self.close_page(identifier >> 11)
        return True

    def in_use(self):
        """Those in it, in order."""
        cdef int identifier
        return [identifier for identifier in range(1, 65_536) if self.has(identifier)] if self.count else []

    def clear(self):
        """Forget them all."""
        self.close()

    cdef bint has(self, int identifier) noexcept:
        cdef unsigned char* page = self.pages[identifier >> 11] if self.pages is not NULL else NULL
        return page is not NULL and page[(identifier & 2047) >> 3] >> (identifier & 7) & 1

    cdef bint open_page(self, int page) except -1:
        cdef bint first = self.pages is NULL
        cdef Py_ssize_t more = PAGE_BYTES + TABLES_BYTES if first else PAGE_BYTES
        if not first and self.pages[page] is not NULL:
            return True
        if not self.pot.charge(more):
            return False
        self.nbytes += more
        if first:
            self.pages = <unsigned char**> allocate_zeros(PAGES, sizeof(unsigned char*))
            self.in_page = <uint16_t*> allocate_zeros(PAGES, sizeof(uint16_t))
        if self.pages is not NULL and self.in_page is not NULL:
            self.pages[page] = <unsigned char*> allocate_zeros(PAGE_BYTES, 1)
        if self.pages is NULL or self.in_page is NULL or self.pages[page] is NULL:
            if first:
                self.close()
            else:
                self.pot.force(-more)
                self.nbytes -= more
            raise MemoryError()
        return True

    cdef void close_page(self, int page) noexcept:
        deallocate(self.pages[page])
        self.pages[page] = NULL
        self.pot.force(-PAGE_BYTES)
        self.nbytes -= PAGE_BYTES

    cdef void close(self) noexcept:
        cdef int page
        if self.pages is not NULL:
            for page in range(PAGES):
                deallocate(self.pages[page])
        deallocate(self.pages)
        deallocate(self.in_page)
        self.pages = NULL
        self.in_page = NULL
        if self.pot is not None:
            self.pot.force(-self.nbytes)
        self.nbytes = self.count = 0
