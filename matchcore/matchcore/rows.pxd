# The screens of many rows, asked without the GIL: what match_many does for an index with selectors.
#
#     row 0   screens 4, 7    columns -> Fields -> ids    \
#     row 1   screen 4                                     > with the ids that have no selector: ascending, each once
#     row 2   none            not read                    /

from libc.stdint cimport int32_t, uint32_t, uint64_t

from matchcore.columns cimport Columns
from matchcore.fields cimport WORDS_AT_MOST, Fields
from matchcore.row_selector cimport RowSelector
from matchcore.screen cimport IdList
from matchcore.selecting cimport Selecting
from matchcore.syntax cimport View


cdef class ScreenRows(RowSelector):
    cdef:
        Selecting selecting
        Columns columns
        Fields fields
        IdList found
        uint64_t changes       # of the attributes, when they were looked up
        int tries
        int32_t words          # number of `$words`, -1: no selector asks for it
        int32_t[WORDS_AT_MOST + 1] word_numbers
        int words_asked        # highest n of a `$word[n]` that is asked for, 0 none

    cdef int _read_topic(self, const View* view, uint32_t syntax) except -1 nogil
