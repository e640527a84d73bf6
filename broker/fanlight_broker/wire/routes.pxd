# The route cache: the topic as it stands in the frame -> who gets it.
#
#   hash(syntax, topic octets) --> slots  [ . | R | . | R | R | . ]   open addressing, linear probing, at most half full
#                                               |
#                                               Route.key = syntax octet + topic octets, compared in full
#
# The hash is CPython's for bytes (SipHash-1-3, keyed at random per process), so hostile topics cannot be made to
# collide.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from fanlight_broker.wire.batcher cimport Batcher
from fanlight_broker.wire.route cimport Route

cdef struct Slot:
    Py_ssize_t hash
    void* route          # borrowed: `kept` owns it

cdef class RouteCache:
    cdef:
        readonly Batcher batcher     # of the lanes that share the routes
        Slot* slots
        Py_ssize_t mask
        readonly object kept             # OrderedDict: key -> Route, oldest first
        readonly Py_ssize_t most, most_bytes
        readonly Py_ssize_t nbytes       # what the routes take, by `bytes_of`
        readonly uint64_t hits, misses, evicted

    cdef inline Route latest(self, unsigned char syntax, const char* topic, Py_ssize_t size):
        """`find` for what may have the topic of the message before: without its hash, and None if it has not."""
        cdef Route last = self.batcher.last
        if last is None or PyBytes_GET_SIZE(last.key) != size + 1 \
                or <unsigned char> PyBytes_AS_STRING(last.key)[0] != syntax \
                or memcmp(PyBytes_AS_STRING(last.key) + 1, topic, size) != 0:
            return None
        self.hits += 1
        return last

    cdef Route find(self, unsigned char syntax, const char* topic, Py_ssize_t size)
    cdef int place(self, Py_ssize_t hash, void* route) noexcept
    cdef int rebuild(self, Py_ssize_t capacity) except -1
