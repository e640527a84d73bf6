# What the compiled contenders share. A subclass says how a filter is added and dropped, and what a topic finds:
#
#     insert/remove(text, id) --split--> words with their kinds --> add / drop
#     match(topic), bench(topics)  ------------ text ------------> find --> ids into a Found
#
# `find` may give an id more than once (when several of its filters match) and in any order, as the published
# systems do; `match` sorts and drops the doubles, so that its answer is matchcore's.

from libc.stdint cimport uint32_t

from fanlight_matchers.text cimport Word

cdef enum Outcome:
    UNKNOWN = 0    # nothing to do: it is there already, or is not there
    DONE = 1
    NO_MEMORY = -1
    UNABLE = -2    # a filter this contender cannot hold


cdef struct Found:
    uint32_t* ids
    size_t count
    size_t room
    bint lost      # there was no memory for an id


cdef inline void emit(Found* found, uint32_t id) noexcept nogil:
    if found.count == found.room and not found_grow(found):
        return
    found.ids[found.count] = id
    found.count += 1


cdef bint found_grow(Found* found) noexcept nogil


# Room for this many more; False: no memory.
cdef inline bint found_room(Found* found, size_t more) noexcept nogil:
    while found.room - found.count < more:
        if not found_grow(found):
            return False
    return True


cdef class Contender:
    cdef:
        readonly str syntax
        unsigned char separator
        bint mqtt
        size_t taken   # bytes
        void* lock     # NULL: one thread at a time, or none is needed

        int add(self, const Word* words, int count, uint32_t id) noexcept nogil
        int drop(self, const Word* words, int count, uint32_t id) noexcept nogil
        void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil
        bint find_among_readers(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil
        void find_locked(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil
        int add_locked(self, const Word* words, int count, uint32_t id) noexcept nogil
        int drop_locked(self, const Word* words, int count, uint32_t id) noexcept nogil
        int cut_topic(self, const unsigned char* topic, size_t size, Word* words) noexcept nogil
        int cut_filter(self, const unsigned char* text, size_t size, Word* words) noexcept nogil
