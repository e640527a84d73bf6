# cython: language_level=3
"""The trie of a NameIndex: names as paths, asked with a filter.

A search goes token by token with the set of nodes reached so far, so that several `#` cost no more
than tokens x nodes: no backtracking. The picture is in trie.pxd.
"""

from matchcore.hashing cimport hash_add, hash_secret
from matchcore.heap cimport heap_give_back, heap_resize, numbers_free, numbers_push
from matchcore.pool cimport TOKEN_MANY, TOKEN_ONE
from matchcore.table cimport table_drop, table_first, table_free, table_next, table_put, table_reserve
from matchcore.words cimport Word, word_start, words_release

cdef enum:
    NODES_AT_MOST = 0xFFFFFFF0

cdef const uint64_t* secret = hash_secret()


cdef void trie_init(Trie* trie, Heap* heap, Words* words) noexcept nogil:
    trie.heap = heap
    trie.words = words
    trie.free = NONE


cdef void _forget_nodes(Trie* trie) noexcept nogil:
    heap_give_back(trie.heap, trie.nodes, trie.capacity * sizeof(Node))
    table_free(trie.heap, &trie.edges)
    trie.nodes = NULL
    trie.count = trie.capacity = trie.live = 0
    trie.free = NONE


cdef void trie_free(Trie* trie) noexcept nogil:
    # The words are freed by their owner.
    _forget_nodes(trie)
    numbers_free(trie.heap, &trie.frontier)
    numbers_free(trie.heap, &trie.ahead)


cdef inline uint32_t _tag(uint32_t parent, uint32_t word) noexcept nogil:
    return <uint32_t> (hash_add(secret, secret[1], (<uint64_t> parent << 32) | word) >> 32)


cdef uint32_t trie_child(const Trie* trie, uint32_t parent, uint32_t word) noexcept nogil:
    cdef uint32_t tag = _tag(parent, word)
    cdef uint32_t at
    cdef uint32_t node = table_first(&trie.edges, tag, &at)
    while node != NONE:
        if trie.nodes[node].parent == parent and trie.nodes[node].word == word:
            return node
        node = table_next(&trie.edges, tag, &at)
    return NONE


cdef inline void _begin(Node* node) noexcept nogil:
    node.first_child = node.next = node.previous = node.names = NONE
    node.seen = 0


cdef int _reserve(Trie* trie) noexcept nogil:
    cdef size_t capacity
    cdef Node* nodes
    if table_reserve(trie.heap, &trie.edges) < 0:
        return -1
    if trie.free != NONE or trie.count < trie.capacity:
        return 0
    capacity = 8 if trie.capacity == 0 else <size_t> trie.capacity + trie.capacity // 2
    if capacity > NODES_AT_MOST:
        return -1
    nodes = <Node*> heap_resize(
        trie.heap, trie.nodes, trie.capacity * sizeof(Node), capacity * sizeof(Node)
    )
    if nodes == NULL:
        return -1
    trie.nodes = nodes
    trie.capacity = <uint32_t> capacity
    if trie.count == 0:
        trie.count = 1
        _begin(&nodes[ROOT])
        nodes[ROOT].word = 0
        nodes[ROOT].parent = NONE
    return 0


cdef int trie_begin(Trie* trie) noexcept nogil:
    return 0 if trie.count != 0 else _reserve(trie)


cdef uint32_t trie_add(Trie* trie, uint32_t parent, uint32_t word) noexcept nogil:
    cdef uint32_t n
    cdef Node* node
    if _reserve(trie) < 0:
        return NONE
    if trie.free != NONE:
        n = trie.free
        trie.free = trie.nodes[n].next
    else:
        n = trie.count
        trie.count += 1
    node = &trie.nodes[n]
    _begin(node)
    node.word = word
    node.parent = parent
    node.tag = _tag(parent, word)
    node.next = trie.nodes[parent].first_child
    if node.next != NONE:
        trie.nodes[node.next].previous = n
    trie.nodes[parent].first_child = n
    table_put(&trie.edges, node.tag, n)
    trie.live += 1
    return n


cdef void trie_prune(Trie* trie, uint32_t n) noexcept nogil:
    cdef Node* node
    cdef uint32_t parent
    while n != ROOT:
        node = &trie.nodes[n]
        if node.names != NONE or node.first_child != NONE:
            return
        parent = node.parent
        table_drop(trie.heap, &trie.edges, node.tag, n)
        words_release(trie.words, node.word)
        if node.next != NONE:
            trie.nodes[node.next].previous = node.previous
        if node.previous != NONE:
            trie.nodes[node.previous].next = node.next
        else:
            trie.nodes[parent].first_child = node.next
        node.parent = NONE
        node.next = trie.free
        trie.free = n
        trie.live -= 1
        n = parent
    if trie.live == 0 and (trie.count == 0 or trie.nodes[ROOT].names == NONE):
        _forget_nodes(trie)


# ---- searching ----------------------------------------------------------------------------------

cdef inline bint _begins_with_dollar(const Trie* trie, uint32_t node) noexcept nogil:
    cdef const Word* word = &trie.words.entries[trie.nodes[node].word]
    return word.size != 0 and word_start(word)[0] == c"$"


cdef int _children(Trie* trie, uint32_t parent, bint no_dollar) noexcept nogil:
    """Pushes the children of `parent` that this step has not met to `ahead`."""
    cdef uint32_t child = trie.nodes[parent].first_child
    while child != NONE:
        if trie.nodes[child].seen != trie.searches and not (no_dollar and _begins_with_dollar(trie, child)):
            trie.nodes[child].seen = trie.searches
            if numbers_push(trie.heap, &trie.ahead, child) < 0:
                return -1
        child = trie.nodes[child].next
    return 0


cdef int trie_search(Trie* trie, const uint32_t* tokens, uint32_t count, bint no_dollar) noexcept nogil:
    cdef uint32_t i, node, child
    cdef size_t j
    cdef Numbers swap
    trie.frontier.size = 0
    if trie.count == 0:
        return 0
    if numbers_push(trie.heap, &trie.frontier, ROOT) < 0:
        return -1
    for i in range(count):
        trie.ahead.size = 0
        trie.searches += 1
        for j in range(trie.frontier.size):
            node = trie.frontier.items[j]
            if tokens[i] == TOKEN_ONE:
                if _children(trie, node, no_dollar and node == ROOT) < 0:
                    return -1
            elif tokens[i] == TOKEN_MANY:
                if trie.nodes[node].seen != trie.searches:
                    trie.nodes[node].seen = trie.searches
                    if numbers_push(trie.heap, &trie.ahead, node) < 0:
                        return -1
            else:
                child = trie_child(trie, node, tokens[i])
                if child != NONE and numbers_push(trie.heap, &trie.ahead, child) < 0:
                    return -1
        if tokens[i] == TOKEN_MANY:
            # And all that lies below: `ahead` grows while it is read.
            j = 0
            while j < trie.ahead.size:
                node = trie.ahead.items[j]
                if _children(trie, node, no_dollar and node == ROOT) < 0:
                    return -1
                j += 1
        swap = trie.frontier
        trie.frontier = trie.ahead
        trie.ahead = swap
        if trie.frontier.size == 0:
            return 0
    return 0
