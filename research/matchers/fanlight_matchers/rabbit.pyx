"""RabbitMQ's trie: one table of edges keyed by node and word, for all nodes (rabbit_exchange_type_topic).

Edges are found by (node, word) with the word's own bytes, as its Mnesia tables are; `*` and `#` are edges like
others, so each node on the way costs three probes; below a `#` every rest of the topic is tried to its end.
Here the tables are C (one open-addressing table, nodes in one array), where RabbitMQ has ETS and Erlang terms,
so this says what the design costs, not what RabbitMQ does. Left out: bindings' arguments, the tables' locks.
A filter of many `#` can take exponential time, and gives its ids more than once; who asks drops the doubles.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from fanlight_matchers.contender cimport DONE, NO_MEMORY, UNKNOWN, Contender, Found, emit
from fanlight_matchers.edges cimport Edges, edges_drop, edges_free, edges_home, edges_init, edges_next, edges_put
from fanlight_matchers.memory cimport enlarge, give_back, take
from fanlight_matchers.text cimport LITERAL, MANY, MOST_WORDS, ONE, Word, hash_pair, same_text


cdef struct Node:
    uint32_t parent          # of a free one: the next free one
    uint32_t edges           # that leave it
    uint32_t tag             # of the edge that leads to it
    uint32_t kind
    uint32_t size            # of its word
    uint32_t id_count
    uint32_t id_room
    unsigned char* word
    uint32_t* ids


cdef inline uint32_t tag_of(uint32_t node, const Word* word, uint32_t kind) noexcept nogil:
    return <uint32_t> hash_pair(node, word.hash if kind == LITERAL else kind)


cdef class RabbitTrie(Contender):
    """A trie as a table of edges."""

    cdef:
        Edges edges
        Node* nodes      # 0 is the root
        uint32_t room
        uint32_t top
        uint32_t free

    def __cinit__(self, str syntax="amqp"):
        edges_init(&self.edges, &self.taken)
        self.nodes = <Node*> take(&self.taken, 16 * sizeof(Node))
        if self.nodes == NULL:
            raise MemoryError
        self.room = 16
        self.top = 1
        self.nodes[0] = Node(0, 0, 0, LITERAL, 0, 0, 0, NULL, NULL)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.top):
            give_back(&self.taken, self.nodes[i].word, self.nodes[i].size + 1)
            give_back(&self.taken, self.nodes[i].ids, self.nodes[i].id_room * sizeof(uint32_t))
        give_back(&self.taken, self.nodes, self.room * sizeof(Node))
        edges_free(&self.edges)

    cdef uint32_t _child(self, uint32_t node, const Word* word, uint32_t kind) noexcept nogil:
        cdef uint32_t tag = tag_of(node, word, kind)
        cdef uint32_t at = edges_home(&self.edges, tag)
        cdef uint32_t child = edges_next(&self.edges, tag, &at)
        cdef Node* found
        while child != 0:
            found = &self.nodes[child]
            if found.parent == node and found.kind == kind and (
                kind != LITERAL or same_text(word, found.word, found.size)
            ):
                break
            child = edges_next(&self.edges, tag, &at)
        return child

    cdef uint32_t _new(self, uint32_t parent, const Word* word) noexcept nogil:
        """0: no memory."""
        cdef uint32_t at = self.free, room = 2 * self.room, tag = tag_of(parent, word, word.kind)
        cdef unsigned char* text = <unsigned char*> take(&self.taken, word.size + 1)
        cdef void* larger
        if text == NULL:
            return 0
        memcpy(text, word.text, word.size)
        if at == 0 and self.top == self.room:
            larger = enlarge(&self.taken, self.nodes, self.room * sizeof(Node), room * sizeof(Node))
            if larger == NULL:
                give_back(&self.taken, text, word.size + 1)
                return 0
            self.nodes = <Node*> larger
            self.room = room
        if edges_put(&self.edges, tag, at if at else self.top) < 0:
            give_back(&self.taken, text, word.size + 1)
            return 0
        if at != 0:
            self.free = self.nodes[at].parent
        else:
            at = self.top
            self.top += 1
        self.nodes[at] = Node(parent, 0, tag, word.kind, word.size, 0, 0, text, NULL)
        self.nodes[parent].edges += 1
        return at

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t at = 0, child, i, room
        cdef int level
        cdef Node* node
        cdef void* larger
        for level in range(count):
            child = self._child(at, &words[level], words[level].kind)
            if child == 0:
                child = self._new(at, &words[level])
                if child == 0:
                    return NO_MEMORY
            at = child
        node = &self.nodes[at]
        for i in range(node.id_count):
            if node.ids[i] == id:
                return UNKNOWN
        if node.id_count == node.id_room:
            room = 2 * node.id_room if node.id_room else 2
            larger = enlarge(&self.taken, node.ids, node.id_room * sizeof(uint32_t), room * sizeof(uint32_t))
            if larger == NULL:
                return NO_MEMORY
            node.ids = <uint32_t*> larger
            node.id_room = room
        node.ids[node.id_count] = id
        node.id_count += 1
        return DONE

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t at = 0, i, parent
        cdef int level
        cdef Node* node
        for level in range(count):
            at = self._child(at, &words[level], words[level].kind)
            if at == 0:
                return UNKNOWN
        node = &self.nodes[at]
        for i in range(node.id_count):
            if node.ids[i] == id:
                break
        else:
            return UNKNOWN
        node.id_count -= 1
        node.ids[i] = node.ids[node.id_count]
        while at != 0 and node.id_count == 0 and node.edges == 0:
            parent = node.parent
            edges_drop(&self.edges, node.tag, at)
            give_back(&self.taken, node.word, node.size + 1)
            give_back(&self.taken, node.ids, node.id_room * sizeof(uint32_t))
            self.nodes[at] = Node(self.free, 0, 0, LITERAL, 0, 0, 0, NULL, NULL)
            self.free = at
            self.nodes[parent].edges -= 1
            at = parent
            node = &self.nodes[at]
        return DONE

    cdef void _match(
        self, uint32_t at, const Word* words, int level, int count, bint dollar, Found* found
    ) noexcept nogil:
        cdef Node* node = &self.nodes[at]
        cdef uint32_t child, i
        cdef int rest
        if level == count:
            for i in range(node.id_count):
                emit(found, node.ids[i])
        else:
            child = self._child(at, &words[level], LITERAL)
            if child != 0:
                self._match(child, words, level + 1, count, False, found)
            if not dollar:
                child = self._child(at, &words[level], ONE)
                if child != 0:
                    self._match(child, words, level + 1, count, False, found)
        if not dollar:
            child = self._child(at, words, MANY)
            if child != 0:
                for rest in range(level, count + 1):
                    self._match(child, words, rest, count, False, found)

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef int count = self.cut_topic(topic, size, words)
        if count >= 0:
            self._match(0, words, 0, count, self.mqtt and size > 0 and topic[0] == b"$", found)
