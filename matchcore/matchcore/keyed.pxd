# Searches behind key words: see keyed.pyx.
#
#     KeyedSearch   keys    [ text, bits, 0 places | ... ]               one block: records, then the bytes they
#                   places  [ 2, 1 word | ... ]                          refer to, in the order of the keys; it is
#                   words   [ text | ... ]                               `inside` if it is small
#                   text    1k0/4k1/alice
#     KeyedIndex    searches   what each of TOGETHER texts needs while it is searched for

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.filters cimport FilterIndex
from matchcore.syntax cimport View
from matchcore.topic cimport Topic

cdef enum:
    TOGETHER = 4  # keys of one topic that are searched for in turn, a step of each; few have more
    INSIDE = 16  # 8 bytes of keys that lie in the search itself, beside its fields, and not elsewhere in memory


cdef struct PackedWord:
    uint32_t at
    uint32_t size


cdef struct PackedPlace:
    int32_t place     # in the topic, from 1; from -1 at its end
    uint32_t words    # of which one must stand there


cdef struct PackedKey:
    PackedWord text
    uint32_t bits
    uint32_t places


cdef struct KeyedScratch:
    Topic topic
    Numbers found


cdef struct IdAnswer:
    uint64_t count
    PyObject* held     # owned; NULL: none


cdef class IdAnswers:
    cdef:
        IdAnswer* items
        size_t size
        uint32_t* kept     # ids that have an object
        uint32_t kept_count
        uint32_t kept_max

        int check(self, size_t id) except -1
        void drop(self) noexcept


cdef class KeyedIndex:
    cdef:
        FilterIndex index
        Allocator allocator
        KeyedScratch[TOGETHER] searches
        uint32_t made      # of which there is a topic

        int least(self, View* views, uint32_t count, uint32_t syntax, int64_t* least) except -1


cdef class KeyedSearch:
    cdef:
        KeyedIndex index
        uint32_t syntax
        uint32_t count
        PackedKey* keys
        const PackedPlace* places
        const PackedWord* words
        const char* text
        uint64_t[INSIDE] inside

        int find(self, const char* topic, size_t size, uint32_t bits, int64_t* least) except -1
        bint counts_for(
            self, const PackedKey* key, const PackedPlace** place, const PackedWord** word, const char* topic,
            size_t size, uint32_t bits
        ) noexcept
