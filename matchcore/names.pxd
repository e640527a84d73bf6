# NameIndex: topic names in, a filter asked, ids out. The mirror image of FilterIndex:
#
#     filter text --scan--> tokens --dictionary--> word ids --Trie--> nodes --> texts --> ids
#
# Plain and correct: a filter whose first words are literals looks only below them; one that begins
# with `#` looks at every node.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.heap cimport Heap
from matchcore.results cimport Results
from matchcore.syntax cimport Fault, Limits, Token, View
from matchcore.texts cimport Texts
from matchcore.trie cimport Trie
from matchcore.words cimport Words


cdef class NameIndex:
    cdef:
        Heap heap
        Limits limits
        Texts texts           # each (name, syntax) with its ids
        Words words           # the words of all names
        Trie trie
        Token* tokens         # scratch, limits.words of them
        uint32_t* word_ids    # scratch
        Results results       # checked out while Python builds an answer
        uint64_t version
        object __weakref__

        uint32_t _path(self, int count) noexcept nogil
        int _collect(self, const View* view, uint32_t syntax, Results* results, Fault* fault) noexcept nogil
