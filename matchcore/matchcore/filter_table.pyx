# cython: language_level=3, annotation_typing=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The filters an index holds: inserted, removed, looked at. What asks them is FilterIndex.

The invariants, as the design has them (and the files that keep each):

    I1  a filter is in one tier, and in the buckets in one bucket, whose key is some of its literals [tiers, buckets]
    I2  for a bucket's key literal the word's row has the class's bit, and the length row has it for all lengths
        its records take [classes]
    I3  rows may say too much, never too little [classes]
    I4  a record is reported only after all that is not in its key was checked, and the key's words [probe]
    I5  a slot is reported once a match: each key is probed once, each distinct word anywhere [probe]
    I6  the word is known for each position a record may check, not only for those of keys [probe]
    I7  a word id is given again when no filter has the word: then no row, count or key names it [words]
    I8  a bucket has at most SPLIT records, but for those that have no further literal [buckets]
    I9  the pool: a bit is set just where the filter has the literal, free rows where it has none [pool]
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
    PyThread_type_lock, WAIT_LOCK,
)

from matchcore.allocator cimport deallocate, allocate
from matchcore.buckets cimport buckets_locate
from matchcore.classes cimport KEY_LITERALS
from matchcore.hashing cimport hash_secret, hash_word
from matchcore.ids cimport take_id
from matchcore.keys cimport Key, Pattern, pattern_of
from matchcore.positions cimport NO_DOLLAR, TOKEN_MANY, TOKEN_ONE, TOKEN_WILD
from matchcore.scan cimport hash_text
from matchcore.slots cimport (
    SLOT_FREE, SLOT_MQTT, TIER_EXACT, TIER_POOL, slot_ids, slot_object, slot_text, slots_add, slots_add_id,
    slots_drop, slots_drop_id, slots_find, slots_free, slots_has_id, slots_init,
)
from matchcore.syntax cimport (
    AMQP, Fault, LITERAL, MQTT, ONE, Token, View, canonical, filter_error, scan_filter, separator_of, syntax_name,
    syntax_of, take_limits, view_of,
)
from matchcore.table cimport NONE
from matchcore.tiers cimport tiers_add, tiers_free, tiers_init, tiers_remove
from matchcore.topic cimport topic_free, topic_init
from matchcore.words cimport OTHER, words_find, words_intern, words_release

cdef enum:
    TOGETHER_FROM = 1 << 16  # filters: from here on they are not in the processor's caches

cdef const uint64_t* secret = hash_secret()

cdef unsigned long forks = 0  # of this process from its ancestors


def _forked() -> None:
    global forks
    forks += 1


os.register_at_fork(after_in_child=_forked)


cdef class FilterTable:
    """Not for itself: FilterIndex is made of it."""

    def __cinit__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        self.allocator.allowance = -1
        slots_init(&self.slots, &self.allocator)
        tiers_init(&self.tiers, &self.allocator, &self.slots)
        take_limits(max_words, max_bytes, &self.limits)
        self.together_from = TOGETHER_FROM
        self.gate = <void*> PyThread_allocate_lock()
        self.forks = forks
        self.word_ids = <uint32_t*> allocate(&self.allocator, self.limits.words * sizeof(uint32_t))
        if self.gate == NULL or self.word_ids == NULL:
            raise MemoryError()
        if topic_init(&self.topic, &self.allocator, self.limits.words) < 0:
            raise MemoryError()

    def __dealloc__(self) -> None:
        tiers_free(&self.tiers)
        slots_free(&self.slots)
        topic_free(&self.topic, &self.allocator)
        deallocate(&self.allocator, self.word_ids, self.limits.words * sizeof(uint32_t))
        if self.gate != NULL:
            PyThread_free_lock(<PyThread_type_lock> self.gate)

    # ---- changing -------------------------------------------------------------------------------

    def insert(self, filter: str | bytes, id: int, *, where=None, syntax: str = "amqp") -> bool:
        """True if (filter, syntax, id) is new. All or nothing: on MemoryError the index is unchanged.

        `where` (text, dict or tree) is a selector: the id is matched by messages of which it is true, too. An id has
        one selector under a filter, or none: the later replaces the earlier, and then it is True as well.
        """
        cdef uint32_t number = syntax_of(syntax)
        cdef uint32_t who = take_id(id)
        if where is not None:
            return self._insert_where(filter, who, where, number)
        if self.selecting is None:
            return self._insert(filter, who, number)
        return self._insert_plain(filter, who, number)

    def check(self, filter: str | bytes, *, syntax: str = "amqp") -> None:
        """Raises InvalidFilter where `insert` would, and does nothing else."""
        cdef View view
        cdef uint64_t hash
        self._read(filter, syntax_of(syntax), &view, &hash)

    cdef bint _insert_plain(self, object filter, uint32_t who, uint32_t number) except -1:
        """In place of one with a selector, if there is one: both in one step, so readers are waited for before."""
        cdef unsigned long held = self._hold()
        try:
            if not self._insert(filter, who, number):
                return False
            if self.selecting is not None:
                self._drop_where(filter, who, number)
            return True
        finally:
            self._let_go(held)

    cdef bint _insert(self, object filter, uint32_t who, uint32_t number) except -1:
        cdef View view
        cdef uint64_t hash
        cdef int count = self._read(filter, number, &view, &hash)
        cdef int added = self._put(&view, hash, count, who, number)
        if added < 0:
            raise MemoryError()
        return added == 1

    cdef int _put(self, const View* view, uint64_t hash, int count, uint32_t who, uint32_t number) noexcept nogil:
        """The filter whose tokens were read last: 1 if it is new, else 0; -1: no memory, and nothing has changed."""
        cdef uint32_t slot = slots_find(&self.slots, view.start, view.size, number, hash)
        cdef uint32_t flags = 0
        cdef bint is_exact = True
        cdef Token* tokens = self.topic.tokens
        cdef int i, added
        if slot != NONE:
            added = slots_add_id(&self.slots, slot, who)
            if added > 0:
                self.version += added
            return added
        for i in range(count):
            if tokens[i].kind != LITERAL:
                is_exact = False
        slot = slots_add(
            &self.slots, view.start, view.size, number, hash, view.is_str,
            TIER_EXACT if is_exact else TIER_POOL, who,
        )
        if slot == NONE:
            return -1
        if not is_exact:
            count = self._intern(count, &flags, number)
            if count < 0 or tiers_add(&self.tiers, slot, self.word_ids, count, flags) < 0:
                if count >= 0:
                    self._release(self.word_ids, count)
                slots_drop(&self.slots, slot, hash)
                return -1
        self.version += 1
        return 1

    cdef bint _insert_where(self, object filter, uint32_t who, object where, uint32_t number) except -1:
        cdef View view
        cdef uint64_t hash
        cdef object selecting
        cdef unsigned long held
        from matchcore.patterns import selector_of  # here: only selectors need it
        self._read(filter, number, &view, &hash)  # refused before the selector is read
        selector = selector_of(where)
        held = self._hold()  # in place of a plain one: both in one step, so readers are waited for before
        try:
            selecting = self._new_selecting() if self.selecting is None else self.selecting
            if self.selecting is not None:
                selecting = self.selecting  # which another thread may have made meanwhile
            if not selecting.insert(filter, who, selector, syntax_name(number)):
                return False
            self.selecting = selecting
            if not self._remove(filter, who, number):
                self.version += 1
            return True
        finally:
            self._let_go(held)

    cdef bint _drop_where(self, object filter, uint32_t who, uint32_t number) except -1:
        cdef object selecting = self.selecting
        if not selecting.remove(filter, who, syntax_name(number)):
            return False
        if len(selecting) == 0:
            self.selecting = None
        return True

    cdef object _new_selecting(self):
        raise TypeError("a FilterIndex has selectors, and this is none")

    cdef int _read(self, object filter, uint32_t syntax, View* view, uint64_t* hash) except -1:
        """A filter to insert or remove, into the tokens: how many they are. Nobody reads the index from here on."""
        cdef Fault fault
        cdef int count
        self._to_change()
        view_of(filter, view, syntax, True)
        count = scan_filter(view.start, view.size, syntax, &self.limits, self.topic.tokens, &fault)
        if count < 0:
            raise filter_error(view, syntax, &self.limits, &fault)
        hash[0] = hash_text(view.start, view.size, separator_of(syntax), secret)
        return count

    cdef int _canonical(self, int count, uint32_t* flags, uint32_t syntax) noexcept nogil:
        """The tokens made canonical, their wildcards in word_ids; how many they are now."""
        cdef Token* tokens = self.topic.tokens
        cdef int i
        if syntax == MQTT and tokens[0].kind != LITERAL:
            flags[0] = NO_DOLLAR
        count = canonical(tokens, count)
        for i in range(count):
            if tokens[i].kind != LITERAL:
                self.word_ids[i] = TOKEN_ONE if tokens[i].kind == ONE else TOKEN_MANY
        return count

    cdef int _intern(self, int count, uint32_t* flags, uint32_t syntax) noexcept nogil:
        """Fills word_ids with the canonical filter in the tokens; its length, -1: no memory."""
        cdef uint32_t* ids = self.word_ids
        cdef Token* tokens = self.topic.tokens
        cdef int i
        count = self._canonical(count, flags, syntax)
        for i in range(count):
            if tokens[i].kind == LITERAL:
                ids[i] = words_intern(&self.tiers.words, tokens[i].start, tokens[i].size, tokens[i].hash)
                if ids[i] == OTHER:
                    self._release(ids, i)
                    return -1
        return count

    cdef int _known(self, int count, uint32_t* flags, uint32_t syntax) noexcept nogil:
        """The same for a filter that is held: its words are in the dictionary."""
        cdef Token* tokens = self.topic.tokens
        cdef int i
        count = self._canonical(count, flags, syntax)
        for i in range(count):
            if tokens[i].kind == LITERAL:
                self.word_ids[i] = words_find(
                    &self.tiers.words, tokens[i].start, tokens[i].size, tokens[i].hash
                )
        return count

    cdef void _release(self, const uint32_t* ids, int count) noexcept nogil:
        cdef int i
        for i in range(count):
            if ids[i] < TOKEN_WILD:
                words_release(&self.tiers.words, ids[i])

    def remove(self, filter: str | bytes, id: int, *, syntax: str = "amqp") -> bool:
        """True if (filter, syntax, id) was there. Never needs memory."""
        cdef uint32_t number = syntax_of(syntax)
        cdef uint32_t who = take_id(id)
        if self._remove(filter, who, number):
            return True
        if self.selecting is None or not self._drop_where(filter, who, number):
            return False
        self.version += 1
        return True

    cdef bint _remove(self, object filter, uint32_t who, uint32_t number) except -1:
        cdef View view
        cdef uint32_t slot
        cdef uint32_t flags = 0
        cdef uint64_t hash
        cdef size_t held
        cdef int count = self._read(filter, number, &view, &hash)
        slot = slots_find(&self.slots, view.start, view.size, number, hash)
        if slot == NONE or not slots_has_id(&self.slots, slot, who):
            return False
        slot_ids(&self.slots, slot, &held)
        if held > 1:
            slots_drop_id(&self.slots, slot, who)
        else:
            if self.slots.entries[slot].tier != TIER_EXACT:
                count = self._known(count, &flags, number)
                tiers_remove(&self.tiers, slot, self.word_ids, count, flags)
                self._release(self.word_ids, count)
            slots_drop(&self.slots, slot, hash)
        self.version += 1
        return True

    cdef int _to_change(self) except -1:
        return self._wait_for_readers()

    cdef unsigned long _hold(self) except? 0xFFFFFFFF:
        """Waits until no match_many runs without the GIL, and makes those that begin keep it, until `_let_go`."""
        self._wait_for_readers()
        self.writers += 1
        return self.forks

    cdef void _let_go(self, unsigned long forks) noexcept:
        if self.forks == forks:  # else it was forgotten: see _threads_that_are
            self.writers -= 1

    cdef int _wait_for_readers(self) except -1:
        """Until no match_many runs without the GIL."""
        self._threads_that_are()
        while self.readers != 0:
            self.writers += 1
            with nogil:
                PyThread_acquire_lock(<PyThread_type_lock> self.gate, WAIT_LOCK)
                PyThread_release_lock(<PyThread_type_lock> self.gate)
            self.writers -= 1
        return 0

    cdef int _threads_that_are(self) except -1:
        """In a forked process there are no threads but one: whoever read or waited in the others will not end."""
        cdef void* gate
        if self.forks != forks:
            if self.readers != 0 or self.writers != 0:
                gate = <void*> PyThread_allocate_lock()
                if gate == NULL:
                    raise MemoryError()
                self.gate = gate  # what became of the old one in the fork nobody knows: it is left alone
                self.readers = self.writers = 0
            self.forks = forks
        return 0

    cdef void _begin_reading(self) noexcept:
        if self.readers == 0:
            PyThread_acquire_lock(<PyThread_type_lock> self.gate, WAIT_LOCK)
        self.readers += 1

    cdef void _end_reading(self) noexcept:
        self.readers -= 1
        if self.readers == 0:
            PyThread_release_lock(<PyThread_type_lock> self.gate)

    # ---- looking in -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of (filter, syntax, id) held."""
        return <Py_ssize_t> self.slots.pairs + (0 if self.selecting is None else len(self.selecting))

    @property
    def nbytes(self) -> int:
        """Bytes held in total: tables, texts, rows, scratch and this object, without malloc's own headers."""
        cdef size_t selecting = 0 if self.selecting is None else self.selecting.nbytes
        return self.allocator.bytes + <size_t> type(self).__basicsize__ + selecting

    # Where Python 3.11 makes a list, a dict or a tuple it may collect, and a finalizer may then ask or change the
    # index: so first all is read, into bytes at most, and then they are made.

    cdef list _triples(self, uint32_t slot, size_t most=<size_t> -1):
        cdef size_t count, i
        cdef const uint32_t* ids = slot_ids(&self.slots, slot, &count)
        count = min(count, most)
        cdef bytes kept = PyBytes_FromStringAndSize(<const char*> ids, <Py_ssize_t> (count * sizeof(uint32_t)))
        cdef object text = slot_object(&self.slots, slot)
        cdef object syntax = syntax_name(MQTT if self.slots.entries[slot].flags & SLOT_MQTT else AMQP)
        ids = <const uint32_t*> PyBytes_AS_STRING(kept)
        return [(text, syntax, ids[i]) for i in range(count)]

    def filters(self):
        """Iterates over (filter, syntax, id) of those without a selector, in no promised order.

        RuntimeError if the index changes.
        """
        cdef uint64_t version = self.version
        cdef uint32_t i = 0
        while i < self.slots.count:
            if not self.slots.entries[i].flags & SLOT_FREE:
                for held in self._triples(i):
                    if self.version != version:
                        raise RuntimeError("the FilterIndex changed while its filters were iterated over")
                    yield held
            if self.version != version:
                raise RuntimeError("the FilterIndex changed while its filters were iterated over")
            i += 1

    cdef tuple _whereabouts(self, uint32_t slot, uint64_t version):
        """("exact", ()), ("pool", ()) or ("buckets", ((position, word), ...)): the tier and the key."""
        cdef list words = [None] * KEY_LITERALS
        cdef uint32_t tier, syntax
        cdef uint32_t flags = 0
        cdef uint32_t block
        cdef Pattern pattern
        cdef Key key
        cdef Fault fault
        cdef View view
        cdef int count, i
        cdef uint32_t j
        cdef Token* token
        if self.version != version:
            raise RuntimeError("the FilterIndex changed while its matches were explained")
        tier = self.slots.entries[slot].tier
        syntax = MQTT if self.slots.entries[slot].flags & SLOT_MQTT else AMQP
        if tier == TIER_EXACT:
            return "exact", ()
        if tier == TIER_POOL:
            return "pool", ()
        view.start = slot_text(&self.slots, slot, &view.size)
        count = scan_filter(view.start, view.size, syntax, &self.limits, self.topic.tokens, &fault)
        if count < 0:
            raise filter_error(&view, syntax, &self.limits, &fault)
        for i in range(count):  # a frozen copy has a secret of its own
            token = &self.topic.tokens[i]
            token.hash = hash_word(self.tiers.secret, token.start, token.size)
        count = self._known(count, &flags, syntax)
        pattern_of(&pattern, &self.tiers.classes, slot, self.word_ids, count, flags)
        buckets_locate(&self.tiers.buckets, &pattern, tier, &key, &block)
        for i in range(count):
            token = &self.topic.tokens[i]
            for j in range(key.literals):
                if key.ids[j] == self.word_ids[i]:
                    words[j] = token.start[:token.size]
        return "buckets", tuple([(key.position[j], words[j]) for j in range(key.literals)])

    def _fail_after(self, allocations: int) -> None:
        """For tests: the next `allocations` growths of memory succeed, then none; -1: all."""
        self.allocator.allowance = allocations

    def _tune(
        self, *, split: int = 8, small: int = 1536, pool_least: int = 256, together: int = TOGETHER_FROM
    ) -> None:
        """For tests, of an empty index: the limits of buckets.pxd and tiers.pxd, so that few filters reach them."""
        if len(self):
            raise ValueError("only an empty index can be tuned")
        self.tiers.buckets.most = split
        self.tiers.small_most = self.tiers.review_at = small
        self.tiers.pool_least = pool_least
        self.together_from = together

    def _tiers(self) -> dict:
        """For tests and benches: what is where, and how many classes there are."""
        return {
            "exact": self.slots.exact,
            "pool": self.tiers.pool.live.bits,
            "buckets": self.tiers.buckets.records,
            "keys": self.tiers.buckets.live,
            "classes": self.tiers.classes.live,
            "words": self.tiers.words.live,
        }
