# cython: language_level=3, annotation_typing=False
"""FilterIndex: topic filters in, a topic name asked, ids out. The picture is in filters.pxd.

Threads: every public call holds the GIL from the scan of its arguments to the end of its change or
its search, and runs no Python code meanwhile, so calls are atomic: any number of readers beside any
number of writers. (The module does not declare itself free-threaded: there CPython keeps the GIL on.)

Errors: InvalidFilter and InvalidTopic (ValueErrors, see errors.py), ValueError for an id outside
0..2**32-1, TypeError for what is no str, bytes or int, MemoryError with the index as it was.
"""

from cpython.long cimport PyLong_FromUnsignedLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcpy, memset

from matchcore.heap cimport heap_give_back, heap_take, numbers_free, numbers_push
from matchcore.ids cimport take_id
from matchcore.pool cimport (
    NO_DOLLAR, TOKEN_MANY, TOKEN_ONE, pool_add, pool_find, pool_free, pool_init, pool_remove,
)
from matchcore.results cimport results_free, results_ids
from matchcore.search cimport pool_match
from matchcore.syntax cimport (
    LITERAL, MQTT, ONE, canonical, filter_error, hash_tokens, scan_filter, scan_topic, syntax_name,
    take_limits, take_syntax, take_text, topic_error,
)
from matchcore.table cimport NONE
from matchcore.texts cimport (
    text_ids, text_object, texts_add, texts_add_id, texts_drop, texts_drop_id, texts_exact, texts_find,
    texts_free, texts_has_id, texts_init, texts_unlink,
)
from matchcore.words cimport OTHER, words_find, words_free, words_intern, words_release

import numpy

__all__ = ["FilterIndex"]

cdef enum:
    KEPT_IDS = 1 << 16  # a larger buffer is given back after the match that needed it: 256 kB


cdef class FilterIndex:
    """Topic filters with ids; asked with a topic, it answers with the ids of the filters that match.

    `max_words` (words, 1..1024) and `max_bytes` (bytes, 1..2**30) bound filters and topics alike;
    beyond them InvalidFilter or InvalidTopic is raised. Ids are ints within 0..2**32-1, and one id may
    be under many filters, and one filter hold many ids. Filters and topics are str or bytes, written
    in the syntax "amqp" (the default; also the native one) or "mqtt".
    """

    def __cinit__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        self.heap.allowance = -1
        texts_init(&self.texts, &self.heap)
        self.words.heap = &self.heap
        self.pool.heap = &self.heap  # so that __dealloc__ may free it whatever happens below
        take_limits(max_words, max_bytes, &self.limits)
        if pool_init(&self.pool, &self.heap, &self.words, self.limits.words) < 0:
            raise MemoryError()
        self.tokens = <Token*> heap_take(&self.heap, self.limits.words * sizeof(Token))
        self.word_ids = <uint32_t*> heap_take(&self.heap, self.limits.words * sizeof(uint32_t))
        if self.tokens == NULL or self.word_ids == NULL:
            raise MemoryError()

    def __dealloc__(self) -> None:
        pool_free(&self.pool)
        words_free(&self.words)
        texts_free(&self.texts)
        results_free(&self.heap, &self.results)
        numbers_free(&self.heap, &self.columns)
        heap_give_back(&self.heap, self.tokens, self.limits.words * sizeof(Token))
        heap_give_back(&self.heap, self.word_ids, self.limits.words * sizeof(uint32_t))

    # ---- changing -------------------------------------------------------------------------------

    def insert(self, filter: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (filter, syntax, id) is new. All or nothing: on MemoryError the index is unchanged."""
        cdef uint32_t number = take_syntax(syntax)
        cdef uint32_t who = take_id(id)
        cdef View view
        cdef Fault fault
        cdef uint64_t hash
        cdef uint32_t text, column
        cdef uint32_t flags = 0
        cdef bint is_exact = True
        cdef int count, i, added
        take_text(filter, &view, number, True)
        count = scan_filter(view.start, view.size, number, &self.limits, self.tokens, &fault)
        if count < 0:
            raise filter_error(&view, number, &self.limits, &fault)
        hash = hash_tokens(self.tokens, count)
        text = texts_find(&self.texts, view.start, view.size, number, hash)
        if text != NONE:
            added = texts_add_id(&self.texts, text, who)
            if added < 0:
                raise MemoryError()
            self.version += added
            return added == 1
        for i in range(count):
            if self.tokens[i].kind != LITERAL:
                is_exact = False
        text = texts_add(&self.texts, view.start, view.size, number, hash, view.is_str, is_exact, who)
        if text == NONE:
            raise MemoryError()
        if not is_exact:
            # The rule about `$` belongs to the filter's syntax, so it is part of what a column is:
            # AMQP's `#` and MQTT's are two columns, `a.#` and `a/#` are one.
            if number == MQTT and self.tokens[0].kind != LITERAL:
                flags = NO_DOLLAR
            column = self._attach(canonical(self.tokens, count), flags)
            if column == NONE:
                texts_drop(&self.texts, text)
                raise MemoryError()
            self.texts.entries[text].target = column
            self.texts.entries[text].next = self.pool.columns[column].texts
            self.pool.columns[column].texts = text
        self.version += 1
        return True

    cdef uint32_t _attach(self, int count, uint32_t flags) noexcept nogil:
        """The column of the canonical filter in `tokens`, made if need be; NONE: no memory."""
        cdef uint32_t* ids = self.word_ids
        cdef uint32_t column = NONE
        cdef int done = 0
        while done < count:
            if self.tokens[done].kind == LITERAL:
                ids[done] = words_intern(
                    &self.words, self.tokens[done].start, self.tokens[done].size, self.tokens[done].hash
                )
                if ids[done] == OTHER:
                    break
            else:
                ids[done] = TOKEN_ONE if self.tokens[done].kind == ONE else TOKEN_MANY
            done += 1
        if done == count:
            column = pool_find(&self.pool, ids, count, flags)
            if column != NONE:
                self._release(ids, count)  # the column has its own references
                return column
            column = pool_add(&self.pool, ids, count, flags)
        if column == NONE:
            self._release(ids, done)
        return column

    cdef void _release(self, const uint32_t* ids, int count) noexcept nogil:
        cdef int i
        for i in range(count):
            if ids[i] < TOKEN_MANY:
                words_release(&self.words, ids[i])

    def remove(self, filter: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (filter, syntax, id) was there. Never needs memory."""
        cdef uint32_t number = take_syntax(syntax)
        cdef uint32_t who = take_id(id)
        cdef View view
        cdef Fault fault
        cdef uint32_t text
        cdef int count
        take_text(filter, &view, number, True)
        count = scan_filter(view.start, view.size, number, &self.limits, self.tokens, &fault)
        if count < 0:
            raise filter_error(&view, number, &self.limits, &fault)
        text = texts_find(&self.texts, view.start, view.size, number, hash_tokens(self.tokens, count))
        if text == NONE or not texts_has_id(&self.texts, text, who):
            return False
        if self.texts.entries[text].count > 1:
            texts_drop_id(&self.texts, text, who)
        else:
            self._detach(text)
            texts_drop(&self.texts, text)
        self.version += 1
        return True

    cdef void _detach(self, uint32_t text) noexcept nogil:
        """Takes a text out of its column, and the column away with its last text."""
        cdef uint32_t column = self.texts.entries[text].target
        cdef uint32_t first
        cdef uint32_t count
        if column == NONE:
            return
        first = texts_unlink(&self.texts, self.pool.columns[column].texts, text)
        if first != NONE:
            self.pool.columns[column].texts = first
            return
        count = self.pool.columns[column].count
        memcpy(self.word_ids, self.pool.columns[column].tokens, count * sizeof(uint32_t))
        pool_remove(&self.pool, column)
        self._release(self.word_ids, <int> count)

    # ---- asking ---------------------------------------------------------------------------------

    cdef int collect(
        self, const View* view, uint32_t syntax, bint first_only, Results* results, Fault* fault
    ) noexcept nogil:
        cdef const Token* tokens = self.tokens
        cdef uint32_t[2] exact
        cdef uint32_t text
        cdef size_t j
        cdef bint dollar
        cdef int i, found
        cdef int count = scan_topic(view.start, view.size, syntax, &self.limits, self.tokens, fault)
        results.texts.size = 0
        if count < 0:
            return -1
        found = texts_exact(
            &self.texts, view.start, view.size, syntax, hash_tokens(tokens, count), exact
        )
        for i in range(found):
            if numbers_push(&self.heap, &results.texts, exact[i]) < 0:
                return -2
        if self.pool.live.bits == 0 or (first_only and found != 0):
            return 0
        for i in range(count):
            self.word_ids[i] = words_find(&self.words, tokens[i].start, tokens[i].size, tokens[i].hash)
        dollar = count != 0 and tokens[0].size != 0 and tokens[0].start[0] == c"$"
        self.columns.size = 0
        if pool_match(&self.pool, self.word_ids, count, dollar, first_only, &self.columns) < 0:
            return -2
        for j in range(self.columns.size):
            text = self.pool.columns[self.columns.items[j]].texts
            while text != NONE:
                if numbers_push(&self.heap, &results.texts, text) < 0:
                    return -2
                text = self.texts.entries[text].next
        return 0

    cdef int _collect(
        self, object topic, uint32_t syntax, bint first_only, Results* results, object row
    ) except -1:
        cdef View view
        cdef Fault fault
        cdef int status
        take_text(topic, &view, syntax, False)
        status = self.collect(&view, syntax, first_only, results, &fault)
        if status == -1:
            raise topic_error(&view, syntax, &self.limits, &fault, row)
        if status == -2:
            raise MemoryError()
        return 0

    cdef void _check_out(self, Results* results) noexcept nogil:
        results[0] = self.results
        memset(&self.results, 0, sizeof(Results))

    cdef void _check_in(self, Results* results) noexcept nogil:
        # Whoever asked in the meantime has left a set of buffers of its own: one is enough.
        results_free(&self.heap, &self.results)
        if results.ids.capacity > KEPT_IDS:
            results_free(&self.heap, results)
        if self.columns.capacity > KEPT_IDS:
            numbers_free(&self.heap, &self.columns)
        self.results = results[0]

    def match(self, topic: str | bytes, *, syntax: str = "amqp") -> tuple:
        """The distinct ids of the filters that match, ascending."""
        cdef uint32_t number = take_syntax(syntax)
        cdef Results results
        cdef size_t i
        cdef object id
        cdef tuple found
        self._check_out(&results)
        try:
            self._collect(topic, number, False, &results, None)
            if results_ids(&self.heap, &results, &self.texts, 0) < 0:
                raise MemoryError()
            found = PyTuple_New(results.ids.size)
            for i in range(results.ids.size):
                id = PyLong_FromUnsignedLong(results.ids.items[i])
                Py_INCREF(id)
                PyTuple_SET_ITEM(found, i, id)
            return found
        finally:
            self._check_in(&results)

    def match_any(self, topic: str | bytes, *, syntax: str = "amqp") -> bool:
        """Whether any filter matches; stops at the first."""
        cdef uint32_t number = take_syntax(syntax)
        cdef Results results
        self._check_out(&results)
        try:
            self._collect(topic, number, True, &results, None)
            return results.texts.size != 0
        finally:
            self._check_in(&results)

    def match_many(self, topics, *, syntax: str = "amqp") -> tuple:
        """(offsets, ids): numpy int64 of len(topics) + 1, and uint32; row i is ids[offsets[i]:offsets[i+1]].

        `topics` is any iterable of str and bytes. The first invalid one raises InvalidTopic, whose
        `row` is its index. The GIL is held for the whole of it: give some thousands at a time.
        """
        cdef uint32_t number = take_syntax(syntax)
        cdef Results results
        cdef tuple rows
        cdef Py_ssize_t i
        if isinstance(topics, (str, bytes)):
            raise TypeError(f"match_many takes several topics, not one {type(topics).__name__}")
        rows = tuple(topics)
        offsets = numpy.zeros(len(rows) + 1, dtype=numpy.int64)
        cdef long long[::1] ends = offsets
        memset(&results, 0, sizeof(Results))  # its own: the answer may be long, and is not kept
        try:
            for i in range(len(rows)):
                self._collect(rows[i], number, False, &results, i)
                if results_ids(&self.heap, &results, &self.texts, results.ids.size) < 0:
                    raise MemoryError()
                ends[i + 1] = <long long> results.ids.size
            ids = numpy.empty(results.ids.size, dtype=numpy.uint32)
            self._copy_out(ids, &results)
            return offsets, ids
        finally:
            results_free(&self.heap, &results)
            if self.columns.capacity > KEPT_IDS:
                numbers_free(&self.heap, &self.columns)

    cdef int _copy_out(self, object array, const Results* results) except -1:
        cdef unsigned int[::1] into = array
        if results.ids.size != 0:
            memcpy(&into[0], results.ids.items, results.ids.size * sizeof(uint32_t))
        return 0

    # ---- looking in -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of (filter, syntax, id) held."""
        return <Py_ssize_t> self.texts.pairs

    @property
    def nbytes(self) -> int:
        """Bytes held, all told: tables, texts, rows, scratch and this object, as asked of malloc."""
        return self.heap.bytes + <size_t> FilterIndex.__basicsize__

    def filters(self):
        """Iterates over (filter, syntax, id), in no promised order; RuntimeError if the index changes."""
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
                    raise RuntimeError("the FilterIndex changed while its filters were iterated over")
                j += 1
            i += 1

    def matching(self, topic: str | bytes, *, syntax: str = "amqp") -> list:
        """[(filter, syntax, id), ...] of the filters that match: what `explain` explains."""
        cdef uint32_t number = take_syntax(syntax)
        cdef Results results
        cdef uint64_t version = self.version
        cdef list found = []
        cdef size_t i
        cdef uint32_t j, text
        memset(&results, 0, sizeof(Results))
        try:
            self._collect(topic, number, False, &results, None)
            for i in range(results.texts.size):
                text = results.texts.items[i]
                j = 0
                while self.version == version and j < self.texts.entries[text].count:
                    found.append((
                        text_object(&self.texts.entries[text]),
                        syntax_name(self.texts.entries[text].syntax),
                        text_ids(&self.texts.entries[text])[j],
                    ))
                    j += 1
            if self.version != version:
                raise RuntimeError("the FilterIndex changed while its matches were collected")
            return found
        finally:
            results_free(&self.heap, &results)

    def explain(self, topic: str | bytes, *, syntax: str = "amqp") -> list:
        """For each (filter, id) that matches, which rows decided: a list of matchcore.Explanation."""
        from matchcore.explain import explain
        return [explain(*held, topic, syntax) for held in self.matching(topic, syntax=syntax)]

    def _fail_after(self, allocations: int) -> None:
        """For tests: so many more growths of memory succeed, then none; -1: all."""
        self.heap.allowance = allocations
