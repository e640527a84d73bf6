# cython: language_level=3
"""Where the messages of a basic.publish with these arguments go: drawn in publish_sites.pxd.

A site is made by Python (publish_routes.py) when its arguments come for the first time, and is used until a binding on
its path changes, or a queue of it ends. When the table is full all are dropped, and it begins anew.
"""

cimport cython

from cpython.bytes cimport PyBytes_FromStringAndSize

from fanlight_broker.wire.named_queue cimport NamedQueue
from fanlight_broker.wire.route cimport Route

cdef class KeptAnswer:
    """Of the exchanges: what a message with this key reaches."""


@cython.final
cdef class PublishSite:
    """topic, names, route, answer: see publish_sites.pxd. The groups of `route` are named queues."""

    def __cinit__(self, bytes topic not None, bytes names not None, Route route, KeptAnswer answer):
        self.topic, self.names, self.route, self.answer = topic, names, route, answer

    cdef bint usable(self) noexcept:
        cdef object queue
        if self.answer is not None and not self.answer.valid:
            return False
        if self.route is not None:
            for queue in self.route.groups:
                if (<NamedQueue> queue).origin.ended:
                    return False
        return True


@cython.final
cdef class PublishSites:
    """The sites of a vhost.

    resolve  makes a site of the arguments of basic.publish, as octets; None: there is none, Python decides
    most     sites that are kept
    """

    def __cinit__(self, resolve not None, Py_ssize_t most=16_384):
        self.known = {}
        self.resolve = resolve
        self.most = most

    def __len__(self):
        return len(self.known)

    cdef PublishSite find(self, const unsigned char* octets, Py_ssize_t size):
        cdef bytes arguments = PyBytes_FromStringAndSize(<const char*> octets, size)
        cdef PublishSite site = self.known.get(arguments)
        if site is not None and site.usable():
            return site
        site = self.resolve(arguments)
        if site is None:
            self.known.pop(arguments, None)
            return None
        if len(self.known) >= self.most:
            self.known.clear()
        self.known[arguments] = site
        return site


@cython.final
cdef class LaneChannel:
    def __cinit__(self, int number, int serial):
        self.number, self.serial = number, serial


cdef class PublishCounts:
    """Answers to publishers, and messages that were refused without one."""
