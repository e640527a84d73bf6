# cython: language_level=3
"""Reads stored messages by their numbers, in the order of the log. For one thread that is not the loop's."""

from libc.stdint cimport uint64_t

from fanlight_broker.storage.entry_reader cimport EntryReader
from fanlight_broker.storage.records cimport MESSAGE, number_of
from fanlight_broker.storage.segments import LogError


cdef class MessageReader:
    """damage: why a number could not be read, for each that is missing in what `read` returned last."""

    def __cinit__(self, log not None):
        self.log = log

    def read(self, numbers):
        """The MESSAGE records of these numbers, which are synced: {number: body}."""
        cdef dict found = {}
        cdef uint64_t number
        self.damage, self.skipped = [], None
        self.entries = self.log.reader()
        for number in sorted(numbers):
            try:
                body = self.find(number)
            except (LogError, OSError) as error:
                self.damage.append((number, str(error)))
                self.entries = self.log.reader()
                continue
            if body is None:
                self.entries = self.log.reader()    # it has read too far
                self.damage.append((number, self.skipped or f"number {number} is not where the log has it"))
            else:
                found[number] = body
        return found

    def find(self, uint64_t number):
        """The record of a number that is larger than the one before. None: it is not there."""
        cdef EntryReader entries = self.entries
        cdef uint64_t place = self.log.locate(number), here
        cdef uint64_t read
        if entries.reader is None:
            entries.seek(place)
        else:
            here = entries.reader.segment.generation << 32 | entries.offset
            if place > here:
                entries.seek(place)
        while True:
            while entries.record():
                if entries.type == MESSAGE:
                    read = number_of(entries.body, entries.size)
                    if read == number:
                        return entries.body[:entries.size]
                    if read > number:
                        return None
            if not self.next_entry(entries):
                return None

    cdef bint next_entry(self, EntryReader entries) except -1:
        """The next one that is whole."""
        cdef uint64_t offset
        try:
            return entries.next_entry()
        except LogError as error:
            self.skipped = str(error)
            offset = entries.reader.search(entries.offset + 8, entries.sequence + 1)
            if offset == 0:
                raise
        entries.offset = offset
        return entries.next_entry()
