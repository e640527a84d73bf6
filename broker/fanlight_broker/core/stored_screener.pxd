# Whether one selector is true of messages that come from a store, one by one: retained ones, and those of the archive.
#
#   Message --FieldReader, with the attributes of this selector alone--> Fields --> matchcore.Screen of one selector
#
# The same reader and the same screen as for live messages (screener.pxd), so the answer is the same.

from fanlight_broker.core.field_reader cimport FieldReader
from fanlight_broker.wire.message cimport Message
from matchcore.screen cimport IdList, Screen

cdef class StoredScreener:
    cdef:
        FieldReader reader
        Screen screen
        IdList found
        object body_formats    # (topic, syntax number) -> format of bodies without a content type; or None

    cpdef bint is_true_of(self, Message message, object publisher=*, double time=*) except -1
