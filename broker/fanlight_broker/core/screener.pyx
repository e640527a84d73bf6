# cython: language_level=3
"""Asks the screens of a route about one message. Drawn in screener.pxd."""

cimport cython
from libc.math cimport NAN
from libc.stdint cimport uint32_t

from fanlight_broker.core.field_reader cimport FieldReader
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.screening cimport FilterScreen, RouteScreens, Screener
from matchcore.ascending cimport make_ascending
from matchcore.fields cimport MESSAGE_ROOT, MESSAGE_TIME, Attributes, Fields
from matchcore.screen cimport IdList, Screen


@cython.final
cdef class MessageScreener(Screener):
    """attributes  that any selector of the broker asks for
    wall           seconds since 1970, for `$time`
    """

    def __cinit__(self, Attributes attributes not None, wall=None):
        self.reader = FieldReader(attributes)
        self.wall = wall
        self.found = IdList()

    cdef Py_ssize_t ask(
        self, RouteScreens screens, Message message, object owner, const uint32_t** ids
    ) except -1:
        cdef FieldReader reader = self.reader
        cdef IdList found = self.found
        cdef FilterScreen each
        cdef Fields fields
        cdef object publisher = None
        cdef double time = NAN    # absent
        if owner is not None and reader.attributes.has_below(MESSAGE_ROOT):
            publisher = owner.subscriber
        if self.wall is not None and reader.attributes.message(MESSAGE_TIME) >= 0:
            time = self.wall()
        fields = reader.read(message, screens.format, publisher, time)
        found.clear()
        for each in screens.screens:
            (<Screen> each.screen).find(fields, found)
        if make_ascending(&found.allocator, &found.ids, 0, &found.spare) < 0:
            raise MemoryError()
        ids[0] = found.ids.items
        return <Py_ssize_t> found.ids.size
