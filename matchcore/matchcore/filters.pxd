# FilterIndex: topic filters in, a topic name asked, ids out.
#
#     topic text --scan--> words, hashed
#        |                    |
#        |  hash of all       |  each word: dictionary -> id, positions, rows
#        v                    +------------------+
#     Slots (exact tier)    Pool (dense tier)    Buckets (under the class bitmap)
#        |                    |  columns           |  records
#        +------> slots <-----+--------------------+
#                   |
#                Results: their ids, ascending, each once
#
# A filter is in exactly one tier: without wildcards in the exact tier; tiers.pxd has the rule for the others.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.filter_table cimport FilterTable
from matchcore.probe cimport Batch
from matchcore.results cimport Results
from matchcore.row_selector cimport RowSelector, RowsFound
from matchcore.syntax cimport Fault, View
from matchcore.topic cimport Topic
from matchcore.topics cimport Topics

cdef enum:
    MATCHED = 0
    INVALID = -1     # and the Fault says why
    NO_MEMORY = -2


cdef enum:
    TOGETHER = 8     # topics of one match_many that are searched for in turn, a step of each: see probe.pxd


# What one of them needs meanwhile.
cdef struct Search:
    View view
    Topic topic
    Batch batch
    Numbers found


cdef class FilterIndex(FilterTable):
    cdef:
        Results results       # scratch: checked out while Python builds an answer

        # The slots that match, unsorted and each once, into `found`; with `first_only` at most one or two. It
        # reads the index and writes to the arguments alone: without the GIL it may run in several threads,
        # each with a Topic and a Allocator of its own, while nobody changes the index.
        int find(
            self, const View* view, uint32_t syntax, bint first_only, Topic* topic, Allocator* allocator,
            Numbers* found, Fault* fault, uint32_t* hit
        ) noexcept nogil
        int _collect(self, object topic, uint32_t syntax, bint first_only, Results* results) except -1
        int _read_topic(self, const View* view, uint32_t syntax, Topic* topic, Fault* fault) noexcept nogil
        int _others(
            self, const View* view, uint32_t syntax, Topic* topic, Allocator* allocator, Numbers* found
        ) noexcept nogil
        int _exact(
            self, const View* view, uint32_t syntax, uint64_t hash, Allocator* allocator, Numbers* found
        ) noexcept nogil
        int _match_rows(
            self, Topics given, uint32_t syntax, Allocator* allocator, Results* results, long long* ends, Fault* fault,
            Py_ssize_t* row
        ) noexcept nogil
        int _match_together(
            self, Topics given, uint32_t syntax, Allocator* allocator, Results* results, long long* ends, Fault* fault,
            Py_ssize_t* row, Search* searches, Py_ssize_t count
        ) noexcept nogil
        int _select_rows(
            self, FilterIndex filters, Topics given, uint32_t syntax, RowSelector rows, Allocator* allocator,
            RowsFound* found, Fault* fault, Py_ssize_t* row
        ) except? -3 nogil
        int _raise_of(
            self, int status, Topics given, uint32_t number, const Fault* fault, Py_ssize_t row
        ) except -1
        object _copied(self, const Results* results)
        void _check_out(self, Results* results) noexcept nogil
        void _check_in(self, Results* results) noexcept nogil
        tuple _when_selected(self, object topic, object fields, object syntax, bint first_only)
        tuple _match_many(self, Topics given, uint32_t number)
        tuple _match_selected(self, Topics given, uint32_t number, object fields)
        list _matching(self, object topic, object syntax)


# A whole match for compiled code that does not share these layouts, by the capsule of `FilterIndex.find_ids`. `index`
# is a FilterIndex, borrowed; `syntax` is 0 (amqp) or 1 (mqtt). MATCHED: its ids, ascending and each once, which the
# next call of whatever kind overwrites. Else INVALID (`match` says why) or NO_MEMORY. The caller has the GIL. Ids
# with a selector are left out.
cdef int find_ids(
    void* index, const char* topic, size_t size, uint32_t syntax, const uint32_t** ids, size_t* count
) noexcept
