# The route cache: the topic as it stands in the frame -> who gets it.
#
#   hash(syntax, topic octets) --> slots  [ . | R | . | R | R | . ]   open addressing, linear probing, at most half full
#                                               |
#                                               Route.key = syntax octet + topic octets, compared in full
#
#   found, and as new as the subscriptions --> the Route                 the usual case
#   found, and older                       --> renew: patched by the changes since, or matched again (changes.pxd)
#   not found                              --> work_out: matched (finder.pxd); kept, if it was seen before, and there is
#                                              a route that nobody has used for a round of the clock's hand; else
#                                              `scratch`, one Route that each such topic borrows
#
# The hash is CPython's for bytes (SipHash-1-3, keyed at random per process), so hostile topics cannot be made to
# collide. A table that grows is moved some slots at a time: until it is empty, the old one is searched behind the new.

from cpython.ref cimport PyObject
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcmp

from fanlight_broker.wire.batcher cimport Batcher
from fanlight_broker.wire.changes cimport RouteChange, RouteChanges
from fanlight_broker.wire.doorkeeper cimport Doorkeeper
from fanlight_broker.wire.finder cimport Finder
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.target cimport Target

cdef extern from *:
    # Over borrowed references: a look-up counts none but the one that it returns.
    char* octets_of "PyBytes_AS_STRING" (PyObject* octets) noexcept nogil
    Py_ssize_t size_of "PyBytes_GET_SIZE" (PyObject* octets) noexcept nogil

cdef struct Slot:
    Py_ssize_t hash
    void* route          # borrowed: `kept` owns it

cdef enum:
    MOVED = 1            # in place of a route in an old table: the probe goes on


cdef inline bint is_of(PyObject* route, unsigned char syntax, const char* topic, Py_ssize_t size) noexcept:
    """Whether a Route is this topic's."""
    cdef PyObject* key = <PyObject*> (<Route> route).key
    return size_of(key) == size + 1 and <unsigned char> octets_of(key)[0] == syntax \
        and memcmp(octets_of(key) + 1, topic, size) == 0


cdef class RouteCache:
    cdef:
        readonly Batcher batcher     # of the lanes that share the routes
        Slot* slots
        Slot* old                    # what is left of a smaller table, or NULL
        Py_ssize_t mask, old_mask, moved
        list kept                    # Routes, each at its `place`
        Py_ssize_t hand              # where the clock is in it
        double credit                # routes that the hand may pass
        uint64_t hits_credited
        Py_ssize_t to_sweep          # routes from the first on that may be older than `swept`
        uint64_t swept               # the generation that all have reached when that is 0
        bint unswept                 # something was removed since that began
        readonly Py_ssize_t most, most_bytes
        readonly Py_ssize_t nbytes       # what the routes take, by `Route.nbytes`
        readonly uint64_t hits, misses, evicted, invalidated
        uint64_t generation              # of the subscriptions, as far as they concern the routes
        RouteChanges changes             # None: there is nobody to work out a route (tests, benches)
        Finder finder                    # or None
        Ledger ledger                    # or None
        Doorkeeper doorkeeper
        Route scratch
        Route for_one                    # of one message of a topic that has selectors
        Route screened_of                # the route that it was made of, or None
        dict remembered, remembered_before    # messages on topics whose routes were removed: by their keys

    cdef inline PyObject* latest(self, unsigned char syntax, const char* topic, Py_ssize_t size) noexcept:
        """`find` for what may have the topic of the message before: without its hash; NULL if it has not. Borrowed."""
        cdef PyObject* last = <PyObject*> self.batcher.last
        return last if <object> last is not None and is_of(last, syntax, topic, size) else NULL

    cdef inline PyObject* seek(
        self, Py_ssize_t hash, unsigned char syntax, const char* topic, Py_ssize_t size
    ) noexcept:
        """The route that is kept for a topic, up to date or not, or NULL. Borrowed."""
        cdef Slot* slots = self.slots
        cdef Slot* slot
        cdef Py_ssize_t mask = self.mask, at
        while True:
            at = hash & mask
            while True:
                slot = slots + at
                if slot.hash == hash and <uintptr_t> slot.route > MOVED \
                        and is_of(<PyObject*> slot.route, syntax, topic, size):
                    return <PyObject*> slot.route
                if slot.route is NULL:
                    break
                at = (at + 1) & mask
            if self.old is NULL or slots is self.old:
                return NULL
            slots, mask = self.old, self.old_mask

    cdef Route find(self, unsigned char syntax, const char* topic, Py_ssize_t size)
    cdef Route missed(self, Py_ssize_t hash, unsigned char syntax, const char* topic, Py_ssize_t size)
    cdef Route work_out(self, Py_ssize_t hash, unsigned char syntax, const char* topic, Py_ssize_t size)
    cdef Route screened(self, Route route, Message message, object owner)
    cdef int count_screened(self) except -1
    cdef bint renew(self, Route route) except -1
    cdef bint patch(self, Route route) except -1
    cdef bint rematch(self, Route route) except -1
    cdef bint take(self, Route route) except -1
    cdef bint make_room(self, Route route) except -1
    cdef int drop(self, Route route) except -1
    cdef int remember(self, Route route) except -1
    cdef int place(self, Py_ssize_t hash, void* route) noexcept
    cdef int grow(self) except -1
    cdef int move(self, Py_ssize_t slots) noexcept
    cdef int unplace(self, Route route) noexcept
    cdef int note(self, int kind, bytes filter, unsigned char syntax, Target target) except -1
