# cython: language_level=3, annotation_typing=False
"""The numbers in some fields of messages. Drawn in field_numbers.pxd."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from matchcore.body_reader cimport BodyCounts
from matchcore.fields cimport FIELD_FLOAT, FIELD_INTEGER, PAYLOAD_ROOT, Attributes, Field
from matchcore.message_rows cimport MessageReader, MessageRows
from matchcore.values cimport number_kind

import numpy

from matchcore.record_columns import NumberColumn
from matchcore.records import numbers_of

__all__ = ["FieldNumbers"]


cdef class FieldNumbers:
    """fields  whose numbers are collected, each once

    Text of a header that is a number counts as one. Bodies that have no fields are not counted.
    """

    def __cinit__(self, object fields not None):
        cdef Attributes attributes = Attributes()
        cdef Py_ssize_t i
        self.fields = tuple(fields)
        self.lists = <NumberList*> calloc(len(self.fields) + 1, sizeof(NumberList))
        if self.lists == NULL:
            raise MemoryError()
        for i in range(len(self.fields)):
            self.lists[i].number = attributes.acquire(self.fields[i])
        self.reader = MessageReader(attributes, BodyCounts())

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.lists == NULL:
            return
        for i in range(len(self.fields)):
            free(self.lists[i].rows)
            free(self.lists[i].kinds)
            free(self.lists[i].values)
        free(self.lists)

    @property
    def asks_bodies(self):
        """Whether it looks at fields of bodies, so that their formats matter."""
        return self.reader.attributes.has_below(PAYLOAD_ROOT)

    def add(self, MessageRows rows not None, uint32_t first):
        """Collect those of a batch whose first row is this record. MemoryError: some are missing then."""
        cdef Py_ssize_t i
        for i in range(len(self.fields)):
            _reserve(&self.lists[i], self.lists[i].count + rows.count)
        with nogil:
            self._read(rows, first)

    cdef int _read(self, MessageRows rows, uint32_t first) except -1 nogil:
        cdef Py_ssize_t row, i, count
        cdef NumberList* list_
        cdef Field* field
        cdef uint8_t kind
        with gil:
            count = len(self.fields)
        for row in range(rows.count):
            self.reader.read(rows, row)
            for i in range(count):
                list_ = &self.lists[i]
                field = &self.reader.fields.at[list_.number]
                kind = number_kind(field)
                if kind != FIELD_INTEGER and kind != FIELD_FLOAT:
                    continue
                if kind == FIELD_INTEGER:
                    list_.values[list_.count] = field.integer
                else:
                    memcpy(&list_.values[list_.count], &field.real, sizeof(double))
                list_.rows[list_.count] = first + <uint32_t> row
                list_.kinds[list_.count] = kind
                list_.count += 1
        return 0

    def columns(self, Py_ssize_t records):
        """Of each field a column of that many records; None of one without a number."""
        cdef Py_ssize_t i
        return [_column(&self.lists[i], records) if self.lists[i].count != 0 else None
                for i in range(len(self.fields))]


cdef int _reserve(NumberList* list_, size_t wanted) except -1:
    cdef size_t room
    cdef void* rows
    cdef void* kinds
    cdef void* values
    if wanted <= list_.room:
        return 0
    room = max(2 * list_.room, wanted)
    rows = realloc(list_.rows, room * sizeof(uint32_t))
    if rows != NULL:
        list_.rows = <uint32_t*> rows
    kinds = realloc(list_.kinds, room)
    if kinds != NULL:
        list_.kinds = <uint8_t*> kinds
    values = realloc(list_.values, room * sizeof(int64_t))
    if values != NULL:
        list_.values = <int64_t*> values
    if rows == NULL or kinds == NULL or values == NULL:
        raise MemoryError()
    list_.room = room
    return 0


cdef object _column(const NumberList* list_, Py_ssize_t records):
    """Of integers, or of floats where these hold all of them; else as `numbers_of` has it."""
    rows = numpy.asarray(<uint32_t[:list_.count]> list_.rows)
    found = numpy.asarray(<int64_t[:list_.count]> list_.values)
    whole = numpy.asarray(<uint8_t[:list_.count]> list_.kinds) == FIELD_INTEGER
    if whole.all():
        numbers = found
    else:
        numbers = numpy.where(whole, found, found.view(numpy.float64)) if whole.any() else found.view(numpy.float64)
        if (numpy.abs(found[whole].astype(numpy.float64)) >= 2**53).any():
            listed = [
                int(value) if is_whole else float(real)
                for value, real, is_whole in zip(found, found.view(numpy.float64), whole)
            ]
            return numbers_of(records, dict(zip(rows.tolist(), listed)))
    values, known = numpy.zeros(records, numbers.dtype), numpy.zeros(records, numpy.bool_)
    values[rows], known[rows] = numbers, True
    return NumberColumn(values, known)
