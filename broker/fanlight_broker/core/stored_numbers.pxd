# The numbers in some fields of messages that come from a store, one by one: what an index of numbers is made of.
#
#   Message --FieldReader, with these attributes alone--> Fields --> numbers, as comparisons with a number see them

from fanlight_broker.core.field_reader cimport FieldReader
from fanlight_broker.wire.message cimport Message

cdef class StoredNumbers:
    cdef:
        FieldReader reader
        list places            # the numbers of the attributes
        object body_formats    # (topic, syntax number) -> format of bodies without a content type; or None

    cpdef list read(self, Message message, object publisher=*, double time=*)
