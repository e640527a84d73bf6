# cython: language_level=3, cdivision=True
"""A topic's text to word ids, in one pass. See reading.pxd; the grammar itself is syntax.pyx.

What is wrong with a topic is found out here and said there: an invalid one is scanned again, slowly.
"""

from matchcore.hashing cimport hash_long, hash_short, hash_word
from matchcore.scan cimport Tail, cut_word, hash_text, separators, tail_of
from matchcore.syntax cimport MQTT, scan_topic, separator_of
from matchcore.table cimport table_prefetch
from matchcore.topic cimport bloom_bit
from matchcore.verify cimport occurrences_forget
from matchcore.words cimport Word, words_expect, words_seek

cdef enum:
    WORDS = 128          # of a topic that is read at once


cdef int _slowly(
    Topic* topic, const Words* words, const uint64_t* secret, const char* text, size_t size, uint32_t syntax,
    const Limits* limits, Fault* fault
) noexcept nogil:
    cdef int count = scan_topic(text, size, syntax, limits, topic.tokens, fault)
    cdef int i
    if count < 0:
        return -1
    topic.count = count
    topic.bloom = 0
    occurrences_forget(topic.occurrences)
    topic.dollar = count != 0 and topic.tokens[0].size != 0 and text[0] == c"$"
    topic.hash = hash_text(text, size, separator_of(syntax), secret)
    if words != NULL:
        for i in range(count):
            # Under this secret: the scan hashes under that of the process.
            topic.tokens[i].hash = hash_word(secret, topic.tokens[i].start, topic.tokens[i].size)
            _look_up(
                topic, words, i, topic.tokens[i].start, topic.tokens[i].size, topic.tokens[i].hash,
                topic.tokens[i].low, topic.tokens[i].high,
            )
    return count


cdef inline void _look_up(
    Topic* topic, const Words* words, uint32_t i, const char* start, uint32_t size, uint64_t hash, uint64_t low,
    uint64_t high
) noexcept nogil:
    cdef uint32_t id = words_seek(words, start, size, hash, low, high)
    cdef const Word* word = &words.entries[id]
    topic.ids[i] = id
    topic.bloom |= bloom_bit(id)
    topic.positions[i] = word.positions
    topic.rows[i] = word.rows


cdef int topic_read(
    Topic* topic, const Words* words, const uint64_t* secret, const char* text, size_t size, uint32_t syntax,
    const Limits* limits, Fault* fault
) noexcept nogil:
    cdef uint32_t[WORDS] stops
    cdef uint64_t[WORDS] hashes
    cdef uint64_t[WORDS] lows
    cdef uint64_t[WORDS] highs
    cdef uint64_t hash, low, high
    cdef const char* start = text
    cdef const char* stop
    cdef uint32_t length
    cdef int count, i
    cdef Tail tail
    if size == 0 or size > limits.bytes:
        return _slowly(topic, words, secret, text, size, syntax, limits, fault)
    count = separators(
        text, size, separator_of(syntax), syntax == MQTT, stops,
        limits.words - 1 if limits.words < WORDS else WORDS - 1, secret, &topic.hash,
    )
    if count < 0:
        return _slowly(topic, words, secret, text, size, syntax, limits, fault)
    stops[count] = <uint32_t> size
    count += 1
    topic.count = count
    topic.bloom = 0
    occurrences_forget(topic.occurrences)
    topic.dollar = text[0] == c"$"
    if words == NULL:
        return count
    tail = tail_of(text, size)
    for i in range(count):
        stop = text + stops[i]
        length = <uint32_t> (stop - start)
        if length <= 16:
            cut_word(&tail, start, length, &low, &high)
            hash = hash_short(secret, low, high, length)
            lows[i] = low
            highs[i] = high
        else:
            hash = hash_long(secret, start, length)
            lows[i] = highs[i] = 0
        hashes[i] = hash
        table_prefetch(&words.table, <uint32_t> (hash >> 32))
        start = stop + 1
    for i in range(count):
        words_expect(words, hashes[i])
    start = text
    for i in range(count):
        stop = text + stops[i]
        _look_up(topic, words, i, start, <uint32_t> (stop - start), hashes[i], lows[i], highs[i])
        start = stop + 1
    return count
