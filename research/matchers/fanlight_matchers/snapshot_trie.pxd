# The concurrent trie's memory; what is behind an I-node's pointer is never written to again.
#
#     I-node --> C-node [ branch | branch | ... ]      branch: word, ids, the I-node below or NULL
#                 one, many: the wildcards' branches

from libc.stdint cimport uint32_t, uint64_t

from fanlight_matchers.contender cimport Contender, Found
from fanlight_matchers.epochs cimport Epochs
from fanlight_matchers.text cimport Word


cdef struct INode:
    CNode* main


cdef struct Branch:
    INode* below        # or NULL
    uint64_t hash
    uint32_t kind
    uint32_t size
    uint32_t count      # of ids, which come right after; the word after them


cdef struct CNode:
    uint32_t count      # branches, wildcards' too
    uint32_t mask       # of the cells, which come right after
    Branch* one
    Branch* many
    Branch* cells[1]


cdef class SnapshotTrie(Contender):
    cdef:
        Epochs epochs
        INode* root

        void _free(self, INode* inode) noexcept nogil
        void _free_branch(self, Branch* branch) noexcept nogil
        CNode* _cnode(self, const CNode* old, const Branch* without, Branch* with_) noexcept nogil
        Branch* _branch(
            self, const Branch* old, const Word* word, INode* below, const uint32_t* id, bint add
        ) noexcept nogil
        INode* _path(self, const Word* words, int count, uint32_t id) noexcept nogil
        int _swap(self, INode* inode, CNode* old, Branch* without, Branch* with_) noexcept nogil
        int _clean(self, INode** path, const Word* words, int level) noexcept nogil
        int _change(self, const Word* words, int count, uint32_t id, bint add) noexcept nogil
        int _changed(self, const Word* words, int count, uint32_t id, bint add) noexcept nogil
        void _emit(self, const Branch* branch, Found* found) noexcept nogil
        void _visit(
            self, INode* inode, const Word* words, int level, int count, bint dollar, Found* found
        ) noexcept nogil
        void _arrive(self, const Branch* branch, const Word* words, int level, int count, Found* found) noexcept nogil
