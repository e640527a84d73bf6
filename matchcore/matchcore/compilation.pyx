# cython: language_level=3, cdivision=True
"""Drafts of selectors, compiled: the form without NOT, then access keys, program and glance. Drawn in draft.pxd."""

from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memchr, memcpy, memset

from matchcore.access cimport access_forget
from matchcore.cover cimport choose_keys, cover_forget, steps_of, write_entries
from matchcore.draft cimport (
    DRAFT_ALL, DRAFT_ANY, DRAFT_BETWEEN, DRAFT_COMPARE, DRAFT_HITS, DRAFT_IN, DRAFT_LIKE, DRAFT_MATCHES, DRAFT_NONE,
    DRAFT_PRESENT, NORMAL_ALWAYS, NORMAL_NEVER, DraftNode, EmittedStep, NormalNode,
    draft_constant, draft_done, draft_of, grown,
)
from matchcore.fields cimport FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_TEXT, Field, Fields
from matchcore.glance cimport glance_of
from matchcore.normals cimport make_normals
from matchcore.program cimport (
    ENDS_FALSE, ENDS_TRUE, HITS_COUNT, HITS_RESET, IN_FALSE, IN_TRUE, LIKE_ANY, LIKE_ONE, MASK_ABOVE, MASK_ALL,
    MASK_BELOW, MASK_EQUAL, NEGATED, TEST_BOOLEAN, TEST_FLOAT, TEST_IN, TEST_INTEGER, TEST_LIKE, TEST_PREFIX,
    TEST_PRESENT, TEST_SUFFIX, TEST_TEXT, TEST_TOPIC, TESTS, TESTS_AT_MOST, Program, Step, ValueList, program_bytes,
    program_holds, program_release, program_steps, text_is_like,
)
from matchcore.values cimport order_of_texts

cdef enum:
    ENDS_TRUE_AT = -1      # labels of the two ends
    ENDS_FALSE_AT = -2
    LATER = 1_000          # the cost of a test that has a key: it is expected to be true

# Of a test, beside each other, by DraftNode.kind.
cdef uint32_t[9] COSTS
COSTS[DRAFT_COMPARE], COSTS[DRAFT_BETWEEN], COSTS[DRAFT_IN] = 2, 3, 6
COSTS[DRAFT_LIKE], COSTS[DRAFT_MATCHES], COSTS[DRAFT_PRESENT] = 8, 8, 1


cdef int _acquire(SelectorDraft draft, Attributes attributes, uint32_t at) except -1:
    """Numbers the attributes of all tests: one holder each, until `_release`."""
    cdef uint32_t part
    if draft.normals[at].kind > DRAFT_HITS:
        draft.normals[at].number = DRAFT_NONE
        draft.normals[at].number = <uint32_t> attributes.acquire_spelled(
            draft.octets + draft.nodes[draft.normals[at].test].attribute
        )
        return 0
    part = draft.normals[at].first
    while part != DRAFT_NONE:
        _acquire(draft, attributes, part)
        part = draft.normals[part].next
    return 0


cdef void _release(SelectorDraft draft, Attributes attributes, uint32_t at) noexcept:
    cdef uint32_t part = draft.normals[at].first
    if draft.normals[at].kind > DRAFT_HITS:
        if draft.normals[at].number != DRAFT_NONE:
            attributes.drop(draft.normals[at].number)
        return
    while part != DRAFT_NONE:
        _release(draft, attributes, part)
        part = draft.normals[part].next


# The steps of a program, the last first: so that a step's successors are known when it is written

cdef uint32_t _weigh(SelectorDraft draft, uint32_t at) noexcept:
    """The cost of a node: cheap parts come first, those that have keys after the others."""
    cdef NormalNode* node = &draft.normals[at]
    cdef uint32_t part = node.first
    if node.kind > DRAFT_HITS:
        node.cost = COSTS[node.kind] + (LATER if node.is_chosen else 0)
    while part != DRAFT_NONE:
        node.cost += _weigh(draft, part)
        part = draft.normals[part].next
    return node.cost


cdef int _step(
    SelectorDraft draft, int code, int mask, uint32_t attribute, int on_true, int on_false, int64_t bits
) noexcept:
    cdef EmittedStep* step = &draft.emitted[draft.emitted_count]
    step.code = <uint8_t> code
    step.mask = <uint8_t> mask
    step.attribute = <uint16_t> attribute
    step.on_true = on_true
    step.on_false = on_false
    step.test = DRAFT_NONE
    step.size = 0
    step.bits = bits
    draft.emitted_count += 1
    return draft.emitted_count - 1


cdef int _text_step(
    SelectorDraft draft, int code, int mask, uint32_t attribute, int on_true, int on_false, const char* text,
    size_t size,
) noexcept:
    cdef int made = _step(draft, code, mask, attribute, on_true, on_false, text - draft.octets)
    draft.emitted[made].size = <uint32_t> size
    return made


cdef int _entry(SelectorDraft draft, uint32_t at, int on_true, int on_false) noexcept:
    """The label of the step that decides a node, which goes on at these labels."""
    cdef NormalNode* node = &draft.normals[at]
    cdef uint32_t[TESTS_AT_MOST] parts
    cdef uint32_t i, j, part
    cdef uint32_t count = 0
    cdef uint32_t counter
    cdef int next = on_false
    if node.kind > DRAFT_HITS:
        node.label = _test(draft, node, &draft.nodes[node.test], on_true, on_false)
        return node.label
    part = node.first
    while part != DRAFT_NONE:  # the dearest first; in their order where they cost the same
        i = count
        while i > 0 and draft.normals[parts[i - 1]].cost < draft.normals[part].cost:
            parts[i] = parts[i - 1]
            i -= 1
        parts[i] = part
        count += 1
        part = draft.normals[part].next
    if node.kind == DRAFT_ALL:
        for j in range(count):
            on_true = _entry(draft, parts[j], on_true, on_false)
        return on_true
    if node.kind == DRAFT_ANY:
        for j in range(count):
            on_false = _entry(draft, parts[j], on_true, on_false)
        return on_false
    counter = draft.counters
    draft.counters += 1
    for j in range(count):
        i = <uint32_t> _step(draft, HITS_COUNT, counter, 0, on_true, next, node.count)
        next = _entry(draft, parts[j], <int> i, next)
    return _step(draft, HITS_RESET, counter, 0, next, next, 0)


cdef int _compared(
    SelectorDraft draft, uint32_t number, int mask, uint32_t value, int on_true, int on_false
) noexcept:
    cdef Field constant
    cdef int64_t bits
    draft_constant(draft, value, &constant)
    if constant.kind == FIELD_TEXT:
        return _text_step(draft, TEST_TEXT, mask, number, on_true, on_false, constant.text, constant.size)
    if constant.kind == FIELD_FLOAT:
        memcpy(&bits, &constant.real, 8)
        return _step(draft, TEST_FLOAT, mask, number, on_true, on_false, bits)
    return _step(
        draft, TEST_BOOLEAN if constant.kind == FIELD_BOOLEAN else TEST_INTEGER, mask, number, on_true, on_false,
        constant.integer,
    )


cdef int _test(SelectorDraft draft, const NormalNode* leaf, const DraftNode* node, int on_true, int on_false) noexcept:
    cdef int negated = NEGATED if leaf.negated else 0
    cdef uint32_t low = node.first
    cdef uint32_t high = low + 1
    cdef int made
    if node.kind == DRAFT_COMPARE:
        return _compared(
            draft, leaf.number, node.mask ^ (MASK_ALL if leaf.negated else 0), node.first, on_true, on_false
        )
    if node.kind == DRAFT_PRESENT:
        return _step(draft, TEST_PRESENT, negated, leaf.number, on_true, on_false, 0)
    if node.kind == DRAFT_IN:
        return _among(draft, leaf, node, on_true, on_false)
    if node.kind == DRAFT_LIKE:
        return _like(draft, leaf, node, on_true, on_false)
    if node.kind == DRAFT_MATCHES:
        return _text_step(
            draft, TEST_TOPIC, negated | node.mask, leaf.number, on_true, on_false,
            draft.octets + draft.values[low].bits, draft.values[low].size,
        )
    if not leaf.negated:
        made = _compared(draft, leaf.number, MASK_BELOW | MASK_EQUAL, high, on_true, on_false)
        return _compared(draft, leaf.number, MASK_ABOVE | MASK_EQUAL, low, made, on_false)
    # Below or above. Where the two have different types, also: it can be compared with both, as untyped text can.
    made = _compared(draft, leaf.number, MASK_ABOVE, high, on_true, on_false)
    made = _compared(draft, leaf.number, MASK_BELOW, low, on_true, made)
    if steps_of(draft, leaf) == 2:
        return made
    made = _compared(draft, leaf.number, MASK_ALL, high, made, on_false)
    return _compared(draft, leaf.number, MASK_ALL, low, made, on_false)


cdef int _like(SelectorDraft draft, const NormalNode* leaf, const DraftNode* node, int on_true, int on_false) noexcept:
    cdef const char* pattern = draft.octets + draft.values[node.first].bits
    cdef size_t size = draft.values[node.first].size
    cdef bint opened = size != 0 and <uint8_t> pattern[0] == LIKE_ANY
    cdef bint closed = size != 0 and <uint8_t> pattern[size - 1] == LIKE_ANY
    cdef const char* plain = pattern + opened
    cdef size_t plain_size = size - opened
    cdef int mask = NEGATED if leaf.negated else 0
    if plain_size != 0:
        plain_size -= closed
    if memchr(plain, LIKE_ONE, plain_size) != NULL or memchr(plain, LIKE_ANY, plain_size) != NULL or (
        plain_size != 0 and opened and closed
    ):
        return _text_step(draft, TEST_LIKE, mask, leaf.number, on_true, on_false, pattern, size)
    if not opened and not closed:
        mask = MASK_EQUAL ^ (MASK_ALL if leaf.negated else 0)
        return _text_step(draft, TEST_TEXT, mask, leaf.number, on_true, on_false, plain, plain_size)
    return _text_step(
        draft, TEST_PREFIX if closed else TEST_SUFFIX, mask, leaf.number, on_true, on_false, plain, plain_size
    )


cdef int _among(SelectorDraft draft, const NormalNode* leaf, const DraftNode* node, int on_true, int on_false) noexcept:
    cdef int mask = NEGATED if leaf.negated else 0
    cdef uint32_t i
    cdef int made
    for i in range(node.first, node.first + node.count):
        if draft.values[i].kind == FIELD_BOOLEAN:
            mask |= IN_TRUE if draft.values[i].bits else IN_FALSE
    made = _step(draft, TEST_IN, mask, leaf.number, on_true, on_false, 0)
    draft.emitted[made].test = leaf.test
    return made


# The block

cdef inline uint16_t _target(int label, int count) noexcept:
    if label < 0:
        return ENDS_TRUE if label == ENDS_TRUE_AT else ENDS_FALSE
    return <uint16_t> (count - 1 - label)


cdef size_t _room(SelectorDraft draft) noexcept:
    """Bytes that the block takes at most: an entry of a choice has three units at most."""
    cdef size_t size = sizeof(Program) + <size_t> draft.emitted_count * sizeof(Step) + 4 + 12 * draft.choice_count
    cdef const EmittedStep* step
    cdef const DraftNode* node
    cdef int i
    cdef uint32_t j
    for i in range(draft.emitted_count):
        step = &draft.emitted[i]
        size += step.size
        if step.test != DRAFT_NONE:
            node = &draft.nodes[step.test]
            size += sizeof(ValueList) + 3
            for j in range(node.first, node.first + node.count):
                size += 8 + draft.values[j].size
    return size


cdef int _order(const void* one, const void* other) noexcept nogil:
    """Of values of an IN: integers, floats, texts, each ascending."""
    cdef const Field* a = <const Field*> one
    cdef const Field* b = <const Field*> other
    if a.kind != b.kind:
        return <int> a.kind - <int> b.kind
    if a.kind == FIELD_TEXT:
        return order_of_texts(a.text, a.size, b.text, b.size)
    if a.kind == FIELD_FLOAT:
        return (a.real > b.real) - (a.real < b.real)
    return (a.integer > b.integer) - (a.integer < b.integer)


cdef uint32_t _sorted(SelectorDraft draft, const DraftNode* node, Field* values, ValueList* sizes) noexcept:
    """The values of an IN, each once, without booleans; how many."""
    cdef uint32_t count = 0
    cdef uint32_t kept = 0
    cdef uint32_t i
    for i in range(node.first, node.first + node.count):
        draft_constant(draft, i, &values[count])
        count += values[count].kind != FIELD_BOOLEAN
    qsort(values, count, sizeof(Field), _order)
    memset(sizes, 0, sizeof(ValueList))
    for i in range(count):
        if kept != 0 and _order(&values[kept - 1], &values[i]) == 0:
            continue
        values[kept] = values[i]
        sizes.integers += values[kept].kind == FIELD_INTEGER
        sizes.floats += values[kept].kind == FIELD_FLOAT
        sizes.texts += values[kept].kind == FIELD_TEXT
        kept += 1
    return kept


cdef size_t _write_lists(SelectorDraft draft, const DraftNode* node, Field* values, char* block, size_t at) noexcept:
    """The lists of an IN, from `at` on; where they end."""
    cdef ValueList sizes
    cdef uint32_t count = _sorted(draft, node, values, &sizes)
    cdef uint32_t i
    cdef uint32_t[2] place
    cdef size_t text_at = at + sizeof(ValueList) + 8 * <size_t> count
    memcpy(block + at, &sizes, sizeof(sizes))
    at += sizeof(sizes)
    for i in range(count):
        if values[i].kind == FIELD_TEXT:
            place[0] = <uint32_t> text_at
            place[1] = values[i].size
            memcpy(block + at, place, 8)
            memcpy(block + text_at, values[i].text, values[i].size)
            text_at += values[i].size
        else:
            memcpy(block + at, &values[i].integer, 8)  # or the float, which lies in the same place
        at += 8
    return text_at


cdef int _write(SelectorDraft draft, int first) except -1:
    """Header, steps, data and entries."""
    cdef int count = draft.emitted_count
    cdef size_t at = sizeof(Program) + <size_t> count * sizeof(Step)
    cdef const EmittedStep* emitted
    cdef Program* program
    cdef Step* step
    cdef char* block
    cdef int i
    draft.program = <uint32_t*> grown(
        draft.program, &draft.program_room, (_room(draft) + 3) // 4, sizeof(uint32_t)
    )
    block = <char*> draft.program
    program = <Program*> block
    for i in range(count):
        emitted = &draft.emitted[count - 1 - i]
        step = <Step*> (block + sizeof(Program)) + i
        step.code = emitted.code
        step.mask = emitted.mask
        step.attribute = emitted.attribute
        step.on_true = _target(emitted.on_true, count)
        step.on_false = _target(emitted.on_false, count)
        if emitted.test != DRAFT_NONE:
            while at & 3:
                block[at] = 0
                at += 1
            step.low = <uint32_t> (at // 4)
            step.high = 0
            draft.sorted = <Field*> grown(
                draft.sorted, &draft.sorted_room, draft.nodes[emitted.test].count + 1, sizeof(Field)
            )
            at = _write_lists(draft, &draft.nodes[emitted.test], draft.sorted, block, at)
        elif TEST_TEXT <= emitted.code <= TEST_LIKE or emitted.code == TEST_TOPIC:
            step.low = <uint32_t> at
            step.high = emitted.size
            memcpy(block + at, draft.octets + emitted.bits, emitted.size)
            at += emitted.size
        else:
            memcpy(&step.low, &emitted.bits, 8)
    while at & 3:
        block[at] = 0
        at += 1
    program.units = <uint32_t> (at // 4)
    program.steps = <uint16_t> count
    program.first = <int8_t> _target(first, count)
    program.entries = 0
    if draft.is_keyed:
        program.entries = <uint8_t> write_entries(draft, &draft.program[program.units], <uint32_t> count)
    return 0


# The whole

cdef int compile_draft(SelectorDraft draft, Attributes attributes, Access* access, Glance* glance) except -1:
    cdef const Step* steps
    cdef int first, i
    draft.choice_count = 0
    draft.emitted_count = 0
    draft.counters = 0
    draft.is_keyed = draft.is_counted = False
    make_normals(draft)
    if draft.normal >= NORMAL_NEVER:
        _write(draft, ENDS_TRUE_AT if draft.normal == NORMAL_ALWAYS else ENDS_FALSE_AT)
        glance[0] = glance_of(draft)
        return 0
    if draft.tests > TESTS_AT_MOST:
        raise ValueError(f"{draft.tests} tests, more than {TESTS_AT_MOST}")
    for i in range(<int> draft.normal_count):
        draft.normals[i].number = DRAFT_NONE
    try:
        _acquire(draft, attributes, draft.normal)
        if access != NULL:
            choose_keys(draft, access)
        _weigh(draft, draft.normal)
        first = _entry(draft, draft.normal, ENDS_TRUE_AT, ENDS_FALSE_AT)
        glance[0] = glance_of(draft)
        _write(draft, first)
        steps = program_steps(<const Program*> draft.program)
        for i in range(draft.emitted_count):
            if steps[i].code < TESTS:
                attributes.hold(steps[i].attribute)
    except BaseException:
        if access != NULL:
            cover_forget(draft, access)
        raise
    finally:
        _release(draft, attributes, draft.normal)
    return 0


cdef void draft_forget(SelectorDraft draft, Attributes attributes, Access* access) noexcept:
    program_release(<const Program*> draft.program, attributes)
    if access != NULL:
        access_forget(access, <const Program*> draft.program)


cdef bytes program_of(object selector, Attributes attributes):
    cdef SelectorDraft draft = draft_of(selector)
    cdef Glance glance
    cdef bytes made
    compile_draft(draft, attributes, NULL, &glance)
    try:
        made = (<const char*> draft.program)[: program_bytes(<const Program*> draft.program)]
    except MemoryError:
        program_release(<const Program*> draft.program, attributes)
        raise
    draft_done(draft)
    return made


def _holds(selector: object, mapping: object) -> bool:
    """For tests: whether a selector is true of these fields, by its program alone."""
    attributes = Attributes()
    cdef bytes block = program_of(selector, attributes)
    cdef Fields fields = Fields(attributes)
    fields.load(mapping)
    cdef const Program* program = <const Program*> <const char*> block
    held = program_holds(program, fields.at)
    program_release(program, attributes)
    if attributes.count != 0:
        raise AssertionError(f"{attributes.count} attributes are still held")
    return held


def _like_steps(text: bytes, pattern: object) -> tuple:
    """For tests: whether a text is like the pattern of a `Like`, and in how many steps that was decided."""
    cdef SelectorDraft draft = draft_of(pattern)
    cdef uint32_t value = draft.nodes[draft.root].first
    cdef uint64_t steps = 0
    held = text_is_like(
        <const uint8_t*> <const char*> text, len(text),
        <const uint8_t*> draft.octets + draft.values[value].bits, draft.values[value].size, &steps,
    )
    return held, steps
