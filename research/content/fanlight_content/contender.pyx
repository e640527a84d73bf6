# cython: language_level=3, cdivision=True
"""What all contenders share, and the loop that asks them. Drawn in contender.pxd."""

from libc.stdlib cimport calloc, free

from fanlight_content.selections cimport Selection, is_asked
from matchcore.allocator cimport Numbers, numbers_push
from matchcore.program cimport program_holds

FEW = 16  # selectors of a filter, up to which each contender has them in a row, as matchcore's screens do


cdef class Contender:
    """Subclasses say how selections are found."""

    def __cinit__(self, Selections selections not None, over_all: bool = False, *_) -> None:
        self.allocator.allowance = -1
        self.selections = selections
        self.over_all = over_all

    cdef const Seen* seen(self, Asked asked) noexcept nogil:
        return &asked.seen[self.over_all]

    cdef int add(self, uint32_t selection) except -1:
        raise NotImplementedError

    cdef int list_conjunctions(self, uint32_t selection, Numbers* into) except -1:
        cdef const Selection* item = &self.selections.items[selection]
        cdef uint32_t conjunction
        for conjunction in range(item.first, item.first + item.conjunctions):
            if numbers_push(&self.allocator, into, conjunction) < 0:
                raise MemoryError()
        return 0

    cdef int finish(self) except -1:
        return 0

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        return 0

    cdef const Criterion* criteria(self, uint32_t conjunction, size_t* count) noexcept nogil:
        count[0] = self.selections.conjunctions[conjunction].count + self.over_all
        return &self.selections.criteria[self.selections.conjunctions[conjunction].first]

    cdef int begin(self, IdList out) except -1 nogil:
        if out._make_marks(<uint32_t> self.selections.count) < 0:
            with gil:
                raise MemoryError()
        return 0

    cdef void end(self, IdList out) noexcept nogil:
        cdef size_t i
        for i in range(out.marked.size):
            out.marks.items[out.marked.items[i] >> 5] = 0
        out.marked.size = 0

    cdef int check(self, uint32_t selection, Asked asked, IdList out) except -1 nogil:
        cdef const Selection* item = &self.selections.items[selection]
        cdef uint32_t bit
        if self.over_all and not is_asked(asked.slots, asked.count, item.slot):
            return 0
        if item.conjunctions > 1:
            bit = <uint32_t> 1 << (selection & 31)
            if out.marks.items[selection >> 5] & bit:
                return 0
            out.marks.items[selection >> 5] |= bit
            if numbers_push(&out.allocator, &out.marked, selection) < 0:
                with gil:
                    raise MemoryError()
        if program_holds(item.program, asked.fields.at) and numbers_push(&out.allocator, &out.ids, item.id) < 0:
            with gil:
                raise MemoryError()
        return 0

    cdef int check_conjunction(self, uint32_t conjunction, Asked asked, IdList out) except -1 nogil:
        return self.check(self.selections.conjunctions[conjunction].selection, asked, out)

    @property
    def nbytes(self) -> int:
        """Without the programs, which all contenders have."""
        return self.allocator.bytes + <size_t> type(self).__basicsize__


cdef class Contest:
    """The selectors of a workload, in contenders of one kind: one for each filter, or one over all filters.

    A filter of up to 16 selectors has a `few` instead, if that is given.
    """

    def __cinit__(
        self, Selections selections not None, kind: object, over_all: bool = False, few: object = None
    ) -> None:
        cdef size_t i
        cdef Contender one
        cdef uint32_t slot
        self.selections = selections
        self.over_all = over_all
        self.out = IdList()
        self.held = []
        counts = {}
        for i in range(selections.count):
            slot = selections.items[i].slot
            counts[slot] = counts.get(slot, 0) + 1
        self.slots = 1 if over_all else max(counts, default=0) + 1
        self.by_slot = <void**> calloc(self.slots, sizeof(void*))
        if self.by_slot == NULL:
            raise MemoryError()
        for i in range(selections.count):
            slot = 0 if over_all else selections.items[i].slot
            if self.by_slot[slot] == NULL:
                chosen = few if few is not None and not over_all and counts[slot] <= FEW else kind
                one = chosen(selections, over_all)
                self.held.append(one)
                self.by_slot[slot] = <void*> one
            (<Contender> self.by_slot[slot]).add(<uint32_t> i)
        for one in self.held:
            one.finish()

    def __dealloc__(self) -> None:
        free(self.by_slot)

    cdef int _ask(self, Asked asked) except -1 nogil:
        cdef uint32_t i
        self.out.clear()
        if self.over_all:
            if self.by_slot[0] != NULL:
                (<Contender> self.by_slot[0]).find(asked, self.out)
            return 0
        for i in range(asked.count):
            if asked.slots[i] < self.slots and self.by_slot[asked.slots[i]] != NULL:
                (<Contender> self.by_slot[asked.slots[i]]).find(asked, self.out)
        return 0

    def match(self, Asked asked not None) -> tuple:
        """The ids of the selectors that are true, ascending."""
        self._ask(asked)
        return tuple(sorted([self.out.ids.items[i] for i in range(self.out.ids.size)]))

    def ask(self, list asked, times: int = 1) -> int:
        """How many ids are found in all, all messages asked `times` times, in compiled code."""
        cdef Py_ssize_t i, count = len(asked)
        cdef int round, rounds = times
        cdef size_t found = 0
        for i in range(count):
            if not isinstance(asked[i], Asked):
                raise TypeError("messages are wanted")
        for round in range(rounds):
            for i in range(count):
                self._ask(<Asked> asked[i])
                found += self.out.ids.size
        return found

    @property
    def nbytes(self) -> int:
        """Of the contenders, without the programs, and of the table of filters."""
        return sum([one.nbytes for one in self.held]) + self.slots * sizeof(void*)
