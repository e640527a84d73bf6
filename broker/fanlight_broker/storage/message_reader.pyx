# cython: language_level=3
"""Reads stored messages by their numbers, in the order of the log. For one thread that is not the loop's.

A batch of them is read at a time (batch_reader.pxd). Those that are not found there are looked for one after another:
behind damage, in a file that compaction has made meanwhile, without the index if it is wrong.
"""

from libc.stdint cimport uint64_t

from fanlight_broker.storage.batch_reader cimport BatchReader, Found
from fanlight_broker.storage.entry_reader cimport EntryReader
from fanlight_broker.storage.log cimport Log
from fanlight_broker.storage.message_records cimport Formats, message_at, number_of
from fanlight_broker.storage.records cimport MESSAGE
from fanlight_broker.storage.wanted cimport Wanted
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.storage.segments import LogError

cdef enum:
    BATCH_BYTES = 4 << 20       # of entries that are in memory at once, unless one is larger
    READ_BYTES = 16 * 1024      # read at once where one number is looked for
    NEAR_NUMBERS = 64           # a number so little larger may be in the same entry


cdef class MessageReader:
    """damage: why a number could not be read, for each that is missing in what was read last."""

    def __cinit__(self, Log log not None):
        self.log = log
        self.batch, self.following = BatchReader(log), BatchReader(log)

    def read(self, numbers):
        """The MESSAGE records of these numbers, which are synced: {number: body}."""
        cdef dict bodies = {}
        self.fill(Wanted(numbers), None, None, 0, bodies)
        return bodies

    def messages(self, Wanted wanted not None, formats not None, double wall, Wanted soon=None):
        """Read the messages that are wanted, which are synced. formats, wall: see `read_message`.

        soon  they are wanted next: the kernel begins to read the first of them
        """
        self.fill(wanted, soon, Formats(formats), wall, None)

    cdef int fill(self, Wanted wanted, Wanted soon, Formats formats, double wall, dict bodies) except -1:
        """formats: None for their records, by number."""
        cdef Py_ssize_t i, first = 0, at, next_at
        self.damage, self.skipped = [], None
        self.renew()
        wanted.sort()
        try:
            at = self.batch.plan(wanted.numbers, 0, wanted.length, BATCH_BYTES)
            while True:
                if self.batch.piece_count > 1:
                    with nogil:
                        self.batch.announce(self.batch.piece_count)
                next_at = at
                if at < wanted.length:
                    next_at = self.following.plan(wanted.numbers, at, wanted.length, BATCH_BYTES)
                elif soon is not None:
                    soon.sort()
                    self.following.plan(soon.numbers, 0, soon.length, BATCH_BYTES)
                self.batch.read(self.following)
                for i in range(self.batch.count):
                    self.take(wanted, first + i, &self.batch.found[i], formats, wall, bodies)
                if at == wanted.length:
                    return 0
                self.batch.release()
                self.batch, self.following = self.following, self.batch
                first, at = at, next_at
        finally:
            self.batch.release()
            self.following.release()

    cdef int take(
        self, Wanted wanted, Py_ssize_t place, Found* found, Formats formats, double wall, dict bodies
    ) except -1:
        cdef const char* body = found.body
        cdef Py_ssize_t size = found.size
        cdef double came = 0
        if body is NULL:
            if not self.look_for(found.number):
                self.damage.append((found.number, self.why))
                return 0
            body, size = self.entries.body, self.entries.size
        if formats is None:
            bodies[found.number] = body[:size]
            return 0
        try:
            message = message_at(body, size, formats, wall, &came)
        except BadRecord as error:
            self.damage.append((found.number, str(error)))
            return 0
        return wanted.keep(place, message, came)

    # -- one number -------------------------------------------------------------------------------------------------

    cdef bint look_for(self, uint64_t number) except -1:
        """Go to its record. False: `why` says why not."""
        if not self.try_to_find(number) and not (self.may_be_elsewhere(number) and self.try_to_find(number)):
            return False
        self.before = number
        return True

    cdef bint try_to_find(self, uint64_t number) except -1:
        """`find`. False: `why` says why not."""
        cdef bint there = False
        try:
            there = self.find(number)
            if not there:
                self.why = self.skipped or f"number {number} is not where the log has it"
        except (LogError, OSError) as error:
            self.why = str(error)
        if not there:
            self.renew()    # it has read too far, or its file was given back
        return there

    cdef bint may_be_elsewhere(self, uint64_t number) except -1:
        """Has a compaction put it into another file meanwhile, or is the index wrong?"""
        try:
            return self.log.position_of(number, -1) >> 32 != self.generation or self.log.walk_index(number)
        except (LogError, OSError):
            return False    # `why` says it

    cdef int renew(self) except -1:
        self.entries, self.before = self.log.reader(READ_BYTES), 0
        return 0

    cdef bint find(self, uint64_t number) except -1:
        """Go to the record of a number that is larger than the one before. False: it is not there."""
        cdef EntryReader entries = self.entries
        cdef uint64_t place
        cdef bint there = False
        if self.before and number - self.before < NEAR_NUMBERS and self.scan(number, &there):
            return there
        place = self.log.position_of(number, -1)
        self.generation = place >> 32
        if (entries.reader is None or entries.reader.segment.generation != self.generation
                or place & 0xFFFFFFFF > entries.offset):
            entries.seek(place)
        while True:
            if self.scan(number, &there):
                return there
            if not self.next_entry():
                return False

    cdef bint scan(self, uint64_t number, bint* there) except -1:
        """Read on in this entry. True: it is known whether it is `there`."""
        cdef EntryReader entries = self.entries
        cdef uint64_t read
        while entries.record():
            if entries.type == MESSAGE:
                read = number_of(entries.body, entries.size)
                if read >= number:
                    there[0] = read == number
                    return True
        return False

    cdef bint next_entry(self) except -1:
        """The next one that is whole."""
        cdef EntryReader entries = self.entries
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
