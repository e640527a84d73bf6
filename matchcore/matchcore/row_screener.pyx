# cython: language_level=3, annotation_typing=False
"""A selector over the rows of record batches. Drawn in row_screener.pxd."""

from libc.stdint cimport uint8_t

from matchcore.body_reader cimport BodyCounts, take_counts
from matchcore.fields cimport PAYLOAD_ROOT, Attributes
from matchcore.message_rows cimport MessageReader, MessageRows
from matchcore.screen cimport IdList, Screen

import numpy

__all__ = ["RowScreener"]


cdef class RowScreener:
    """counts  where the bodies that it reads are counted; None: nowhere

    For one thread: what it has read of a message is overwritten by the next.
    """

    def __cinit__(self, object selector not None, BodyCounts counts=None):
        cdef Attributes attributes = Attributes()
        self.screen = Screen(attributes)
        self.screen.insert(0, selector)
        self.reader = MessageReader(attributes, BodyCounts())
        self.counts = counts
        self.found = IdList()

    @property
    def asks_bodies(self):
        """Whether it looks at fields of bodies, so that their formats matter."""
        return self.reader.attributes.has_below(PAYLOAD_ROOT)

    def true_of(self, MessageRows rows not None):
        """Of each row whether it is true, an array of booleans. Unknown is not true."""
        cdef Py_ssize_t row
        cdef uint8_t[::1] true
        found = numpy.zeros(rows.count, numpy.bool_)
        true = found.view(numpy.uint8)
        with nogil:
            for row in range(rows.count):
                self.reader.read(rows, row)
                self.found.clear()
                true[row] = self.screen.find(self.reader.fields, self.found) > 0
        if self.counts is not None:  # with the GIL: other threads count there, too
            take_counts(self.counts, self.reader.body.counts)
        return found
