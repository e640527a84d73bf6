# cython: language_level=3
"""The trie of a NameIndex: names as paths, that come and go. How it is asked: descent.pyx.

The picture is in trie.pxd. All memory a new node needs is asked for before anything is changed.
"""

from matchcore.allocator cimport deallocate, reallocate
from matchcore.arena cimport arena_free, arena_init
from matchcore.bag cimport bag_init, bag_move, bag_push, bag_reserve, bag_take_out
from matchcore.hashing cimport hash_add, hash_secret
from matchcore.postings cimport (
    postings_add, postings_drop, postings_free, postings_init, postings_reserve, row_place,
)
from matchcore.table cimport table_drop, table_first, table_free, table_next, table_put, table_reserve_many
from matchcore.words cimport words_release

cdef enum:
    NODES_AT_MOST = 0xFFFFFFF0

cdef const uint64_t* secret = hash_secret()


cdef void trie_init(Trie* trie, Allocator* allocator, Words* words) noexcept nogil:
    trie.allocator = allocator
    trie.words = words
    trie.free = NONE
    arena_init(&trie.arena, allocator)
    postings_init(&trie.postings, allocator, &trie.arena)


cdef void trie_free(Trie* trie) noexcept nogil:
    # The words are freed by their owner.
    deallocate(trie.allocator, trie.nodes, trie.capacity * sizeof(Node))
    table_free(trie.allocator, &trie.edges)
    postings_free(&trie.postings)
    arena_free(&trie.arena)
    trie.nodes = NULL
    trie.count = trie.capacity = trie.live = 0
    trie.free = NONE


cdef inline uint32_t _tag(uint32_t parent, uint32_t word) noexcept nogil:
    return <uint32_t> (hash_add(secret, secret[1], (<uint64_t> parent << 32) | word) >> 32)


cdef uint32_t trie_child(const Trie* trie, uint32_t parent, uint32_t word) noexcept nogil:
    cdef const Bag* children = &trie.nodes[parent].children
    cdef uint32_t tag, at, node
    if children.size <= 1:
        if children.size == 0:
            return NONE
        node = bag_items(&trie.arena, children)[0]
        return node if trie.nodes[node].word == word else NONE
    tag = _tag(parent, word)
    node = table_first(&trie.edges, tag, &at)
    while node != NONE:
        if trie.nodes[node].parent == parent and trie.nodes[node].word == word:
            return node
        node = table_next(&trie.edges, tag, &at)
    return NONE


cdef int _reserve_node(Trie* trie) noexcept nogil:
    cdef size_t capacity
    cdef Node* nodes
    if trie.free != NONE or trie.count < trie.capacity:
        return 0
    # By an eighth, once it is large: half of that lies unused on average.
    capacity = 8 if trie.capacity == 0 else <size_t> trie.capacity
    capacity += capacity // 2 if capacity < 65536 else capacity // 8
    if capacity > NODES_AT_MOST:
        return -1
    nodes = <Node*> reallocate(
        trie.allocator, trie.nodes, trie.capacity * sizeof(Node), capacity * sizeof(Node)
    )
    if nodes == NULL:
        return -1
    trie.nodes = nodes
    trie.capacity = <uint32_t> capacity
    return 0


cdef int trie_begin(Trie* trie) noexcept nogil:
    cdef Node* root
    if trie.count != 0:
        return 0
    if _reserve_node(trie) < 0:
        return -1
    trie.count = 1
    root = &trie.nodes[ROOT]
    bag_init(&root.children)
    root.word = root.among = root.posted = root.id = 0
    root.parent = NONE
    return 0


cdef inline void _link(Trie* trie, uint32_t n) noexcept nogil:
    table_put(&trie.edges, _tag(trie.nodes[n].parent, trie.nodes[n].word), n)


cdef inline void _unlink(Trie* trie, uint32_t n) noexcept nogil:
    table_drop(trie.allocator, &trie.edges, _tag(trie.nodes[n].parent, trie.nodes[n].word), n)


cdef uint32_t trie_add(Trie* trie, uint32_t parent, uint32_t word, bint dollar) noexcept nogil:
    cdef uint32_t position = node_depth(trie, parent)
    cdef uint32_t n
    cdef Node* node
    cdef Bag* siblings
    if _reserve_node(trie) < 0:
        return NONE
    siblings = &trie.nodes[parent].children
    if bag_reserve(&trie.arena, siblings) < 0 or postings_reserve(&trie.postings, word, row_place(position)) < 0:
        return NONE
    # Room for two: the second child brings its elder into the table.
    if siblings.size >= 1 and table_reserve_many(trie.allocator, &trie.edges, 2) < 0:
        return NONE
    if trie.free != NONE:
        n = trie.free
        trie.free = trie.nodes[n].children.at
    else:
        n = trie.count
        trie.count += 1
    node = &trie.nodes[n]
    bag_init(&node.children)
    node.children.depth = <uint16_t> (position + 1)
    node.children.mark = DOLLAR if dollar and parent == ROOT else 0
    node.word = word
    node.parent = parent
    node.id = 0
    node.among = siblings.size
    node.posted = postings_add(&trie.postings, word, row_place(position), n)
    bag_push(&trie.arena, siblings, n)
    if siblings.size == 2:
        _link(trie, bag_items(&trie.arena, siblings)[0])
    if siblings.size >= 2:
        _link(trie, n)
    trie.live += 1
    return n


cdef void trie_prune(Trie* trie, uint32_t n) noexcept nogil:
    cdef Node* node
    cdef Bag* siblings
    cdef uint32_t parent, moved
    while n != ROOT:
        node = &trie.nodes[n]
        if node.children.mark & HELD or node.children.size != 0:
            return
        parent = node.parent
        siblings = &trie.nodes[parent].children
        if siblings.size == 2:
            _unlink(trie, bag_items(&trie.arena, siblings)[1 - node.among])
        if siblings.size >= 2:
            _unlink(trie, n)
        moved = bag_take_out(&trie.arena, siblings, node.among)
        trie.nodes[moved].among = node.among
        moved = postings_drop(&trie.postings, node.word, row_place(node.children.depth - 1), node.posted)
        trie.nodes[moved].posted = node.posted
        words_release(trie.words, node.word)
        node.parent = NONE
        node.children.mark = 0
        node.children.at = trie.free
        trie.free = n
        trie.live -= 1
        n = parent
    if trie.live == 0 and (trie.count == 0 or not node_holds(trie, ROOT)):
        trie_free(trie)


cdef void trie_move(Trie* trie, Arena* into) noexcept nogil:
    cdef uint32_t i
    for i in range(trie.count):
        bag_move(&trie.arena, into, &trie.nodes[i].children)  # a free node has no block
    for i in range(trie.postings.count):
        bag_move(&trie.arena, into, &trie.postings.rows[i].nodes)
