# The filters of an index: insertion, removal, and which threads may read. FilterIndex searches them.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.slots cimport Slots
from matchcore.syntax cimport Limits, View
from matchcore.tiers cimport Tiers
from matchcore.topic cimport Topic


cdef class FilterTable:
    cdef:
        Allocator allocator             # counts every byte below
        Limits limits
        Slots slots           # each (text, syntax) with its ids; the exact tier
        Tiers tiers           # the filters with wildcards
        Topic topic           # scratch of the thread that holds the GIL
        uint32_t together_from  # filters from which on match_many searches for several topics in turn
        uint32_t* word_ids    # scratch of a change: a canonical filter, limits.words of it
        readonly uint64_t version  # changes with each insert and removal that had an effect
        int readers           # calls of match_many that run without the GIL
        int writers           # changes that wait for them
        void* gate            # a lock: held while there are such readers
        unsigned long forks   # of the process in which these three were valid last
        object selecting      # Selecting: the subscriptions that have a selector; None while there are none
        object __weakref__

        bint _insert(self, object filter, uint32_t who, uint32_t number) except -1
        int _put(self, const View* view, uint64_t hash, int count, uint32_t who, uint32_t number) noexcept nogil
        bint _insert_plain(self, object filter, uint32_t who, uint32_t number) except -1
        bint _insert_where(self, object filter, uint32_t who, object where, uint32_t number) except -1
        bint _drop_where(self, object filter, uint32_t who, uint32_t number) except -1
        bint _remove(self, object filter, uint32_t who, uint32_t number) except -1
        object _new_selecting(self)
        int _read(self, object filter, uint32_t syntax, View* view, uint64_t* hash) except -1
        int _canonical(self, int count, uint32_t* flags, uint32_t syntax) noexcept nogil
        int _intern(self, int count, uint32_t* flags, uint32_t syntax) noexcept nogil
        int _known(self, int count, uint32_t* flags, uint32_t syntax) noexcept nogil
        void _release(self, const uint32_t* ids, int count) noexcept nogil
        int _to_change(self) except -1
        int _wait_for_readers(self) except -1
        unsigned long _hold(self) except? 0xFFFFFFFF
        void _let_go(self, unsigned long forks) noexcept
        int _threads_that_are(self) except -1
        void _begin_reading(self) noexcept
        void _end_reading(self) noexcept
        list _triples(self, uint32_t slot, size_t most=*)
        tuple _whereabouts(self, uint32_t slot, uint64_t version)
