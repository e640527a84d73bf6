# cython: language_level=3
"""The route cache: routes by topic, found without making a Python object.

Bounded, in number and in bytes (a route is as long as its topic and its list of subscriptions): when it is full, the
oldest routes are forgotten and counted; the next message on such a topic works it out anew.
"""

from collections import OrderedDict

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate
from fanlight_broker.wire.batcher cimport Batcher
from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.hidden cimport unseen

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030E0000
    /* CPython's header has it no more since 3.13; 3.14 has it under a public name. */
    PyAPI_FUNC(Py_hash_t) _Py_HashBytes(const void *, Py_ssize_t);
    #define Py_HashBuffer _Py_HashBytes
    #endif
    """
    Py_ssize_t Py_HashBuffer(const void* octets, Py_ssize_t size) nogil

cdef enum:
    FIRST_SLOTS = 64


cdef inline Py_ssize_t hash_of(unsigned char syntax, const char* topic, Py_ssize_t size) noexcept nogil:
    # The same words in two syntaxes are two keys, which must not always share a chain: the syntax is part of the hash.
    return Py_HashBuffer(topic, size) ^ (<Py_ssize_t> syntax * 0x3779FB9)


cdef class RouteCache:
    """At most `most` routes, which take about `most_bytes` bytes; one, however large it is."""

    def __cinit__(self, Py_ssize_t most, Py_ssize_t most_bytes=256 * 1024 * 1024):
        if most < 1:
            raise ValueError(f"a cache of {most} routes; it holds at least one")
        self.most = most
        self.most_bytes = most_bytes
        self.batcher = Batcher()
        # Not a dict: to find the first key of one whose first keys were deleted is a walk over all of these.
        self.kept = unseen(OrderedDict())
        self.rebuild(FIRST_SLOTS)

    def __dealloc__(self):
        deallocate(self.slots)

    def __len__(self):
        return len(self.kept)

    @staticmethod
    def key_of(int syntax, bytes topic not None):
        """The key of a topic: the octet of its syntax, then its own."""
        return bytes((syntax,)) + topic

    def get(self, bytes key not None):
        """The route for a key, or None."""
        return self.kept.get(key)

    def routes(self):
        """All routes, oldest first (a copy)."""
        return list(self.kept.values())

    def add(self, Route route not None):
        """Keep a route whose key is not kept yet. Returns the oldest routes, those that had to go for it."""
        cdef Route oldest
        cdef list gone = []
        if route.key in self.kept:
            raise ValueError(f"a route for {route.key!r} is kept already")
        while self.kept and (len(self.kept) >= self.most or self.nbytes + route.nbytes > self.most_bytes):
            oldest = self.kept[next(iter(self.kept))]
            self.discard(oldest)
            self.evicted += 1
            gone.append(oldest)
        if 2 * (len(self.kept) + 1) > self.mask + 1:
            self.rebuild(2 * (self.mask + 1))
        self.kept[route.key] = route
        self.nbytes += route.nbytes
        self.place(key_hash(route.key), <void*> route)
        return gone

    def discard(self, Route route not None):
        """Forget a route. True if it was kept."""
        cdef Py_ssize_t at, hole, home
        if self.kept.get(route.key) is not route:
            return False
        at = key_hash(route.key) & self.mask
        while self.slots[at].route != <void*> route:
            at = (at + 1) & self.mask
        # Backward shift (Knuth 6.4, algorithm R): close the hole so that no probe stops short, without tombstones.
        hole = at
        while True:
            at = (at + 1) & self.mask
            if self.slots[at].route is NULL:
                break
            home = self.slots[at].hash & self.mask
            if ((at - home) & self.mask) >= ((at - hole) & self.mask):
                self.slots[hole] = self.slots[at]
                hole = at
        self.slots[hole].route = NULL
        del self.kept[route.key]
        self.nbytes -= route.nbytes
        if self.batcher.last is route:
            self.batcher.last = None
        return True

    def clear(self):
        """Forget all routes."""
        self.kept.clear()
        self.batcher.last = None
        self.nbytes = 0
        self.rebuild(FIRST_SLOTS)

    def lookup(self, int syntax, bytes topic not None):
        """`find` for Python: the route for a topic, or None."""
        return self.find(syntax, PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic))

    cdef Route find(self, unsigned char syntax, const char* topic, Py_ssize_t size):
        cdef Py_ssize_t hash, at
        cdef const char* key
        cdef Route route = self.latest(syntax, topic, size)
        if route is not None:
            return route
        hash = hash_of(syntax, topic, size)
        at = hash & self.mask
        while self.slots[at].route is not NULL:
            if self.slots[at].hash == hash:
                route = <Route> self.slots[at].route
                key = PyBytes_AS_STRING(route.key)
                if PyBytes_GET_SIZE(route.key) == size + 1 and <unsigned char> key[0] == syntax \
                        and memcmp(key + 1, topic, size) == 0:
                    self.hits += 1
                    return route
            at = (at + 1) & self.mask
        self.misses += 1
        return None

    cdef int place(self, Py_ssize_t hash, void* route) noexcept:
        cdef Py_ssize_t at = hash & self.mask
        while self.slots[at].route is not NULL:
            at = (at + 1) & self.mask
        self.slots[at].hash = hash
        self.slots[at].route = route
        return 0

    cdef int rebuild(self, Py_ssize_t capacity) except -1:
        cdef Slot* slots = <Slot*> allocate_zeros(capacity, sizeof(Slot))
        cdef Route route
        if slots is NULL:
            raise MemoryError()
        deallocate(self.slots)
        self.slots = slots
        self.mask = capacity - 1
        for route in self.kept.values():
            self.place(key_hash(route.key), <void*> route)
        return 0


cdef Py_ssize_t key_hash(bytes key):
    return hash_of(<unsigned char> key[0], PyBytes_AS_STRING(key) + 1, PyBytes_GET_SIZE(key) - 1)
