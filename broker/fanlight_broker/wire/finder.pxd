# From the octets of a topic to the targets that get it, without Python.
#
#   topic --ask--> ids of subscriptions --by_id--> targets       ask: the matcher's, by a capsule
#                    |
#                    |-- each is a target by itself (the usual case): a list, that routes with the same targets share
#                    |-- some are members of groups: a list of the others, and their groups
#                    '-- two of one session, a reserved name, one that permissions leave out of some topics: gather.pyx
#                        and core.overlap, in Python
#
#   RouteScreens, message --choose--> targets      those without a selector, and those whose selector is true
#
# The list is found again by the hash of its ids (`interned`), so a topic that is used once makes no object, and that
# messages on different topics have the same subscribers is seen by one comparison.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.changes cimport RouteChange
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.sampler cimport Sampler
from fanlight_broker.wire.screening cimport RouteScreens, Screener

cdef enum:
    FOUND = 0                # what `ask` returns; everything else is an error

ctypedef int (*FindIds)(
    void* index, const char* topic, size_t size, uint32_t syntax, const uint32_t** ids, size_t* count) noexcept

@cython.final
cdef class Finder:
    cdef:
        object index                      # has the filters; kept for `ask`
        FindIds ask
        list by_id
        bytes separators
        tuple roots                       # first words of the broker's own topics
        tuple reserved                    # first words that only filters with that very word see
        object merge
        public object selects             # (topic, syntax number) -> is it for the archive? None: there is none
        public ArchiveTap tap
        public Screener screener          # of those with selectors
        public object body_formats        # (topic, syntax number) -> format of bodies without a content type; or None
        public object rules               # (topic, syntax number) -> may a routing rule act on it? None: there is none
        public object onward              # the same of queues behind the topic (core/onward.py)
        public Sampler sampler            # of messages that are traced; None: none are
        public Py_ssize_t screened        # filters that have selectors
        public Py_ssize_t partly          # subscriptions that are left out of the routes of some topics
        public object may_read            # (one of them, topic, syntax number) -> is it left in?
        uint32_t* chosen                  # ids of one message
        Py_ssize_t chosen_capacity
        public Py_ssize_t topic_bytes_max, topic_words_max
        readonly uint64_t built           # topics that were worked out
        uint64_t asked, serial
        list of_one                       # targets of the last message on a topic with selectors; or None
        list spare                        # an empty list, for groups; or None
        list interned                     # lists of targets, each at the place of its hash
        Py_ssize_t to_purge               # places of it that may still have a target that is gone
        # The last answer.
        list targets, groups
        RouteScreens screens              # None: no filter of the topic has selectors
        # The last patch: many routes have the same list, and see the same change.
        list patched_from, patched_to
        RouteChange patched_by

    cdef bint find(self, unsigned char syntax, const char* topic, Py_ssize_t size) except -1
    cdef int decisions(self, unsigned char syntax, const char* topic, Py_ssize_t size) except -1
    cdef bint is_own(self, const char* topic, Py_ssize_t size) except -1
    cdef bint too_many_words(self, char separator, const char* topic, Py_ssize_t size) noexcept
    cdef bytes reserved_word(self, unsigned char syntax, const char* topic, Py_ssize_t size)
    cdef list list_of(self, const uint32_t* ids, Py_ssize_t count)
    cdef bint has_partly(self, const uint32_t* ids, Py_ssize_t count) noexcept
    cdef list left_in(self, list ids, const char* topic, Py_ssize_t size, unsigned char syntax)
    cdef list list_of_one(self, const uint32_t* ids, Py_ssize_t count)
    cdef bint are_of(self, list found, const uint32_t* ids, Py_ssize_t count) noexcept
    cdef list new_list(self, const uint32_t* ids, Py_ssize_t count)
    cdef bint gather_all(self, const uint32_t* ids, Py_ssize_t count, bytes first, bint screens, const char* topic,
                         Py_ssize_t size, unsigned char syntax) except -1
    cdef Py_ssize_t choose(self, RouteScreens screens, Message message, object owner) except -1
    cdef Py_ssize_t put_together(self, bytes plain, const uint32_t* found, Py_ssize_t count) except -1
    cdef list shared(self, list targets)
    cdef list intern(self, list targets)
    cdef list patched(self, list targets, RouteChange change)
    cdef bint purge(self, Py_ssize_t places) except -1
