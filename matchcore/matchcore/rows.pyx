# cython: language_level=3, annotation_typing=False
"""Asks the screens of many rows. Drawn in rows.pxd."""

from libc.string cimport memcpy

from matchcore.allocator cimport Allocator, numbers_reserve
from matchcore.ascending cimport make_ascending
from matchcore.columns cimport take_columns
from matchcore.fields cimport FIELD_OTHER, FIELD_TEXT, MESSAGE_WORDS, Field, field_integer, field_text
from matchcore.row_selector cimport NOT_READY, SELECTED, RowsFound
from matchcore.screen cimport Screen
from matchcore.syntax cimport separator_of
from matchcore.topics cimport Topics

__all__ = ["ScreenRows"]

cdef enum:
    TRIES = 100  # while other threads change the index


cdef bint _is_ascii(const char* text, size_t size) noexcept nogil:
    cdef size_t i
    cdef char seen = 0
    for i in range(size):
        seen |= text[i]
    return not seen & 0x80


cdef bint _is_decoded(const char* text, size_t size) except -1 with gil:
    try:
        text[:size].decode()
    except UnicodeDecodeError:
        return False
    return True


cdef class ScreenRows(RowSelector):
    def __cinit__(self, Selecting selecting not None, fields: object, Py_ssize_t count) -> None:
        self.selecting = selecting
        self.filters = selecting.filters
        self.columns = take_columns(fields, count)
        self.fields = Fields(selecting.attributes)
        self.found = IdList()

    cdef int prepare(self) except -1:
        cdef int n
        self.tries += 1
        if self.tries > TRIES:
            raise RuntimeError("the FilterIndex changed again and again while the fields were read")
        self.changes = self.selecting.attributes.changes
        self.columns.number(self.selecting.attributes)
        self.words = self.selecting.attributes.message(MESSAGE_WORDS)
        self.words_asked = 0
        for n in range(1, WORDS_AT_MOST + 1):
            self.word_numbers[n] = self.selecting.attributes.word(n)
            if self.word_numbers[n] >= 0:
                self.words_asked = n
        return 0

    cdef bint is_ready(self) noexcept:
        return self.changes == self.selecting.attributes.changes

    cdef int _read_topic(self, const View* view, uint32_t syntax) except -1 nogil:
        """What its words say, in the place of what the columns say of them."""
        cdef char separator = separator_of(syntax)
        cdef const char* end = view.start + view.size
        cdef const char* start = view.start
        cdef const char* at = view.start
        cdef Field* field
        cdef int n = 0
        while view.size != 0:  # no words at all in an empty one
            if at < end and at[0] != separator:
                at += 1
                continue
            n += 1
            if n <= self.words_asked and self.word_numbers[n] >= 0:
                field = self.fields.set(self.word_numbers[n])
                if view.is_str or _is_ascii(start, at - start) or _is_decoded(start, at - start):
                    field_text(field, FIELD_TEXT, start, <uint32_t> (at - start))
                else:
                    field.kind = FIELD_OTHER
            if at == end:
                break
            at += 1
            start = at
        if self.words >= 0:
            field_integer(self.fields.set(self.words), n)
        return 0

    cdef int select(
        self, Topics given, uint32_t syntax, const RowsFound* plain, const RowsFound* found, Allocator* allocator,
        RowsFound* merged
    ) except -1 nogil:
        cdef const uint32_t* numbers = found.results.ids.items
        cdef size_t i
        cdef size_t base, count
        cdef Py_ssize_t row
        cdef View view
        self.columns.rewind()
        for i in range(found.results.ids.size):
            if numbers[i] >= self.selecting.room or self.selecting.built[numbers[i]] == NULL:
                return NOT_READY
        for row in range(given.count):
            self.found.clear()
            if found.ends[row + 1] != found.ends[row]:
                self.columns.read(row, self.fields)
                if self.words >= 0 or self.words_asked != 0:
                    view = given.at(row)
                    self._read_topic(&view, syntax)
                for i in range(<size_t> found.ends[row], <size_t> found.ends[row + 1]):
                    (<Screen> self.selecting.built[numbers[i]]).find(self.fields, self.found)
            base = merged.results.ids.size
            count = <size_t> (plain.ends[row + 1] - plain.ends[row])
            if numbers_reserve(allocator, &merged.results.ids, base + count + self.found.ids.size) < 0:
                with gil:
                    raise MemoryError()
            if count != 0:
                memcpy(
                    &merged.results.ids.items[base], &plain.results.ids.items[plain.ends[row]],
                    count * sizeof(uint32_t),
                )
            merged.results.ids.size = base + count
            if self.found.ids.size != 0:
                memcpy(
                    &merged.results.ids.items[base + count], self.found.ids.items,
                    self.found.ids.size * sizeof(uint32_t),
                )
                merged.results.ids.size += self.found.ids.size
                if make_ascending(allocator, &merged.results.ids, base, &merged.results.spare) < 0:
                    with gil:
                        raise MemoryError()
            merged.ends[row + 1] = <long long> merged.results.ids.size
        return SELECTED

    cdef int build(self, const RowsFound* found) except -1:
        numbers = {found.results.ids.items[i] for i in range(found.results.ids.size)}
        for number in sorted(numbers):
            self.selecting.screen(number)
        self.tries = 0
        return 0
