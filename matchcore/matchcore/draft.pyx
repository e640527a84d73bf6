# cython: language_level=3, cdivision=True
"""A selector's tree in arrays. Drawn in draft.pxd."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.math cimport isfinite

from matchcore.fields cimport FIELD_BOOLEAN, HEADERS_ROOT, MESSAGE_ROOT, PAYLOAD_ROOT
from matchcore.program cimport (
    IN_MQTT, LIKE_ANY, LIKE_ONE, MASK_ABOVE, MASK_BELOW, MASK_EQUAL,
)

from matchcore.selector import (
    And, AtLeast, Between, Compare, Constant, In, Like, Matches, Not, Or, Present, Selector, Source,
)

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef enum:
    DEPTH_AT_MOST = 200    # conditions inside each other: a text may have 16, and each an AND and an OR in it
    SPARE_BYTES = 1 << 16  # what a draft that is kept may have grown to

cdef dict MASKS = {
    "=": MASK_EQUAL, "<>": MASK_BELOW | MASK_ABOVE, "<": MASK_BELOW, "<=": MASK_BELOW | MASK_EQUAL,
    ">": MASK_ABOVE, ">=": MASK_ABOVE | MASK_EQUAL,
}
cdef SelectorDraft _spare = None
# Known to C: a module's names are looked up in a dict.
cdef object _And = And
cdef object _Between = Between
cdef object _Compare = Compare
cdef object _Or = Or
cdef object _HEADER = Source.HEADER
cdef object _PAYLOAD = Source.PAYLOAD


cdef void* grown(void* items, size_t* room, size_t wanted, size_t size) except NULL:
    cdef size_t larger = room[0]
    cdef void* made
    if wanted <= larger:
        return items
    larger = max(wanted, larger + larger // 2, <size_t> 16)
    made = PyMem_Realloc(items, larger * size)
    if made == NULL:
        raise MemoryError()
    room[0] = larger
    return made


cdef class SelectorDraft:
    """Of one selector at a time."""

    def __cinit__(self) -> None:
        self.emitted = <EmittedStep*> PyMem_Malloc(EMITTED_AT_MOST * sizeof(EmittedStep))
        self.octets = <char*> grown(self.octets, &self.octet_room, 64, 1)
        if self.emitted == NULL:
            raise MemoryError()

    def __dealloc__(self) -> None:
        PyMem_Free(self.nodes)
        PyMem_Free(self.values)
        PyMem_Free(self.octets)
        PyMem_Free(self.normals)
        PyMem_Free(self.choices)
        PyMem_Free(self.program)
        PyMem_Free(self.sorted)
        PyMem_Free(self.emitted)

    cdef void clear(self) noexcept:
        self.node_count = self.value_count = self.octet_count = self.normal_count = self.choice_count = 0

    cdef int reserve_octets(self, size_t more) except -1:
        self.octets = <char*> grown(self.octets, &self.octet_room, self.octet_count + more, 1)
        if self.octet_room >= <size_t> DRAFT_NONE:
            raise MemoryError()
        return 0

    cdef uint32_t add_node(self, int kind, int mask) except? DRAFT_NONE:
        cdef DraftNode* node
        self.nodes = <DraftNode*> grown(self.nodes, &self.node_room, self.node_count + 1, sizeof(DraftNode))
        node = &self.nodes[self.node_count]
        node.kind = <uint8_t> kind
        node.mask = <uint8_t> mask
        node.next = node.first = DRAFT_NONE
        node.count = node.attribute = 0
        self.node_count += 1
        return <uint32_t> (self.node_count - 1)

    cdef uint32_t add_value(self, uint32_t kind, int64_t bits) except? DRAFT_NONE:
        cdef DraftValue* value
        self.values = <DraftValue*> grown(self.values, &self.value_room, self.value_count + 1, sizeof(DraftValue))
        value = &self.values[self.value_count]
        value.kind = kind
        value.size = 0
        value.bits = bits
        self.value_count += 1
        return <uint32_t> (self.value_count - 1)

    cdef uint32_t add_float(self, double real) except? DRAFT_NONE:
        cdef int64_t bits
        memcpy(&bits, &real, 8)
        return self.add_value(FIELD_FLOAT, bits)

    cdef uint32_t add_text(self, const char* text, size_t size) except? DRAFT_NONE:
        cdef uint32_t made
        self.reserve_octets(size)
        made = self.add_value(FIELD_TEXT, <int64_t> self.octet_count)
        self.values[made].size = <uint32_t> size
        memcpy(self.octets + self.octet_count, text, size)
        self.octet_count += size
        return made

    cdef uint32_t add_pattern(
        self, const char* text, size_t size, const char* escape, size_t escape_size
    ) except? DRAFT_NONE:
        """The pattern of LIKE, compiled: several `%` in a row are one. `text` lies outside of the draft."""
        cdef uint32_t made = self.add_text(text, size)
        cdef uint8_t* into = <uint8_t*> self.octets + self.values[made].bits
        cdef size_t at = 0
        cdef size_t written = 0
        cdef size_t length
        cdef bint escaped = False
        while at < size:
            length = 1
            while at + length < size and <uint8_t> text[at + length] & 0xC0 == 0x80:
                length += 1
            if not escaped and escape_size == length and text[at:at + length] == escape[:escape_size]:
                escaped = True
            elif escaped or (text[at] != c"%" and text[at] != c"_"):
                memcpy(into + written, text + at, length)
                written += length
                escaped = False
            elif text[at] == c"_":
                into[written] = LIKE_ONE
                written += 1
            elif written == 0 or into[written - 1] != LIKE_ANY:
                into[written] = LIKE_ANY
                written += 1
            at += length
        self.values[made].size = <uint32_t> written
        return made

    cdef uint32_t begin_attribute(self, uint32_t root) except? DRAFT_NONE:
        cdef uint32_t[2] head
        cdef size_t at = self.octet_count
        head[0] = root
        head[1] = 0
        self.reserve_octets(sizeof(head))
        memcpy(self.octets + at, head, sizeof(head))
        self.octet_count += sizeof(head)
        return <uint32_t> at

    cdef int add_name(self, uint32_t attribute, const char* name, size_t size) except -1:
        cdef uint32_t counted
        cdef uint32_t written = <uint32_t> size
        self.reserve_octets(sizeof(uint32_t) + size)
        memcpy(&counted, self.octets + attribute + sizeof(uint32_t), sizeof(uint32_t))
        counted += 1
        memcpy(self.octets + attribute + sizeof(uint32_t), &counted, sizeof(uint32_t))
        memcpy(self.octets + self.octet_count, &written, sizeof(uint32_t))
        memcpy(self.octets + self.octet_count + sizeof(uint32_t), name, size)
        self.octet_count += sizeof(uint32_t) + size
        return 0


cdef SelectorDraft take_draft():
    global _spare
    cdef SelectorDraft draft = _spare
    _spare = None
    if draft is None:
        draft = SelectorDraft.__new__(SelectorDraft)
    draft.clear()
    return draft


cdef void draft_done(SelectorDraft draft) noexcept:
    global _spare
    cdef size_t held = draft.node_room * sizeof(DraftNode) + draft.value_room * sizeof(DraftValue) + draft.octet_room
    held += draft.normal_room * sizeof(NormalNode) + draft.choice_room * sizeof(KeyChoice)
    held += draft.program_room * sizeof(uint32_t) + draft.sorted_room * sizeof(Field)
    if held <= SPARE_BYTES:
        _spare = draft


cdef SelectorDraft draft_of(object selector):
    cdef SelectorDraft draft
    if not isinstance(selector, Selector):
        raise TypeError(f"a selector is wanted, not {type(selector).__name__}")
    draft = take_draft()
    draft.root = _node(draft, selector, 0)
    return draft


cdef uint32_t _node(SelectorDraft draft, object selector, int depth) except? DRAFT_NONE:
    """The number of a node, and of all below it."""
    cdef object kind = type(selector)
    if depth > DEPTH_AT_MOST:
        raise ValueError(f"more than {DEPTH_AT_MOST} conditions inside each other")
    if kind is _Compare:
        return _compare(draft, selector)
    if kind is _And:
        return _join(draft, selector.parts, DRAFT_ALL, 0, depth)
    if kind is _Between:
        return _test(draft, DRAFT_BETWEEN, 0, selector.attribute, (selector.low, selector.high))
    if kind is _Or:
        return _join(draft, selector.parts, DRAFT_ANY, 0, depth)
    return _seldom(draft, selector, depth)


cdef uint32_t _seldom(SelectorDraft draft, object selector, int depth) except? DRAFT_NONE:
    """Of the kinds that are rarer, and of classes derived from any."""
    cdef uint32_t made
    cdef bytes first, second
    if isinstance(selector, In):
        return _test(draft, DRAFT_IN, 0, selector.attribute, selector.values)
    if isinstance(selector, Not):
        made = _node(draft, selector.part, depth + 1)
        return _wrapped(draft, made)
    if isinstance(selector, AtLeast):
        return _join(draft, selector.parts, DRAFT_HITS, min(max(int(selector.count), 0), 1 << 30), depth)
    if isinstance(selector, Present):
        return _test(draft, DRAFT_PRESENT, 0, selector.attribute, ())
    if isinstance(selector, Like):
        made = _test(draft, DRAFT_LIKE, 0, selector.attribute, ())
        first, second = _octets(selector.pattern), _octets(selector.escape or "")
        draft.nodes[made].first = draft.add_pattern(first, len(first), second, len(second))
        draft.add_text(first, len(first))
        return made
    if isinstance(selector, Matches):
        made = _test(
            draft, DRAFT_MATCHES, IN_MQTT if selector.syntax == "mqtt" else 0, selector.attribute, (selector.filter,)
        )
        first, second = map(_octets, selector.affixes)
        if not all(selector.pieces):
            first = first + bytes((LIKE_ANY,)) + second
        draft.add_text(first, len(first))
        return made
    if isinstance(selector, Constant):
        return draft.add_node(DRAFT_CONSTANT, 1 if selector.value else 0)
    if isinstance(selector, Compare):
        return _compare(draft, selector)
    if isinstance(selector, Between):
        return _test(draft, DRAFT_BETWEEN, 0, selector.attribute, (selector.low, selector.high))
    if isinstance(selector, (And, Or)):
        return _join(draft, selector.parts, DRAFT_ALL if isinstance(selector, And) else DRAFT_ANY, 0, depth)
    raise TypeError(f"a selector is wanted, not {type(selector).__name__}")


cdef uint32_t _wrapped(SelectorDraft draft, uint32_t part) except? DRAFT_NONE:
    cdef uint32_t made = draft.add_node(DRAFT_NOT, 0)
    draft.nodes[made].first = part
    return made


cdef uint32_t _join(SelectorDraft draft, object parts, int kind, uint32_t count, int depth) except? DRAFT_NONE:
    cdef uint32_t made = draft.add_node(kind, 0)
    cdef uint32_t last = DRAFT_NONE
    cdef uint32_t part
    draft.nodes[made].count = count
    for one in parts:
        part = _node(draft, one, depth + 1)
        if last == DRAFT_NONE:
            draft.nodes[made].first = part
        else:
            draft.nodes[last].next = part
        last = part
    return made


cdef uint32_t _compare(SelectorDraft draft, object selector) except? DRAFT_NONE:
    cdef uint32_t made = draft.add_node(DRAFT_COMPARE, MASKS[selector.operator])
    cdef uint32_t attribute = _attribute(draft, selector.attribute)
    draft.nodes[made].attribute = attribute
    draft.nodes[made].first = _value(draft, selector.value)
    draft.nodes[made].count = 1
    return made


cdef uint32_t _test(SelectorDraft draft, int kind, int mask, object attribute, object values) except? DRAFT_NONE:
    cdef uint32_t made = draft.add_node(kind, mask)
    cdef uint32_t place = _attribute(draft, attribute)
    draft.nodes[made].attribute = place
    draft.nodes[made].first = <uint32_t> draft.value_count
    for value in values:
        _value(draft, value)
    draft.nodes[made].count = <uint32_t> draft.value_count - draft.nodes[made].first
    return made


cdef uint32_t _attribute(SelectorDraft draft, object attribute) except? DRAFT_NONE:
    cdef object source = attribute.source
    cdef uint32_t made = draft.begin_attribute(
        HEADERS_ROOT if source is _HEADER else PAYLOAD_ROOT if source is _PAYLOAD else MESSAGE_ROOT
    )
    cdef object path = attribute.path
    cdef const char* name
    cdef Py_ssize_t size
    cdef bytes octets
    if not path:
        raise ValueError("an attribute has a name at least")
    for part in path:
        if type(part) is str and PyUnicode_IS_ASCII(part):
            name = PyUnicode_AsUTF8AndSize(part, &size)
            draft.add_name(made, name, <size_t> size)
        else:
            octets = _octets(part)
            draft.add_name(made, octets, len(octets))
    return made


cdef uint32_t _value(SelectorDraft draft, object value) except? DRAFT_NONE:
    cdef const char* text
    cdef Py_ssize_t size
    cdef int overflow = 0
    cdef long long integer
    cdef bytes octets
    if type(value) is str and PyUnicode_IS_ASCII(value):
        text = PyUnicode_AsUTF8AndSize(value, &size)
        return draft.add_text(text, <size_t> size)
    if isinstance(value, float):
        if not isfinite(<double> value):
            raise ValueError(f"a selector compares with finite numbers; got {value}")
        return draft.add_float(value)
    if isinstance(value, bool):
        return draft.add_value(FIELD_BOOLEAN, 1 if value else 0)
    if isinstance(value, str):
        octets = _octets(value)
        return draft.add_text(octets, len(octets))
    if not isinstance(value, int):
        raise ValueError(f"a selector compares with numbers, text and booleans; got {value!r}")
    integer = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow != 0:
        raise ValueError(f"{value} has more than 64 bits")
    return draft.add_value(FIELD_INTEGER, integer)


cdef bytes _octets(object text):
    return str.encode(text, "utf-8", "surrogatepass")
