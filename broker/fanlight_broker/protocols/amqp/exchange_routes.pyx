# cython: language_level=3
"""Where messages of one exchange go, found without Python: drawn in exchange_routes.pxd."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer

from fanlight_broker.wire.finder cimport FOUND
from fanlight_broker.wire.named_queue cimport NamedQueue

from array import array

cdef enum:
    AMQP = 0             # matchcore's syntax
    ROUTE_PLACES = 8
    FREED_A_TURN = 512   # routes or sites, 0.1 ms
    UNFREED_MOST = 65_536    # beyond, all are freed at once: they come faster than turns

cdef object MISSING = object()


cdef bint queues_live(Route route) noexcept:
    """Has no queue of it ended?"""
    cdef object queue
    for queue in route.groups:
        if (<NamedQueue> queue).origin.ended:
            return False
    return True


def is_live(Route route not None):
    """`queues_live`, for Python."""
    return queues_live(route)


@cython.final
cdef class RouteRoom:
    """most: places; full: called when more are needed"""

    def __cinit__(self, Py_ssize_t most=1 << 18, later=None):
        self.most, self.later = most, later
        self.dropped = []

    def clear(self):
        """Nothing is kept any more."""
        self.taken = 0

    cdef int drop(self, dict what) except -1:
        """Free what is in a dictionary, some of it in each turn: there may be tens of thousands."""
        if self.later is None or not what or len(what) + self.unfreed > UNFREED_MOST:
            return 0
        self.dropped.append(what)
        self.unfreed += len(what)
        if len(self.dropped) == 1:
            self.later(self.free_some)
        return 0

    def free_some(self):
        """One slice of what was dropped."""
        cdef dict what
        cdef Py_ssize_t left = FREED_A_TURN
        while left and self.dropped:
            what = <dict> self.dropped[-1]
            while left and what:
                what.popitem()
                left -= 1
                self.unfreed -= 1
            if not what:
                self.dropped.pop()
        if self.dropped:
            self.later(self.free_some)


@cython.final
cdef class ExchangeRoutes(KeptAnswer):
    """prefix      of the topics of its messages
    resolve     makes the route of queues by the numbers of destinations; None: more than the numbers decides
    room        of the vhost
    conditions  of a headers exchange
    filters     of a topic exchange, with `find_ids`, the capsule of FilterIndex
    """

    def __cinit__(self, bytes prefix not None, resolve not None, RouteRoom room not None, *,
                  ConditionIndex conditions=None, filters=None, find_ids=None):
        self.prefix, self.resolve, self.room = prefix, resolve, room
        self.conditions, self.filters = conditions, filters
        if find_ids is not None:
            self.ask = <FindIds> PyCapsule_GetPointer(find_ids, "matchcore.find_ids")
        self.routes = {}

    def __len__(self):
        return len(self.routes)

    def drop(self):
        """Forget all routes: others must be made in its place."""
        cdef dict routes = self.routes
        self.valid = False
        self.routes = {}
        self.room.drop(routes)

    cdef Route by_key(self, const char* key, Py_ssize_t size):
        cdef const uint32_t* numbers
        cdef size_t count
        if self.ask(<void*> self.filters, key, size, AMQP, &numbers, &count) != FOUND:
            return None
        return self.of(numbers, count)

    cdef Route by_headers(self, const unsigned char* entries, Py_ssize_t size):
        """entries: of a table that is well-formed."""
        self.conditions.find_octets(entries, size)
        return self.of(self.conditions.ids, self.conditions.count)

    cdef Route of(self, const uint32_t* numbers, size_t count):
        cdef bytes octets = PyBytes_FromStringAndSize(<const char*> numbers, count * sizeof(uint32_t))
        cdef object found = self.routes.get(octets, MISSING)
        if found is MISSING or (found is not None and not queues_live(<Route> found)):
            return self.make(octets)
        return <Route> found

    cdef Route make(self, bytes octets):
        cdef Route route = self.resolve(tuple(array("I", octets)))
        cdef Py_ssize_t places = ROUTE_PLACES + (PyList_GET_SIZE(route.groups) if route is not None else 0)
        if self.room.taken + places > self.room.most and self.room.full is not None:
            self.room.full()
        if self.valid and octets not in self.routes:
            self.room.taken += places
            self.routes[octets] = route
        return route
