# The usual trie's node: one block, its own word at its end, its children in a chained hash map of its own.
#
#     StringBranch   above | one | many | ids | buckets -> [ child -next-> child ] | hash, size | word...

from libc.stdint cimport uint32_t, uint64_t

from fanlight_matchers.contender cimport Contender, Found
from fanlight_matchers.text cimport Word


cdef struct StringBranch:
    StringBranch* above
    StringBranch* next        # in a bucket of the node above
    StringBranch* one
    StringBranch* many
    StringBranch** buckets    # NULL: no literal child
    uint32_t* ids
    uint64_t hash
    uint32_t bucket_mask
    uint32_t children
    uint32_t id_count
    uint32_t id_room
    uint32_t size
    unsigned char kind
    unsigned char word[1]


cdef class StringTrie(Contender):
    cdef:
        StringBranch* root

        StringBranch* _new(self, StringBranch* above, const Word* word) noexcept nogil
        void _free(self, StringBranch* branch) noexcept nogil
        void _free_all(self, StringBranch* branch) noexcept nogil
        bint _put(self, StringBranch* above, StringBranch* child) noexcept nogil
        void _take_out(self, StringBranch* child) noexcept nogil
        int _hold(self, StringBranch* branch, uint32_t id) noexcept nogil
        void _visit(
            self, const StringBranch* branch, const Word* words, int level, int count, bint dollar, Found* found
        ) noexcept nogil
