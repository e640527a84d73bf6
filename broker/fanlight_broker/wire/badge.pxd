# What a connection shows for what its client may do: the badge of its permission class.
#
#   Lane.badge --number--> Route.permits: a bit, one of a few numbers, a table   what was asked before
#        |                    '-- no --> ask, in Python: yes is kept in the route
#        '-- None: everything is permitted                                       nothing is asked
#
# All clients of a class share one badge, and all badges of one set of permissions share its `Validity`. When others
# take the place of these permissions it is over, for all badges at once and at no cost for each, so that no lane goes
# on by what the ones before have allowed: Python gives its client another badge then. A badge whose number may be given
# to another class, while its permissions stay in force, gets the number REVOKED.

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
cdef class Validity:
    cdef public bint over                 # other permissions are in force

@cython.final
cdef class Badge:
    cdef:
        readonly object grant             # the core's
        readonly Validity validity        # of the permissions that it is by
        public int number                 # of the class, or REVOKED
        public object ask                 # (one of the above, topic, syntax number) -> is it allowed, always?
        public Py_ssize_t holders         # subscribers that have it

    cdef bint asked(self, Route route, int kind, const char* topic, Py_ssize_t size, unsigned char syntax) except -1
