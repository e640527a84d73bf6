# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Screen: selectors in, a message's fields asked, the ids whose selector is true out. Drawn in screen.pxd.

What it answers is what kleene.py says of each selector: the ids of which `holds` is True.
"""

cimport cython
from libc.string cimport memcpy, memset

from matchcore.access cimport (
    ALONE, access_count, access_forget, access_free, access_init, access_note, access_put, access_tidy,
)
from matchcore.allocator cimport (
    allocate, allocate_zeros, deallocate, numbers_free, numbers_push, numbers_reserve, prefetch, reallocate,
)
from matchcore.ascending cimport make_ascending
from matchcore.compilation cimport compile_draft, draft_forget
from matchcore.draft cimport draft_done, draft_of
from matchcore.glance cimport glance_passes, make_views
from matchcore.id_table cimport id_drop, id_find, id_free, id_put, id_reserve
from matchcore.ids cimport take_id, tuple_of_ids
from matchcore.key_search cimport KeyScratch, find_under_keys
from matchcore.pool_search cimport pool_find
from matchcore.pooling cimport belongs_to_pool, free_pool, leave_place, put_into_pool, tidy_pool, wait_for_pool
from matchcore.program cimport TESTS, Program, program_bytes, program_holds, program_release, program_steps
from matchcore.selections cimport UNDER_ONE_KEY, UNDER_SEVERAL, LargeScreen, Selection
from matchcore.table cimport NONE

__all__ = ["IdList", "Screen"]

cdef enum:
    AHEAD = 8  # selections asked for before they are looked at


@cython.final
cdef class IdList:
    """Ids that were found: of one thread, cleared and used again."""

    def __cinit__(self) -> None:
        self.allocator.allowance = -1

    def __dealloc__(self) -> None:
        numbers_free(&self.allocator, &self.ids)
        numbers_free(&self.allocator, &self.marks)
        numbers_free(&self.allocator, &self.marked)
        numbers_free(&self.allocator, &self.spare)
        numbers_free(&self.allocator, &self.tags)

    cdef void clear(self) noexcept nogil:
        self.ids.size = 0

    cdef int _make_marks(self, uint32_t slots) noexcept nogil:
        cdef size_t words = slots // 32 + 1
        if words > self.marks.size:
            if numbers_reserve(&self.allocator, &self.marks, words) < 0:
                return -1
            memset(&self.marks.items[self.marks.size], 0, (words - self.marks.size) * sizeof(uint32_t))
            self.marks.size = words
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.allocator.bytes + <size_t> type(self).__basicsize__


@cython.final
@cython.no_gc
cdef class Screen:
    """The selectors of one topic filter, each under an id of its own, within 0..2**32-1.

    The names that they ask for get their numbers from `attributes`, which several screens share.
    """

    def __cinit__(self, Attributes attributes not None):
        self.allocator.allowance = -1
        self.attributes = attributes
        self.free = NONE

    def __dealloc__(self) -> None:
        cdef uint32_t slot
        cdef Program* program
        for slot in range(self.count):
            program = self.selections[slot].program
            if program != NULL:
                program_release(program, self.attributes)
                deallocate(&self.allocator, program, program_bytes(program))
        self._free_large()
        deallocate(&self.allocator, self.selections, self.capacity * sizeof(Selection))

    cdef int _make_large(self) noexcept nogil:
        """-1: no memory, and it is small as before."""
        cdef LargeScreen* large = <LargeScreen*> allocate_zeros(&self.allocator, sizeof(LargeScreen))
        cdef uint32_t slot
        if large == NULL:
            return -1
        access_init(&large.access, &self.allocator)
        self.large = large
        for slot in range(self.count):
            if self.selections[slot].program == NULL:
                continue
            if id_reserve(&self.allocator, &large.ids, self._ids()) < 0 \
                    or access_note(&large.access, self.selections[slot].program) < 0:
                self._free_large()
                return -1
            if numbers_push(&self.allocator, &large.row, slot) < 0:
                self._free_large()
                return -1
            id_put(&large.ids, self.selections[slot].id, slot)
            self.selections[slot].place = <uint32_t> large.row.size - 1
        return 0

    cdef void _free_large(self) noexcept nogil:
        if self.large != NULL:
            free_pool(&self.allocator, self.large)
            access_free(&self.large.access)
            id_free(&self.allocator, &self.large.ids)
            numbers_free(&self.allocator, &self.large.row)
            deallocate(&self.allocator, self.large, sizeof(LargeScreen))
            self.large = NULL

    cdef uint32_t _slot_of(self, uint32_t id) noexcept nogil:
        cdef uint32_t slot
        if self.large == NULL:
            for slot in range(self.count):
                if self.selections[slot].program != NULL and self.selections[slot].id == id:
                    return slot
            return NONE
        return id_find(&self.large.ids, self._ids(), id)

    cdef Ids _ids(self) noexcept nogil:
        cdef Ids ids
        ids.first = <const char*> &self.selections[0].id
        ids.stride = sizeof(Selection)
        return ids

    def insert(self, id: int, selector: object) -> bool:
        """True if the id is new; the selector of one that is there is replaced. All or nothing.

        Raises MemoryError; OverflowError where the attributes have no number left; ValueError of a selector beyond the
        limits of a text (64 tests, integers of 64 bits), TypeError of what is none.
        """
        cdef uint32_t who = take_id(id)
        cdef SelectorDraft draft = draft_of(selector)  # Python code may run here; from here on none does
        cdef uint32_t before
        cdef Glance glance
        if self.large == NULL and self.live >= FEW_SELECTORS and self._make_large() < 0:
            raise MemoryError()
        compile_draft(draft, self.attributes, NULL if self.large == NULL else &self.large.access, &glance)
        before = self._slot_of(who)
        if self._add(who, draft, &glance) < 0:
            draft_forget(draft, self.attributes, NULL if self.large == NULL else &self.large.access)
            raise MemoryError()
        if before != NONE:
            self._drop_slot(before)
        draft_done(draft)
        return before == NONE

    cdef int _add(self, uint32_t id, SelectorDraft draft, const Glance* glance) noexcept:
        """In a slot of its own. -1: no memory."""
        cdef Program* program = <Program*> draft.program
        cdef bint is_pooled = self.large != NULL and self.large.pool != NULL \
            and belongs_to_pool(self.large, program, draft.is_keyed)
        cdef size_t size
        cdef Program* block
        cdef uint32_t slot
        cdef uint32_t place = NONE
        cdef Selection* selection
        if is_pooled:
            program.entries = 0  # it is under no keys
        size = program_bytes(program)
        block = <Program*> allocate(&self.allocator, size)
        if block != NULL and self._reserve() == 0:
            slot = self.free if self.free != NONE else self.count
            memcpy(block, program, size)
            if is_pooled:
                place = put_into_pool(self.large, block, id, slot)
            elif not draft.is_keyed:
                place = 0
            elif access_put(&self.large.access, block, slot, 0) == 0:
                place = UNDER_ONE_KEY
            if place != NONE:
                selection = &self.selections[slot]
                if slot == self.count:
                    self.count += 1
                else:
                    self.free = selection.id
                selection.program = block
                selection.id = id
                selection.glance = glance[0]
                self._place(slot, place)
                return 0
        deallocate(&self.allocator, block, size)
        return -1

    cdef void _place(self, uint32_t slot, uint32_t place) noexcept nogil:
        """For a new one, which is under its keys or in the pool already, or else (0) comes into the row; with room."""
        cdef Selection* selection = &self.selections[slot]
        cdef LargeScreen* large = self.large
        self.live += 1
        if large == NULL:
            return
        id_put(&large.ids, selection.id, slot)
        if place == 0:
            selection.place = <uint32_t> large.row.size
            large.row.items[large.row.size] = slot
            large.row.size += 1
        elif place == UNDER_ONE_KEY:
            selection.place = UNDER_ONE_KEY
            if access_count(&large.access, selection.program) > 1:
                selection.place = UNDER_SEVERAL
                large.several += 1
        else:
            selection.place = place
            tidy_pool(&self.allocator, large, self.selections)
        if large.pool == NULL:
            wait_for_pool(&self.allocator, large, self.selections, slot)

    cdef int _reserve(self) noexcept nogil:
        """Room for one slot more. -1: no memory."""
        cdef uint32_t capacity
        cdef Selection* selections
        if self.large != NULL:
            if id_reserve(&self.allocator, &self.large.ids, self._ids()) < 0:
                return -1
            if numbers_reserve(&self.allocator, &self.large.row, self.large.row.size + 1) < 0:
                return -1
        if self.count == ALONE:  # beyond which the keys cannot name a slot
            return -1
        if self.free == NONE and self.count == self.capacity:
            capacity = self.capacity + (self.capacity + 7) // 8 + (self.capacity < 4)
            selections = <Selection*> reallocate(
                &self.allocator, self.selections, self.capacity * sizeof(Selection), capacity * sizeof(Selection)
            )
            if selections == NULL:
                return -1
            self.selections = selections
            self.capacity = capacity
        return 0

    def remove(self, id: int) -> bool:
        """True if the id was there. Never needs memory."""
        cdef uint32_t slot = self._slot_of(take_id(id))
        if slot == NONE:
            return False
        self._drop_slot(slot)
        return True

    cdef void _drop_slot(self, uint32_t slot) noexcept nogil:
        cdef Selection* selection = &self.selections[slot]
        cdef LargeScreen* large = self.large
        if large != NULL:
            leave_place(&self.allocator, large, self.selections, slot)
            access_forget(&large.access, selection.program)
            access_tidy(&large.access)
            id_drop(&self.allocator, &large.ids, self._ids(), slot)
        program_release(selection.program, self.attributes)
        deallocate(&self.allocator, selection.program, program_bytes(selection.program))
        selection.program = NULL
        selection.id = self.free
        self.free = slot
        self.live -= 1
        if self.live == 0:
            self._free_large()
            deallocate(&self.allocator, self.selections, self.capacity * sizeof(Selection))
            self.selections = NULL
            self.count = self.capacity = 0
            self.free = NONE

    # Asking

    cdef int _verify(self, uint32_t slot, Fields fields, IdList out) noexcept nogil:
        """-1: no memory."""
        if not program_holds(self.selections[slot].program, fields.at):
            return 0
        return numbers_push(&out.allocator, &out.ids, self.selections[slot].id)

    cdef int _ask_large(self, Fields fields, IdList out) noexcept nogil:
        cdef LargeScreen* large = self.large
        cdef KeyScratch scratch
        cdef uint32_t slot
        cdef size_t i
        if large.several != 0 and out._make_marks(self.count) < 0:
            return -1
        make_views(fields)
        scratch.allocator, scratch.ids, scratch.tags = &out.allocator, &out.ids, &out.tags
        scratch.marks, scratch.marked = &out.marks, &out.marked
        if find_under_keys(large, self.selections, fields, &scratch) < 0:
            return -1
        for i in range(large.row.size):
            slot = large.row.items[i]
            if i + AHEAD < large.row.size:
                prefetch(&self.selections[large.row.items[i + AHEAD]])
            if glance_passes(&self.selections[slot].glance, fields.views) and self._verify(slot, fields, out) < 0:
                return -1
        return 0 if large.pool == NULL else pool_find(large.pool, fields, &out.allocator, &out.ids)

    cdef Py_ssize_t find(self, Fields fields, IdList out) except -1 nogil:
        cdef size_t before = out.ids.size
        cdef uint32_t slot
        cdef size_t i
        cdef int done = 0
        if self.large == NULL:
            for slot in range(self.count):
                if self.selections[slot].program != NULL and program_holds(self.selections[slot].program, fields.at):
                    done |= numbers_push(&out.allocator, &out.ids, self.selections[slot].id)
        else:
            done = self._ask_large(fields, out)
            for i in range(out.marked.size):
                out.marks.items[out.marked.items[i] >> 5] = 0
            out.marked.size = 0
        if done < 0:
            out.ids.size = before
            with gil:
                raise MemoryError()
        return <Py_ssize_t> (out.ids.size - before)

    def match(self, mapping: object) -> tuple[int, ...]:
        """The ids whose selector is true of these fields (`Fields.load`), ascending."""
        cdef Fields fields = self.fields
        cdef IdList found = self.found
        self.fields = None
        self.found = None
        if fields is None or found is None:
            fields = Fields(self.attributes)
            found = IdList()
        fields.load(mapping)
        found.clear()
        self.find(fields, found)
        if make_ascending(&found.allocator, &found.ids, 0, &found.spare) < 0:
            raise MemoryError()
        answer = tuple_of_ids(found.ids.items, found.ids.size)
        self.fields = fields
        self.found = found
        return answer

    def __len__(self) -> int:
        return self.live

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without what `match` keeps for the next one and without the names of the attributes."""
        return self.allocator.bytes + <size_t> type(self).__basicsize__

    def asked(self) -> tuple:
        """The attributes that any selector reads, each once, by their numbers."""
        numbers = set()
        cdef uint32_t slot, i
        for slot in range(self.count):
            if self.selections[slot].program != NULL:
                for i in range(self.selections[slot].program.steps):
                    if program_steps(self.selections[slot].program)[i].code < TESTS:
                        numbers.add(program_steps(self.selections[slot].program)[i].attribute)
        return tuple(self.attributes.attribute(number) for number in sorted(numbers))

    def _shape(self) -> dict:
        """For tests and benches: how many selectors are where, and the rows of the pool."""
        cdef LargeScreen* large = self.large
        made = {"row": self.live, "several": 0, "keys": 0, "pool": 0, "rows": 0}
        if large != NULL:
            made |= {"row": large.row.size, "several": large.several, "keys": large.access.table.used}
            if large.pool != NULL:
                made |= {"pool": large.pool.live, "rows": large.pool.rows.row_count}
        return made

    def _ask(self, Fields fields not None, times: int, in_a_row: bool) -> int:
        """For benches: how many ids `find` finds, `times` times over, without the GIL; or all verified in a row."""
        cdef IdList out = IdList()
        cdef uint32_t rounds = times
        cdef bint all_of_them = in_a_row
        cdef size_t found = 0
        cdef uint32_t slot
        if fields.attributes is not self.attributes:
            raise ValueError("fields of other attributes")
        with nogil:
            while rounds != 0:
                rounds -= 1
                out.clear()
                if not all_of_them:
                    self.find(fields, out)
                else:
                    for slot in range(self.count):
                        if self.selections[slot].program != NULL and self._verify(slot, fields, out) < 0:
                            with gil:
                                raise MemoryError()
                found += out.ids.size
        return found

    def _fail_after(self, allocations: int) -> None:
        """For tests: the next `allocations` growths of memory succeed, then none; -1: all."""
        self.allocator.allowance = allocations
