# cython: language_level=3
"""Changes of the subscriptions since a route was last used. Drawn in changes.pxd."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memchr, memcmp

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.target cimport Target

cdef enum:
    WORD_BITS = 23           # 2^23 bits, 1 MiB, of which only what is used is touched


cdef inline Py_ssize_t end_of(const char* text, Py_ssize_t at, Py_ssize_t size, char separator) noexcept nogil:
    """Where the word that begins at `at` ends."""
    cdef const void* found = memchr(text + at, separator, size - at)
    return <const char*> found - text if found is not NULL else size


cdef inline uint64_t hash_of_word(const char* word, Py_ssize_t size, Py_ssize_t position) noexcept nogil:
    """Anybody may make collisions: they make the words say yes too often, which costs time and nothing else."""
    cdef uint64_t mixed = <uint64_t> 0xCBF29CE484222325 ^ <uint64_t> position * <uint64_t> 0x9E3779B97F4A7C15
    cdef Py_ssize_t i
    for i in range(size):
        mixed = (mixed ^ <unsigned char> word[i]) * <uint64_t> 0x100000001B3
    return (mixed * <uint64_t> 0x9E3779B97F4A7C15) >> (64 - WORD_BITS)


cdef bint matches(
    const char* filter, Py_ssize_t filter_size, const Spelling* spelling, const char* topic, Py_ssize_t size,
    char separator
) noexcept nogil:
    """Does a filter match a topic? `#` takes as few words as it can, and one more where that does not lead on: only the
    last one so far needs to be tried again, so the time is at most the product of the two sizes.
    """
    cdef Py_ssize_t at = 0 if filter_size else 1, place = 0 if size else 1    # no octets are no words
    cdef Py_ssize_t again = -1, taken = 0, end, topic_end
    if spelling.hides and size and topic[0] == c"$" and filter_size and (filter[0] == c"#" or (
            filter[0] == spelling.one and (filter_size == 1 or filter[1] == spelling.separator))):
        return False
    while True:
        if at <= filter_size:
            end = end_of(filter, at, filter_size, spelling.separator)
            if end - at == 1 and filter[at] == c"#":
                at = end + 1
                if at > filter_size:
                    return True
                again, taken = at, place
                continue
            if place <= size:
                topic_end = end_of(topic, place, size, separator)
                if (end - at == 1 and filter[at] == spelling.one) or (
                        end - at == topic_end - place and memcmp(filter + at, topic + place, end - at) == 0):
                    at, place = end + 1, topic_end + 1
                    continue
        elif place > size:
            return True
        if again < 0 or taken > size:
            return False
        taken = end_of(topic, taken, size, separator) + 1
        at, place = again, taken


@cython.no_gc
cdef class RouteChange:
    """One change: what it is about, and what has become of it since."""


cdef class RouteChanges:
    """separators, ones: an octet for each syntax, by its number. hides: whether `$` is hidden from wildcards."""

    def __cinit__(self, bytes separators not None, bytes ones not None, tuple hides not None):
        cdef int syntax
        for syntax in range(2):
            self.spellings[syntax].separator = PyBytes_AS_STRING(separators)[syntax]
            self.spellings[syntax].one = PyBytes_AS_STRING(ones)[syntax]
            self.spellings[syntax].hides = hides[syntax]
        self.last = unseen([None] * CHANGES)

    def __dealloc__(self):
        deallocate(self.words)

    cdef int know(self, unsigned char syntax, const char* topic, Py_ssize_t size) except -1:
        """A topic is cached from now on."""
        cdef Py_ssize_t at = 0 if size else 1, end, position = 0
        cdef uint64_t bit
        if self.words is NULL:
            self.words = <uint64_t*> allocate_zeros(1 << (WORD_BITS - 6), sizeof(uint64_t))
            if self.words is NULL:
                raise MemoryError()
        while at <= size:
            end = end_of(topic, at, size, self.spellings[syntax].separator)
            bit = hash_of_word(topic + at, end - at, position)
            self.words[bit >> 6] |= <uint64_t> 1 << (bit & 63)
            position += 1
            at = end + 1
        return 0

    cdef bint concerns(self, unsigned char syntax, bytes filter) noexcept:
        """May a filter match a cached topic? False: no cached topic has one of its words at its place."""
        cdef const char* text = PyBytes_AS_STRING(filter)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(filter), at = 0 if size else 1, end, position = 0
        cdef const Spelling* spelling = &self.spellings[syntax]
        cdef uint64_t bit
        if self.words is NULL:
            return False
        while at <= size:
            end = end_of(text, at, size, spelling.separator)
            if end - at == 1 and text[at] == c"#":
                return True
            if end - at != 1 or text[at] != spelling.one:
                bit = hash_of_word(text + at, end - at, position)
                if not self.words[bit >> 6] >> (bit & 63) & 1:
                    return False
            position += 1
            at = end + 1
        return True

    cdef bint note(self, int kind, bytes filter, unsigned char syntax, Target target) except -1:
        """A change is in force. False: it concerns no cached topic."""
        cdef RouteChange change, before
        if not self.concerns(syntax, filter):
            return False
        change = RouteChange.__new__(RouteChange)
        change.kind, change.filter, change.syntax, change.target = kind, filter, syntax, target
        if kind == REMOVED:
            for found in self.last:
                before = <RouteChange> found
                if before is not None and before.target is target and before.kind == ADDED and not before.undone:
                    before.undone = True
                    change.added = before.generation
        self.generation += 1
        change.generation = self.generation
        self.last[self.generation % CHANGES] = change
        return True

    cdef bint reaches(self, RouteChange change, unsigned char syntax, const char* topic, Py_ssize_t size) noexcept:
        """Is it about this topic?"""
        return matches(PyBytes_AS_STRING(change.filter), PyBytes_GET_SIZE(change.filter),
                       &self.spellings[change.syntax], topic, size, self.spellings[syntax].separator)

    cdef int forget(self, uint64_t generation) except -1:
        """Every route has seen the changes up to this one: drop them, and what they refer to."""
        cdef RouteChange change
        cdef Py_ssize_t i
        for i in range(CHANGES):
            change = <RouteChange> self.last[i]
            if change is not None and change.generation <= generation:
                self.last[i] = None
        return 0
