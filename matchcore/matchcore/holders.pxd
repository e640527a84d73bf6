# The ids of the names that end at the nodes of a trie.
#
#     node eur  HELD_ONE | HELD_MQTT, id 7          the usual name: one id, and it is in the node
#     node usd  HELD_SEVERAL, id 3  ->  several[3]:  amqp {7, 9}   mqtt {}
#
# The words a.b in AMQP's syntax and a/b in MQTT's are one node and two names, each with ids of its own.

from libc.stdint cimport uint8_t, uint32_t

from matchcore.allocator cimport Numbers
from matchcore.arena cimport Arena
from matchcore.bag cimport Bag
from matchcore.trie cimport Trie


cdef struct Several:
    Bag[2] ids      # by syntax, ascending; `mark`: the name was given as str. Of a free one: ids[0].at the next


cdef struct Holders:
    Trie* trie
    Several* several
    uint32_t count      # of several, ever used
    uint32_t capacity
    uint32_t free
    uint32_t live
    size_t pairs        # (name, syntax, id) held


cdef void holders_init(Holders* holders, Trie* trie) noexcept nogil
cdef void holders_free(Holders* holders) noexcept nogil

# 1 done, 0 nothing to do, -1 no memory (adding only).
cdef int holders_add(Holders* holders, uint32_t node, uint32_t syntax, bint is_str, uint32_t id) noexcept nogil
cdef int holders_drop(Holders* holders, uint32_t node, uint32_t syntax, uint32_t id) noexcept nogil

# The ids held at `node` in this syntax, ascending: their number. Valid until something is added.
cdef uint32_t holders_ids(
    const Holders* holders, uint32_t node, uint32_t syntax, const uint32_t** ids, bint* is_str
) noexcept nogil

# Adds the ids of these nodes to `ids`. -1: no memory.
cdef int holders_gather(const Holders* holders, const Numbers* nodes, Numbers* ids) noexcept nogil

# Moves the blocks of ids into another arena, which has room.
cdef void holders_move(Holders* holders, Arena* into) noexcept nogil
