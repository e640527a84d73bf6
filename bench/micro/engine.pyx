# cython: language_level=3, cdivision=True
"""What a match costs in C: a FilterIndex asked in a loop that does not enter Python.

The topics are copied end to end first, as a broker's buffer has them; answered are the slots that match,
unsorted, into a buffer that is there. Times are of this thread's CPU.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from matchcore.filters cimport MATCHED, FilterIndex
from matchcore.heap cimport Heap, Numbers, numbers_free
from matchcore.syntax cimport Fault, View, take_syntax
from matchcore.topic cimport Topic, topic_free, topic_init
from matchcore.topics cimport Topics, take_topics

import numpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    static int64_t bench_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
    }
    """
    int64_t now "bench_now" () noexcept nogil


def match_ns(FilterIndex index, topics, *, syntax: str = "amqp", passes: int = 5, any: bool = False) -> tuple:
    """(ns per topic of the quickest pass, slots found per topic)."""
    texts = [text.encode() if isinstance(text, str) else text for text in topics]
    offsets = numpy.cumsum([0, *map(len, texts)], dtype=numpy.int64)
    cdef uint32_t number = take_syntax(syntax)
    cdef Topics given = take_topics(b"".join(texts), offsets, number)
    cdef int rounds = passes
    cdef bint first_only = any
    cdef Topic topic
    cdef Heap heap
    cdef Numbers found
    cdef Fault fault
    cdef View view
    cdef uint32_t hit
    cdef int64_t start, spent
    cdef int64_t best = -1
    cdef uint64_t slots = 0
    cdef Py_ssize_t i
    cdef int status = MATCHED
    heap.bytes = 0
    heap.allowance = -1
    memset(&found, 0, sizeof(Numbers))
    if topic_init(&topic, &heap, index.limits.words) < 0:
        raise MemoryError()
    for _ in range(rounds):
        slots = 0
        start = now()
        for i in range(given.count):
            view = given.at(i)
            status = index.find(&view, number, first_only, &topic, &heap, &found, &fault, &hit)
            if status != MATCHED:
                break
            slots += found.size
        spent = now() - start
        if best < 0 or spent < best:
            best = spent
    topic_free(&topic, &heap)
    numbers_free(&heap, &found)
    if status != MATCHED:
        raise ValueError(f"topic {i} cannot be matched: {status}")
    return best / <double> given.count, slots / <double> given.count
