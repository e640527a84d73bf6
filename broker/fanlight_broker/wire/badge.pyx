# cython: language_level=3
"""Badges: what a connection shows for what its client may do. Drawn in badge.pxd."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize


@cython.final
cdef class Validity:
    """Of one set of permissions: of all badges by it."""


@cython.final
cdef class Badge:
    """Of one permission class.

    grant     the core's, for Python
    number    of the class; several may have been given the same one, but never two of those in force
    ask       called with MAY_PUBLISH, MAY_RETAIN or MAY_REQUEST, a topic, and the number of its syntax; False also if
              it depends on the message
    validity  of the permissions that the class is of
    """

    def __cinit__(self, grant, int number, ask not None, Validity validity not None):
        self.grant, self.number, self.ask, self.validity = grant, number, ask, validity

    @property
    def revoked(self):
        """Does it permit nothing any more? Whoever has it is to ask for another one."""
        return self.validity.over or self.number >= REVOKED

    cdef bint asked(self, Route route, int kind, const char* topic, Py_ssize_t size, unsigned char syntax) except -1:
        """Ask Python, and keep a yes in the route. A no is for Python, which says why, and counts it."""
        if self.validity.over or self.number >= REVOKED:
            return False
        if not self.ask(kind, PyBytes_FromStringAndSize(topic, size), syntax):
            return False
        route.permit(self.number, kind)
        return True
