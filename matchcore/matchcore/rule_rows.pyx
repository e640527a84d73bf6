# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The rules that win of many facts in columns, found without the GIL.

    columns  ->  row by row: Fields  ->  rules_find  ->  the slot that wins      without the GIL
    topics   ->  FilterIndex.match_many  ->  the filters of each row             before that, without the GIL, too

A search reads the table as it is, so changes wait: `insert` and `remove` hold the filters' index (filter_table.pxd),
which waits for searches without the GIL, and makes those that begin meanwhile keep it.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint32_t, uint64_t

from matchcore.allocator cimport numbers_push
from matchcore.columns cimport Columns, take_columns
from matchcore.filters cimport FilterIndex
from matchcore.rule cimport Rule
from matchcore.rule_search cimport Scratch, rules_find
from matchcore.rule_table cimport RuleTable
from matchcore.table cimport NONE

__all__ = ["first_of_columns"]

cdef enum:
    TRIES = 100  # while other threads, or what makes the columns, change the rules


cdef int _find(
    RuleTable table, Columns columns, Scratch scratch, const int64_t* ends, const uint32_t* filters, uint32_t* out
) noexcept nogil:
    """The slot that wins of each row, or NONE. ends: of the rows in `filters`; NULL: no row has a filter."""
    cdef Py_ssize_t row
    cdef int64_t i
    columns.rewind()
    for row in range(columns.rows):
        columns.read(row, scratch.fields)
        scratch.filters.size = 0
        if numbers_push(&scratch.allocator, &scratch.filters, NONE) < 0:
            return -1
        if ends != NULL:
            for i in range(ends[row], ends[row + 1]):
                if numbers_push(&scratch.allocator, &scratch.filters, filters[i]) < 0:
                    return -1
        if rules_find(&table.access, table.records, scratch, 1) < 0:
            return -1
        out[row] = NONE if scratch.found.size == 0 else scratch.found.items[0]
    return 0


cdef list _rules(RuleTable table, uint64_t version, const uint32_t* slots, Py_ssize_t rows):
    """The rules in these slots, each one object; None: the table has changed meanwhile."""
    cdef dict made = {}
    cdef Py_ssize_t row
    for row in range(rows):
        if slots[row] != NONE and slots[row] not in made:
            made[slots[row]] = Rule.__new__(Rule)
    found = [made[slots[row]] if slots[row] != NONE else None for row in range(rows)]
    filled = list(made.items())
    if table.version != version:  # garbage may have been collected
        return None
    for slot, rule in filled:
        table._fill(<Rule> rule, slot)
    return found


def first_of_columns(table, facts, rows, topics, syntax) -> list | None:
    """`first` of each row of the columns `facts`; None where a rule asks for a word of the topic: not from here.

    Raises TypeError, ValueError of columns (columns.pyx) and of topics that are not one a row; InvalidTopic.
    """
    cdef RuleTable asked = table
    cdef FilterIndex index = asked.filters.index
    cdef Columns columns = take_columns(facts, rows)
    cdef Scratch scratch = Scratch(asked.attributes)
    cdef const int64_t[::1] ends
    cdef const uint32_t[::1] filters
    cdef const int64_t* end = NULL
    cdef const uint32_t* filter = NULL
    cdef uint32_t* slots = <uint32_t*> PyMem_Malloc((columns.rows + 1) * sizeof(uint32_t))
    cdef uint64_t version
    cdef int status
    if slots == NULL:
        raise MemoryError()
    try:
        given = None if topics is None else list(topics)
        if given is not None and len(given) != columns.rows:
            raise ValueError(f"{columns.rows} facts and {len(given)} topics")
        for _ in range(TRIES):
            version = asked.version
            asked._look_up()
            if asked.asks_for_topic:
                return None
            if given is not None:
                ends, filters = index.match_many(given, syntax=syntax)
                end = &ends[0]
                filter = &filters[0] if len(filters) else NULL
            columns.number(asked.attributes)
            index._threads_that_are()
            if asked.version != version:
                continue
            if index.writers != 0:  # somebody waits to change the rules, or does
                status = _find(asked, columns, scratch, end, filter, slots)
            else:
                index._begin_reading()
                try:
                    with nogil:
                        status = _find(asked, columns, scratch, end, filter, slots)
                finally:
                    index._end_reading()
            if status < 0:
                raise MemoryError()
            found = _rules(asked, version, slots, columns.rows)
            if found is not None:
                return found
        raise RuntimeError("the RuleIndex changed again and again while the facts were read")
    finally:
        PyMem_Free(slots)
