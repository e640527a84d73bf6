# cython: language_level=3, cdivision=True
"""The access cover of a selector: tests of which at least one is true whenever the selector is.

    AND               its cheapest part
    OR                all its parts
    AT LEAST k OF n   the n-k+1 cheapest: no more than n-k can fail

A test costs the share of the messages for which it is expected to be true: a value one of those that the column has
seen, a range the cells that it overlaps. Linear in the selector: nothing is multiplied out (access predicates: Fabret
et al., "Filtering algorithms and implementation for very fast publish/subscribe systems", 2001).
"""

from libc.math cimport HUGE_VAL
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memmove

from matchcore.access cimport (
    AFFIX_AT_MOST, CELLS, CELLS_AT_MOST, KEY_PREFIX, KEY_PRESENT, KEY_RANGE, KEY_SUFFIX, KEY_VALUE, NO_STEP,
    AccessColumn, AccessEntry, AccessRange, access_cell, access_column, access_drop, access_has_cells,
    access_make_column, access_sample, access_see, access_units, access_values, tag_of_affix,
)
from matchcore.draft cimport (
    DRAFT_ALL, DRAFT_BETWEEN, DRAFT_COMPARE, DRAFT_HITS, DRAFT_IN, DRAFT_LIKE, DRAFT_NONE, DRAFT_PRESENT, DraftNode,
    KeyChoice, NormalNode, draft_constant, grown, type_of,
)
from matchcore.fields cimport FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_TEXT, Field
from matchcore.hashing cimport hash_secret
from matchcore.program cimport LIKE_ONE, MASK_ABOVE, MASK_ALL, MASK_BELOW, MASK_EQUAL, TESTS_AT_MOST
from matchcore.values cimport (
    hash_boolean, hash_float, hash_integer, hash_text, order_of_floats, order_of_integer_and_float, order_of_integers,
    ordered_float,
)

cdef double NEVER_CHEAP = HUGE_VAL
cdef double CHEAP = 0.5                   # of the messages: what a cover lets through at most
cdef double BOOLEAN_COST = 0.5
cdef double PRESENT_COST = 0.25
cdef double[4] AFFIX_COSTS                # by the bytes of a prefix or suffix
AFFIX_COSTS[:] = [1.0, 1 / 16., 1 / 32., 1 / 64.]
cdef double LEAST_AFFIX_COST = 1 / 256.   # where many were seen: one may begin like another

cdef enum:
    VALUES_AT_LEAST = 16    # that a column is taken to have while few were seen
    VALUES_AT_MOST = 1_024  # beyond which they cannot be counted

cdef uint64_t LOWEST = 0
cdef uint64_t HIGHEST = 0xFFFFFFFFFFFFFFFF


cdef KeyChoice* _choice(SelectorDraft draft, uint32_t kind) except NULL:
    cdef KeyChoice* choice
    draft.choices = <KeyChoice*> grown(draft.choices, &draft.choice_room, draft.choice_count + 1, sizeof(KeyChoice))
    choice = &draft.choices[draft.choice_count]
    choice.kind = <uint16_t> kind
    choice.tag = choice.size = 0
    choice.leaf = choice.low = choice.high = DRAFT_NONE
    draft.choice_count += 1
    return choice


# Tests: what each costs, with its keys behind the choices. Where it is never cheap, without any.

cdef double _of_test(SelectorDraft draft, Access* access, uint32_t at) except? -1:
    cdef const NormalNode* leaf = &draft.normals[at]
    cdef const DraftNode* node = &draft.nodes[leaf.test]
    cdef Field low, high
    if node.kind == DRAFT_COMPARE:
        return _of_compared(draft, access, at, node, node.mask ^ (MASK_ALL if leaf.negated else 0))
    if leaf.negated:
        return NEVER_CHEAP
    if node.kind == DRAFT_BETWEEN:
        draft_constant(draft, node.first, &low)
        draft_constant(draft, node.first + 1, &high)
        return _of_range(draft, access, at, at, &low, &high)
    if node.kind == DRAFT_IN:
        return _of_values(draft, access, leaf.number, node.first, node.count)
    if node.kind == DRAFT_PRESENT:
        _choice(draft, KEY_PRESENT)
        return PRESENT_COST
    return _of_pattern(draft, access, leaf.number, node.first if node.kind == DRAFT_LIKE else node.first + 1)


cdef double _of_compared(
    SelectorDraft draft, Access* access, uint32_t at, const DraftNode* node, int mask
) except? -1:
    cdef Field value
    cdef uint32_t number = draft.normals[at].number
    draft_constant(draft, node.first, &value)
    if value.kind == FIELD_BOOLEAN:
        return _of_boolean(draft, access, number, <int> value.integer, mask)
    if mask == MASK_EQUAL:
        return _of_values(draft, access, number, node.first, 1)
    if mask & ~MASK_EQUAL == MASK_BELOW:
        return _of_range(draft, access, DRAFT_NONE, at, NULL, &value)
    if mask & ~MASK_EQUAL == MASK_ABOVE:
        return _of_range(draft, access, at, DRAFT_NONE, &value, NULL)
    return NEVER_CHEAP


cdef double _of_boolean(SelectorDraft draft, Access* access, uint32_t number, int value, int mask) except? -1:
    """FALSE is below TRUE: which of the two are let through?"""
    cdef bint lets_false = mask >> (1 - value) & 1
    cdef bint lets_true = mask >> (2 - value) & 1
    if lets_false == lets_true:
        return NEVER_CHEAP
    _choice(draft, KEY_VALUE)
    access_see(access_column(access, number), hash_boolean(hash_secret(), number, lets_true))
    return BOOLEAN_COST


cdef double _of_values(SelectorDraft draft, Access* access, uint32_t number, uint32_t first, uint32_t count) except? -1:
    cdef AccessColumn* column = access_column(access, number)
    cdef uint32_t booleans = 0
    cdef uint32_t i
    _choice(draft, KEY_VALUE)
    for i in range(first, first + count):
        access_see(column, _hash(draft, number, i))
        booleans += draft.values[i].kind == FIELD_BOOLEAN
    return booleans * BOOLEAN_COST + (count - booleans) / _values(column)


cdef double _of_range(
    SelectorDraft draft, Access* access, uint32_t low_at, uint32_t high_at, const Field* low, const Field* high
) except? -1:
    """From `low` of one test to `high` of another, or the same, both within; DRAFT_NONE, NULL: no end there."""
    cdef AccessColumn* column
    cdef KeyChoice* choice
    cdef uint32_t cells
    cdef uint64_t from_ = LOWEST
    cdef uint64_t to = HIGHEST
    if (low != NULL and not _is_number(low)) or (high != NULL and not _is_number(high)):
        return NEVER_CHEAP
    if low != NULL:
        from_ = _ordered(low)
    if high != NULL:
        to = _ordered(high)
    column = access_column(access, draft.normals[high_at if low == NULL else low_at].number)
    if low != NULL and access_sample(access, column, from_) < 0:
        raise MemoryError()
    if high != NULL and access_sample(access, column, to) < 0:
        raise MemoryError()
    if from_ > to or not access_has_cells(column):
        return NEVER_CHEAP
    cells = access_cell(column, to) - access_cell(column, from_) + 1
    if cells > CELLS_AT_MOST:
        return NEVER_CHEAP
    choice = _choice(draft, KEY_RANGE)
    choice.low, choice.high = low_at, high_at
    return <double> cells / CELLS


cdef double _of_pattern(SelectorDraft draft, Access* access, uint32_t number, uint32_t value) except? -1:
    cdef KeyChoice* choice
    cdef const uint8_t* pattern = <const uint8_t*> draft.octets + draft.values[value].bits
    cdef uint32_t size = draft.values[value].size
    cdef uint32_t before = 0
    cdef uint32_t behind = 0
    cdef uint32_t affix, tag
    cdef AccessColumn* column
    cdef double cost
    while before < size and pattern[before] < LIKE_ONE:
        before += 1
    if before == size:
        _choice(draft, KEY_VALUE)
        return AFFIX_COSTS[3]
    while pattern[size - 1 - behind] < LIKE_ONE:
        behind += 1
    before, behind = min(before, <uint32_t> AFFIX_AT_MOST), min(behind, <uint32_t> AFFIX_AT_MOST)
    if before == 0 and behind == 0:
        return NEVER_CHEAP
    affix = max(before, behind)
    if before >= behind:
        tag = tag_of_affix(number, KEY_PREFIX, <const char*> pattern, affix)
    else:
        tag = tag_of_affix(number, KEY_SUFFIX, <const char*> pattern + size - affix, affix)
    column = access_column(access, number)
    access_see(column, tag)
    cost = AFFIX_COSTS[min(3, affix)]
    if affix >= 4 and access_values(column) > 64:
        cost = max(1 / access_values(column), LEAST_AFFIX_COST)  # long enough to be one of many, as a value is
    choice = _choice(draft, KEY_PREFIX if before >= behind else KEY_SUFFIX)
    choice.tag, choice.size = tag, affix
    return cost


cdef inline bint _is_number(const Field* value) noexcept:
    return value.kind == FIELD_INTEGER or value.kind == FIELD_FLOAT


cdef inline uint64_t _ordered(const Field* value) noexcept:
    return ordered_float(<double> value.integer if value.kind == FIELD_INTEGER else value.real)


cdef uint64_t _hash(SelectorDraft draft, uint32_t number, uint32_t value) noexcept:
    cdef const uint64_t* secret = hash_secret()
    cdef Field constant
    draft_constant(draft, value, &constant)
    if constant.kind == FIELD_TEXT:
        return hash_text(secret, number, constant.text, constant.size)
    if constant.kind == FIELD_FLOAT:
        return hash_float(secret, number, constant.real)
    if constant.kind == FIELD_BOOLEAN:
        return hash_boolean(secret, number, constant.integer)
    return hash_integer(secret, number, constant.integer)


cdef double _values(const AccessColumn* column) noexcept nogil:
    """How many a column is taken to have: those that were seen, once that is often enough to know."""
    cdef double seen = access_values(column)
    cdef double least = 2 if column.holders > 8 * seen else VALUES_AT_LEAST
    return min(max(seen, least), <double> VALUES_AT_MOST)


# Joins

cdef double _of(SelectorDraft draft, Access* access, uint32_t at) except? -1:
    """What a cover of a node costs; its keys are behind the choices."""
    cdef const NormalNode* node = &draft.normals[at]
    cdef size_t start = draft.choice_count
    cdef size_t i
    cdef uint32_t part
    cdef double cost
    if node.kind == DRAFT_ALL:
        return _of_all(draft, access, node)
    if node.kind == DRAFT_HITS:
        return _of_hits(draft, access, node)
    if node.kind > DRAFT_HITS:
        cost = _of_test(draft, access, at)
        for i in range(start, draft.choice_count):
            draft.choices[i].leaf = at
        return cost
    cost = 0
    part = node.first
    while part != DRAFT_NONE:
        cost += _of(draft, access, part)
        part = draft.normals[part].next
    return cost


cdef inline double _better(SelectorDraft draft, double cost, double best, size_t start, size_t at) noexcept:
    """The cheaper of two, whose keys stay from `start` on: those of the other begin, or are all, at `at`."""
    if cost < best:
        memmove(&draft.choices[start], &draft.choices[at], (draft.choice_count - at) * sizeof(KeyChoice))
        draft.choice_count -= at - start
        return cost
    draft.choice_count = at
    return best


cdef double _of_all(SelectorDraft draft, Access* access, const NormalNode* node) except? -1:
    cdef size_t start = draft.choice_count
    cdef size_t at
    cdef double best = NEVER_CHEAP
    cdef double cost
    cdef uint32_t part = node.first
    cdef uint32_t low_at, high_at
    cdef Field low, high
    while part != DRAFT_NONE:
        at = draft.choice_count
        cost = _of(draft, access, part)
        best = _better(draft, cost, best, start, at)
        part = draft.normals[part].next
    # What parts hold between two numbers: `a > 1 AND a < 3`, as the first of them, with the nearest ends.
    part = node.first
    while part != DRAFT_NONE:
        if _is_first_limit(draft, node, part) and _has_limits(
            draft, part, &low_at, &high_at, &low, &high
        ):
            at = draft.choice_count
            cost = _of_range(draft, access, low_at, high_at, &low, &high)
            best = _better(draft, cost, best, start, at)
        part = draft.normals[part].next
    return best


cdef int _limit(SelectorDraft draft, uint32_t at, Field* value) noexcept:
    """MASK_ABOVE or MASK_BELOW: the part holds an attribute above, or below, this number; else 0."""
    cdef const NormalNode* leaf = &draft.normals[at]
    cdef const DraftNode* node
    cdef int mask
    if leaf.kind != DRAFT_COMPARE:
        return 0
    node = &draft.nodes[leaf.test]
    mask = (node.mask ^ (MASK_ALL if leaf.negated else 0)) & ~MASK_EQUAL
    draft_constant(draft, node.first, value)
    return mask if _is_number(value) and (mask == MASK_ABOVE or mask == MASK_BELOW) else 0


cdef bint _is_first_limit(SelectorDraft draft, const NormalNode* node, uint32_t at) noexcept:
    cdef Field value
    cdef uint32_t part = node.first
    if _limit(draft, at, &value) == 0:
        return False
    while part != at:
        if draft.normals[part].number == draft.normals[at].number and _limit(draft, part, &value) != 0:
            return False
        part = draft.normals[part].next
    return True


cdef bint _has_limits(
    SelectorDraft draft, uint32_t at, uint32_t* low_at, uint32_t* high_at, Field* low, Field* high
) noexcept:
    """The nearest ends of those of this attribute, from this part on; whether there are both."""
    cdef Field value
    cdef int which
    cdef int found = 0
    cdef uint32_t part = at
    while part != DRAFT_NONE:
        which = _limit(draft, part, &value) if draft.normals[part].number == draft.normals[at].number else 0
        if which == MASK_ABOVE and (not found & MASK_ABOVE or _order(&value, low) > 0):
            low[0] = value
            low_at[0] = part
        elif which == MASK_BELOW and (not found & MASK_BELOW or _order(&value, high) < 0):
            high[0] = value
            high_at[0] = part
        found |= which
        part = draft.normals[part].next
    return found == MASK_ABOVE | MASK_BELOW


cdef int _order(const Field* one, const Field* other) noexcept:
    if one.kind == FIELD_INTEGER:
        if other.kind == FIELD_INTEGER:
            return order_of_integers(one.integer, other.integer)
        return order_of_integer_and_float(one.integer, other.real)
    if other.kind == FIELD_INTEGER:
        return -order_of_integer_and_float(other.integer, one.real)
    return order_of_floats(one.real, other.real)


cdef double _of_hits(SelectorDraft draft, Access* access, const NormalNode* node) except? -1:
    cdef double[TESTS_AT_MOST] costs
    cdef size_t[TESTS_AT_MOST + 1] begins
    cdef size_t end = draft.choice_count
    cdef double cost = 0
    cdef uint32_t count = 0
    cdef uint32_t part = node.first
    cdef uint32_t i, j, rank
    while part != DRAFT_NONE:
        begins[count] = draft.choice_count
        costs[count] = _of(draft, access, part)
        count += 1
        part = draft.normals[part].next
    begins[count] = draft.choice_count
    for i in range(count):
        rank = 0  # how many come before it, the cheapest first
        for j in range(count):
            rank += costs[j] < costs[i] or (costs[j] == costs[i] and j < i)
        if rank < count - node.count + 1:
            cost += costs[i]
            memmove(
                &draft.choices[end], &draft.choices[begins[i]], (begins[i + 1] - begins[i]) * sizeof(KeyChoice)
            )
            end += begins[i + 1] - begins[i]
    draft.choice_count = end
    return cost


# The whole

cdef uint32_t steps_of(SelectorDraft draft, const NormalNode* leaf) noexcept:
    cdef const DraftNode* node = &draft.nodes[leaf.test]
    cdef bint of_one_type
    if node.kind != DRAFT_BETWEEN:
        return 1
    of_one_type = type_of(draft.values[node.first].kind) == type_of(draft.values[node.first + 1].kind)
    return 4 if leaf.negated and not of_one_type else 2


cdef int _count(SelectorDraft draft, Access* access, uint32_t at, bint make) except -1:
    """Makes the columns of all tests, or counts these in them."""
    cdef const NormalNode* node = &draft.normals[at]
    cdef uint32_t part = node.first
    if node.kind > DRAFT_HITS:
        if not make:
            access_column(access, node.number).holders += steps_of(draft, node)
        elif access_make_column(access, node.number) == NULL:
            raise MemoryError()
    while part != DRAFT_NONE:
        _count(draft, access, part, make)
        part = draft.normals[part].next
    return 0


cdef void _forget(SelectorDraft draft, Access* access, uint32_t at) noexcept:
    cdef const NormalNode* node = &draft.normals[at]
    cdef uint32_t part = node.first
    if node.kind > DRAFT_HITS:
        access_drop(access, node.number, steps_of(draft, node) if draft.is_counted else 0)
    while part != DRAFT_NONE:
        _forget(draft, access, part)
        part = draft.normals[part].next


cdef void cover_forget(SelectorDraft draft, Access* access) noexcept:
    _forget(draft, access, draft.normal)


cdef int choose_keys(SelectorDraft draft, Access* access) except -1:
    cdef size_t i
    _count(draft, access, draft.normal, True)
    _count(draft, access, draft.normal, False)
    draft.is_counted = True
    if _of(draft, access, draft.normal) > CHEAP:
        return 0
    for i in range(draft.choice_count):
        if draft.choices[i].leaf != DRAFT_NONE:
            draft.normals[draft.choices[i].leaf].is_chosen = True
    draft.is_keyed = True
    return 0


cdef inline uint16_t _step_of(SelectorDraft draft, uint32_t leaf, uint32_t count, bint upper) noexcept:
    """The step of a test; the upper end of BETWEEN has the one behind it."""
    if leaf == DRAFT_NONE:
        return NO_STEP
    upper = upper and draft.normals[leaf].kind == DRAFT_BETWEEN
    return <uint16_t> (count - 1 - <uint32_t> draft.normals[leaf].label + upper)


cdef uint32_t write_entries(SelectorDraft draft, uint32_t* entries, uint32_t count) noexcept:
    cdef const KeyChoice* choice
    cdef AccessEntry* entry
    cdef AccessRange* behind
    cdef uint32_t at = 0
    cdef size_t i
    for i in range(draft.choice_count):
        choice = &draft.choices[i]
        entry = <AccessEntry*> &entries[at]
        entry.kind = choice.kind
        if choice.kind == KEY_RANGE:
            entry.step = _step_of(draft, choice.low, count, False)
            behind = <AccessRange*> &entries[at + 1]
            behind.step = _step_of(draft, choice.high, count, True)
            behind.attribute = <uint16_t> draft.normals[choice.high if choice.low == DRAFT_NONE else choice.low].number
        else:
            entry.step = _step_of(draft, choice.leaf, count, False)
            if choice.kind >= KEY_PREFIX:
                entries[at + 1] = choice.tag
                entries[at + 2] = choice.size
        at += access_units(choice.kind)
    return at
