# cython: language_level=3, annotation_typing=False
"""NameIndex: topic names in, a filter asked, ids out; FilterIndex in the mirror.

A broker asks it which cached topics a new filter touches, and which retained messages a new
subscriber gets. The picture is in names.pxd. Threads and errors are as in FilterIndex.
"""

from cpython.long cimport PyLong_FromUnsignedLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memset

from matchcore.heap cimport heap_give_back, heap_take, numbers_free, numbers_push
from matchcore.ids cimport take_id
from matchcore.pool cimport TOKEN_MANY, TOKEN_ONE
from matchcore.results cimport results_free, results_ids
from matchcore.syntax cimport (
    LITERAL, MQTT, ONE, canonical, filter_error, hash_tokens, scan_filter, scan_topic, syntax_name,
    take_limits, take_syntax, take_text, topic_error,
)
from matchcore.table cimport NONE
from matchcore.texts cimport (
    text_ids, text_object, texts_add, texts_add_id, texts_drop, texts_drop_id, texts_find, texts_free,
    texts_has_id, texts_init, texts_unlink,
)
from matchcore.trie cimport ROOT, trie_add, trie_begin, trie_child, trie_free, trie_init, trie_prune, trie_search
from matchcore.words cimport OTHER, words_find, words_free, words_intern, words_release

__all__ = ["NameIndex"]

cdef enum:
    KEPT_IDS = 1 << 16  # a larger buffer is given back after the match that needed it: 256 kB


cdef class NameIndex:
    """Topic names with ids; asked with a filter, it answers with the ids of the names it matches.

    Arguments, limits and identity are as in FilterIndex.
    """

    def __cinit__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        self.heap.allowance = -1
        texts_init(&self.texts, &self.heap)
        self.words.heap = &self.heap
        trie_init(&self.trie, &self.heap, &self.words)
        take_limits(max_words, max_bytes, &self.limits)
        self.tokens = <Token*> heap_take(&self.heap, self.limits.words * sizeof(Token))
        self.word_ids = <uint32_t*> heap_take(&self.heap, self.limits.words * sizeof(uint32_t))
        if self.tokens == NULL or self.word_ids == NULL:
            raise MemoryError()

    def __dealloc__(self) -> None:
        trie_free(&self.trie)
        words_free(&self.words)
        texts_free(&self.texts)
        results_free(&self.heap, &self.results)
        heap_give_back(&self.heap, self.tokens, self.limits.words * sizeof(Token))
        heap_give_back(&self.heap, self.word_ids, self.limits.words * sizeof(uint32_t))

    def insert(self, name: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (name, syntax, id) is new. All or nothing: on MemoryError the index is unchanged."""
        cdef uint32_t number = take_syntax(syntax)
        cdef uint32_t who = take_id(id)
        cdef View view
        cdef Fault fault
        cdef uint64_t hash
        cdef uint32_t text, node
        cdef int count, added
        take_text(name, &view, number, False)
        count = scan_topic(view.start, view.size, number, &self.limits, self.tokens, &fault)
        if count < 0:
            raise topic_error(&view, number, &self.limits, &fault, None)
        hash = hash_tokens(self.tokens, count)
        text = texts_find(&self.texts, view.start, view.size, number, hash)
        if text != NONE:
            added = texts_add_id(&self.texts, text, who)
            if added < 0:
                raise MemoryError()
            self.version += added
            return added == 1
        text = texts_add(&self.texts, view.start, view.size, number, hash, view.is_str, True, who)
        if text == NONE:
            raise MemoryError()
        node = self._path(count)
        if node == NONE:
            texts_drop(&self.texts, text)
            raise MemoryError()
        self.texts.entries[text].target = node
        self.texts.entries[text].next = self.trie.nodes[node].names
        self.trie.nodes[node].names = text
        self.version += 1
        return True

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
                    child = trie_add(&self.trie, node, word)
                    if child == NONE:
                        words_release(&self.words, word)
                if child == NONE:
                    trie_prune(&self.trie, node)
                    return NONE
            node = child
        return node

    def remove(self, name: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (name, syntax, id) was there. Never needs memory."""
        cdef uint32_t number = take_syntax(syntax)
        cdef uint32_t who = take_id(id)
        cdef View view
        cdef Fault fault
        cdef uint32_t text, node
        cdef int count
        take_text(name, &view, number, False)
        count = scan_topic(view.start, view.size, number, &self.limits, self.tokens, &fault)
        if count < 0:
            raise topic_error(&view, number, &self.limits, &fault, None)
        text = texts_find(&self.texts, view.start, view.size, number, hash_tokens(self.tokens, count))
        if text == NONE or not texts_has_id(&self.texts, text, who):
            return False
        if self.texts.entries[text].count > 1:
            texts_drop_id(&self.texts, text, who)
        else:
            node = self.texts.entries[text].target
            self.trie.nodes[node].names = texts_unlink(&self.texts, self.trie.nodes[node].names, text)
            texts_drop(&self.texts, text)
            trie_prune(&self.trie, node)
        self.version += 1
        return True

    cdef int _collect(self, const View* view, uint32_t syntax, Results* results, Fault* fault) noexcept nogil:
        """Fills results.texts. -1 with `fault` filled in: an invalid filter; -2: no memory."""
        cdef const Token* tokens = self.tokens
        cdef int count = scan_filter(view.start, view.size, syntax, &self.limits, self.tokens, fault)
        cdef uint32_t text
        cdef size_t j
        cdef bint no_dollar
        cdef int i
        results.texts.size = 0
        if count < 0:
            return -1
        no_dollar = syntax == MQTT and tokens[0].kind != LITERAL
        count = canonical(self.tokens, count)
        for i in range(count):
            if tokens[i].kind == LITERAL:
                self.word_ids[i] = words_find(&self.words, tokens[i].start, tokens[i].size, tokens[i].hash)
                if self.word_ids[i] == OTHER:
                    return 0  # a word that no name has
            else:
                self.word_ids[i] = TOKEN_ONE if tokens[i].kind == ONE else TOKEN_MANY
        if trie_search(&self.trie, self.word_ids, count, no_dollar) < 0:
            return -2
        for j in range(self.trie.frontier.size):
            text = self.trie.nodes[self.trie.frontier.items[j]].names
            while text != NONE:
                if numbers_push(&self.heap, &results.texts, text) < 0:
                    return -2
                text = self.texts.entries[text].next
        return 0

    def match(self, filter: str | bytes, *, syntax: str = "amqp") -> tuple:
        """The distinct ids of the names that the filter matches, ascending."""
        cdef uint32_t number = take_syntax(syntax)
        cdef View view
        cdef Fault fault
        cdef Results results = self.results
        cdef size_t i
        cdef object id
        cdef tuple found
        cdef int status
        memset(&self.results, 0, sizeof(Results))
        try:
            take_text(filter, &view, number, True)
            status = self._collect(&view, number, &results, &fault)
            if status == -1:
                raise filter_error(&view, number, &self.limits, &fault)
            if status == -2 or results_ids(&self.heap, &results, &self.texts, 0) < 0:
                raise MemoryError()
            found = PyTuple_New(results.ids.size)
            for i in range(results.ids.size):
                id = PyLong_FromUnsignedLong(results.ids.items[i])
                Py_INCREF(id)
                PyTuple_SET_ITEM(found, i, id)
            return found
        finally:
            # Whoever asked in the meantime has left a set of buffers of its own: one is enough.
            results_free(&self.heap, &self.results)
            if results.ids.capacity > KEPT_IDS:
                results_free(&self.heap, &results)
            if self.trie.frontier.capacity + self.trie.ahead.capacity > KEPT_IDS:
                numbers_free(&self.heap, &self.trie.frontier)
                numbers_free(&self.heap, &self.trie.ahead)
            self.results = results

    def __len__(self) -> int:
        """The number of (name, syntax, id) held."""
        return <Py_ssize_t> self.texts.pairs

    @property
    def nbytes(self) -> int:
        """Bytes held, all told: tables, texts, nodes, scratch and this object, as asked of malloc."""
        return self.heap.bytes + <size_t> NameIndex.__basicsize__

    def names(self):
        """Iterates over (name, syntax, id), in no promised order; RuntimeError if the index changes."""
        cdef uint64_t version = self.version
        cdef uint32_t i = 0
        cdef uint32_t j
        while i < self.texts.count:
            j = 0
            while j < self.texts.entries[i].count:
                yield (
                    text_object(&self.texts.entries[i]),
                    syntax_name(self.texts.entries[i].syntax),
                    text_ids(&self.texts.entries[i])[j],
                )
                if self.version != version:
                    raise RuntimeError("the NameIndex changed while its names were iterated over")
                j += 1
            i += 1

    def _fail_after(self, allocations: int) -> None:
        """For tests: so many more growths of memory succeed, then none; -1: all."""
        self.heap.allowance = allocations
