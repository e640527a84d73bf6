# cython: language_level=3, cdivision=True
"""A first look at selectors, before their programs. Drawn in glance.pxd."""

from libc.stdint cimport uint64_t

from matchcore.draft cimport (
    DRAFT_ALL, DRAFT_BETWEEN, DRAFT_COMPARE, DRAFT_HITS, NORMAL_NEVER, DraftNode, NormalNode, SelectorDraft,
    draft_constant,
)
from matchcore.fields cimport (
    FIELD_ABSENT, FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_TEXT, FIELD_UNTYPED, Field,
)
from matchcore.hashing cimport hash_secret, hash_word
from matchcore.program cimport MASK_ABOVE, MASK_ALL, MASK_BELOW, MASK_EQUAL
from matchcore.values cimport ordered_float

cdef enum:
    HIGHEST_VIEW = 0xFFFE  # what is absent has one more
    ALL_BITS = 0xFFFF

# How often a glance lets a message through that was found under a key, as a rank.
cdef enum:
    ONE_VALUE = 1
    BETWEEN_TWO = 2
    ONE_SIDED = 3
    ONE_OF_TWO = 4
    ALL_PASS = 5


cdef inline uint16_t _view(uint64_t value) noexcept nogil:
    cdef uint64_t view = value >> 48
    return <uint16_t> (view if view < HIGHEST_VIEW else HIGHEST_VIEW)


cdef inline uint16_t _view_of_text(const char* text, size_t size) noexcept nogil:
    return _view(hash_word(hash_secret(), text, size))


cdef uint16_t view_of_text(const char* text, size_t size) noexcept nogil:
    return _view_of_text(text, size)


cdef void make_views(Fields fields) noexcept nogil:
    cdef const Field* field
    cdef FieldView* view
    cdef uint32_t i
    if fields.is_viewed:
        return
    for i in range(fields.count):
        field = &fields.at[fields.numbers[i]]
        view = &fields.views[fields.numbers[i]]
        view.mask = ALL_BITS
        if field.kind == FIELD_INTEGER:
            view.value = _view(ordered_float(<double> field.integer))
        elif field.kind == FIELD_FLOAT:
            view.value = _view(ordered_float(field.real))
        elif field.kind == FIELD_TEXT:
            view.value = _view_of_text(field.text, field.size)
        elif field.kind == FIELD_BOOLEAN:
            view.value = <uint16_t> field.integer
        elif field.kind == FIELD_UNTYPED:
            view.value = view.mask = 0  # it may be equal to a text and to a number: passes wherever 0 may
        else:
            view.value = ALL_BITS
    fields.is_viewed = True


cdef int _range_of(SelectorDraft draft, const NormalNode* leaf, Field* low, Field* high) noexcept:
    """A rank, and between which values, both within, the test is true; FIELD_ABSENT: no end there."""
    cdef const DraftNode* node = &draft.nodes[leaf.test]
    cdef Field value
    cdef int mask
    low.kind = high.kind = FIELD_ABSENT
    if node.kind == DRAFT_BETWEEN and not leaf.negated:
        draft_constant(draft, node.first, low)
        draft_constant(draft, node.first + 1, high)
        if _is_number(low) and _is_number(high) and _number(low) <= _number(high):
            return BETWEEN_TWO
    elif node.kind == DRAFT_COMPARE:
        draft_constant(draft, node.first, &value)
        mask = node.mask ^ (MASK_ALL if leaf.negated else 0)
        if mask == MASK_EQUAL:
            low[0] = high[0] = value
            return ONE_OF_TWO if value.kind == FIELD_BOOLEAN else ONE_VALUE
        if _is_number(&value) and mask & ~MASK_EQUAL == MASK_BELOW:
            high[0] = value
            return ONE_SIDED
        if _is_number(&value) and mask & ~MASK_EQUAL == MASK_ABOVE:
            low[0] = value
            return ONE_SIDED
    return ALL_PASS


cdef inline bint _is_number(const Field* value) noexcept:
    return value.kind == FIELD_INTEGER or value.kind == FIELD_FLOAT


cdef inline double _number(const Field* value) noexcept:
    return <double> value.integer if value.kind == FIELD_INTEGER else value.real


cdef uint16_t _end(const Field* value, uint16_t without) noexcept:
    if value.kind == FIELD_ABSENT:
        return without
    if value.kind == FIELD_BOOLEAN:
        return <uint16_t> value.integer
    if value.kind == FIELD_TEXT:
        return _view_of_text(value.text, value.size)
    return _view(ordered_float(_number(value)))


cdef Glance glance_of(SelectorDraft draft) noexcept:
    cdef Glance made
    cdef Field low, high, low_here, high_here
    cdef const NormalNode* leaf
    cdef uint32_t attribute = 0
    cdef uint32_t at = draft.normal
    cdef int best = ALL_PASS
    cdef int rank
    low.kind = high.kind = FIELD_ABSENT
    if at < NORMAL_NEVER and draft.normals[at].kind == DRAFT_ALL:
        at = draft.normals[at].first
    while at < NORMAL_NEVER:
        leaf = &draft.normals[at]
        if leaf.kind > DRAFT_HITS and not leaf.is_chosen:
            rank = _range_of(draft, leaf, &low_here, &high_here)
            if rank < best:
                best, attribute, low, high = rank, leaf.number, low_here, high_here
        at = leaf.next
    made.attribute = <uint16_t> attribute
    made.low = _end(&low, 0)
    made.span = ALL_BITS if best == ALL_PASS else _end(&high, HIGHEST_VIEW) - made.low
    return made
