# Searches behind key words: see keyed.pyx.
#
#     KeyedSearch   keys    [ text, bits, 0 places, number of the word | ... ]      one block: records, then the bytes
#                   places  [ 2, 1 word | ... ]                                     they refer to, in the order of the
#                   words   [ text | ... ]                                          keys; it is `inside` if it is small
#                   text    1k04k1alice
#     KeyedIndex    searches   what each of TOGETHER texts needs while it is searched for

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.filters cimport FilterIndex
from matchcore.key_texts cimport PackedKey, PackedPlace, PackedWord
from matchcore.syntax cimport Fault
from matchcore.topic cimport Topic

cdef enum:
    TOGETHER = 4  # keys of one topic that are searched for in turn, a step of each; few have more
    INSIDE = 20  # 8 bytes of keys that lie in the search itself, beside its fields, and not elsewhere in memory


cdef struct KeyedScratch:
    Topic topic
    Numbers found


cdef class IdAnswers:
    cdef:
        uint64_t* items
        size_t size

        int check(self, size_t id) except -1


cdef class KeyedIndex:
    cdef:
        FilterIndex index
        public IdAnswers answers
        dict bits
        dict others
        Allocator allocator
        KeyedScratch[TOGETHER] searches
        uint32_t made      # of which there is a topic
        Fault fault        # of the last topic that was invalid
        bytes wrong        # and the key and the topic

        int least(
            self, KeyedSearch search, const uint32_t* chosen, uint32_t count, const char* topic, size_t size,
            uint32_t syntax, int64_t* least
        ) except -1
        int least_singly(
            self, KeyedSearch search, const uint32_t* chosen, uint32_t count, const char* topic, size_t size,
            uint32_t syntax, int64_t* least
        ) except -1
        void look_at(self, uint32_t i, int64_t* least) noexcept


cdef class KeyedSearch:
    cdef:
        KeyedIndex index
        PackedKey* keys    # NULL: it was not begun
        uint64_t version   # of the index, in which the keys were looked up
        uint32_t count
        const PackedPlace* places
        const PackedWord* words
        const char* text
        uint64_t[INSIDE] inside

        void drop(self) noexcept
        int find(self, const char* topic, size_t size, uint32_t syntax, uint32_t bits, int64_t* least) except -1
        void look_up(self) noexcept
        bint counts_for(
            self, const PackedKey* key, const PackedPlace** place, const PackedWord** word, const char* topic,
            size_t size, char separator, uint32_t bits
        ) noexcept
