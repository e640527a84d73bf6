# cython: language_level=3, cdivision=True
"""A first look at selectors, before their programs. Drawn in glance.pxd."""

from libc.stdint cimport uint64_t

from matchcore.fields cimport (
    FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_TEXT, FIELD_UNTYPED, Field,
)
from matchcore.hashing cimport hash_secret, hash_word
from matchcore.program cimport MASK_ABOVE, MASK_ALL, MASK_BELOW, MASK_EQUAL
from matchcore.values cimport ordered_float

from matchcore.normal_form import AllOf, Leaf
from matchcore.program import MASKS, comparable
from matchcore.selector import Between, Compare

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


cdef Glance _glance(uint32_t attribute, uint32_t low, uint32_t high):
    cdef Glance made
    made.attribute = <uint16_t> attribute
    made.low = <uint16_t> low
    made.span = <uint16_t> (high - low)
    return made


def _range_of(leaf: Leaf) -> tuple[int, object, object]:
    """(rank, low, high): between which values, both within, the test is true; None: no end there."""
    test = leaf.test
    if isinstance(test, Between) and not leaf.negated:
        low, high = comparable(test.low), comparable(test.high)
        if not isinstance(low, (bool, bytes)) and not isinstance(high, (bool, bytes)) and low <= high:
            return BETWEEN_TWO, low, high
    elif isinstance(test, Compare):
        value = comparable(test.value)
        mask = MASKS[test.operator] ^ (MASK_ALL if leaf.negated else 0)
        if mask == MASK_EQUAL:
            return ONE_OF_TWO if isinstance(value, bool) else ONE_VALUE, value, value
        if not isinstance(value, (bool, bytes)):
            if mask & ~MASK_EQUAL == MASK_BELOW:
                return ONE_SIDED, None, value
            if mask & ~MASK_EQUAL == MASK_ABOVE:
                return ONE_SIDED, value, None
    return ALL_PASS, None, None


cdef uint16_t _end(object value, uint16_t without) except? 0:
    if value is None:
        return without
    if isinstance(value, bool):
        return 1 if value else 0
    if isinstance(value, bytes):
        return _view_of_text(<const char*> <bytes> value, len(value))
    return _view(ordered_float(<double> value))


cdef Glance glance_of(object normal, Attributes attributes, list leaves):
    best, attribute, low, high = ALL_PASS, None, None, None
    for leaf in normal.parts if isinstance(normal, AllOf) else (normal,):
        if isinstance(leaf, Leaf) and not any([leaf is one for one in leaves]):
            rank, from_, to = _range_of(leaf)
            if rank < best:
                best, attribute, low, high = rank, leaf.test.attribute, from_, to
    if attribute is None:
        return _glance(0, 0, ALL_BITS)
    return _glance(attributes.number(attribute), _end(low, 0), _end(high, HIGHEST_VIEW))
