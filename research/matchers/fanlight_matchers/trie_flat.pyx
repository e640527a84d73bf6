"""The flat trie, "trie-I": the strongest trie we know how to write, and the baseline of the comparisons.

No system we know of does all of this at once. Words are interned, so that each word of a topic is looked up
once at most, not at every node; all literal edges are in one hash table of (node, number); nodes are 24 bytes in one
array; a wildcard's child is named in its parent. A match goes down the levels in step with the topic's words
and keeps the set of nodes reached. In a trie too large for the caches, a node and the place of its next edge
are asked for (prefetched) as soon as its number is known, so that the misses of a level overlap instead of
coming one after the other as a recursion has them.

`#` in the middle: its node stays reached to the end of the topic. Nodes below a second `#` can be reached in
several ways, so `#` nodes below another one are marked when they are first reached, and no path is walked
twice: a match takes at most levels x nodes, whatever the filters.

Tried instead: a recursion, and a walk with a stack of where else to go on. Of a thousand filters they are up to a
quarter faster, of a hundred thousand a quarter slower, and as much on filters of little but wildcards.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from fanlight_matchers.contender cimport DONE, NO_MEMORY, UNKNOWN, Contender, Found
from fanlight_matchers.edges cimport edge_tag, edges_drop, edges_free, edges_init, edges_put
from fanlight_matchers.interner cimport (
    interner_find, interner_free, interner_hold, interner_init, interner_prefetch, interner_release,
)
from fanlight_matchers.memory cimport enlarge, give_back
from fanlight_matchers.text cimport LITERAL, MOST_WORDS, ONE, Word, prefetch


cdef enum:
    CACHED = 1 << 16  # edges of 8 bytes: what a second-level cache holds


cdef bint list_grow(size_t* taken, List* list) noexcept nogil:
    cdef size_t room = 2 * list.room if list.room else 64
    cdef void* larger = enlarge(taken, list.items, list.room * sizeof(uint32_t), room * sizeof(uint32_t))
    if larger == NULL:
        return False
    list.items = <uint32_t*> larger
    list.room = room
    return True


cdef inline bint list_push(size_t* taken, List* list, uint32_t item) noexcept nogil:
    if list.size == list.room and not list_grow(taken, list):
        return False
    list.items[list.size] = item
    list.size += 1
    return True


cdef class FlatTrie(Contender):
    """trie-I."""

    def __cinit__(self, str syntax="amqp"):
        interner_init(&self.interner, &self.taken)
        edges_init(&self.edges, &self.taken)
        self.links_top = 1
        if self._node(0, 0) != 0 or not list_grow(&self.taken, &self.here) or not list_grow(&self.taken, &self.there):
            raise MemoryError

    def __dealloc__(self):
        give_back(&self.taken, self.nodes, self.nodes_room * sizeof(Node))
        give_back(&self.taken, self.links, self.links_room * sizeof(Link))
        give_back(&self.taken, self.here.items, self.here.room * sizeof(uint32_t))
        give_back(&self.taken, self.there.items, self.there.room * sizeof(uint32_t))
        give_back(&self.taken, self.below.items, self.below.room * sizeof(uint32_t))
        edges_free(&self.edges)
        interner_free(&self.interner)

    cdef uint32_t _node(self, uint32_t parent, uint32_t word) noexcept nogil:
        """A node with nothing in it; MANY_WORD: no memory."""
        cdef uint32_t at = self.nodes_free, room
        cdef void* larger
        if at != 0:
            self.nodes_free = self.nodes[at].parent
        else:
            if self.nodes_top == self.nodes_room:
                room = 2 * self.nodes_room if self.nodes_room else 16
                larger = enlarge(&self.taken, self.nodes, self.nodes_room * sizeof(Node), room * sizeof(Node))
                if larger == NULL:
                    return MANY_WORD
                self.nodes = <Node*> larger
                self.nodes_room = room
            at = self.nodes_top
            self.nodes_top += 1
        memset(&self.nodes[at], 0, sizeof(Node))
        self.nodes[at].parent = parent
        self.nodes[at].word = word
        return at

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t at = 0, child, word
        cdef int i
        for i in range(count):
            if words[i].kind == LITERAL:
                word = interner_find(&self.interner, &words[i])
                child = flat_child(&self.edges, self.nodes, at, word) if word != 0 else 0
                if child == 0:
                    word = interner_hold(&self.interner, &words[i])
                    child = self._node(at, word)
                    if word == 0 or child == MANY_WORD:
                        return NO_MEMORY
                    if edges_put(&self.edges, edge_tag(at, word), child) < 0:
                        return NO_MEMORY
                    self.nodes[at].children += 1
            elif words[i].kind == ONE:
                child = self.nodes[at].one
                if child == 0:
                    child = self._node(at, ONE_WORD)
                    if child == MANY_WORD:
                        return NO_MEMORY
                    self.nodes[at].one = child
            else:
                child = self.nodes[at].many
                if child == 0:
                    child = self._node(at, MANY_WORD)
                    if child == MANY_WORD:
                        return NO_MEMORY
                    self.nodes[at].many = child
            at = child
        return self._hold(&self.nodes[at], id)

    cdef uint32_t _link(self, uint32_t id, uint32_t next) noexcept nogil:
        cdef uint32_t at = self.links_free, room
        cdef void* larger
        if at != 0:
            self.links_free = self.links[at].next
        else:
            if self.links_top >= self.links_room:
                room = 2 * self.links_room if self.links_room else 16
                larger = enlarge(&self.taken, self.links, self.links_room * sizeof(Link), room * sizeof(Link))
                if larger == NULL:
                    return 0
                self.links = <Link*> larger
                self.links_room = room
            at = self.links_top
            self.links_top += 1
        self.links[at] = Link(id, next)
        return at

    cdef int _hold(self, Node* node, uint32_t id) noexcept nogil:
        cdef uint32_t at
        if node.state == NO_IDS:
            node.ids = id
            node.state = ONE_ID
            return DONE
        if node.state == ONE_ID:
            if node.ids == id:
                return UNKNOWN
            at = self._link(node.ids, 0)
            if at == 0:
                return NO_MEMORY
            node.ids = at
            node.state = CHAIN
        else:
            at = node.ids
            while at != 0:
                if self.links[at].id == id:
                    return UNKNOWN
                at = self.links[at].next
        at = self._link(id, node.ids)
        if at == 0:
            return NO_MEMORY
        node.ids = at
        return DONE

    cdef bint _release(self, Node* node, uint32_t id) noexcept nogil:
        cdef uint32_t at, before = 0
        if node.state == NO_IDS:
            return False
        if node.state == ONE_ID:
            if node.ids != id:
                return False
            node.state = NO_IDS
            return True
        at = node.ids
        while at != 0 and self.links[at].id != id:
            before = at
            at = self.links[at].next
        if at == 0:
            return False
        if before != 0:
            self.links[before].next = self.links[at].next
        else:
            node.ids = self.links[at].next
        self.links[at].next = self.links_free
        self.links_free = at
        at = node.ids
        if self.links[at].next == 0:  # one is left
            node.ids = self.links[at].id
            node.state = ONE_ID
            self.links[at].next = self.links_free
            self.links_free = at
        return True

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t at = 0, word
        cdef int i
        for i in range(count):
            if words[i].kind == LITERAL:
                word = interner_find(&self.interner, &words[i])
                at = flat_child(&self.edges, self.nodes, at, word) if word != 0 else 0
            else:
                at = self.nodes[at].one if words[i].kind == ONE else self.nodes[at].many
            if at == 0:
                return UNKNOWN
        if not self._release(&self.nodes[at], id):
            return UNKNOWN
        self._prune(at)
        return DONE

    cdef void _prune(self, uint32_t at) noexcept nogil:
        """Forgets the node and those above it that lead nowhere any more."""
        cdef Node* node = &self.nodes[at]
        cdef uint32_t parent
        while at != 0 and node.state == NO_IDS and node.children == 0 and node.one == 0 and node.many == 0:
            parent = node.parent
            if node.word == ONE_WORD:
                self.nodes[parent].one = 0
            elif node.word == MANY_WORD:
                self.nodes[parent].many = 0
            else:
                edges_drop(&self.edges, edge_tag(parent, node.word), at)
                interner_release(&self.interner, node.word)
                self.nodes[parent].children -= 1
            node.parent = self.nodes_free
            self.nodes_free = at
            at = parent
            node = &self.nodes[at]

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef uint32_t ids[MOST_WORDS + 1]
        cdef int count = self.cut_topic(topic, size, words), level
        cdef bint dollar = self.mqtt and size > 0 and topic[0] == b"$"
        cdef bint large = self.edges.mask >= CACHED
        cdef Node* nodes = self.nodes
        cdef Node* node
        cdef List here = self.here, there = self.there, swap
        cdef size_t i
        cdef uint32_t at, child
        if count < 0:
            return
        if large:
            for level in range(count):
                interner_prefetch(&self.interner, &words[level])
            for level in range(count):
                ids[level] = interner_find(&self.interner, &words[level])
        ids[count] = 0
        here.items[0] = 0
        here.size = 1
        for level in range(count + 1):
            if not large and level < count:
                # Not all at once: in a small trie most topics end after a word or two.
                ids[level] = interner_find(&self.interner, &words[level])
            there.size = 0
            i = 0
            while i < here.size:
                at = here.items[i]
                i += 1
                node = &nodes[at]
                if node.many != 0 and not dollar:
                    self._below(node.many, &here, found)
                if level == count:
                    if node.word != MANY_WORD:  # those gave their ids when they were reached
                        flat_emit(node, self.links, found)
                    continue
                if there.size + 2 > there.room and not list_grow(&self.taken, &there):
                    found.lost = True
                    break
                if node.children != 0 and ids[level] != 0:
                    child = flat_child(&self.edges, nodes, at, ids[level])
                    if child != 0:
                        there.items[there.size] = child
                        there.size += 1
                        if large:
                            # Its number is enough to know where its edge will be.
                            prefetch(&nodes[child])
                            prefetch(&self.edges.cells[edge_tag(child, ids[level + 1]) & self.edges.mask])
                child = node.one
                if child != 0 and not dollar:
                    there.items[there.size] = child
                    there.size += 1
                    if large:
                        prefetch(&nodes[child])
                        prefetch(&self.edges.cells[edge_tag(child, ids[level + 1]) & self.edges.mask])
            for i in range(self.below.size):
                at = self.below.items[i]
                if not flat_leaf(&nodes[at]) and not list_push(&self.taken, &there, at):
                    found.lost = True
            dollar = False  # it forbids the wildcards of the first level only
            swap = here
            here = there
            there = swap
            if here.size == 0:
                break
        for i in range(self.below.size):
            nodes[self.below.items[i]].marked = 0
        self.below.size = 0
        self.here = here
        self.there = there

    cdef void _below(self, uint32_t at, List* here, Found* found) noexcept nogil:
        """A `#` node is reached: its ids, and if more is below it, it stays reached from here on."""
        cdef Node* node = &self.nodes[at]
        cdef bint leaf = flat_leaf(node)
        if self.below.size != 0 or not leaf:
            if node.marked:
                return
            if not list_push(&self.taken, &self.below, at) or (not leaf and not list_push(&self.taken, here, at)):
                found.lost = True
                return
            node.marked = 1
        flat_emit(node, self.links, found)
