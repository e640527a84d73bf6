# cython: language_level=3
"""The numbers in some fields of stored messages. Drawn in stored_numbers.pxd."""

from libc.math cimport NAN
from libc.stdint cimport uint8_t

from fanlight_broker.core.field_reader cimport BODY_UNKNOWN, FieldReader
from fanlight_broker.wire.message cimport Message
from matchcore.fields cimport FIELD_FLOAT, FIELD_INTEGER, PAYLOAD_ROOT, Attributes, Field, Fields
from matchcore.values cimport number_kind

__all__ = ["StoredNumbers"]


cdef class StoredNumbers:
    """fields      whose numbers are read, each once
    body_formats   (topic, syntax number) -> what bodies without a content type are

    Bodies that have no fields are not counted: a selector that asks about them counts them.
    """

    def __cinit__(self, fields not None, body_formats=None):
        cdef Attributes attributes = Attributes()
        self.places = [attributes.acquire(field) for field in fields]
        self.reader = FieldReader(attributes)
        self.body_formats = body_formats

    cpdef list read(self, Message message, object publisher=None, double time=NAN):
        """Of each field in turn: its number; None if it has none. Text of a header that is a number counts as one.

        publisher  an object with `name` and `user`, texts or None; None: it is not known
        time       seconds since 1970 at which the message came; NaN: that is not known
        """
        cdef int format = BODY_UNKNOWN
        cdef int place
        cdef Fields fields
        cdef Field* field
        cdef uint8_t kind
        cdef list numbers = []
        if self.body_formats is not None and self.reader.attributes.has_below(PAYLOAD_ROOT):
            format = self.body_formats(message.topic, message.syntax)
        fields = self.reader.read(message, format, publisher, time)
        for place in self.places:
            field = &fields.at[place]
            kind = number_kind(field)
            if kind == FIELD_INTEGER:
                numbers.append(field.integer)
            elif kind == FIELD_FLOAT:
                numbers.append(field.real)
            else:
                numbers.append(None)
        return numbers
