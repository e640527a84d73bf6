# Selectors in a row, each verified: nothing else is kept.
#
#     items   program, id | program, id | ...

from libc.stdint cimport uint32_t

from fanlight_content.contender cimport Contender
from matchcore.program cimport Program


cdef struct Listed:
    const Program* program
    uint32_t id
    uint32_t slot


cdef class List(Contender):
    cdef:
        Listed* items
        size_t count
        size_t capacity
