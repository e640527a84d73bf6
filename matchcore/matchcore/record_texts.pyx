# cython: language_level=3
"""Codes for texts, as they come: the first text that comes is 0, the next other one 1, and so on.

An open hash table of codes over an arena of the distinct texts. They come as Arrow has a column of them: the end of
each, and all in one piece. All memory is of this object: 4 bytes for each row, and 24 and its bytes for
each distinct text.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

import numpy

__all__ = ["TextCodes", "group_by_code"]

cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    value ^= value >> 32
    value *= <uint64_t> 0x9E3779B97F4A7C15
    return value ^ (value >> 29)


cdef inline uint32_t hash_of(const uint8_t* text, uint32_t size, uint64_t seed) noexcept nogil:
    cdef uint64_t hash = seed ^ size, word
    while size >= 8:
        memcpy(&word, text, 8)
        hash = mixed(hash ^ word)
        text += 8
        size -= 8
    word = 0
    while size:
        size -= 1
        word = word << 8 | text[size]
    return <uint32_t> (mixed(hash ^ word) >> 16)


cdef inline bint is_same(const uint8_t* one, const uint8_t* other, uint32_t size) noexcept nogil:
    cdef uint64_t a, b
    while size >= 8:
        memcpy(&a, one, 8)
        memcpy(&b, other, 8)
        if a != b:
            return False
        one += 8
        other += 8
        size -= 8
    while size:
        size -= 1
        if one[size] != other[size]:
            return False
    return True


cdef class TextCodes:
    """Collects a column. `rows`: how many texts came; `len` of it: how many distinct ones; `nbytes`."""

    def __cinit__(self, uint64_t seed=0):
        self.seed = seed
        self.mask = 255
        self.table = <uint32_t*> malloc(256 * sizeof(uint32_t))
        if self.table == NULL:
            raise MemoryError
        memset(self.table, 0xFF, 256 * sizeof(uint32_t))

    def __dealloc__(self):
        free(self.codes)
        free(self.texts)
        free(self.arena)
        free(self.table)

    def __len__(self):
        return self.count

    @property
    def nbytes(self):
        return 4 * self.row_room + sizeof(Text) * self.text_room + self.arena_room + 4 * (<uint64_t> self.mask + 1)

    def add(self, const int32_t[::1] ends, const uint8_t[::1] data, Py_ssize_t first=0, Py_ssize_t count=-1):
        """The texts first to first + count of a column: data[ends[i]:ends[i + 1]]. ValueError: they are outside."""
        cdef Py_ssize_t row, most = ends.shape[0] - 1
        if count < 0:
            count = most - first
        if first < 0 or first + count > most:
            raise ValueError(f"texts {first} to {first + count} of {most}")
        if count <= 0:
            return
        cdef const int32_t* end_of = &ends[0] + first
        cdef bint outside = end_of[0] < 0 or end_of[count] > data.shape[0]
        for row in range(count):
            outside |= end_of[row] > end_of[row + 1]
        if outside:
            raise ValueError("a text is outside")
        self._room_for_rows(count)
        self._add(end_of, count, &data[0] if data.shape[0] else NULL)

    cdef int _add(self, const int32_t* end_of, Py_ssize_t count, const uint8_t* data) except -1:
        cdef Py_ssize_t row
        cdef uint32_t* codes = self.codes + self.rows
        cdef uint32_t code, size, hash, at
        cdef const uint8_t* text
        cdef const Text* known
        for row in range(count):
            text = data + end_of[row]
            size = <uint32_t> (end_of[row + 1] - end_of[row])
            hash = hash_of(text, size, self.seed)
            at = hash & self.mask
            while True:
                code = self.table[at]
                if code == FREE:
                    code = self._insert(text, size, hash, at)
                    break
                known = &self.texts[code]
                if known.hash == hash and known.size == size and is_same(self.arena + known.at, text, size):
                    break
                at = (at + 1) & self.mask
            codes[row] = code
            self.rows += 1
        return 0

    def finish(self):
        """(codes, uint32; the distinct texts by their codes)."""
        cdef uint32_t code
        codes = numpy.empty(self.rows, numpy.uint32)
        cdef uint32_t[::1] view = codes
        if self.rows:
            memcpy(&view[0], self.codes, self.rows * sizeof(uint32_t))
        texts = []
        for code in range(self.count):
            texts.append((<const char*> self.arena + self.texts[code].at)[:self.texts[code].size])
        return codes, texts

    cdef int _room_for_rows(self, Py_ssize_t more) except -1:
        cdef uint64_t room = self.row_room
        cdef void* grown
        if self.rows + more > room:
            room = max(room + room // 2, self.rows + more)
            grown = realloc(self.codes, room * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.codes, self.row_room = <uint32_t*> grown, room
        return 0

    cdef uint32_t _insert(self, const uint8_t* text, uint32_t size, uint32_t hash, uint32_t at) except FREE:
        """A new text, whose place in the table is `at`."""
        cdef uint32_t code
        cdef Text* known
        self._room_for_text(size)
        code = self.count
        known = &self.texts[code]
        known.at, known.size, known.hash = self.arena_size, size, hash
        memcpy(self.arena + self.arena_size, text, size)
        self.arena_size += size
        self.count += 1
        if 2 * self.count > self.mask:
            self._grow()
        else:
            self.table[at] = code
        return code

    cdef int _room_for_text(self, uint32_t size) except -1:
        cdef void* grown
        cdef uint64_t room
        if self.count >= 1 << 30:
            raise ValueError("more than 2^30 distinct texts")
        if self.count == self.text_room:
            room = max(64, 2 * self.text_room)
            grown = realloc(self.texts, room * sizeof(Text))
            if grown == NULL:
                raise MemoryError
            self.texts, self.text_room = <Text*> grown, <uint32_t> room
        if self.arena == NULL or self.arena_size + size > self.arena_room:
            room = max(1_024, 2 * self.arena_room, self.arena_size + size)
            grown = realloc(self.arena, room)
            if grown == NULL:
                raise MemoryError
            self.arena, self.arena_room = <uint8_t*> grown, room
        return 0

    cdef int _grow(self) except -1:
        cdef uint64_t places = 2 * (<uint64_t> self.mask + 1)
        cdef uint32_t* table = <uint32_t*> malloc(places * sizeof(uint32_t))
        cdef uint32_t code, at
        if table == NULL:
            self.count -= 1  # as before
            raise MemoryError
        memset(table, 0xFF, places * sizeof(uint32_t))
        free(self.table)
        self.table, self.mask = table, <uint32_t> (places - 1)
        for code in range(self.count):
            at = self.texts[code].hash & self.mask
            while table[at] != FREE:
                at = (at + 1) & self.mask
            table[at] = code
        return 0


def group_by_code(const int32_t[::1] codes, const int32_t[::1] place):
    """(ids, uint32; bounds, int64): the rows of each place, ascending, those of the first place first.

    place: of each code; codes below 0 are left out. ValueError: a code or a place that is not there.
    """
    cdef int64_t count = place.shape[0], row
    cdef int32_t code
    bounds = numpy.zeros(count + 1, numpy.int64)
    cdef int64_t[::1] ends = bounds
    for row in range(count):
        if not 0 <= place[row] < count:
            raise ValueError(f"place {place[row]} of {count}")
    for row in range(codes.shape[0]):
        code = codes[row]
        if code >= count:
            raise ValueError(f"code {code} of {count}")
        if code >= 0:
            ends[place[code] + 1] += 1
    for row in range(count):
        ends[row + 1] += ends[row]
    ids = numpy.empty(ends[count], numpy.uint32)
    cdef uint32_t[::1] to = ids
    next_of = bounds[:count].copy()
    cdef int64_t[::1] nexts = next_of
    for row in range(codes.shape[0]):
        code = codes[row]
        if code >= 0:
            to[nexts[place[code]]] = <uint32_t> row
            nexts[place[code]] += 1
    return ids, bounds
