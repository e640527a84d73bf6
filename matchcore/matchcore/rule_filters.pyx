# cython: language_level=3, annotation_typing=False
# cython: binding=False
"""RuleFilters: the topic filters of rules, by numbers. Drawn in rule_filters.pxd."""

cimport cython

from matchcore.allocator cimport numbers_push
from matchcore.table cimport NONE

import sys

from matchcore.filters import FilterIndex
from matchcore.grammar import split_topic


@cython.final
cdef class RuleFilters:
    """The filters of one RuleTable. Two threads may insert one filter at a time: it then has two numbers."""

    def __cinit__(self, int max_words, int max_bytes):
        self.limits = {"max_words": max_words, "max_bytes": max_bytes}
        self.index = FilterIndex(max_words, max_bytes)
        self.texts, self.holders, self.free, self.numbers = [], [], [], {}

    cdef uint32_t acquire(self, object topic, object syntax) except? 0xFFFFFFFE:
        if topic is None:
            return NONE
        key = (str.encode(topic) if isinstance(topic, str) else bytes(topic)), str(syntax)
        number = self.numbers.get(key)
        if number is None:
            if self.free:
                number = self.free.pop()
            else:
                number = len(self.texts)
                self.texts.append(None)
                self.holders.append(0)
            try:
                self.index.insert(topic, number, syntax=syntax)
            except BaseException:
                self.free.append(number)
                raise
            self.texts[number] = topic, key[1]
            self.numbers[key] = number
        self.holders[number] += 1
        return number

    cdef int release(self, uint32_t number) except -1:
        if number == NONE:
            return 0
        self.holders[number] -= 1
        if self.holders[number] == 0:
            topic, syntax = self.texts[number]
            key = (str.encode(topic) if isinstance(topic, str) else bytes(topic)), syntax
            self.index.remove(topic, number, syntax=syntax)
            if self.numbers.get(key) == number:
                del self.numbers[key]
            self.texts[number] = None
            self.free.append(number)
        return 0

    cdef int match(self, object topic, object syntax, Allocator* allocator, Numbers* found) except -1:
        cdef int done
        found.size = 0
        done = numbers_push(allocator, found, NONE)
        if self.numbers or not isinstance(topic, str) or topic != "" or syntax != "amqp":
            for number in self.index.match(topic, syntax=syntax):
                done |= numbers_push(allocator, found, number)
        if done < 0:
            raise MemoryError()
        return 0

    cdef tuple words(self, object topic, object syntax):
        return split_topic(topic, syntax, **self.limits)

    @property
    def nbytes(self) -> int:
        """Bytes of memory: about 300 beside the index for each filter."""
        texts = sum([sys.getsizeof(key[0]) + sys.getsizeof(key) + 100 for key in self.numbers])
        held = sys.getsizeof(self.texts) + sys.getsizeof(self.holders) + sys.getsizeof(self.numbers)
        return self.index.nbytes + texts + held
