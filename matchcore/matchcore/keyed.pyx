# cython: language_level=3
"""A topic behind key words: one call for what would be a search, a tuple and a comparison for each of them.

An index whose filters stand behind key words (`key/site/+/temp`) is many tables in one. Who asks several of them for
one topic, and needs only the smallest id of all, asks here.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

from matchcore.classes cimport classes_hit
from matchcore.filters cimport INVALID, NO_MEMORY, FilterIndex
from matchcore.slots cimport slot_ids
from matchcore.syntax cimport Fault, View, separator_of, syntax_of, topic_error
from matchcore.table cimport NONE

__all__ = ["least_id"]

cdef enum:
    SHORT_BYTES = 1024  # of a key and a topic that are put together on the stack
    NOTHING = -1        # no id


def least_id(FilterIndex index not None, tuple keys not None, bytes topic not None, str syntax not None,
             tuple named not None=()):
    """The smallest id under a filter that matches `key + topic`, for any of the keys; None: there is none.

    A key ends in the separator of the syntax. Ids with a selector are left out. Raises InvalidTopic as `match` does,
    with the key before the topic.

    named  further keys that count for some topics alone, each with its places: (key, ((place, words), ...)). In each
           place of the topic, from 1, or from -1 for its last word, one of the words must stand
    """
    cdef uint32_t number = syntax_of(syntax)
    cdef char separator = separator_of(number)
    cdef int64_t least = NOTHING
    cdef bytes key
    cdef tuple places
    for key in keys:
        least = least_behind(index, key, topic, number, least)
    for key, places in named:
        if has_words(topic, separator, places):
            least = least_behind(index, key, topic, number, least)
    return None if least == NOTHING else least


cdef int64_t least_behind(FilterIndex index, bytes key, bytes topic, uint32_t number, int64_t least) except -2:
    """The smallest id of one key, or `least` if that is smaller; NOTHING: no id."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(topic), key_size
    cdef char[SHORT_BYTES] short
    cdef uint32_t hit
    cdef const uint32_t* ids
    cdef size_t i, count
    cdef bytes whole
    cdef Fault fault
    cdef View view
    cdef int status
    if key is None:
        raise TypeError("a key is bytes")
    key_size = PyBytes_GET_SIZE(key)
    view.is_str = False
    view.size = key_size + size
    if view.size <= SHORT_BYTES:
        memcpy(short, PyBytes_AS_STRING(key), key_size)
        memcpy(short + key_size, PyBytes_AS_STRING(topic), size)
        view.start = short
    else:
        whole = key + topic
        view.start = PyBytes_AS_STRING(whole)
    status = index.find(&view, number, False, &index.topic, &index.allocator, &index.results.slots, &fault, &hit)
    if status == INVALID:
        raise topic_error(&view, number, &index.limits, &fault, None)
    if status == NO_MEMORY:
        raise MemoryError()
    if hit != NONE:
        classes_hit(&index.tiers.classes, hit)
    for i in range(index.results.slots.size):
        ids = slot_ids(&index.slots, index.results.slots.items[i], &count)
        if least == NOTHING or ids[0] < least:  # they are ascending
            least = ids[0]
    return least


cdef bint has_words(bytes topic, char separator, tuple places) except -1:
    """Does one of the words of each place stand there? Not if the topic has fewer words."""
    cdef const char* at
    cdef Py_ssize_t size
    cdef Py_ssize_t place
    cdef tuple words
    cdef bytes word
    for place, words in places:
        if words is None or not word_at(topic, separator, place, &at, &size):
            return False
        for word in words:
            if word is not None and PyBytes_GET_SIZE(word) == size and memcmp(PyBytes_AS_STRING(word), at, size) == 0:
                break
        else:
            return False
    return True


cdef bint word_at(bytes topic, char separator, Py_ssize_t place, const char** at, Py_ssize_t* size) noexcept:
    """Where the word in a place is, from 1, or from -1 at the end. False: the topic has fewer words."""
    cdef const char* start = PyBytes_AS_STRING(topic)
    cdef const char* end = start + PyBytes_GET_SIZE(topic)
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
