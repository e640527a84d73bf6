# The bindings of a headers exchange as an index of conditions. A condition is a name with a value, or a name alone: it
# is there. A conjunction with one condition is looked up. One with several hangs under the condition that fewest others
# hang under, and is verified when a message meets that one; so what all have in common (`kind = order`) is not what
# they hang under. Where more than CROWD hang under one condition, they are a tree of their own, by a second one, and so
# on.
#
#   message     a: 7   b: 1   kind: k
#                 |      |       |
#   names, values |      |       |      name, canonical value -> HeaderCondition, or nobody asks for it
#   hung:   (id, 1) -> Conjunction      (a, 7) -> [Conjunction, ...]      (kind, k) -> ConditionTree
#                                                                                        '- hung: (b, 1) -> ...
#   answer      numbers of destinations, ascending and each once
#
# This is how matchcore's screens find selectors (access keys), and is not a screen for three reasons. A screen cannot
# compare octets, decimals, arrays and tables, and takes a value of null for an absent one. It estimates what a
# condition costs by the values of its attribute, as selectors of people share attributes: 10,000 bindings with a header
# name each were verified in a row, 80 µs a message. And an `any` of which one part is common to all took 140 µs where
# that part is false; here an `any` is as many conjunctions of one condition.

#
# Nothing of this is in a cycle, so it is hidden from the garbage collector.

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

# Of 10,000 bindings most of this is in no near cache, and a search costs as much as it has misses. So what it reads of
# a condition is in 64 bytes, a short value included, and leads on from there; and what it reads of a conjunction, too.

cdef enum:
    SHORT = 16           # octets of a value that a condition has in itself: all numbers
    FEW = 3              # conditions that a conjunction has in itself

@cython.final
@cython.no_gc
cdef class HeaderCondition:
    cdef:
        uint64_t met                      # the last search in which a message met it
        void* branch                      # what hangs under it at the root, which has it; NULL: nothing
        object held                       # what it leads to alone: see `with_number`
        Py_ssize_t size                   # of the value
        char octets[SHORT]                # its octets, if it is short
        readonly bytes name
        readonly bytes value              # a canonical one (arguments.py); None: that the name is there
        Py_ssize_t uses                   # conjunctions of several that have it

    cdef inline bint has_octets(self, const char* octets, Py_ssize_t size) noexcept:
        """Is this its value, which has that size?"""
        if size <= SHORT:
            return memcmp(self.octets, octets, size) == 0
        return memcmp(PyBytes_AS_STRING(self.value), octets, size) == 0

# Conditions by their values: a slot is at the hash of the value, or behind it. The dict beside it has them.
cdef struct ValueSlot:
    Py_hash_t hash
    void* condition                       # NULL: free. It stays when its condition is dropped: see `gone`

@cython.final
@cython.no_gc
cdef class AskedName:
    cdef:
        ValueSlot* slots                  # a power of two, at least a third of them free; NULL: none yet
        size_t mask, taken
        dict values                       # canonical value -> HeaderCondition
        HeaderCondition present           # or None
        Py_ssize_t nested                 # values that are arrays or tables
        uint64_t seen                     # the last search in which it came
        HeaderCondition found             # the last value that came with it in that one

    cdef HeaderCondition with_value(self, bytes value)
    cdef int enter(self, HeaderCondition condition) except -1
    cdef int drop(self, HeaderCondition condition) except -1
    cdef int make_slots(self) except -1
    cdef void put(self, HeaderCondition condition, Py_hash_t hash) noexcept

@cython.final
@cython.no_gc
cdef class Conjunction:
    cdef:
        object held
        Py_ssize_t count                  # of conditions
        void* few[FEW]                    # the first of them, borrowed
        tuple conditions                  # in the order of the arguments
        tuple path                        # those under which it hangs, from the root

@cython.final
@cython.no_gc
cdef class ConditionTree:
    cdef:
        dict hung                         # HeaderCondition -> Conjunction, list, or ConditionTree
        bint is_root                      # what hangs under a condition is in it as well
        Conjunction here                  # the one that has no condition beside those of the path
        Py_ssize_t count                  # of conjunctions

    cdef int insert(self, Conjunction conjunction) except -1
    cdef int hang(self, HeaderCondition condition, branch) except -1
    cdef Py_ssize_t hanging(self, HeaderCondition condition) except -1
    cdef int remove(self, Conjunction conjunction, Py_ssize_t depth) except -1
    cdef int find(self, list met, ConditionIndex index) except -1

@cython.final
cdef class ConditionIndex:
    cdef:
        dict names                        # -> AskedName
        dict several                      # tuple of Conditions -> Conjunction
        object always                     # held by bindings that ask for nothing
        ConditionTree tree
        uint64_t serial                   # of the search
        list came                         # AskedNames of the message
        uint32_t* ids                     # the answer; the next search overwrites it
        size_t count, capacity

    cdef int change(self, list conditions, uint32_t number, bint added) except -1
    cdef Conjunction begin_conjunction(self, tuple asked)
    cdef int end_conjunction(self, Conjunction conjunction) except -1
    cdef HeaderCondition condition_of(self, bytes name, bytes value)
    cdef int forget(self, HeaderCondition condition) except -1
    cdef int begin(self) except -1
    cdef int meet(self, AskedName asked, HeaderCondition found) except -1
    cdef int finish(self) except -1
    cdef int pour(self, object held) except -1
    cdef int push(self, uint32_t number) except -1
    cdef int find_octets(self, const unsigned char* at, Py_ssize_t size) except -1
