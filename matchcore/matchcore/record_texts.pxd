# Codes for texts, as they come; see record_texts.pyx.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef enum:
    FREE = 0xFFFFFFFF

cdef struct Text:
    uint64_t at      # in the arena
    uint32_t size
    uint32_t hash


cdef class TextCodes:
    cdef:
        uint32_t* codes
        readonly uint64_t rows
        uint64_t row_room
        Text* texts
        uint32_t count, text_room
        uint8_t* arena
        uint64_t arena_size, arena_room
        uint32_t* table
        uint32_t mask
        uint64_t seed

    cdef int _add(self, const int32_t* end_of, Py_ssize_t count, const uint8_t* data) except -1
    cdef int _room_for_rows(self, Py_ssize_t more) except -1
    cdef uint32_t _insert(self, const uint8_t* text, uint32_t size, uint32_t hash, uint32_t at) except FREE
    cdef int _room_for_text(self, uint32_t size) except -1
    cdef int _grow(self) except -1
