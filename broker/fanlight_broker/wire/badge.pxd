# What a connection shows for what its client may do: the badge of its permission class.
#
#   Lane.badge --number--> Route.permits: a bit, or one of a few numbers         what was asked before
#        |                    '-- no --> ask, in Python: yes is kept in the route
#        '-- None: everything is permitted                                       nothing is asked
#
# All clients of a class share one badge. When others take the place of the permissions it gets the number REVOKED, so
# that no lane goes on by what the ones before have allowed: Python gives its client another badge then.

cimport cython

from fanlight_broker.wire.route cimport Route

cdef enum:
    BITS = 64                # classes that have a bit in each route
    FEW = 4                  # others that a route knows of at the same time

cpdef enum:
    REVOKED = 1 << 29        # what no class has as its number

cpdef enum:    # what a PUBLISH may ask for; a route knows each apart
    MAY_PUBLISH = 0
    MAY_RETAIN = 1
    MAY_REQUEST = 2

@cython.final
cdef class Badge:
    cdef:
        readonly object grant             # the core's
        public int number                 # of the class, or REVOKED
        public object ask                 # (one of the above, topic, syntax number) -> is it allowed, always?
        public Py_ssize_t holders         # subscribers that have it

    cdef bint asked(self, Route route, int kind, const char* topic, Py_ssize_t size, unsigned char syntax) except -1
