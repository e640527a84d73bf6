# FilterIndex: topic filters in, a topic name asked, ids out.
#
#     topic text --scan--> words, hashed
#        |                    |
#        |  hash of all       |  each word: dictionary -> id
#        v                    v
#     Texts (exact tier)    Pool (dense tier; wildcard filters)
#        |                    |  columns -> texts
#        +---> texts <--------+
#                |
#             Results: their ids, ascending, each once
#
# A filter is in exactly one tier. Another tier is added beside the pool: it is asked in `collect`, is
# given new wildcard filters in `_attach`, and says with `Text.target` where a text lives.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.heap cimport Heap, Numbers
from matchcore.pool cimport Pool
from matchcore.results cimport Results
from matchcore.syntax cimport Fault, Limits, Token, View
from matchcore.texts cimport Texts
from matchcore.words cimport Words


cdef class FilterIndex:
    cdef:
        Heap heap             # counts every byte below
        Limits limits
        Texts texts           # each (text, syntax) with its ids; the exact tier
        Words words           # the words of wildcard filters
        Pool pool             # the dense tier
        Token* tokens         # scratch: the text being scanned, limits.words of them
        uint32_t* word_ids    # scratch: the same as ids or canonical tokens
        Numbers columns       # scratch: what the pool found
        Results results       # scratch: checked out while Python builds an answer
        uint64_t version      # changes with every insert and removal that did something
        object __weakref__

        # Fills results.texts for a topic. -1 with `fault` filled in: an invalid topic; -2: no memory.
        int collect(
            self, const View* view, uint32_t syntax, bint first_only, Results* results, Fault* fault
        ) noexcept nogil
        int _collect(self, object topic, uint32_t syntax, bint first_only, Results* results, object row) except -1
        uint32_t _attach(self, int count, uint32_t flags) noexcept nogil
        void _detach(self, uint32_t text) noexcept nogil
        void _release(self, const uint32_t* ids, int count) noexcept nogil
        void _check_out(self, Results* results) noexcept nogil
        void _check_in(self, Results* results) noexcept nogil
        int _copy_out(self, object array, const Results* results) except -1
