# Which selectors of a route are true of one message, without Python.
#
#   Message --FieldReader--> Fields, once --> matchcore.Screen.find, of each filter --> ids, ascending
#
# Wire calls it by way of `wire.Screener`, and does not know matchcore.

from libc.stdint cimport uint32_t

from fanlight_broker.core.field_reader cimport FieldReader
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.screening cimport RouteScreens, Screener
from matchcore.screen cimport IdList

cdef class MessageScreener(Screener):
    cdef:
        readonly FieldReader reader
        object wall                        # seconds since 1970, a function; None: nobody knows
        IdList found
