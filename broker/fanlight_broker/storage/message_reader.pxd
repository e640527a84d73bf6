# Reads stored messages by their numbers: see message_reader.pyx.

from fanlight_broker.storage.entry_reader cimport EntryReader

cdef class MessageReader:
    cdef:
        object log
        EntryReader entries
        readonly list damage        # (number, why) of those that could not be read
        str skipped                 # what was wrong with the last entry that was left out

    cdef bint next_entry(self, EntryReader entries) except -1
