# cython: language_level=3, cdivision=True
"""What a match costs in C: a FilterIndex asked in a loop that does not enter Python.

The topics are copied end to end first, as a broker's buffer has them; answered are the slots that match,
unsorted, into a buffer that is there. Times are of this thread's CPU, but for `spread_ns`, which times single
matches by the wall clock, whose reading is the only one cheap enough, and keeps the least of each.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from matchcore.allocator cimport Allocator, Numbers, numbers_free
from matchcore.filters cimport MATCHED, FilterIndex
from matchcore.frozen_write cimport Draft, draft_copy, draft_free
from matchcore.syntax cimport Fault, View, take_syntax
from matchcore.topic cimport Topic, topic_free, topic_init
from matchcore.topics cimport Topics, take_topics

import numpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    static int64_t bench_ns(clockid_t clock) {
        struct timespec now;
        clock_gettime(clock, &now);
        return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
    }
    #define bench_now() bench_ns(CLOCK_THREAD_CPUTIME_ID)
    #define bench_tick() bench_ns(CLOCK_MONOTONIC)
    """
    int64_t now "bench_now" () noexcept nogil
    int64_t tick "bench_tick" () noexcept nogil

cdef enum:
    OUT = 64     # filters that `mix` keeps out of the index
    TURN = 128   # operations of `mix` between two offers of the GIL


cdef class _Asked:
    """The topics of a measurement, and all that a search of them needs."""

    cdef:
        FilterIndex index
        Topics given
        Topic topic
        Allocator allocator
        Numbers found
        uint32_t syntax

    def __cinit__(self, FilterIndex index, topics, str syntax):
        texts = [text.encode() if isinstance(text, str) else text for text in topics]
        offsets = numpy.cumsum([0, *map(len, texts)], dtype=numpy.int64)
        self.index = index
        self.syntax = take_syntax(syntax)
        self.given = take_topics(b"".join(texts), offsets, self.syntax)
        self.allocator.bytes = 0
        self.allocator.allowance = -1
        memset(&self.found, 0, sizeof(Numbers))
        if topic_init(&self.topic, &self.allocator, index.limits.words) < 0:
            raise MemoryError()

    def __dealloc__(self):
        topic_free(&self.topic, &self.allocator)
        numbers_free(&self.allocator, &self.found)

    cdef int find(self, Py_ssize_t i, bint first_only) except -1 nogil:
        cdef Fault fault
        cdef View view = self.given.at(i)
        cdef uint32_t hit
        if self.index.find(
            &view, self.syntax, first_only, &self.topic, &self.allocator, &self.found, &fault, &hit
        ) != MATCHED:
            raise ValueError(f"topic {i} cannot be matched")
        return 0


def match_ns(FilterIndex index, topics, *, syntax: str = "amqp", passes: int = 5, any: bool = False) -> tuple:
    """(ns per topic of the quickest pass, slots found per topic)."""
    cdef _Asked asked = _Asked(index, topics, syntax)
    cdef bint first_only = any
    cdef Py_ssize_t i, count = asked.given.count
    cdef int64_t start, spent, best = -1
    cdef uint64_t slots = 0
    for _ in range(passes):
        slots = 0
        start = now()
        for i in range(count):
            asked.find(i, first_only)
            slots += asked.found.size
        spent = now() - start
        if best < 0 or spent < best:
            best = spent
    return best / <double> count, slots / <double> count


def spread_ns(FilterIndex index, topics, *, syntax: str = "amqp", passes: int = 9) -> object:
    """ns of each topic, the least of the passes over all of them, without the reading of the clock; numpy int64."""
    cdef _Asked asked = _Asked(index, topics, syntax)
    least = numpy.full(asked.given.count, 2**62, dtype=numpy.int64)
    cdef long long[::1] into = least
    cdef Py_ssize_t i
    cdef int64_t start, spent, idle = 1 << 62
    for _ in range(passes):
        for i in range(asked.given.count):
            start = tick()
            spent = tick() - start
            idle = min(idle, spent)
            start = tick()
            asked.find(i, False)
            spent = tick() - start
            into[i] = min(into[i], spent)
    return numpy.maximum(least - idle, 0)


def mix(
    FilterIndex index, topics, list filters, ids, *, reads: int, operations: int, seed: int = 1, part: int = 0,
    parts: int = 1, syntax: str = "amqp",
) -> float:
    """ns an operation, as the contenders' `mix` has them: `reads` of 1,000 are matches, in C; the others are
    removals and inserts of this part's filters, as Python calls them. The GIL, which makes each of them atomic,
    is offered to other threads from time to time.
    """
    cdef _Asked asked = _Asked(index, topics, syntax)
    cdef Py_ssize_t first = len(filters) * part // parts, mine = len(filters) * (part + 1) // parts - first
    cdef uint64_t dice = (<uint64_t> seed * <uint64_t> 0x9E3779B97F4A7C15) | 1
    cdef Py_ssize_t chosen, step, removed = 0, back = 0, total = operations
    cdef Py_ssize_t[OUT] out
    cdef int share = reads
    cdef int64_t start, spent = 0
    if share < 1_000 and mine <= 2 * OUT:
        raise ValueError(f"{mine} filters to change; it takes more than {2 * OUT}")
    start = now()
    for step in range(total):
        if step % TURN == 0:
            with nogil:
                pass
        dice ^= dice << 13
        dice ^= dice >> 7
        dice ^= dice << 17
        if <int> ((dice >> 32) % 1000) < share:
            asked.find(<Py_ssize_t> (<uint32_t> dice % <size_t> asked.given.count), False)
        elif removed - back < OUT // 2 or (removed - back < OUT and (removed + back) % 2 == 0):
            chosen = first + <Py_ssize_t> (<uint32_t> dice % <size_t> mine)
            if index.remove(filters[chosen], ids[chosen], syntax=syntax):
                out[removed % OUT] = chosen
                removed += 1
        else:
            chosen = out[back % OUT]
            index.insert(filters[chosen], ids[chosen], syntax=syntax)
            back += 1
    spent = now() - start
    while back < removed:
        chosen = out[back % OUT]
        index.insert(filters[chosen], ids[chosen], syntax=syntax)
        back += 1
    return spent / <double> max(total, 1)


def nothing(topic, *, syntax="amqp") -> None:
    """The floor of a call from Python."""


def held_ns(FilterIndex index, *, passes: int = 5) -> float:
    """ns for which a freeze holds the index: the copying of its bytes, the quickest of several passes."""
    cdef int rounds = passes
    cdef int64_t start, spent
    cdef int64_t best = -1
    cdef int status = 0
    cdef Allocator allocator
    cdef Draft draft
    allocator.bytes = 0
    allocator.allowance = -1
    for _ in range(rounds):
        memset(&draft, 0, sizeof(Draft))
        draft.allocator = &allocator
        draft.slots = &index.slots
        draft.tiers = &index.tiers
        draft.limits = index.limits
        start = now()
        status = draft_copy(&draft)
        spent = now() - start
        if status < 0:
            raise MemoryError()
        if best < 0 or spent < best:
            best = spent
        draft_free(&draft)
    return best
