# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""RuleTable: what a RuleIndex holds, and how it is asked. Drawn in rule_table.pxd, the search in rule_search.pxd.

Threads: every change is made at once while the GIL is held, and so is every search but those of rule_rows.pyx, for
which changes wait. Where Python code runs before (a
selector is compiled, a fact is read) another thread, or a finalizer, may come in between: so a search begins again if
the rules have changed since.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

from matchcore.access cimport (
    ALONE, access_forget, access_free, access_init, access_put, access_put_key, access_take, access_take_key,
    access_tidy,
)
from matchcore.allocator cimport allocate, deallocate, reallocate
from matchcore.compilation cimport compile_draft, draft_forget
from matchcore.draft cimport draft_done, draft_of
from matchcore.fields cimport MESSAGE_WORDS, WORDS_AT_MOST
from matchcore.filters cimport FilterIndex
from matchcore.program cimport program_bytes, program_holds, program_release
from matchcore.rule_search cimport IN_THE_REST, REST_TAG, UNDER_KEYS, rules_find, salt_of
from matchcore.table cimport NONE
from matchcore.values cimport ordered_float

import sys

from matchcore.kleene import attribute_of, with_topic
from matchcore.rule_text import packed
from matchcore.where import MAX_TEXT_BYTES, parse_where

__all__ = ["RuleTable"]

cdef enum:
    TRIES = 100           # of a search while other threads, or the fact, change the rules
    KNOWN_AT_MOST = 4_096  # keys of facts

cdef size_t ALL = <size_t> -1


@cython.final
cdef class RuleTable:
    """Rules by salience, and of equals in the order in which they were inserted."""

    def __cinit__(self, max_words: int, max_bytes: int):
        self.allocator.allowance = -1
        access_init(&self.access, &self.allocator)
        self.attributes = Attributes()
        self.filters = RuleFilters(max_words, max_bytes)
        self.free = NONE
        self.results, self.names, self.slots, self.trees, self.known = [], {}, {}, {}, {}

    def __dealloc__(self) -> None:
        cdef uint32_t slot
        for slot in range(self.count):
            if self.records[slot].program != NULL:  # its attributes are numbers of this table alone: they go with it
                deallocate(&self.allocator, self.records[slot].program, bytes_of_rule(self.records[slot].program))
        access_free(&self.access)
        deallocate(&self.allocator, self.ranks, self.capacity * sizeof(Rank))
        deallocate(&self.allocator, self.records, self.capacity * sizeof(RuleRecord))

    # ---- changing -------------------------------------------------------------------------------

    def insert(self, selector, result, salience: float, name, topic, syntax, is_read: bool) -> Rule:
        """All or nothing. Raises InvalidFilter, MemoryError; OverflowError after 2^32 - 1 rules.

        `is_read`: the selector was read from a text, so that its own text gives it back.
        """
        cdef Glance glance
        cdef Rank rank
        cdef Rule made = Rule.__new__(Rule)
        cdef SelectorDraft draft
        cdef uint32_t slot
        tree, text = _kept(selector, is_read)
        draft = draft_of(selector)
        rank.order = ordered_float(salience)
        cdef unsigned long held = (<FilterIndex> self.filters.index)._hold()
        try:
            rank.filter = self.filters.acquire(topic, syntax)
        except BaseException:
            (<FilterIndex> self.filters.index)._let_go(held)
            raise
        try:
            if self.next >= NONE:
                raise OverflowError("no number is left for a rule")
            rank.number = <uint32_t> self.next
            self.results.append(None)  # room for one more
            try:
                compile_draft(draft, self.attributes, &self.access, &glance)
                slot = self._add(draft, text, &glance, &rank)
                if slot == NONE:
                    draft_forget(draft, self.attributes, &self.access)
                    raise MemoryError()
            except BaseException:
                self.results.pop()
                raise
        except BaseException:
            self.filters.release(rank.filter)
            raise
        finally:
            (<FilterIndex> self.filters.index)._let_go(held)
        self.next += 1
        self.version += 1
        self.results[slot] = result
        if slot + 1 < len(self.results):
            self.results.pop()
        if tree is not None:
            self.trees[slot] = tree
        if name is not None:
            self.names[slot] = name
            self.slots[name] = slot
        self._fill(made, slot)
        draft_done(draft)
        return made

    cdef uint32_t _add(self, SelectorDraft draft, bytes text, const Glance* glance, const Rank* rank) noexcept:
        """Its slot; NONE: no memory."""
        cdef const Program* program = <const Program*> draft.program
        cdef uint32_t text_size = <uint32_t> len(text)
        cdef size_t program_size = program_bytes(program)
        cdef size_t size = program_size + sizeof(uint32_t) + text_size
        cdef char* block = <char*> allocate(&self.allocator, size)
        cdef char* at = block
        cdef uint32_t slot
        cdef int done
        if block == NULL or self._reserve() < 0:
            deallocate(&self.allocator, block, size)
            return NONE
        slot = self.free if self.free != NONE else self.count
        if self.free != NONE:
            self.free = self.ranks[slot].number
        else:
            self.count += 1
        self.ranks[slot] = rank[0]
        self.access.ranks = self.ranks
        if draft.is_keyed:
            done = access_put(&self.access, program, slot, salt_of(rank.filter))
        else:
            done = access_put_key(&self.access, REST_TAG ^ salt_of(rank.filter), slot)
        if done < 0:
            self.ranks[slot].number = self.free
            self.records[slot].program = NULL
            self.free = slot
            deallocate(&self.allocator, block, size)
            return NONE
        memcpy(at, program, program_size)
        at += program_size
        memcpy(at, &text_size, sizeof(uint32_t))
        memcpy(at + sizeof(uint32_t), <const char*> text, text_size)
        self.records[slot].program = <Program*> block
        self.records[slot].glance = glance[0]
        self.records[slot].place = UNDER_KEYS if draft.is_keyed else IN_THE_REST
        self.live += 1
        return slot

    cdef int _reserve(self) noexcept:
        """Room for one slot more. -1: no memory."""
        cdef uint32_t capacity
        cdef Rank* ranks
        cdef RuleRecord* records
        if self.free != NONE or self.count < self.capacity:
            return 0
        if self.count == ALONE:  # beyond which the keys cannot name a slot
            return -1
        capacity = self.capacity + self.capacity // 8 + 8
        ranks = <Rank*> reallocate(
            &self.allocator, self.ranks, self.capacity * sizeof(Rank), capacity * sizeof(Rank)
        )
        if ranks == NULL:
            return -1
        self.ranks = ranks
        self.access.ranks = ranks
        records = <RuleRecord*> reallocate(
            &self.allocator, self.records, self.capacity * sizeof(RuleRecord), capacity * sizeof(RuleRecord)
        )
        if records == NULL:
            # The ranks go back to the size that is known; making them smaller does not fail.
            self.ranks = <Rank*> reallocate(
                &self.allocator, ranks, capacity * sizeof(Rank), self.capacity * sizeof(Rank)
            )
            self.access.ranks = self.ranks
            return -1
        self.records = records
        self.capacity = capacity
        return 0

    def remove(self, rule: Rule) -> bool:
        """Whether it was there. Never needs memory."""
        cdef Rule gone = rule
        cdef uint32_t filter
        cdef unsigned long held = (<FilterIndex> self.filters.index)._hold()
        if gone.table is not self or not self.has(gone):
            (<FilterIndex> self.filters.index)._let_go(held)
            return False
        filter = self.ranks[gone.slot].filter
        self._drop(gone.slot)
        (<FilterIndex> self.filters.index)._let_go(held)
        kept = self.results[gone.slot], self.names.pop(gone.slot, None), self.trees.pop(gone.slot, None)
        if kept[1] is not None:
            self.slots.pop(kept[1], None)
        self.results[gone.slot] = None
        if self.live == 0:
            self.results.clear()
        self.filters.release(filter)
        return kept is not None  # only now may the objects be freed, which may run Python code

    cdef void _drop(self, uint32_t slot) noexcept:
        cdef Program* program = self.records[slot].program
        cdef uint32_t salt = salt_of(self.ranks[slot].filter)
        if self.records[slot].place == UNDER_KEYS:
            access_take(&self.access, program, slot, salt)
        else:
            access_take_key(&self.access, REST_TAG ^ salt, slot)
        access_forget(&self.access, program)
        access_tidy(&self.access)
        program_release(program, self.attributes)
        deallocate(&self.allocator, program, bytes_of_rule(program))
        self.records[slot].program = NULL
        self.ranks[slot].number = self.free
        self.free = slot
        self.live -= 1
        self.version += 1
        if self.live == 0:
            access_free(&self.access)
            access_init(&self.access, &self.allocator)
            deallocate(&self.allocator, self.ranks, self.capacity * sizeof(Rank))
            deallocate(&self.allocator, self.records, self.capacity * sizeof(RuleRecord))
            self.ranks, self.records, self.free = NULL, NULL, NONE
            self.count = self.capacity = 0

    # ---- asking ---------------------------------------------------------------------------------

    cdef int _look_up(self) except -1:
        """What is known of attributes, if these have changed."""
        cdef int n
        if self.changes == self.attributes.changes and len(self.known) < KNOWN_AT_MOST:
            return 0
        self.known = {}
        self.changes = self.attributes.changes
        self.asks_for_topic = self.attributes.message(MESSAGE_WORDS) >= 0
        for n in range(1, WORDS_AT_MOST + 1):
            if self.attributes.word(n) >= 0:
                self.asks_for_topic = True
        return 0

    cdef int _load(self, Fields fields, object fact) except -1:
        """As `Fields.load`, with what is known of the keys."""
        fields.clear()
        fields.texts = []
        known = self.known
        for key, value in fact.items():
            number = known.get(key)
            if number is None:
                number = known[key] = self.attributes.number(attribute_of(key) if isinstance(key, str) else key)
            if number >= 0:
                fields._load(number, value)
        return 0

    cdef Scratch _search(self, object fact, object topic, object syntax, size_t most):
        """With what was found. Until it is given back, and while the version is the same, the slots are these."""
        cdef Scratch scratch = self.scratch
        cdef uint64_t version
        self.scratch = None
        if scratch is None:
            scratch = Scratch(self.attributes)
        for _ in range(TRIES):
            version = self.version
            self._look_up()
            self.filters.match(topic, syntax, &scratch.allocator, &scratch.filters)
            self._load(
                scratch.fields,
                with_topic(fact, self.filters.words(topic, syntax)) if self.asks_for_topic else fact,
            )
            if self.version == version:
                break
        else:
            raise RuntimeError("the RuleIndex changed again and again while the fact was read")
        if rules_find(&self.access, self.records, scratch, most) < 0:
            raise MemoryError()
        return scratch

    cdef int _fill(self, Rule rule, uint32_t slot) except -1:
        """Runs no Python code, and makes nothing that the garbage collector looks at."""
        cdef const Program* program = self.records[slot].program
        cdef const uint32_t* behind = <const uint32_t*> program + program_bytes(program) // sizeof(uint32_t)
        cdef uint64_t bits = self.ranks[slot].order
        bits = bits ^ (<uint64_t> 1 << 63) if bits >> 63 else ~bits
        memcpy(&rule.order, &bits, 8)
        rule.table = self
        rule.number = self.ranks[slot].number
        rule.slot = slot
        rule.result = self.results[slot]
        rule.name = self.names.get(slot) if self.names else None
        rule.filter = None if self.ranks[slot].filter == NONE else self.filters.texts[self.ranks[slot].filter]
        if behind[0] == 0:
            rule.where = self.trees[slot]
        else:
            rule.where = PyBytes_FromStringAndSize(<const char*> (behind + 1), behind[0])
        return 0

    def first(self, fact, topic, syntax) -> Rule | None:
        cdef Rule rule = Rule.__new__(Rule)  # before the search: garbage may be collected here
        cdef Scratch scratch = self._search(fact, topic, syntax, 1)
        if scratch.found.size == 0:
            rule = None
        else:
            self._fill(rule, scratch.found.items[0])
        self.scratch = scratch
        return rule

    def first_of_each(self, facts, topics, syntax) -> list:
        """`first` of several, with a topic each; a rule that wins more than once is one object."""
        cdef list found = []
        cdef dict met = {}
        cdef Rule rule
        for fact, topic in zip(facts, topics, strict=True):
            rule = self.first(fact, topic, syntax)
            found.append(None if rule is None else met.setdefault(rule.number, rule))
        return found

    def matches(self, fact, topic, syntax) -> list:
        """By salience."""
        cdef Scratch scratch
        cdef uint64_t version
        cdef size_t i
        cdef list rules
        for _ in range(TRIES):
            scratch = self._search(fact, topic, syntax, ALL)
            version = self.version
            rules = [Rule.__new__(Rule) for _ in range(scratch.found.size)]
            if self.version == version:
                break
        else:
            raise RuntimeError("the RuleIndex changed again and again while its matches were collected")
        for i in range(scratch.found.size):
            self._fill(<Rule> rules[i], scratch.found.items[i])
        self.scratch = scratch
        return rules

    def count_of(self, fact, topic, syntax) -> int:
        cdef Scratch scratch = self._search(fact, topic, syntax, ALL)
        self.scratch = scratch
        return scratch.found.size

    def values(self, fact, topic, syntax) -> object:
        """The fact, with what the words of its topic say."""
        return with_topic(fact, self.filters.words(topic, syntax))

    # ---- looking in -----------------------------------------------------------------------------

    def has(self, rule: Rule) -> bool:
        """Whether it is one of these, and still there."""
        cdef Rule asked = rule
        cdef bint may_be = asked.table is self and asked.slot < self.count
        return may_be and self.records[asked.slot].program != NULL and self.ranks[asked.slot].number == asked.number

    def named(self, name: str) -> Rule | None:
        """The rule that has the name."""
        cdef Rule rule = Rule.__new__(Rule)  # before the look-up: garbage may be collected here
        slot = self.slots.get(name)
        if slot is None:
            return None
        self._fill(rule, slot)
        return rule

    def rules(self) -> list:
        """All, by salience."""
        cdef uint64_t version
        cdef list ordered, rules
        cdef uint32_t slot
        for _ in range(TRIES):
            version = self.version
            ordered = []
            slot = 0
            while slot < self.count:  # which may change: garbage may be collected here
                if self.records[slot].program != NULL:
                    ordered.append((self.ranks[slot].order, self.ranks[slot].number, slot))
                slot += 1
            ordered.sort()
            rules = [Rule.__new__(Rule) for _ in ordered]
            if self.version == version:
                for rule, (_, _, slot) in zip(rules, ordered):
                    self._fill(rule, slot)
                return rules
        raise RuntimeError("the RuleIndex changed again and again while its rules were collected")

    def __len__(self) -> int:
        return self.live

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without names, results and what a search needs."""
        held = sum([sys.getsizeof(each) for each in (self.results, self.names, self.slots, self.trees)])
        native = self.allocator.bytes + <size_t> type(self).__basicsize__
        return native + held + self.filters.nbytes + self.attributes.nbytes

    def _loaded(self, facts) -> list:
        """For benches: the facts as `_ask` and `_ask_list` take them; void when the rules change."""
        cdef list loaded = []
        for fact in facts:
            self.scratch = None
            loaded.append(self._search(fact, "", "amqp", ALL))
        return loaded

    def _ask(self, loaded, first_only: bool) -> int:
        """For benches: how many rules are found."""
        cdef size_t most = 1 if first_only else ALL
        cdef size_t found = 0
        cdef Scratch scratch
        for scratch in loaded:
            if rules_find(&self.access, self.records, scratch, most) < 0:
                raise MemoryError()
            found += scratch.found.size
        return found

    def _ask_list(self, loaded, rules: bytes) -> list:
        """For benches: which of these rules (`_listed`) is the first that is true, one after another; -1: none is."""
        cdef const uint32_t* slots = <const uint32_t*> <const char*> rules
        cdef size_t count = len(rules) // 4
        cdef size_t i
        cdef Scratch scratch
        cdef list found = []
        for scratch in loaded:
            i = 0
            while i < count and not program_holds(self.records[slots[i]].program, scratch.fields.at):
                i += 1
            found.append(self.ranks[slots[i]].number if i < count else -1)
        return found

    def _listed(self, rules) -> bytes:
        return b"".join([(<uint32_t> (<Rule> rule).slot).to_bytes(4, sys.byteorder) for rule in rules])

    def _looked_at(self, fact, topic, first_only: bool) -> int:
        """For tests: how many rules a search looks at; one under several keys as often as it comes up."""
        cdef Scratch scratch = self._search(fact, topic, "amqp", 1 if first_only else ALL)
        self.scratch = scratch
        return scratch.looked_at

    def _fail_after(self, allocations: int) -> None:
        """For tests: the next `allocations` growths of memory succeed, then none; -1: all."""
        self.allocator.allowance = allocations


cdef tuple _kept(object selector, bint is_read):
    """(tree, packed text): one of the two."""
    text = str(selector)
    if len(text) * 4 > MAX_TEXT_BYTES and len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        return selector, b""
    if not is_read:
        try:
            is_read = parse_where(text) == selector
        except ValueError:
            is_read = False
    return (None, packed(text)) if is_read else (selector, b"")
