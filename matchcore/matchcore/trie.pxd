# A trie of names: a node for each sequence of words that begins a name.
#
#     root -- forex -- eur     held: the ids of the name forex.eur
#          \        \- usd
#           \ crypto -- btc
#
# Downwards: the children of a node are a bag; by word they are found in one hash table of all edges,
# (parent, word) -> child, an only child by looking at it (it is in no table). Upwards: by `parent`, which is
# how a node met in the postings is checked and how a name is spelled again: no text is kept.

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.arena cimport Arena
from matchcore.bag cimport Bag, bag_items
from matchcore.postings cimport Postings
from matchcore.table cimport NONE, Table
from matchcore.words cimport Words

cdef enum:
    ROOT = 0

    # Node.children.mark
    HELD_ONE = 1       # a name ends here, with one id: `id`
    HELD_SEVERAL = 2   # a name ends here, with several ids or in both syntaxes: `id` is their number (holders.pxd)
    HELD_MQTT = 4      # with HELD_ONE: in MQTT's syntax
    HELD_STR = 8       # with HELD_ONE: given as str
    HELD = 15
    DOLLAR = 16        # of the first word of a name: it begins with `$`


cdef struct Node:          # 32 bytes: half a cache line
    uint32_t word          # id; the node holds a reference to it
    uint32_t parent
    uint32_t among         # its position among its parent's children
    uint32_t posted        # its position in its row of the postings
    uint32_t id
    Bag children           # children.depth: words from the root to here; of a free node, `at` is the next free one


cdef struct Trie:
    Allocator* allocator
    Words* words
    Table edges
    Arena arena            # blocks of children, of postings and of ids
    Postings postings
    Node* nodes
    uint32_t count         # nodes ever used
    uint32_t capacity
    uint32_t free
    uint32_t live          # nodes in use, the root not counted


cdef void trie_init(Trie* trie, Allocator* allocator, Words* words) noexcept nogil
cdef void trie_free(Trie* trie) noexcept nogil
cdef uint32_t trie_child(const Trie* trie, uint32_t parent, uint32_t word) noexcept nogil

# Makes sure of the root: before the first trie_child or trie_add of an insert. -1: no memory.
cdef int trie_begin(Trie* trie) noexcept nogil

# A child that is not there yet; it takes over the caller's reference to the word. NONE: no memory.
cdef uint32_t trie_add(Trie* trie, uint32_t parent, uint32_t word, bint dollar) noexcept nogil

# Removes the node and its parents upwards, as far as they have neither names nor children.
cdef void trie_prune(Trie* trie, uint32_t node) noexcept nogil

# Moves the blocks of children and postings into another arena, which has room; the owner makes it the trie's.
cdef void trie_move(Trie* trie, Arena* into) noexcept nogil


cdef inline uint32_t node_depth(const Trie* trie, uint32_t node) noexcept nogil:
    return trie.nodes[node].children.depth


cdef inline bint node_holds(const Trie* trie, uint32_t node) noexcept nogil:
    return trie.nodes[node].children.mark & HELD != 0
