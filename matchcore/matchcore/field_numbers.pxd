# The numbers in some fields of messages, collected batch by batch: what an index of numbers is made of.
#
#   MessageRows --MessageReader, with these attributes alone--> Fields --> [ row | kind | value ] of each field

from libc.stdint cimport int64_t, uint8_t, uint32_t

from matchcore.message_rows cimport MessageReader, MessageRows

cdef struct NumberList:
    int number             # of the attribute
    size_t count
    size_t room
    uint32_t* rows         # ascending
    uint8_t* kinds         # FIELD_INTEGER, FIELD_FLOAT
    int64_t* values        # a float as its bits


cdef class FieldNumbers:
    cdef:
        readonly tuple fields
        MessageReader reader
        NumberList* lists      # of each field

    cdef int _read(self, MessageRows rows, uint32_t first) except -1 nogil
