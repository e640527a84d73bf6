# The flat trie's memory:
#
#     node   parent | word | one | many | ids | state:2 marked:1 children:29      24 bytes, in one array
#     edges  tag,node                                                             8 bytes, one hash table for all
#
# `one` and `many` are the children for the wildcards, so that only literal words cost a probe. `ids` is the id
# itself when there is one, else the first of a chain in `links`.

from libc.stdint cimport uint32_t

from fanlight_matchers.contender cimport Contender, Found, emit
from fanlight_matchers.edges cimport Edges, edge_tag, edges_home, edges_next
from fanlight_matchers.interner cimport Interner

cdef enum:
    ONE_WORD = 0xFFFFFFFE    # what leads to a node that is no literal's child
    MANY_WORD = 0xFFFFFFFF

cdef enum State:
    NO_IDS
    ONE_ID
    CHAIN


cdef extern from *:
    """
    #include <stdint.h>
    typedef struct {
        uint32_t parent, word, one, many, ids;
        uint32_t state : 2, marked : 1, children : 29;
    } matchers_node;
    """
    ctypedef struct Node "matchers_node":
        uint32_t parent
        uint32_t word
        uint32_t one
        uint32_t many
        uint32_t ids
        uint32_t state
        uint32_t marked    # this match has been below it already
        uint32_t children  # for literal words


cdef struct Link:
    uint32_t id
    uint32_t next


cdef struct List:
    uint32_t* items
    size_t size
    size_t room


# The child for a literal word; 0: there is none.
cdef inline uint32_t flat_child(const Edges* edges, const Node* nodes, uint32_t parent, uint32_t word) noexcept nogil:
    cdef uint32_t tag = edge_tag(parent, word)
    cdef uint32_t at = edges_home(edges, tag)
    cdef uint32_t child = edges_next(edges, tag, &at)
    while child != 0 and (nodes[child].parent != parent or nodes[child].word != word):
        child = edges_next(edges, tag, &at)
    return child


# Whether nothing is below it.
cdef inline bint flat_leaf(const Node* node) noexcept nogil:
    return node.children == 0 and node.one == 0 and node.many == 0


cdef inline void flat_emit(const Node* node, const Link* links, Found* found) noexcept nogil:
    cdef uint32_t at
    if node.state == ONE_ID:
        emit(found, node.ids)
    elif node.state == CHAIN:
        at = node.ids
        while at != 0:
            emit(found, links[at].id)
            at = links[at].next


cdef class FlatTrie(Contender):
    cdef:
        Interner interner
        Edges edges
        Node* nodes          # 0 is the root, and "no node" where a child is meant
        uint32_t nodes_room
        uint32_t nodes_top
        uint32_t nodes_free  # linked by `parent`
        Link* links          # 0 is the end of a chain
        uint32_t links_room
        uint32_t links_top
        uint32_t links_free
        List here            # scratch of a match: the nodes reached after this number of words,
        List there           #   those after one more,
        List below           #   and the `#` nodes that were marked: they stay reached

        uint32_t _node(self, uint32_t parent, uint32_t word) noexcept nogil
        uint32_t _link(self, uint32_t id, uint32_t next) noexcept nogil
        int _hold(self, Node* node, uint32_t id) noexcept nogil
        bint _release(self, Node* node, uint32_t id) noexcept nogil
        void _prune(self, uint32_t at) noexcept nogil
        void _below(self, uint32_t at, List* here, Found* found) noexcept nogil
