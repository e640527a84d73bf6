# cython: language_level=3
"""matchcore's screens behind the contenders' interface: what Fanlight has.

A screen compiles the selectors itself, so its memory has the programs in it, and its insert the whole of an insert.
"""

from fanlight_content.selections cimport Asked, Selection
from libc.stdint cimport uint32_t
from matchcore.screen cimport IdList, Screen


cdef class Ours(Contender):
    """One screen."""

    def __cinit__(self, *_) -> None:
        self.screen = Screen(self.selections.attributes)

    cdef int add(self, uint32_t selection) except -1:
        cdef const Selection* item = &self.selections.items[selection]
        self.screen.insert(item.id, self.selections.selectors[selection])
        return 0

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        self.screen.find(asked.fields, out)
        return 0

    @property
    def nbytes(self) -> int:
        """Programs included."""
        return self.screen.nbytes

    def shape(self) -> dict:
        """How many selectors are under keys, and in a row."""
        return self.screen._shape()
