# cython: language_level=3
"""Where each word stands in a trie of names: by word and position, the nodes. Drawn in postings.pxd."""

from matchcore.allocator cimport deallocate, reallocate
from matchcore.bag cimport bag_init, bag_push, bag_reserve, bag_take_out
from matchcore.table cimport NONE

cdef enum:
    ROWS_AT_MOST = 0xFFFFFFF0
    MANY_WORDS = 0xFFFFFFF8  # more than words.pyx gives ids


cdef void postings_init(Postings* postings, Allocator* allocator, Arena* arena) noexcept nogil:
    postings.allocator = allocator
    postings.arena = arena
    postings.first = NULL
    postings.rows = NULL
    postings.words = postings.count = postings.capacity = 0
    postings.free = NONE


cdef void postings_free(Postings* postings) noexcept nogil:
    deallocate(postings.allocator, postings.first, postings.words * sizeof(uint32_t))
    deallocate(postings.allocator, postings.rows, postings.capacity * sizeof(PostingsRow))
    postings_init(postings, postings.allocator, postings.arena)


cdef uint32_t postings_row(const Postings* postings, uint32_t word, uint32_t position) noexcept nogil:
    cdef uint32_t row = postings.first[word] if word < postings.words else NONE
    while row != NONE and postings.rows[row].nodes.depth != position:
        row = postings.rows[row].next
    return row


cdef size_t postings_total(const Postings* postings, uint32_t word) noexcept nogil:
    cdef uint32_t row = postings.first[word] if word < postings.words else NONE
    cdef size_t total = 0
    while row != NONE:
        total += postings.rows[row].nodes.size
        row = postings.rows[row].next
    return total


cdef int _know(Postings* postings, uint32_t word) noexcept nogil:
    """Room for a word of this id."""
    cdef size_t words = <size_t> word + word // 4 + 16
    cdef uint32_t* first
    cdef size_t i
    if word < postings.words:
        return 0
    if words > MANY_WORDS:
        words = MANY_WORDS
    first = <uint32_t*> reallocate(
        postings.allocator, postings.first, postings.words * sizeof(uint32_t), words * sizeof(uint32_t)
    )
    if first == NULL:
        return -1
    for i in range(postings.words, words):
        first[i] = NONE
    postings.first = first
    postings.words = <uint32_t> words
    return 0


cdef int _reserve_row(Postings* postings) noexcept nogil:
    cdef size_t capacity
    cdef PostingsRow* rows
    if postings.free != NONE or postings.count < postings.capacity:
        return 0
    capacity = <size_t> postings.capacity + postings.capacity // 4 + 8
    if capacity > ROWS_AT_MOST:
        return -1
    rows = <PostingsRow*> reallocate(
        postings.allocator, postings.rows, postings.capacity * sizeof(PostingsRow), capacity * sizeof(PostingsRow)
    )
    if rows == NULL:
        return -1
    postings.rows = rows
    postings.capacity = <uint32_t> capacity
    return 0


cdef int postings_reserve(Postings* postings, uint32_t word, uint32_t position) noexcept nogil:
    cdef uint32_t row
    if _know(postings, word) < 0:
        return -1
    row = postings_row(postings, word, position)
    if row == NONE:
        return _reserve_row(postings)
    return bag_reserve(postings.arena, &postings.rows[row].nodes)


cdef uint32_t postings_add(Postings* postings, uint32_t word, uint32_t position, uint32_t node) noexcept nogil:
    cdef uint32_t i = postings_row(postings, word, position)
    cdef PostingsRow* row
    if i == NONE:
        if postings.free != NONE:
            i = postings.free
            postings.free = postings.rows[i].next
        else:
            i = postings.count
            postings.count += 1
        row = &postings.rows[i]
        bag_init(&row.nodes)
        row.nodes.depth = <uint16_t> position
        row.next = postings.first[word]
        postings.first[word] = i
    row = &postings.rows[i]
    bag_push(postings.arena, &row.nodes, node)
    return row.nodes.size - 1


cdef uint32_t postings_drop(Postings* postings, uint32_t word, uint32_t position, uint32_t posted) noexcept nogil:
    cdef uint32_t i = postings_row(postings, word, position)
    cdef PostingsRow* row = &postings.rows[i]
    cdef uint32_t moved = bag_take_out(postings.arena, &row.nodes, posted)
    cdef uint32_t before
    if row.nodes.size == 0:
        before = postings.first[word]
        if before == i:
            postings.first[word] = row.next
        else:
            while postings.rows[before].next != i:
                before = postings.rows[before].next
            postings.rows[before].next = row.next
        row.next = postings.free
        postings.free = i
    return moved
