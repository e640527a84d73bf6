"""RabbitMQ's automaton: the trie as a non-deterministic one, made deterministic on the fly.

The third way of "Very fast and scalable topic routing" (RabbitMQ, 2010-11): a state is the set of trie nodes
reached together, made when it is first needed, with the ids it stands for; a topic is then one probe a word.
Over the flat trie (trie_flat.pyx), with which it shares words and nodes. Any change drops the automaton, as
its parts cannot be distinguished any more. It is also dropped when it has more than 1,048,576 transitions or
4,194,304 nodes and ids in all its sets, so that hostile topics do not fill the memory.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcmp, memcpy

from fanlight_matchers.contender cimport Found, emit
from fanlight_matchers.edges cimport Edges, edges_free, edges_home, edges_init, edges_next, edges_put
from fanlight_matchers.interner cimport interner_find
from fanlight_matchers.memory cimport enlarge, give_back, take_zeros
from fanlight_matchers.text cimport MOST_WORDS, Word, hash_pair
from fanlight_matchers.trie_flat cimport MANY_WORD, FlatTrie, Node, flat_child, flat_emit

cdef enum:
    MOST_MOVES = 1 << 20
    MOST_NODES = 1 << 22
    DOLLAR = 0x80000000
    NO_STATE = 0   # also: not made yet
    EMPTY = 1      # the set without nodes


cdef struct DfaState:
    size_t nodes       # where they begin in `sets`; after them its ids
    uint32_t count
    uint32_t ids
    uint32_t tag


cdef struct Move:
    uint32_t state     # NO_STATE: a free cell
    uint32_t word
    uint32_t target


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t*> a)[0], y = (<const uint32_t*> b)[0]
    return (x > y) - (x < y)


cdef class Automaton(FlatTrie):
    """A DFA over trie-I."""

    cdef:
        DfaState* states         # 0 means none, 1 is the empty one
        uint32_t states_room
        uint32_t states_top
        Edges by_set
        Move* moves
        uint32_t moves_mask
        uint32_t moves_used
        uint32_t* sets
        size_t sets_size
        size_t sets_room
        uint32_t starts[2]    # of other topics, and of those that begin with `$`
        Found scratch         # the set being made

    def __cinit__(self, str syntax="amqp"):
        edges_init(&self.by_set, &self.taken)
        self.scratch = Found(NULL, 0, 0, False)

    def __dealloc__(self):
        from_scratch(&self.scratch)
        self._forget()

    cdef void _forget(self) noexcept nogil:
        give_back(&self.taken, self.states, self.states_room * sizeof(DfaState))
        give_back(&self.taken, self.sets, self.sets_room * sizeof(uint32_t))
        if self.moves != NULL:
            give_back(&self.taken, self.moves, (<size_t> self.moves_mask + 1) * sizeof(Move))
        edges_free(&self.by_set)
        self.states = NULL
        self.sets = NULL
        self.moves = NULL
        self.states_room = self.states_top = self.moves_used = self.moves_mask = 0
        self.sets_size = self.sets_room = 0
        self.starts[0] = self.starts[1] = NO_STATE

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        if self.states != NULL:
            self._forget()
        return FlatTrie.add(self, words, count, id)

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        if self.states != NULL:
            self._forget()
        return FlatTrie.drop(self, words, count, id)

    cdef void _reach(self, uint32_t at, bint closed) noexcept nogil:
        """The node and the chain of `#` nodes right below it, into the set being made."""
        cdef uint32_t node = at
        emit(&self.scratch, node)
        while closed and self.nodes[node].many != 0:
            node = self.nodes[node].many
            emit(&self.scratch, node)

    cdef uint32_t _state(self) noexcept nogil:
        """The state of the set in `scratch`; NO_STATE: no memory, or too many."""
        cdef size_t kept = 0, i, size
        cdef uint32_t* set = self.scratch.ids
        cdef uint64_t hash = 1
        cdef uint32_t tag, at, number
        cdef DfaState* state
        cdef Found found = Found(NULL, 0, 0, False)
        if self.scratch.lost:
            return NO_STATE
        if self.scratch.count > 1:
            qsort(set, self.scratch.count, sizeof(uint32_t), ascending)
        for i in range(self.scratch.count):
            if kept == 0 or set[i] != set[kept - 1]:
                set[kept] = set[i]
                kept += 1
                hash = hash_pair(hash, set[i])
        if kept == 0:
            return EMPTY
        tag = <uint32_t> hash
        at = edges_home(&self.by_set, tag)
        number = edges_next(&self.by_set, tag, &at)
        while number != 0:
            state = &self.states[number]
            if state.count == kept and memcmp(self.sets + state.nodes, set, kept * sizeof(uint32_t)) == 0:
                return number
            number = edges_next(&self.by_set, tag, &at)
        for i in range(kept):
            flat_emit(&self.nodes[set[i]], self.links, &found)
        size = kept + found.count
        number = NO_STATE
        if not found.lost and self.sets_size + size <= MOST_NODES and self._room(size):
            number = self.states_top
            if edges_put(&self.by_set, tag, number) == 0:
                self.states_top += 1
                self.states[number] = DfaState(self.sets_size, <uint32_t> kept, <uint32_t> found.count, tag)
                memcpy(self.sets + self.sets_size, set, kept * sizeof(uint32_t))
                if found.count:
                    memcpy(self.sets + self.sets_size + kept, found.ids, found.count * sizeof(uint32_t))
                self.sets_size += size
            else:
                number = NO_STATE
        from_scratch(&found)
        return number

    cdef bint _room(self, size_t more) noexcept nogil:
        cdef size_t room
        cdef void* larger
        if self.states_top == self.states_room:
            room = 2 * self.states_room if self.states_room else 64
            larger = enlarge(&self.taken, self.states, self.states_room * sizeof(DfaState), room * sizeof(DfaState))
            if larger == NULL:
                return False
            self.states = <DfaState*> larger
            self.states_room = <uint32_t> room
        room = self.sets_room if self.sets_room else 256
        while room < self.sets_size + more:
            room *= 2
        if room > self.sets_room:
            larger = enlarge(
                &self.taken, self.sets, self.sets_room * sizeof(uint32_t), room * sizeof(uint32_t)
            )
            if larger == NULL:
                return False
            self.sets = <uint32_t*> larger
            self.sets_room = room
        return True

    cdef bint _begin(self) noexcept nogil:
        """The empty state and both where a topic begins."""
        if not self._room(0):
            return False
        self.states[EMPTY] = DfaState(0, 0, 0, 0)
        self.states_top = EMPTY + 1
        self.scratch.count = 0
        self._reach(0, True)
        self.starts[0] = self._state()
        self.scratch.count = 0
        self._reach(0, False)
        self.starts[1] = self._state()
        return self.starts[0] != NO_STATE and self.starts[1] != NO_STATE

    cdef uint32_t _step(self, uint32_t from_, uint32_t word, bint dollar) noexcept nogil:
        """Where a word leads to, worked out over the trie."""
        cdef size_t start = self.states[from_].nodes, i
        cdef uint32_t at, child
        cdef const Node* node
        self.scratch.count = 0
        for i in range(self.states[from_].count):
            at = self.sets[start + i]
            node = &self.nodes[at]
            if node.word == MANY_WORD:
                self._reach(at, True)
            if node.one != 0 and not dollar:
                self._reach(node.one, True)
            if node.children != 0 and word != 0:
                child = flat_child(&self.edges, self.nodes, at, word)
                if child != 0:
                    self._reach(child, True)
        return self._state()

    cdef Move* _move(self, uint32_t state, uint32_t word) noexcept nogil:
        """Its cell, or a free one."""
        cdef uint32_t at = <uint32_t> hash_pair(state, word) & self.moves_mask
        while self.moves[at].state != NO_STATE and (self.moves[at].state != state or self.moves[at].word != word):
            at = (at + 1) & self.moves_mask
        return &self.moves[at]

    cdef bint _remember(self, uint32_t state, uint32_t word, uint32_t target) noexcept nogil:
        cdef Move* old = self.moves
        cdef size_t size = <size_t> self.moves_mask + 1 if old != NULL else 0, i
        if 2 * (<size_t> self.moves_used + 1) > size:
            self.moves = <Move*> take_zeros(&self.taken, (2 * size if size else 64) * sizeof(Move))
            if self.moves == NULL:
                self.moves = old
                return False
            self.moves_mask = <uint32_t> (2 * size if size else 64) - 1
            for i in range(size):
                if old[i].state != NO_STATE:
                    self._move(old[i].state, old[i].word)[0] = old[i]
            give_back(&self.taken, old, size * sizeof(Move))
        self._move(state, word)[0] = Move(state, word, target)
        self.moves_used += 1
        return True

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef int count = self.cut_topic(topic, size, words), level
        cdef bint dollar = self.mqtt and size > 0 and topic[0] == b"$"
        cdef uint32_t state, word, key, target, i
        cdef const Move* move
        if count < 0:
            return
        if self.moves_used >= MOST_MOVES:
            self._forget()
        if self.states == NULL and not self._begin():
            self._forget()
            FlatTrie.find(self, topic, size, found)
            return
        state = self.starts[dollar]
        for level in range(count):
            word = interner_find(&self.interner, &words[level])
            # A first word with a `$` goes elsewhere, though both starts may be one state.
            key = word | DOLLAR if dollar and level == 0 else word
            target = NO_STATE
            if self.moves != NULL:
                move = self._move(state, key)
                target = move.target if move.state != NO_STATE else NO_STATE
            if target == NO_STATE:
                target = self._step(state, word, dollar and level == 0)
                if target == NO_STATE or not self._remember(state, key, target):
                    self._forget()
                    FlatTrie.find(self, topic, size, found)
                    return
            state = target
            if state == EMPTY:
                return
        for i in range(self.states[state].ids):
            emit(found, self.sets[self.states[state].nodes + self.states[state].count + i])


cdef void from_scratch(Found* found) noexcept nogil:
    """Its memory back, which is not counted: it is no part of what the automaton keeps."""
    free(found.ids)
    found.ids = NULL
    found.count = found.room = 0
