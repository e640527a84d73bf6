# Keys as searches have them packed (keyed.pyx), and topics behind them.

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy

from matchcore.scan cimport hash_text, separators
from matchcore.syntax cimport View, separator_of
from matchcore.topic cimport Topic, bloom_bit
from matchcore.verify cimport occurrences_forget
from matchcore.words cimport Word, Words

cdef enum:
    STOPS = 128         # separators that are found while a text is hashed


cdef struct PackedWord:
    uint32_t at
    uint32_t size


cdef struct PackedPlace:
    int32_t place     # in the topic, from 1; from -1 at its end
    uint32_t words    # of which one must stand there


cdef struct PackedKey:
    uint32_t at
    uint32_t size
    uint32_t bits
    uint32_t places
    uint32_t word     # its number in the dictionary, in one version of the index
    uint32_t row      # and where its rows were: they are asked for ahead of time


# The words of a topic behind a key.
cdef inline void behind_key(
    Topic* topic, const Topic* bare, const Words* words, const PackedKey* key, const char* text
) noexcept:
    cdef const Word* word = &words.entries[key.word]
    cdef uint32_t i
    topic.count = bare.count + 1
    occurrences_forget(topic.occurrences)
    topic.bloom = bare.bloom | bloom_bit(key.word)
    topic.dollar = key.size != 0 and text[key.at] == c"$"
    topic.ids[0] = key.word
    topic.positions[0] = word.positions
    topic.rows[0] = word.rows
    if topic.ids + 1 != bare.ids:
        for i in range(bare.count):
            topic.ids[i + 1] = bare.ids[i]
            topic.positions[i + 1] = bare.positions[i]
            topic.rows[i + 1] = bare.rows[i]


# Of a text of several words.
cdef inline uint64_t hash_of(const View* view, char separator, const uint64_t* secret) noexcept:
    cdef uint32_t[STOPS] stops
    cdef uint64_t hash
    if separators(view.start, view.size, separator, False, stops, STOPS, secret, &hash) >= 0:
        return hash
    return hash_text(view.start, view.size, separator, secret)  # it has more words


# A topic behind a key, as a text.
cdef inline void put_together(
    View* view, char* room, const PackedKey* key, const char* text, const char* topic, size_t size, uint32_t syntax
) noexcept:
    memcpy(room, text + key.at, key.size)
    room[key.size] = separator_of(syntax)
    memcpy(room + key.size + 1, topic, size)
    view.start, view.size, view.is_str = room, key.size + 1 + size, False


# Where the word in a place is, from 1, or from -1 at the end. False: the topic has fewer words.
cdef inline bint word_at(
    const char* start, size_t length, char separator, Py_ssize_t place, const char** at, Py_ssize_t* size
) noexcept:
    cdef const char* end = start + length
    cdef const char* stop
    if start == end or place == 0:
        return False
    if place > 0:
        while True:
            stop = <const char*> memchr(start, separator, end - start)
            place -= 1
            if place == 0:
                at[0] = start
                size[0] = (end if stop is NULL else stop) - start
                return True
            if stop is NULL:
                return False
            start = stop + 1
    while True:
        stop = end
        while stop > start and stop[-1] != separator:
            stop -= 1
        place += 1
        if place == 0:
            at[0] = stop
            size[0] = end - stop
            return True
        if stop == start:
            return False
        end = stop - 1
