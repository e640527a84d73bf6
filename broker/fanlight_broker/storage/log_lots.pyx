# cython: language_level=3
"""What of a log is live: see log_lots.pxd."""

from libc.stdint cimport uint64_t

from fanlight_broker.storage.compaction cimport Compaction
from fanlight_broker.storage.entry_reader cimport EntryReader
from fanlight_broker.storage.log_reader cimport first_entry
from fanlight_broker.storage.log_writer cimport LogWriter
from fanlight_broker.storage.number_list cimport NumberList, Runs, begin_runs, next_run
from fanlight_broker.storage.segment_index cimport has_index, read_index, write_index
from fanlight_broker.storage.segments cimport SEGMENT_HEADER, Segment, SegmentReader
from fanlight_broker.storage.segment_index import DamagedIndex
from fanlight_broker.storage.segments import LogError

cdef enum:
    # Compaction:
    SPARSE = 4                  # a lot is sparse if one in so many of its messages is live, or fewer
    LITTLE = 8                  # a file of bodies is merged with others if it has this part of a segment, or less,
    MERGED = 4                  # and they are so many
    SEGMENTS_MAX = 16           # that are read at once, in bytes
    NUMBERS_MAX = 1 << 26       # that are looked at: a bitmap of 8 MiB
    INDEX_BYTES = 32 << 20      # of indexes in memory: of 8 to 16 GiB of messages

cdef uint64_t NEVER = -1


def place_of(Segment segment):
    """Segments are ordered by the numbers of their messages."""
    return segment.range_first if segment.bodies else segment.first_number, segment.generation


cdef class Lot:
    """Entries that are given back together."""


cdef class LogLots(LogWriter):
    """What Log counts."""

    def __cinit__(self):
        self.lots, self.index_faults = [], []
        self.index_bytes_max = INDEX_BYTES

    cdef int must_be_replayed(self) except -1:
        if self.lot is None:
            raise LogError(f"{self.folder} was not replayed")
        return 0

    # -- lots ---------------------------------------------------------------------------------------------------------

    cdef int find_lots(self) except -1:
        """The log was replayed: what was found is in these."""
        cdef Segment segment
        cdef uint64_t before
        self.pool.drop_replaced()
        for segment in self.pool.bodies:
            first_entry(self.disk, segment, True)
        for segment in sorted(self.pool.used + self.pool.bodies, key=place_of):
            if segment.bodies:
                before = self.lot.first if self.lot is not None else 0
                self.new_lot(segment.first or before + 1, segment.range_first)
                self.lot.bodies, self.lot.messages = segment, segment.messages
            elif segment.first and (self.lot is None or segment.first > self.lot.first):
                self.new_lot(segment.first, segment.first_number)
            else:
                continue
            self.lot.nbytes = (segment.end if segment.last else segment.capacity) - SEGMENT_HEADER
        return 0

    cdef int new_lot(self, uint64_t first, uint64_t number) except -1:
        cdef Lot lot = Lot()
        if self.lot is not None and self.lot.bodies is None:
            self.lot.messages = number - self.lot.first_number
        lot.first, lot.first_number = first, number
        self.lot_floor = self.pool.floor
        self.reclaimed_at = min(self.reclaimed_at, first)
        self.rests = False
        self.lots.append(lot)
        self.lot = lot
        return 0

    cpdef int live(self, uint64_t number, Py_ssize_t change) except -1:
        """So many more are live, or fewer if it is negative, in the lot that has the message with this number."""
        cdef Lot lot
        if self.lot is None:
            self.must_be_replayed()
        if number >= self.entry_number:
            self.entry_live += change
            return 0
        lot = self.lot if number >= self.lot.first_number else self.lots[self.index_of(number)]
        lot.live += change
        if change < 0 and self.counted:
            # After a kill the log still has what ended in an entry that is not synced: its message must be there.
            lot.ended_in = self.sealed + 1
            if lot.live == 0:
                self.reclaimed_at = min(self.reclaimed_at, lot.ended_in)
        return 0

    cdef Py_ssize_t index_of(self, uint64_t number) except -1:
        """Which lot has the message with this number."""
        cdef Py_ssize_t low = 0, high = len(self.lots), middle
        while high - low > 1:
            middle = (low + high) // 2
            if (<Lot> self.lots[middle]).first_number <= number:
                low = middle
            else:
                high = middle
        return low

    cdef int live_in(self, NumberList numbers) except -1:
        """One more of each is `live`."""
        cdef Py_ssize_t i, index
        cdef uint64_t number, first = 0, end = 0    # numbers that the lot has
        cdef Lot lot = None
        cdef Runs runs
        self.must_be_replayed()
        for i in range(numbers.head, numbers.n):
            begin_runs(&runs, &numbers.blocks[i])
            while next_run(&runs):
                number = runs.first
                while number <= runs.last:
                    if not first <= number < end:
                        index = self.index_of(number)
                        if index + 1 == len(self.lots):    # it may be in the open entry
                            self.live(number, 1)
                            number += 1
                            continue
                        lot = self.lots[index]
                        first, end = lot.first_number, (<Lot> self.lots[index + 1]).first_number
                    lot.live += <Py_ssize_t> (min(runs.last + 1, end) - number)
                    number = min(runs.last + 1, end)
        return 0

    # -- the floor ----------------------------------------------------------------------------------------------------

    @property
    def floor(self):
        """The sequence of the entry at which the replay begins; 0: at the first."""
        return self.pool.floor

    def raise_floor(self, uint64_t sequence):
        """All that a replay needs is in the entry `sequence` and behind it, and is synced.

        The header of the next segment has the floor. The next entry begins one if files can be given back or compacted
        then, or little is left of the present one. Else the rest of that would be lost: a backlog that only grows would
        take up to a fifth more. ValueError: it is lower than the floor, or not synced.
        """
        self.must_be_replayed()
        if not self.pool.floor <= sequence <= self.synced:
            raise ValueError(f"the floor is {self.pool.floor}, entry {self.synced} is synced: it cannot be {sequence}")
        if sequence != self.pool.floor:
            self.pool.raise_floor(sequence)
            self.rotates = LITTLE * self.lot.nbytes >= (LITTLE - 1) * self.pool.segment_bytes or self.needs_floor()
            self.reclaimed_at = min(self.reclaimed_at, self.sealed + 1)

    cdef bint needs_floor(self) except -1:
        """Is little live in a file before the floor, or nothing, and that is in no header yet?"""
        cdef Lot lot
        cdef Py_ssize_t index
        if self.lot_floor == self.pool.floor:
            return False
        for index in range(len(self.lots) - 1):
            lot = self.lots[index]
            if not lot.held and (<Lot> self.lots[index + 1]).first <= self.pool.floor and (
                not self.counted or <uint64_t> (SPARSE * lot.live) <= lot.messages
            ):
                return True
        return not self.counted

    def reclaim(self):
        """Give back the files that are wholly before the floor and have nothing live. Returns their number.

        What ended last in them must be synced: else a kill or a power cut would bring back what they do not have. One
        of the headers that have the floor may be damaged one day: a file is given back once another has it, too. The
        caller has counted all that is live. From the first call on `collect` does it, too.
        """
        cdef Lot lot
        cdef Segment segment
        cdef list kept = []
        cdef Py_ssize_t index, files = 0
        cdef uint64_t floor = self.pool.safe_floor()
        self.must_be_replayed()
        self.counted = True
        self.reclaimed_at = self.lot.first if self.lot.first > self.synced else NEVER
        for index in range(len(self.lots) - 1):
            lot = self.lots[index]
            if lot.live or lot.held or not self.is_before_floor(index, floor):
                kept.append(lot)
                continue
            if lot.ended_in > self.synced:
                kept.append(lot)
                self.reclaimed_at = min(self.reclaimed_at, lot.ended_in)
                continue
            for segment in self.files_of(index):
                self.pool.give_back(segment)
                files += 1
        kept.append(self.lot)
        self.lots = kept
        files += self.give_back_unused()
        self.rotates = self.rotates or self.needs_floor()
        if files and self.jobs is not None:
            self.jobs.put(True)
        return files

    cdef bint is_before_floor(self, Py_ssize_t index, uint64_t floor) except -1:
        """Is all of it before this floor, and written to no more?"""
        cdef Lot lot = self.lots[index], following = self.lots[index + 1]
        return following.first <= floor and not (self.segment is not None and self.segment.first <= lot.first)

    cdef list files_of(self, Py_ssize_t index):
        """Of a lot that is before the floor."""
        cdef Lot lot = self.lots[index], following = self.lots[index + 1]
        cdef Segment segment
        cdef list found = []
        if lot.bodies is not None:
            return [lot.bodies]
        for segment in self.pool.used:
            if segment is self.segment:
                break
            if lot.first <= segment.first < following.first:
                found.append(segment)
        return found

    cdef Py_ssize_t give_back_unused(self) except -1:
        """Files that were left before they had an entry."""
        cdef Segment segment
        cdef list found = []
        for segment in self.pool.used:
            if segment is self.segment or segment.first:
                break
            found.append(segment)
        for segment in found:
            self.pool.give_back(segment)
        return len(found)

    # -- compaction ---------------------------------------------------------------------------------------------------

    @property
    def body_segments(self):
        """How many lots are before the floor, kept for the messages that are live."""
        cdef Py_ssize_t index, found = 0
        for index in range(len(self.lots) - 1):
            found += (<Lot> self.lots[index + 1]).first <= self.pool.floor
        return found

    def body_bytes(self):
        """(bytes of the entries in them, how many of these are of messages that are live, about)."""
        cdef Lot lot
        cdef Py_ssize_t index, total = 0, live = 0
        for index in range(len(self.lots) - 1):
            lot = self.lots[index]
            if (<Lot> self.lots[index + 1]).first <= self.pool.floor:
                total += lot.nbytes
                if lot.messages:    # a message may be live in many queues
                    live += <Py_ssize_t> (lot.nbytes * min(1.0, <double> lot.live / lot.messages))
        return total, live

    def sparse(self):
        """(first, end): numbers of messages whose files have so little that is live that `compact` is worth while.

        None: there are none at present.
        """
        cdef Lot lot, following
        cdef Py_ssize_t index, run = 0
        cdef uint64_t floor = self.pool.safe_floor(), first = 0, nbytes = 0
        cdef bint worth = False, is_sparse, is_little, fits
        self.must_be_replayed()
        if self.compaction is not None or self.rests:
            return None
        for index in range(len(self.lots) - 1):
            lot, following = self.lots[index], self.lots[index + 1]
            is_sparse = 0 < lot.live and <uint64_t> (SPARSE * lot.live) <= lot.messages
            is_little = 0 < lot.live and lot.bodies is not None and LITTLE * lot.nbytes <= self.pool.segment_bytes
            if run == 0:
                first, nbytes = lot.first_number, 0
            fits = (nbytes + lot.nbytes <= SEGMENTS_MAX * self.pool.segment_bytes
                    and following.first_number - first <= NUMBERS_MAX)
            if (is_sparse or is_little) and fits and self.is_before_floor(index, floor):
                run += 1
                nbytes += lot.nbytes
                worth = worth or is_sparse or run == MERGED
            elif worth:
                self.offered = first, lot.first_number
                return self.offered
            else:
                run = 0
        self.offered = (first, self.lot.first_number) if worth else None
        return self.offered

    def compact(self, uint64_t first, uint64_t end, const unsigned char[::1] live not None):
        """Copy what is left of the messages with these numbers, which `sparse` has named, into one file, in a thread.

        `live` has a bit for each number from `first` on, the lowest of the first byte first: the message waits or is in
        flight, perhaps no longer. False: there is nothing to do any more. It begins once it is synced that the others
        have ended. The files are given back when `collect` sees that the new one is synced. It may be given up:
        `uncompacted` says why; then nothing has changed. ValueError: that is not the range, and messages of it would be
        lost.
        """
        cdef Lot lot
        cdef Py_ssize_t index, copies = 0
        cdef list sources = []
        cdef uint64_t floor = self.pool.safe_floor(), ended_in = 0
        self.must_be_replayed()
        if self.compaction is not None:
            return False
        if self.offered != (first, end) or live.shape[0] != <Py_ssize_t> ((end - first + 7) // 8):
            raise ValueError(f"{first} to {end}: {self.offered} is sparse, and takes a bit for each number")
        for index in range(len(self.lots) - 1):
            lot = self.lots[index]
            if first <= lot.first_number < end and self.is_before_floor(index, floor):
                lot.held = True
                sources += self.files_of(index)
                ended_in = max(ended_in, lot.ended_in)
                copies += lot.live
        if copies == 0:     # they are given back soon
            for lot in self.lots:
                lot.held = False
            return False
        self.compaction = Compaction(self.disk, self.pool, sources, first, end, live)
        self.compacts_at, self.compaction_waits = ended_in, True
        if ended_in <= self.synced:
            self.begin_compaction()
        return True

    cdef int begin_compaction(self) except -1:
        self.compaction_waits = False
        if self.jobs is not None:
            self.jobs.put(self.compaction)
        return 0

    cdef int take_over(self) except -1:
        """A compaction is done: its file stands for those that it was made of, or it was given up."""
        cdef Compaction compaction = self.compaction
        cdef Lot lot, merged = Lot()
        cdef list kept = []
        cdef Segment segment
        self.compaction = None
        self.uncompacted = compaction.error
        if compaction.error is not None:
            self.compactions_given_up += 1
            self.rests = True
            for lot in self.lots:
                lot.held = False
        else:
            self.compactions += 1
            self.compacted_bytes += compaction.segment.end
            for lot in self.lots:
                if not lot.held:
                    kept.append(lot)
                    continue
                if merged.bodies is None:
                    merged.first, merged.first_number, merged.bodies = lot.first, compaction.first, compaction.segment
                    kept.append(merged)
                merged.live += lot.live
                merged.ended_in = max(merged.ended_in, lot.ended_in)
            merged.nbytes, merged.messages = merged.bodies.end - SEGMENT_HEADER, merged.bodies.messages
            self.lots = kept
            self.pool.bodies.append(compaction.segment)
            for segment in compaction.sources:
                self.pool.give_back(segment)
        if self.counted:
            self.reclaim()
        if self.jobs is not None:
            self.jobs.put(True)
        return 0

    # -- reading ------------------------------------------------------------------------------------------------------

    def locate(self, uint64_t number):
        """The position of an entry that is not behind the message with this number, and near. LogError: there is none.

        It is read from there: EntryReader.seek. What is not written yet has no position. The index of a segment that
        was not read when the log was opened is read here; if there is none, the segment is read, as a whole.
        """
        return self.position_of(number, -1)

    def locate_entry(self, uint64_t sequence):
        """The same for the entry with this sequence, if it is behind the floor."""
        return self.position_of(-1, sequence)

    cdef uint64_t position_of(self, uint64_t number, uint64_t sequence) except? 0:
        cdef Segment found = self.indexed(number, sequence)
        return found.generation << 32 | found.find(number, sequence)

    cdef Segment span_of(self, uint64_t number, uint64_t* offset, uint64_t* end, uint64_t* until):
        """The file of a message, and what `Segment.span` says of it. LogError: there is none."""
        cdef Segment found = self.indexed(number, -1)
        found.span(number, offset, end, until)
        return found

    cdef Segment indexed(self, uint64_t number, uint64_t sequence):
        """The file that has it, and an index. LogError: there is none."""
        cdef Segment found = self.segment_of(number, sequence)
        if found is None:
            raise LogError(f"{self.folder} does not go back so far")
        if found.index_length == 0 and found is not self.segment:
            self.recall_index(found)
        self.index_looks += 1
        found.index_used = self.index_looks
        return found

    cdef Segment segment_of(self, uint64_t number, uint64_t sequence):
        """The file that has it. None: there is none."""
        cdef Segment segment, found = None
        cdef Py_ssize_t low = 0, high = len(self.pool.used), at
        if not self.pool.ordered:
            self.pool.order()
        for segment in self.pool.bodies:
            if segment.range_first <= number < segment.range_end:
                if found is None or segment.generation > found.generation:
                    found = segment
        if found is not None:
            return found
        while low < high:
            at = (low + high) // 2
            segment = self.pool.used[at]
            while at > low and (segment.first == 0 or segment.superseded):
                at -= 1
                segment = self.pool.used[at]
            if segment.first == 0 or segment.superseded:
                low = (low + high) // 2 + 1
            elif segment.first <= sequence and segment.first_number <= number:
                found, low = segment, (low + high) // 2 + 1
            else:
                high = at
        return found

    def reader(self, size_t read_bytes=16384):
        """An EntryReader, for one thread. It reads at least this much at once."""
        return EntryReader(self.disk, self.pool.used, self.pool.bodies, read_bytes)

    # -- indexes ------------------------------------------------------------------------------------------------------

    @property
    def index_bytes(self):
        """Memory of the indexes of all files."""
        return sum((<Segment> each).index_bytes for each in self.pool.used + self.pool.bodies + self.pool.ready)

    cdef int recall_index(self, Segment segment) except -1:
        """Read the index of a file, or make it."""
        try:
            if read_index(self.disk, segment):
                self.indexes_read += 1
        except (DamagedIndex, OSError) as error:
            self.index_faults.append(str(error))
        if segment.index_length == 0:
            self.indexes_walked += 1
            SegmentReader(self.disk, segment).note_all()
            if self.jobs is not None:
                self.jobs.put(True)     # it is written
        return self.bound_indexes(segment)

    cdef bint walk_index(self, uint64_t number) except -1:
        """A message is not where an index says. False: that was made by a walk."""
        cdef Segment segment = self.segment_of(number, -1)
        if segment is None or not segment.recalled:
            return False
        self.index_faults.append(f"{segment.path}: number {number} is not where its index says")
        segment.indexed = segment.recalled = False
        segment.drop_index()
        self.indexes_walked += 1
        SegmentReader(self.disk, segment).note_all()
        return True

    cdef int bound_indexes(self, Segment wanted) except -1:
        """Drop those that were not used for the longest time, if there are too many."""
        cdef Segment segment, oldest
        cdef Py_ssize_t total = self.index_bytes
        while total > self.index_bytes_max:
            oldest = None
            for segment in self.pool.used + self.pool.bodies:
                if segment is not wanted and segment.indexed and segment.index_length:
                    if oldest is None or segment.index_used < oldest.index_used:
                        oldest = segment
            if oldest is None:
                break
            total -= oldest.index_bytes
            oldest.drop_index()
        return 0

    cdef int write_indexes(self) except -1:
        """Of the files that are complete. The next time it is tried again."""
        cdef Segment segment
        try:
            for segment in self.pool.used + self.pool.bodies:
                if segment is self.segment or segment.failed or segment.indexed or segment.index_length == 0:
                    continue
                if has_index(self.disk, segment):
                    segment.indexed = True
                    segment.trim_index()
                else:
                    write_index(self.disk, segment)
                    self.indexes_written += 1
        except OSError as error:
            self.unindexed = error
        else:
            self.unindexed = None
        return 0
