# The rules of a RuleIndex: selectors in the order of their salience, with what each of them leads to.
#
#     ranks      [ salience, number, filter | ... ]      by slot: the order, and the topic filter (NONE: any topic)
#     records    [ program, glance | free | ... ]        by slot
#     access     which slots are under which keys (access.pxd), in the order of their ranks
#     results    [ any object | ... ]                    by slot
#
#     program    a block: the program, its access entries, the size of the selector as text, the text
#
# All filters share one table: the keys of a rule with a filter are salted with the filter's number. What has no cheap
# key is in a bucket of its own for each filter, the rest. So a fact is asked as follows (rule_search.pxd): each of its
# keys, for rules without a filter and for each filter that matches its topic; and the rest of each.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.access cimport Access, Rank
from matchcore.allocator cimport Allocator
from matchcore.draft cimport SelectorDraft
from matchcore.fields cimport Attributes, Fields
from matchcore.glance cimport Glance
from matchcore.program cimport Program, program_bytes
from matchcore.rule cimport Rule
from matchcore.rule_filters cimport RuleFilters
from matchcore.rule_search cimport RuleRecord, Scratch

cdef inline size_t bytes_of_rule(const Program* program) noexcept nogil:
    cdef size_t size = program_bytes(program)
    return size + sizeof(uint32_t) + (<const uint32_t*> program)[size // sizeof(uint32_t)]


cdef class RuleTable:
    cdef:
        readonly Attributes attributes
        Allocator allocator
        Access access
        Rank* ranks
        RuleRecord* records
        uint32_t count         # of slots ever used
        uint32_t capacity
        uint32_t free          # first free slot, NONE none
        uint32_t live
        uint64_t next          # number
        uint64_t version       # changes with each insert and removal
        list results
        dict names             # by slot, of the rules that have one
        dict slots             # by name
        dict trees             # by slot, of the selectors that no text gives back
        RuleFilters filters
        dict known             # key of a fact -> number of the attribute, -1 none: while `changes` are these
        uint64_t changes
        bint asks_for_topic    # some rule reads a word of the topic; as of `changes`
        Scratch scratch        # of one search, None while one is under way

    cdef uint32_t _add(self, SelectorDraft draft, bytes text, const Glance* glance, const Rank* rank) noexcept
    cdef int _reserve(self) noexcept
    cdef void _drop(self, uint32_t slot) noexcept
    cdef int _look_up(self) except -1
    cdef int _load(self, Fields fields, object fact) except -1
    cdef Scratch _search(self, object fact, object topic, object syntax, size_t most)
    cdef int _fill(self, Rule rule, uint32_t slot) except -1
