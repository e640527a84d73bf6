# cython: language_level=3
"""What a route has of selectors. Drawn in screening.pxd; who asks them is `RouteCache.screened`."""

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint32_t

from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.message cimport Message

cdef enum:
    OBJECTS = 160            # bytes of a RouteScreens, its list and its ids


@cython.no_gc
cdef class FilterScreen:
    """The subscriptions to one filter that have selectors.

    screen  their selectors, a matchcore.Screen
    """

    def __cinit__(self, bytes filter not None, unsigned char syntax, screen not None):
        self.filter = filter
        self.syntax_number = syntax
        self.screen = screen
        self.ids = unseen(set())

    def add(self, uint32_t id):
        """A subscription is in force."""
        self.ids.add(id)
        self.count = len(self.ids)

    def remove(self, uint32_t id):
        """It is no more. Raises KeyError if it was not."""
        self.ids.remove(id)
        self.count = len(self.ids)


@cython.no_gc
cdef class RouteScreens:
    """Of one route: the screens of its filters, and the ids of its subscriptions without a selector."""

    def __cinit__(self, list screens not None, bytes plain not None):
        self.screens = unseen(screens)
        self.plain = plain

    cdef Py_ssize_t bytes_held(self) noexcept:
        return OBJECTS + 8 * PyList_GET_SIZE(self.screens) + PyBytes_GET_SIZE(self.plain)

    cdef Py_ssize_t subscriptions(self) except -1:
        """How many have selectors."""
        cdef Py_ssize_t i, count = 0
        for i in range(PyList_GET_SIZE(self.screens)):
            count += (<FilterScreen> PyList_GET_ITEM(self.screens, i)).count
        return count


cdef class Screener:
    cdef Py_ssize_t ask(
        self, RouteScreens screens, Message message, object owner, const uint32_t** ids
    ) except -1:
        raise NotImplementedError("screens that nobody asks")
