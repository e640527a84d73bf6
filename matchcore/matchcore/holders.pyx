# cython: language_level=3
"""Which ids hold a name: one in the node itself, several beside it. Drawn in holders.pxd."""

from libc.string cimport memcpy

from matchcore.allocator cimport deallocate, reallocate, numbers_reserve, prefetch
from matchcore.bag cimport (
    bag_has, bag_init, bag_insert, bag_items, bag_move, bag_remove, bag_reserve, bag_settle,
)
from matchcore.syntax cimport AMQP, MQTT
from matchcore.table cimport NONE
from matchcore.trie cimport HELD, HELD_MQTT, HELD_ONE, HELD_SEVERAL, HELD_STR, Node

cdef enum:
    SEVERAL_AT_MOST = 0xFFFFFFF0
    AHEAD = 8  # nodes whose memory is asked for ahead of time


cdef void holders_init(Holders* holders, Trie* trie) noexcept nogil:
    holders.trie = trie
    holders.several = NULL
    holders.count = holders.capacity = holders.live = 0
    holders.free = NONE
    holders.pairs = 0


cdef void holders_free(Holders* holders) noexcept nogil:
    # The blocks of ids are in the trie's arena.
    deallocate(holders.trie.allocator, holders.several, holders.capacity * sizeof(Several))
    holders_init(holders, holders.trie)


cdef inline uint32_t _syntax(const Node* node) noexcept nogil:
    return MQTT if node.children.mark & HELD_MQTT else AMQP


cdef inline void _hold_one(Node* node, uint32_t syntax, bint is_str, uint32_t id) noexcept nogil:
    node.children.mark &= <uint8_t> ~HELD
    node.children.mark |= HELD_ONE
    if syntax == MQTT:
        node.children.mark |= HELD_MQTT
    if is_str:
        node.children.mark |= HELD_STR
    node.id = id


cdef int _make_several(Holders* holders, Node* node) noexcept nogil:
    """The one id of `node` moves into a Several of its own."""
    cdef size_t capacity
    cdef Several* several
    cdef uint32_t i
    cdef Bag* bag
    if holders.free == NONE and holders.count == holders.capacity:
        capacity = <size_t> holders.capacity + holders.capacity // 4 + 4
        if capacity > SEVERAL_AT_MOST:
            return -1
        several = <Several*> reallocate(
            holders.trie.allocator, holders.several, holders.capacity * sizeof(Several), capacity * sizeof(Several)
        )
        if several == NULL:
            return -1
        holders.several = several
        holders.capacity = <uint32_t> capacity
    if holders.free != NONE:
        i = holders.free
        holders.free = holders.several[i].ids[0].at
    else:
        i = holders.count
        holders.count += 1
    bag_init(&holders.several[i].ids[0])
    bag_init(&holders.several[i].ids[1])
    bag = &holders.several[i].ids[_syntax(node)]
    bag.mark = node.children.mark & HELD_STR != 0
    bag.at = node.id
    bag.size = 1
    node.children.mark &= <uint8_t> ~HELD
    node.children.mark |= HELD_SEVERAL
    node.id = i
    holders.live += 1
    return 0


cdef void _settle(Holders* holders, Node* node) noexcept nogil:
    """Back into the node, when one id is left."""
    cdef Several* several = &holders.several[node.id]
    cdef uint32_t i = node.id
    cdef uint32_t syntax = 1 if several.ids[0].size == 0 else 0
    cdef Bag* bag = &several.ids[syntax]
    if several.ids[0].size + several.ids[1].size != 1:
        return
    _hold_one(node, syntax, bag.mark, bag_items(&holders.trie.arena, bag)[0])
    bag.size = 0
    bag_settle(&holders.trie.arena, bag)
    several.ids[0].at = holders.free
    holders.free = i
    holders.live -= 1
    if holders.live == 0:
        deallocate(holders.trie.allocator, holders.several, holders.capacity * sizeof(Several))
        holders.several = NULL
        holders.count = holders.capacity = 0
        holders.free = NONE


cdef int holders_add(Holders* holders, uint32_t n, uint32_t syntax, bint is_str, uint32_t id) noexcept nogil:
    cdef Node* node = &holders.trie.nodes[n]
    cdef Bag* bag
    if not node.children.mark & HELD:
        _hold_one(node, syntax, is_str, id)
        holders.pairs += 1
        return 1
    if node.children.mark & HELD_ONE:
        if node.id == id and _syntax(node) == syntax:
            return 0
        if _make_several(holders, node) < 0:
            return -1
    bag = &holders.several[node.id].ids[syntax]
    if bag_has(&holders.trie.arena, bag, id):
        return 0
    if bag_reserve(&holders.trie.arena, bag) < 0:
        _settle(holders, node)
        return -1
    if bag.size == 0:
        bag.mark = is_str
    bag_insert(&holders.trie.arena, bag, id)
    holders.pairs += 1
    return 1


cdef int holders_drop(Holders* holders, uint32_t n, uint32_t syntax, uint32_t id) noexcept nogil:
    cdef Node* node = &holders.trie.nodes[n]
    cdef Bag* bag
    if node.children.mark & HELD_ONE:
        if node.id != id or _syntax(node) != syntax:
            return 0
        node.children.mark &= <uint8_t> ~HELD
    elif node.children.mark & HELD_SEVERAL:
        bag = &holders.several[node.id].ids[syntax]
        if not bag_has(&holders.trie.arena, bag, id):
            return 0
        bag_remove(&holders.trie.arena, bag, id)
        _settle(holders, node)
    else:
        return 0
    holders.pairs -= 1
    return 1


cdef uint32_t holders_ids(
    const Holders* holders, uint32_t n, uint32_t syntax, const uint32_t** ids, bint* is_str
) noexcept nogil:
    cdef const Node* node = &holders.trie.nodes[n]
    cdef const Bag* bag
    if node.children.mark & HELD_SEVERAL:
        bag = &holders.several[node.id].ids[syntax]
        ids[0] = bag_items(&holders.trie.arena, bag)
        is_str[0] = bag.mark
        return bag.size
    if node.children.mark & HELD_ONE and _syntax(node) == syntax:
        ids[0] = &node.id
        is_str[0] = node.children.mark & HELD_STR != 0
        return 1
    return 0


cdef int holders_gather(const Holders* holders, const Numbers* nodes, Numbers* ids) noexcept nogil:
    cdef const Node* node
    cdef const Bag* bag
    cdef size_t i
    cdef uint32_t side
    if numbers_reserve(holders.trie.allocator, ids, ids.size + nodes.size) < 0:
        return -1
    for i in range(nodes.size):
        if i + AHEAD < nodes.size:
            prefetch(&holders.trie.nodes[nodes.items[i + AHEAD]])
        node = &holders.trie.nodes[nodes.items[i]]
        if node.children.mark & HELD_ONE:
            if ids.size == ids.capacity and numbers_reserve(holders.trie.allocator, ids, ids.size + 1) < 0:
                return -1
            ids.items[ids.size] = node.id
            ids.size += 1
            continue
        for side in range(2):
            bag = &holders.several[node.id].ids[side]
            if numbers_reserve(holders.trie.allocator, ids, ids.size + bag.size) < 0:
                return -1
            memcpy(
                ids.items + ids.size, bag_items(&holders.trie.arena, bag), bag.size * sizeof(uint32_t)
            )
            ids.size += bag.size
    return 0


cdef void holders_move(Holders* holders, Arena* into) noexcept nogil:
    cdef uint32_t i, side
    for i in range(holders.count):
        for side in range(2):
            bag_move(&holders.trie.arena, into, &holders.several[i].ids[side])
