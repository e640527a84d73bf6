# cython: language_level=3, annotation_typing=False, cdivision=True
# cython: binding=False
"""The rules that a fact meets, the most salient first. Drawn in rule_search.pxd."""

cimport cython
from matchcore.access cimport ALONE, access_find, rank_before
from matchcore.allocator cimport deallocate, numbers_free, numbers_push, numbers_reserve, prefetch, reallocate
from matchcore.bag cimport Bag, bag_items
from matchcore.fields cimport Attributes
from matchcore.glance cimport glance_passes, make_views
from matchcore.message_keys cimport keys_of_message
from matchcore.program cimport program_holds
from matchcore.table cimport NONE, table_prefetch

cdef enum:
    AHEAD = 4  # items of a bucket whose ranks are asked for before they are looked at


@cython.final
cdef class Scratch:
    """What a search needs beside the rules: of one search at a time, and used again."""

    def __cinit__(self, Attributes attributes not None):
        self.allocator.allowance = -1
        self.fields = Fields(attributes)

    def __dealloc__(self) -> None:
        numbers_free(&self.allocator, &self.tags)
        numbers_free(&self.allocator, &self.filters)
        numbers_free(&self.allocator, &self.alone)
        numbers_free(&self.allocator, &self.found)
        deallocate(&self.allocator, self.cursors, self.capacity * sizeof(BucketCursor))

    cdef int reserve(self, size_t cursors) noexcept nogil:
        """Make room for that number of cursors. -1: no memory."""
        cdef BucketCursor* made
        if numbers_reserve(&self.allocator, &self.alone, cursors) < 0:
            return -1
        if cursors <= self.capacity:
            return 0
        cursors += cursors // 2 + 16
        made = <BucketCursor*> reallocate(
            &self.allocator, self.cursors, self.capacity * sizeof(BucketCursor), cursors * sizeof(BucketCursor)
        )
        if made == NULL:
            return -1
        self.cursors = made
        self.capacity = <uint32_t> cursors
        return 0


# The buckets under them

cdef void _look_up(const Access* access, Scratch scratch, uint32_t filter) noexcept nogil:
    """Cursors for what is under the keys of one filter, without their ranks; there is room."""
    cdef BucketCursor* cursor
    cdef uint32_t salt = salt_of(filter)
    cdef uint32_t begun = scratch.count
    cdef uint32_t found, i
    cdef const Bag* bag
    for i in range(<uint32_t> scratch.tags.size):
        table_prefetch(&access.table, scratch.tags.items[i] ^ salt)
    for i in range(<uint32_t> scratch.tags.size):
        found = access_find(access, scratch.tags.items[i] ^ salt)
        if found == NONE:
            continue
        cursor = &scratch.cursors[scratch.count]
        scratch.count += 1
        cursor.rank.filter = filter
        if found & ALONE:
            scratch.alone.items[scratch.alone.size] = found & ~<uint32_t> ALONE
            cursor.at = &scratch.alone.items[scratch.alone.size]
            cursor.end = cursor.at + 1
            scratch.alone.size += 1
        else:
            cursor.at = NULL
            cursor.rank.number = found
            prefetch(&access.buckets[found])
    for i in range(begun, scratch.count):
        cursor = &scratch.cursors[i]
        if cursor.at == NULL:
            bag = &access.buckets[cursor.rank.number]
            cursor.at = bag_items(&access.arena, bag)
            cursor.end = cursor.at + bag.size
            prefetch(cursor.at)


cdef void _take_ranks(const Access* access, const RuleRecord* records, Scratch scratch) noexcept nogil:
    """Of the first rule of each cursor."""
    cdef BucketCursor* cursor
    cdef uint32_t i
    for i in range(scratch.count):
        cursor = &scratch.cursors[i]
        prefetch(&access.ranks[cursor.at[0]])
        prefetch(&records[cursor.at[0]])
        if cursor.at + 1 < cursor.end:
            prefetch(&access.ranks[cursor.at[1]])
    for i in range(scratch.count):
        _take_rank(access.ranks, &scratch.cursors[i])


cdef inline void _take_rank(const Rank* ranks, BucketCursor* cursor) noexcept nogil:
    cursor.rank.order = ranks[cursor.at[0]].order
    cursor.rank.number = ranks[cursor.at[0]].number


# The merge

cdef void _sink(BucketCursor* heap, uint32_t count, uint32_t at) noexcept nogil:
    """A cursor, from its place to where none below it is better."""
    cdef BucketCursor moving = heap[at]
    cdef uint32_t child
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and rank_before(&heap[child + 1].rank, &heap[child].rank):
            child += 1
        if not rank_before(&heap[child].rank, &moving.rank):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moving


cdef inline const Rank* _second(const BucketCursor* heap, uint32_t count) noexcept nogil:
    """The best rank of the other cursors; NULL: there are no others."""
    if count == 1:
        return NULL
    return &heap[2].rank if count > 2 and rank_before(&heap[2].rank, &heap[1].rank) else &heap[1].rank


cdef int _merge(const Access* access, const RuleRecord* records, Scratch scratch, size_t most) noexcept nogil:
    cdef const Rank* ranks = access.ranks
    cdef BucketCursor* heap = scratch.cursors
    cdef uint32_t count = scratch.count
    cdef uint32_t last = NONE
    cdef uint32_t slot, filter
    cdef const uint32_t* at
    cdef const uint32_t* end
    cdef const uint32_t* begun
    cdef const Rank* second
    while count != 0:
        second = _second(heap, count)
        at, end, filter = heap.at, heap.end, heap.rank.filter
        begun = at
        while True:
            slot = at[0]
            if slot != last and ranks[slot].filter == filter:
                last = slot
                if (
                    glance_passes(&records[slot].glance, scratch.fields.views)
                    and program_holds(records[slot].program, scratch.fields.at)
                ):
                    if numbers_push(&scratch.allocator, &scratch.found, slot) < 0:
                        return -1
                    if scratch.found.size == most:
                        scratch.looked_at += at - begun + 1
                        return 0
            at += 1
            if at == end:
                scratch.looked_at += at - begun
                count -= 1
                heap[0] = heap[count]
                break
            if at + AHEAD < end:
                prefetch(&ranks[at[AHEAD]])
                prefetch(&records[at[AHEAD]])
            if second != NULL and not rank_before(&ranks[at[0]], second):
                scratch.looked_at += at - begun
                heap.at = at
                _take_rank(ranks, heap)
                break
        if count > 1:
            _sink(heap, count, 0)
    return 0


cdef int rules_find(const Access* access, const RuleRecord* records, Scratch scratch, size_t most) noexcept nogil:
    cdef uint32_t i
    scratch.found.size = scratch.alone.size = scratch.looked_at = 0
    scratch.count = 0
    if access.table.cells == NULL:
        return 0
    make_views(scratch.fields)
    scratch.tags.size = 0
    if (
        numbers_push(&scratch.allocator, &scratch.tags, REST_TAG) < 0
        or keys_of_message(access, scratch.fields, &scratch.allocator, &scratch.tags) < 0
    ):
        return -1
    if scratch.reserve(scratch.tags.size * scratch.filters.size) < 0:
        return -1
    for i in range(<uint32_t> scratch.filters.size):
        _look_up(access, scratch, scratch.filters.items[i])
    _take_ranks(access, records, scratch)
    for i in range(scratch.count // 2, 0, -1):
        _sink(scratch.cursors, scratch.count, i - 1)
    return _merge(access, records, scratch, most)
