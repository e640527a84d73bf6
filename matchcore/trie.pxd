# A trie of names: a node for each sequence of words that begins a name.
#
#     root -- forex -- eur     names of node `eur`: texts 3 -> 8
#          \        \- usd
#           \ crypto -- btc
#
# The child of a node by word is found in one hash table of all edges, (parent, word) -> child; all
# children of a node are a doubly linked list, for the wildcards.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.heap cimport Heap, Numbers
from matchcore.table cimport NONE, Table
from matchcore.words cimport Words

cdef enum:
    ROOT = 0


cdef struct Node:
    uint32_t word          # id; the node holds a reference to it
    uint32_t parent
    uint32_t first_child   # NONE: none
    uint32_t next          # the next child of the same parent; of a free node: the next free one
    uint32_t previous
    uint32_t names         # first text of this name, NONE: no name ends here
    uint32_t tag           # of the edge that leads here
    uint64_t seen          # the search that met this node last: none is met twice


cdef struct Trie:
    Heap* heap
    Words* words
    Table edges
    Node* nodes
    uint32_t count         # nodes ever used
    uint32_t capacity
    uint32_t free
    uint32_t live          # nodes in use, the root not counted
    uint64_t searches
    Numbers frontier       # scratch of a search
    Numbers ahead


cdef void trie_init(Trie* trie, Heap* heap, Words* words) noexcept nogil
cdef void trie_free(Trie* trie) noexcept nogil
cdef uint32_t trie_child(const Trie* trie, uint32_t parent, uint32_t word) noexcept nogil

# Makes sure of the root: before the first trie_child or trie_add of an insert. -1: no memory.
cdef int trie_begin(Trie* trie) noexcept nogil

# A child that is not there yet; it takes over the caller's reference to the word. NONE: no memory.
cdef uint32_t trie_add(Trie* trie, uint32_t parent, uint32_t word) noexcept nogil

# Removes the node and its parents upwards, as far as they have neither names nor children.
cdef void trie_prune(Trie* trie, uint32_t node) noexcept nogil

# The nodes whose words match `tokens` (word ids, TOKEN_ONE, TOKEN_MANY) are left in trie.frontier.
# `no_dollar`: a wildcard does not match a first word that begins with `$`. -1: no memory.
cdef int trie_search(Trie* trie, const uint32_t* tokens, uint32_t count, bint no_dollar) noexcept nogil
