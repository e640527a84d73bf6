# Selectors on a route: which of its subscriptions with conditions on the content want a message.
#
#   Route --screens--> RouteScreens   plain:   ids of the subscriptions without a selector
#                                     screens: [FilterScreen, ...], one for each matching filter that has selectors
#
#   a message --ask--> its fields, decoded once --> each screen --> ids whose selector is true
#       those and the plain ones --Finder--> targets, groups --> a Route for this message alone (RouteCache.screened)
#
# A filter with selectors is in the matcher once, by the id of its FilterScreen, however many subscriptions it has. So a
# subscription with a selector that comes or goes changes no route, but for the first and the last of its filter.

cimport cython
from libc.stdint cimport uint32_t

from fanlight_broker.wire.message cimport Message

@cython.final
@cython.no_gc
cdef class FilterScreen:
    cdef:
        readonly bytes filter
        readonly unsigned char syntax_number
        readonly object screen            # the selectors, by the ids of their subscriptions; in no cycle
        readonly set ids                  # of these
        Py_ssize_t count                  # how many: beside `screen`, which is read for each message
        public uint32_t id                # the router's

@cython.final
@cython.no_gc
cdef class RouteScreens:
    cdef:
        readonly list screens             # FilterScreens; not seen by the garbage collector
        readonly bytes plain              # a uint32_t for each id, ascending
        public int format                 # of bodies that have no content type, by the topic; 0: unknown

    cdef Py_ssize_t bytes_held(self) noexcept
    cdef Py_ssize_t subscriptions(self) except -1

cdef class Screener:
    # Which selectors of a route are true of a message: how many, and their ids, ascending and valid until it is asked
    # again. owner: of the outbox of its publisher, or the publisher itself, or None.
    cdef Py_ssize_t ask(
        self, RouteScreens screens, Message message, object owner, const uint32_t** ids
    ) except -1
