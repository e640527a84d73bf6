# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""NameIndex: topic names in, a filter asked, ids out; FilterIndex in the mirror.

A broker asks it which cached topics a new filter touches, and which retained messages a new
subscriber gets. The picture is in names.pxd. Threads and errors are as in FilterIndex.
"""

from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy, memset

from matchcore.allocator cimport deallocate, allocate, numbers_free
from matchcore.arena cimport Arena, arena_free, arena_is_sparse, arena_like
from matchcore.ascending cimport make_ascending
from matchcore.descent cimport SLACK, descent_free, trie_ask
from matchcore.holders cimport (
    holders_add, holders_drop, holders_free, holders_gather, holders_ids, holders_init, holders_move,
)
from matchcore.ids cimport take_id, tuple_of_ids
from matchcore.positions cimport TOKEN_MANY, TOKEN_ONE
from matchcore.syntax cimport (
    LITERAL, MQTT, ONE, canonical, filter_error, scan_filter, scan_topic, syntax_name, syntax_of, take_limits,
    topic_error, view_of,
)
from matchcore.table cimport NONE
from matchcore.trie cimport (
    ROOT, node_holds, trie_add, trie_begin, trie_child, trie_free, trie_init, trie_move,
    trie_prune,
)
from matchcore.words cimport (
    OTHER, Word, word_size, word_start, words_find, words_free, words_init, words_intern, words_release,
)


__all__ = ["NameIndex"]

cdef array.array UINT32 = array.array("I")

cdef enum:
    KEPT_IDS = 1 << 16  # a larger buffer is given back after the match that needed it: 256 kB


cdef class NameIndex:
    """Topic names with ids; asked with a filter, it answers with the ids of the names it matches.

    Arguments, limits and identity are as in FilterIndex. A match takes time in proportion to what it finds
    below the filter's literal prefix, or to the names that have its rarest literal at its position.
    """

    def __cinit__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        self.allocator.allowance = -1
        words_init(&self.words, &self.allocator)
        trie_init(&self.trie, &self.allocator, &self.words)
        holders_init(&self.holders, &self.trie)
        self.descent.slack = SLACK
        take_limits(max_words, max_bytes, &self.limits)
        self.tokens = <Token*> allocate(&self.allocator, self.limits.words * sizeof(Token))
        self.word_ids = <uint32_t*> allocate(&self.allocator, self.limits.words * sizeof(uint32_t))
        if self.tokens == NULL or self.word_ids == NULL:
            raise MemoryError()

    def __dealloc__(self) -> None:
        holders_free(&self.holders)
        trie_free(&self.trie)
        words_free(&self.words)
        descent_free(&self.trie, &self.descent)
        self._free_answer()
        deallocate(&self.allocator, self.tokens, self.limits.words * sizeof(Token))
        deallocate(&self.allocator, self.word_ids, self.limits.words * sizeof(uint32_t))

    cdef int _scan_name(self, object name, uint32_t syntax, View* view) except -1:
        """Into `tokens`; their number."""
        cdef Fault fault
        cdef int count
        view_of(name, view, syntax, False)
        count = scan_topic(view.start, view.size, syntax, &self.limits, self.tokens, &fault)
        if count < 0:
            raise topic_error(view, syntax, &self.limits, &fault, None)
        return count

    def insert(self, name: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (name, syntax, id) is new. All or nothing: on MemoryError the index is unchanged."""
        cdef uint32_t number = syntax_of(syntax)
        cdef uint32_t who = take_id(id)
        cdef View view
        cdef int count = self._scan_name(name, number, &view)
        cdef uint32_t node = self._path(count)
        cdef int added
        if node == NONE:
            raise MemoryError()
        added = holders_add(&self.holders, node, number, view.is_str, who)
        if added < 0:
            trie_prune(&self.trie, node)
            raise MemoryError()
        self._pack_if_sparse()
        self.version += added
        return added == 1

    cdef uint32_t _path(self, int count) noexcept nogil:
        """The node of the words in `tokens`, made if need be; NONE: no memory, and nothing made."""
        cdef uint32_t node = ROOT
        cdef uint32_t child, word
        cdef const Token* token
        cdef int i
        if trie_begin(&self.trie) < 0:
            return NONE
        for i in range(count):
            token = &self.tokens[i]
            word = words_intern(&self.words, token.start, token.size, token.hash)
            child = NONE if word == OTHER else trie_child(&self.trie, node, word)
            if child != NONE:
                words_release(&self.words, word)  # the node has its own reference
            else:
                if word != OTHER:
                    child = trie_add(&self.trie, node, word, token.size != 0 and token.start[0] == c"$")
                    if child == NONE:
                        words_release(&self.words, word)
                if child == NONE:
                    trie_prune(&self.trie, node)
                    return NONE
            node = child
        return node

    cdef uint32_t _find(self, int count) noexcept nogil:
        """The node of the words in `tokens`, or NONE."""
        cdef uint32_t node = ROOT if self.trie.count != 0 else NONE
        cdef uint32_t word
        cdef const Token* token
        cdef int i
        for i in range(count):
            token = &self.tokens[i]
            word = words_find(&self.words, token.start, token.size, token.hash)
            if word == OTHER or node == NONE:
                return NONE
            node = trie_child(&self.trie, node, word)
        return node

    def remove(self, name: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (name, syntax, id) was there. Never needs memory."""
        cdef uint32_t number = syntax_of(syntax)
        cdef uint32_t who = take_id(id)
        cdef View view
        cdef uint32_t node = self._find(self._scan_name(name, number, &view))
        if node == NONE or not holders_drop(&self.holders, node, number, who):
            return False
        trie_prune(&self.trie, node)
        self._pack_if_sparse()
        self.version += 1
        return True

    cdef void _pack_if_sparse(self) noexcept nogil:
        """All bags into a new arena, when more than half as much is free as is in use (arena.pxd)."""
        cdef Arena made
        if not arena_is_sparse(&self.trie.arena):
            return
        if arena_like(&made, &self.trie.arena) < 0:
            return  # without memory for it the holes stay
        trie_move(&self.trie, &made)
        holders_move(&self.holders, &made)
        arena_free(&self.trie.arena)
        self.trie.arena = made

    cdef int _ask(self, const View* view, uint32_t syntax, Numbers* ids, Fault* fault) noexcept nogil:
        """Adds the ids to `ids`, in no order. -1 with `fault` filled in: an invalid filter; -2: no memory."""
        cdef Token* tokens = self.tokens
        cdef int count = scan_filter(view.start, view.size, syntax, &self.limits, tokens, fault)
        cdef bint no_dollar
        cdef int i
        if count < 0:
            return -1
        no_dollar = syntax == MQTT and tokens[0].kind != LITERAL
        count = canonical(tokens, count)
        for i in range(count):
            if tokens[i].kind == LITERAL:
                self.word_ids[i] = words_find(&self.words, tokens[i].start, tokens[i].size, tokens[i].hash)
                if self.word_ids[i] == OTHER:
                    return 0  # a word that no name has
            else:
                self.word_ids[i] = TOKEN_ONE if tokens[i].kind == ONE else TOKEN_MANY
        if trie_ask(&self.trie, &self.descent, self.word_ids, <uint32_t> count, no_dollar) < 0:
            return -2
        return -2 if holders_gather(&self.holders, &self.descent.found, ids) < 0 else 0

    def may_match(self, filter: str | bytes, *, syntax: str = "amqp") -> bool:
        """False: it matches no name, for no name has one of its words. True says no more than that asking is worth it.

        Takes as long as to read the filter, however many names there are.
        """
        cdef uint32_t number = syntax_of(syntax)
        cdef View view
        cdef Fault fault
        cdef int count, i
        view_of(filter, &view, number, True)
        count = scan_filter(view.start, view.size, number, &self.limits, self.tokens, &fault)
        if count < 0:
            raise filter_error(&view, number, &self.limits, &fault)
        for i in range(count):
            if self.tokens[i].kind == LITERAL and words_find(
                &self.words, self.tokens[i].start, self.tokens[i].size, self.tokens[i].hash
            ) == OTHER:
                return False
        return self.holders.pairs != 0

    def match(self, filter: str | bytes, *, syntax: str = "amqp") -> tuple:
        """The distinct ids of the names that the filter matches, ascending."""
        return self._match(filter, syntax, False)

    def match_array(self, filter: str | bytes, *, syntax: str = "amqp"):
        """The same as an array.array of uint32: without an int object for each, where they are very many."""
        return self._match(filter, syntax, True)

    cdef object _match(self, object filter, object syntax, bint as_array):
        cdef uint32_t number = syntax_of(syntax)
        cdef array.array ids
        cdef View view
        cdef Fault fault
        cdef Answer answer = self.answer
        cdef int status
        memset(&self.answer, 0, sizeof(Answer))
        answer.ids.size = 0
        try:
            view_of(filter, &view, number, True)
            status = self._ask(&view, number, &answer.ids, &fault)
            if status == -1:
                raise filter_error(&view, number, &self.limits, &fault)
            if status == -2 or make_ascending(&self.allocator, &answer.ids, 0, &answer.spare) < 0:
                raise MemoryError()
            if not as_array:
                return tuple_of_ids(answer.ids.items, answer.ids.size)
            ids = array.clone(UINT32, answer.ids.size, False)
            if answer.ids.size != 0:
                memcpy(ids.data.as_uints, answer.ids.items, answer.ids.size * sizeof(uint32_t))
            return ids
        finally:
            # Whoever asked in the meantime has left buffers of its own: one set is enough.
            self._free_answer()
            self.answer = answer
            if answer.ids.capacity > KEPT_IDS or answer.spare.capacity > KEPT_IDS:
                self._free_answer()
            if (
                self.descent.frontier.capacity + self.descent.ahead.capacity + self.descent.found.capacity
                > KEPT_IDS
            ):
                descent_free(&self.trie, &self.descent)

    cdef void _free_answer(self) noexcept nogil:
        numbers_free(&self.allocator, &self.answer.ids)
        numbers_free(&self.allocator, &self.answer.spare)

    def __len__(self) -> int:
        """The number of (name, syntax, id) held."""
        return <Py_ssize_t> self.holders.pairs

    @property
    def nbytes(self) -> int:
        """Bytes held in total: tables, words, nodes, scratch and this object, without malloc's own headers."""
        return self.allocator.bytes + <size_t> NameIndex.__basicsize__

    cdef object _spell(self, uint32_t node, uint32_t syntax, bint is_str):
        """The name that ends at `node`."""
        cdef char separator = c"/" if syntax == MQTT else c"."
        cdef uint32_t at = node
        cdef size_t size = 0
        cdef size_t length
        cdef const Word* word
        cdef bytes text
        cdef char* end
        while at != ROOT:
            size += word_size(&self.words.entries[self.trie.nodes[at].word]) + 1
            at = self.trie.nodes[at].parent
        text = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (size - 1 if size != 0 else 0))
        end = PyBytes_AS_STRING(text) + size - 1
        at = node
        while at != ROOT:
            word = &self.words.entries[self.trie.nodes[at].word]
            length = word_size(word)
            end -= length
            memcpy(end, word_start(&self.words, word), length)
            at = self.trie.nodes[at].parent
            if at != ROOT:
                end -= 1
                end[0] = separator
        return text.decode("utf-8") if is_str else text

    def names(self):
        """Iterates over (name, syntax, id), in no promised order; RuntimeError if the index changes."""
        cdef uint64_t version = self.version
        cdef uint32_t node = 0
        cdef uint32_t syntax, count, i
        cdef const uint32_t* ids
        cdef bint is_str
        while node < self.trie.count:
            if node_holds(&self.trie, node):
                for syntax in range(2):
                    i = 0
                    while True:
                        # Asked again after each yield: nothing says what ran in between, but that nothing changed.
                        count = holders_ids(&self.holders, node, syntax, &ids, &is_str)
                        if i >= count:
                            break
                        yield self._spell(node, syntax, is_str), syntax_name(syntax), ids[i]
                        if self.version != version:
                            raise RuntimeError("the NameIndex changed while its names were iterated over")
                        i += 1
            node += 1

    def _fail_after(self, allocations: int) -> None:
        """For tests: the next `allocations` growths of memory succeed, then none; -1: all."""
        self.allocator.allowance = allocations

    def _tune(self, slack: int = SLACK) -> None:
        """For tests: how many nodes a search meets before it turns to the postings; -1: it always does."""
        self.descent.slack = slack
