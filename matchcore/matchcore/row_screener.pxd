# One selector, asked about the messages of record batches.
#
#   MessageRows --MessageReader, with the attributes of this selector alone--> Fields --> Screen of one selector

from matchcore.body_reader cimport BodyCounts
from matchcore.message_rows cimport MessageReader, MessageRows
from matchcore.screen cimport IdList, Screen

cdef class RowScreener:
    cdef:
        MessageReader reader       # counts apart
        BodyCounts counts
        Screen screen
        IdList found
