# cython: language_level=3, cdivision=True
"""Selectors in a row, each verified by its program.

One for each filter of the topic is what EMQX, ActiveMQ Artemis and Solace do: the topic is matched first, then the
condition of each subscriber is evaluated. It is the baseline of this comparison. One over all filters is the naive
method: a condition on the topic's filter, then the program.
"""

from fanlight_content.growth cimport grown, trimmed
from fanlight_content.selections cimport Asked, Selection, is_asked
from matchcore.allocator cimport deallocate, numbers_push, prefetch
from matchcore.program cimport program_holds
from matchcore.screen cimport IdList

cdef enum:
    AHEAD = 4  # programs asked for before they are looked at


cdef class List(Contender):
    """Verified in a row, the next programs asked for ahead of time."""

    def __dealloc__(self) -> None:
        deallocate(&self.allocator, self.items, self.capacity * sizeof(Listed))

    cdef int add(self, uint32_t selection) except -1:
        cdef const Selection* item = &self.selections.items[selection]
        self.items = <Listed*> grown(&self.allocator, self.items, &self.capacity, self.count + 1, sizeof(Listed))
        self.items[self.count] = Listed(item.program, item.id, item.slot)
        self.count += 1
        return 0

    cdef int finish(self) except -1:
        self.items = <Listed*> trimmed(&self.allocator, self.items, &self.capacity, self.count, sizeof(Listed))
        return 0

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        cdef size_t i
        cdef const Listed* item
        for i in range(self.count):
            item = &self.items[i]
            if self.over_all and not is_asked(asked.slots, asked.count, item.slot):
                continue
            if i + AHEAD < self.count:
                prefetch(self.items[i + AHEAD].program)
            if program_holds(item.program, asked.fields.at) and numbers_push(&out.allocator, &out.ids, item.id) < 0:
                with gil:
                    raise MemoryError()
        return 0
