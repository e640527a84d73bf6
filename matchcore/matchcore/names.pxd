# NameIndex: topic names in, a filter asked, ids out. The mirror image of FilterIndex:
#
#     name    --scan--> tokens --dictionary--> word ids --> a path in the Trie; its last node has the ids (Holders)
#     filter  --scan--> tokens --dictionary--> word ids --Descent--> nodes --Holders--> ids, ascending, each once
#
# A name's text is not kept: the words on the way to its node spell it, and its syntax joins them.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.descent cimport Descent
from matchcore.holders cimport Holders
from matchcore.syntax cimport Fault, Limits, Token, View
from matchcore.trie cimport Trie
from matchcore.words cimport Words


# The buffers of one answer; checked out of the index while Python builds it.
cdef struct Answer:
    Numbers ids
    Numbers spare


cdef class NameIndex:
    cdef:
        Allocator allocator
        Limits limits
        Words words           # the words of all names
        Trie trie
        Holders holders
        Descent descent
        Token* tokens         # scratch, limits.words of them
        uint32_t* word_ids    # scratch
        Answer answer
        uint64_t version
        object __weakref__

        int _scan_name(self, object name, uint32_t syntax, View* view) except -1
        uint32_t _path(self, int count) noexcept nogil
        uint32_t _find(self, int count) noexcept nogil
        void _pack_if_sparse(self) noexcept nogil
        int _ask(self, const View* view, uint32_t syntax, Numbers* ids, Fault* fault) noexcept nogil
        object _match(self, object filter, object syntax, bint as_array)
        void _free_answer(self) noexcept nogil
        object _spell(self, uint32_t node, uint32_t syntax, bint is_str)
