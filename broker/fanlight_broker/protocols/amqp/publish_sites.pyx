# cython: language_level=3
"""Where the messages of a basic.publish with these arguments go: drawn in publish_sites.pxd.

A site is made by Python (publish_routes.py) when its arguments come for the first time, or by the routes of a topic
exchange; it is used until a binding on its path changes, or a queue of it ends.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from fanlight_broker.protocols.amqp.exchange_routes cimport queues_live
from fanlight_broker.wire.msgpack cimport is_utf8
from fanlight_broker.wire.named_queue cimport queues_ended
from fanlight_broker.wire.route cimport Route

cdef enum:
    RESERVED = 2         # bytes of the arguments in front of the exchange
    MANDATORY = 1        # of the bits behind the key
    EXCHANGES_MOST = 1_000
    JOINED_MOST = 64     # places of a joined route that is kept: to make one takes less time than to deliver so many


@cython.final
@cython.no_gc
cdef class PublishSite:
    """topic, names, route, answer, by_headers, onward: see publish_sites.pxd. Groups of routes are named queues."""

    def __cinit__(self, bytes topic not None, bytes names not None, Route route, KeptAnswer answer,
                  ExchangeRoutes by_headers=None, Route onward=None):
        self.topic, self.names, self.route, self.answer, self.by_headers = topic, names, route, answer, by_headers
        self.onward = onward
        self.seen_live = <uint64_t> -1

    cdef bint usable(self) noexcept:
        if self.answer is not None and not self.answer.valid:
            return False
        if self.seen_live == queues_ended:
            return True
        if (self.route is not None and not queues_live(self.route)) \
                or (self.onward is not None and not queues_live(self.onward)):
            return False
        self.seen_live = queues_ended
        return True

    cdef Route joined_with(self, Route route):
        """The route of the topic, which has no screens, with the queues behind it, for a message that counts there."""
        cdef Route made = self.joined
        route.hits += 1
        if made is not None and self.targets is route.targets and self.groups is route.groups and made.tap is route.tap:
            return made
        made = route.with_queues(self.onward.groups)
        self.joined = None
        if PyList_GET_SIZE(made.targets) + PyList_GET_SIZE(made.groups) <= JOINED_MOST:
            self.joined, self.targets, self.groups = made, route.targets, route.groups
        return made


@cython.final
cdef class PublishSites:
    """The sites of a vhost.

    resolve  makes a site of the arguments of basic.publish, as octets; None: there is none, Python decides
    most     sites that are kept
    later    does a piece of work in a later turn: what is dropped is freed there
    """

    def __cinit__(self, resolve not None, Py_ssize_t most=16_384, later=None):
        self.known, self.before, self.exchanges = {}, {}, {}
        self.resolve = resolve
        self.most = most
        self.room = RouteRoom(later=later)
        self.room.full = self.drop_exchanges

    def __len__(self):
        return len(self.known) + len(self.before)

    def add(self, bytes exchange not None, ExchangeRoutes routes not None):
        """The routes of an exchange, by its name as a short string."""
        cdef ExchangeRoutes before = self.exchanges.get(exchange)
        if before is not None and before is not routes:
            before.drop()    # its bindings have changed; sites would keep its routes, which nobody counts
        if len(self.exchanges) >= EXCHANGES_MOST:
            self.drop_exchanges()
        self.exchanges[exchange] = routes

    def drop_exchanges(self):
        """Make room: what exchanges have routed is to be found anew."""
        cdef ExchangeRoutes routes
        for routes in self.exchanges.values():
            routes.drop()
        self.exchanges = {}
        self.room.clear()

    def clear(self):
        """Let everything go."""
        self.room.drop(self.known)
        self.room.drop(self.before)
        self.known, self.before = {}, {}
        self.drop_exchanges()

    cdef PublishSite find(self, const unsigned char* octets, Py_ssize_t size):
        cdef bytes arguments = PyBytes_FromStringAndSize(<const char*> octets, size)
        cdef PublishSite site = self.known.get(arguments)
        if site is not None and site.usable():
            return site
        if self.before:
            site = self.before.pop(arguments, None)
            if site is not None and site.usable():
                self.keep(arguments, site)
                return site
        site = self.by_exchange(octets, size)
        if site is None:
            site = self.resolve(arguments)
            if site is None:
                self.known.pop(arguments, None)
                return None
        self.keep(arguments, site)
        return site

    cdef int keep(self, bytes arguments, PublishSite site) except -1:
        cdef dict before = self.before
        if len(self.known) >= self.most // 2:
            self.before, self.known = self.known, {}
            self.room.drop(before)
        self.known[arguments] = site
        return 0

    cdef PublishSite by_exchange(self, const unsigned char* octets, Py_ssize_t size):
        """By what is known of the exchange; None: nothing is, or Python is to decide."""
        cdef const unsigned char* key
        cdef Py_ssize_t key_at, key_size
        cdef ExchangeRoutes routes
        cdef Route route = None
        cdef bytes topic
        if size < RESERVED + 3 or octets[size - 1] & ~MANDATORY:
            return None
        key_at = RESERVED + 1 + octets[RESERVED]
        if key_at >= size:
            return None
        key, key_size = octets + key_at + 1, octets[key_at]
        if key_at + 1 + key_size + 1 != size or not is_utf8(key, key_size):
            return None
        routes = self.exchanges.get(PyBytes_FromStringAndSize(<const char*> octets + RESERVED, key_at - RESERVED))
        if routes is None or not routes.valid:
            return None
        if routes.conditions is None:
            route = routes.by_key(<const char*> key, key_size)
            if route is None:
                return None
        topic = PyBytes_FromStringAndSize(NULL, PyBytes_GET_SIZE(routes.prefix) + key_size)
        memcpy(PyBytes_AS_STRING(topic), PyBytes_AS_STRING(routes.prefix), PyBytes_GET_SIZE(routes.prefix))
        memcpy(PyBytes_AS_STRING(topic) + PyBytes_GET_SIZE(routes.prefix), key, key_size)
        return PublishSite(
            topic, PyBytes_FromStringAndSize(<const char*> octets + RESERVED, size - RESERVED - 1), route, routes,
            routes if route is None else None,
        )


@cython.final
cdef class LaneChannel:
    def __cinit__(self, int number, int serial):
        self.number, self.serial = number, serial


cdef class PublishCounts:
    """Answers to publishers, and messages that were refused without one."""
