# cython: language_level=3
"""One selector, asked about stored messages. Drawn in stored_screener.pxd."""

from libc.math cimport NAN

from fanlight_broker.core.field_reader cimport FieldReader
from fanlight_broker.wire.message cimport Message
from matchcore.body_reader cimport BODY_UNKNOWN, BodyCounts
from matchcore.fields cimport PAYLOAD_ROOT, Attributes, Fields
from matchcore.screen cimport IdList, Screen

__all__ = ["StoredScreener"]


cdef class StoredScreener:
    """bodies      counts what it reads
    body_formats   (topic, syntax number) -> what bodies without a content type are

    For one thread: what it has read of a message is overwritten by the next.
    """

    def __cinit__(self, selector not None, BodyCounts bodies not None, body_formats=None):
        cdef Attributes attributes = Attributes()
        self.reader = FieldReader(attributes, bodies)
        self.screen = Screen(attributes)
        self.screen.insert(0, selector)
        self.found = IdList()
        self.body_formats = body_formats

    cpdef bint is_true_of(self, Message message, object publisher=None, double time=NAN) except -1:
        """Unknown is not true.

        publisher  an object with `name` and `user`, texts or None; None: it is not known
        time       seconds since 1970 at which the message came; NaN: that is not known
        """
        cdef int format = BODY_UNKNOWN
        cdef Fields fields
        if self.body_formats is not None and self.reader.attributes.has_below(PAYLOAD_ROOT):
            format = self.body_formats(message.topic, message.syntax)
        fields = self.reader.read(message, format, publisher, time)
        self.found.clear()
        return self.screen.find(fields, self.found) > 0
