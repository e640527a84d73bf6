# The last changes of the subscriptions, by which a cached route is brought up to date at its next use.
#
#   a subscription changes --> has any cached topic the words of its filter? (`words`: a bit for position and word)
#                                no: nothing           mostly: it ends here
#                                yes: generation + 1   last[generation % CHANGES] = RouteChange
#
#   a message --> its route --> route.generation == generation? go on
#                                else, for each change since then: does its filter match the topic?
#                                  ADDED, REMOVED   one target more or less: RouteCache.renew
#                                  OTHER            the topic is matched again, as if it were new
#                                  MEMBERS          of a group that stays: the same where the route has screens
#                                older than all that are kept: the same
#
# A bit is set for each word of a cached topic and never cleared, so that it says yes too often and never too seldom.

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.target cimport Target

cdef enum:
    CHANGES = 64             # that are kept: looking at them all takes as long as matching the topic again, or less

cdef enum ChangeKind:
    ADDED = 0
    REMOVED = 1
    OTHER = 2
    MEMBERS = 3

@cython.final
cdef class RouteChange:
    cdef:
        int kind                 # ChangeKind
        bytes filter
        unsigned char syntax
        Target target            # what was added or removed; else None
        uint64_t generation
        uint64_t added           # REMOVED: the generation in which it was added; 0 if that is forgotten
        bint undone              # ADDED: it was removed since

# How a syntax spells: its separator, the word that stands for any one, and whether a filter that begins with a wildcard
# hides topics that begin with $. `#` stands for any words in all of them.
cdef struct Spelling:
    char separator
    char one
    bint hides

@cython.final
cdef class RouteChanges:
    cdef:
        readonly uint64_t generation
        Spelling spellings[2]
        list last
        uint64_t* words

    cdef int know(self, unsigned char syntax, const char* topic, Py_ssize_t size) except -1
    cdef bint concerns(self, unsigned char syntax, bytes filter) noexcept
    cdef bint note(self, int kind, bytes filter, unsigned char syntax, Target target) except -1
    cdef bint reaches(self, RouteChange change, unsigned char syntax, const char* topic, Py_ssize_t size) noexcept
    cdef int forget(self, uint64_t generation) except -1

    cdef inline RouteChange since(self, uint64_t generation):
        """The change that made this generation; asked only for the last CHANGES of them."""
        return <RouteChange> self.last[generation % CHANGES]
