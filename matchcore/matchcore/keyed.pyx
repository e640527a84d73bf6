# cython: language_level=3
"""A topic behind key words: one call for what would be a search, a tuple and a comparison for each of them.

An index whose filters stand behind key words (`key/site/+/temp`) is many tables in one. Who asks several of them for
one topic, and needs only the smallest id of all, asks here.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from matchcore.classes cimport classes_hit
from matchcore.filters cimport INVALID, NO_MEMORY, FilterIndex
from matchcore.slots cimport slot_ids
from matchcore.syntax cimport Fault, View, syntax_of, topic_error
from matchcore.table cimport NONE

__all__ = ["least_id"]

cdef enum:
    SHORT_BYTES = 1024  # of a key and a topic that are put together on the stack


def least_id(FilterIndex index not None, tuple keys not None, bytes topic not None, str syntax not None):
    """The smallest id under a filter that matches `key + topic`, for any of the keys; None: there is none.

    A key ends in the separator of the syntax. Ids with a selector are left out. Raises InvalidTopic as `match` does,
    with the key before the topic.
    """
    cdef uint32_t number = syntax_of(syntax)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(topic), key_size
    cdef char[SHORT_BYTES] short
    cdef uint32_t hit, least = NONE
    cdef bint any_found = False
    cdef const uint32_t* ids
    cdef size_t i, count
    cdef bytes key, whole
    cdef Fault fault
    cdef View view
    cdef int status
    view.is_str = False
    for each in keys:
        key = each
        key_size = PyBytes_GET_SIZE(key)
        view.size = key_size + size
        if view.size <= SHORT_BYTES:
            memcpy(short, PyBytes_AS_STRING(key), key_size)
            memcpy(short + key_size, PyBytes_AS_STRING(topic), size)
            view.start = short
        else:
            whole = key + topic
            view.start = PyBytes_AS_STRING(whole)
        status = index.find(
            &view, number, False, &index.topic, &index.allocator, &index.results.slots, &fault, &hit
        )
        if status == INVALID:
            raise topic_error(&view, number, &index.limits, &fault, None)
        if status == NO_MEMORY:
            raise MemoryError()
        if hit != NONE:
            classes_hit(&index.tiers.classes, hit)
        for i in range(index.results.slots.size):
            ids = slot_ids(&index.slots, index.results.slots.items[i], &count)
            if not any_found or ids[0] < least:  # they are ascending
                any_found, least = True, ids[0]
    return least if any_found else None
