# cython: language_level=3, cdivision=True
"""Selectors as programs: compiled from the form without NOT, evaluated without the GIL. Drawn in program.pxd."""

from libc.string cimport memchr, memcmp

from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER, Fields
from matchcore.topic_test cimport text_is_on
from matchcore.values cimport (
    UNKNOWN, as_boolean, is_text, is_whole, number_kind, order_of_texts, order_to_boolean, order_to_float,
    order_to_integer, order_to_text,
)

import math
import struct

from matchcore.normal_form import AllOf, AnyOf, Leaf, normal_form
from matchcore.selector import Between, Compare, In, Like, Matches, Present

MASKS = {
    "=": MASK_EQUAL, "<>": MASK_BELOW | MASK_ABOVE, "<": MASK_BELOW, "<=": MASK_BELOW | MASK_EQUAL,
    ">": MASK_ABOVE, ">=": MASK_ABOVE | MASK_EQUAL,
}
TRUE, FALSE = -1, -2  # labels of the two ends
COSTS = {Present: 1, Compare: 2, Between: 3, In: 6, Like: 8, Matches: 8}  # of a test, beside each other
LATER = 1_000


# Evaluation

cdef bint program_holds(const Program* program, Field* at) noexcept nogil:
    cdef const Step* steps = program_steps(program)
    cdef const Step* step
    cdef uint32_t next = program.first
    cdef uint8_t[COUNTERS] counters
    while next < ENDS_FALSE:
        step = &steps[next]
        if step.code < TESTS:
            next = step.on_true if step_holds(program, step, at) else step.on_false
        elif step.code == HITS_RESET:
            counters[step.mask] = 0
            next = step.on_true
        else:
            counters[step.mask] += 1
            next = step.on_true if counters[step.mask] == step.low else step.on_false
    return next == ENDS_TRUE


cdef bint step_holds(const Program* program, const Step* step, Field* at) noexcept nogil:
    cdef Field* field = &at[step.attribute]
    cdef uint64_t steps = 0
    cdef int order
    cdef bint found
    if step.code <= TEST_TEXT:
        if step.code == TEST_INTEGER:
            order = order_to_integer(field, step_integer(step))
        elif step.code == TEST_TEXT:
            order = order_to_text(field, step_text(program, step), step.high)
        elif step.code == TEST_FLOAT:
            order = order_to_float(field, step_float(step))
        else:
            order = order_to_boolean(field, <int> step.low)
        return order != UNKNOWN and step.mask >> (order + 1) & 1
    if step.code == TEST_PRESENT:
        return (field.kind != FIELD_ABSENT) != (step.mask & NEGATED)
    if step.code == TEST_IN:
        return _is_in(program, step, field)
    if not is_text(field):
        return False
    if step.code == TEST_LIKE:
        found = text_is_like(
            <const uint8_t*> field.text, field.size, <const uint8_t*> step_text(program, step), step.high, &steps
        )
    elif step.code == TEST_TOPIC:
        found = text_is_on(
            <const uint8_t*> field.text, field.size, <const uint8_t*> step_text(program, step), step.high,
            step.mask & IN_MQTT, &steps,
        )
    elif step.high > field.size:
        found = False
    elif step.code == TEST_PREFIX:
        found = memcmp(field.text, step_text(program, step), step.high) == 0
    else:
        found = memcmp(field.text + field.size - step.high, step_text(program, step), step.high) == 0
    return found != (step.mask & NEGATED)


ctypedef fused Number:
    int64_t
    double


cdef bint _has_number(const uint32_t* values, uint32_t count, Number wanted) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = count
    cdef uint32_t middle
    cdef Number value
    while low < high:
        middle = (low + high) // 2
        memcpy(&value, values + 2 * middle, sizeof(value))
        if value == wanted:
            return True
        if value < wanted:
            low = middle + 1
        else:
            high = middle
    return False


cdef bint _has_text(const Program* program, const uint32_t* values, uint32_t count, const Field* field) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = count
    cdef uint32_t middle
    cdef int order
    while low < high:
        middle = (low + high) // 2
        order = order_of_texts(
            <const char*> program + values[2 * middle], values[2 * middle + 1], field.text, field.size
        )
        if order == 0:
            return True
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return False


cdef bint _is_in(const Program* program, const Step* step, Field* field) noexcept nogil:
    """Equal to a value of the list; negated: it could be compared with each of them, and is equal to none."""
    cdef const uint32_t* units = <const uint32_t*> program + step.low
    cdef const ValueList* sizes = <const ValueList*> units
    cdef const uint32_t* integers = units + 3
    cdef const uint32_t* floats = integers + 2 * sizes.integers
    cdef const uint32_t* texts = floats + 2 * sizes.floats
    cdef bint equal = False
    cdef bint compared = True
    cdef int64_t whole
    cdef uint8_t kind
    cdef int boolean
    if sizes.integers + sizes.floats != 0:
        kind = number_kind(field)
        if kind == FIELD_INTEGER:
            equal = _has_number(integers, sizes.integers, field.integer)
        elif kind != FIELD_FLOAT:
            compared = False
        elif is_whole(field.real, &whole):
            equal = _has_number(integers, sizes.integers, whole)
        else:
            equal = _has_number(floats, sizes.floats, field.real)
    if sizes.texts != 0 and not equal:
        if is_text(field):
            equal = _has_text(program, texts, sizes.texts, field)
        else:
            compared = False
    if step.mask & (IN_FALSE | IN_TRUE) and not equal:
        boolean = as_boolean(field)
        if boolean == UNKNOWN:
            compared = False
        else:
            equal = step.mask & (IN_TRUE if boolean else IN_FALSE) != 0
    return compared and not equal if step.mask & NEGATED else equal


cdef inline size_t _character(const uint8_t* text, size_t at, size_t size) noexcept nogil:
    """Where the character behind the one at `at` begins."""
    at += 1
    while at < size and text[at] & 0xC0 == 0x80:
        at += 1
    return at


cdef bint text_is_like(
    const uint8_t* text, size_t size, const uint8_t* pattern, size_t pattern_size, uint64_t* steps
) noexcept nogil:
    # What lies between two `%` is looked for once, from the left: where it fits first is never worse than later. So
    # only the last `%` is ever gone back to, and each of the text's characters begins it once.
    cdef size_t at = 0
    cdef size_t p = 0
    cdef size_t part = 0           # of the pattern: behind the last `%`
    cdef size_t begun = 0          # of the text: where that part was begun last
    cdef bint free = False         # there was a `%`
    cdef const uint8_t* next
    while at < size:
        steps[0] += 1
        if p < pattern_size and pattern[p] == LIKE_ANY:
            p += 1
            if p == pattern_size:
                return True
            part = p
            begun = at
            free = True
        elif p < pattern_size and pattern[p] == LIKE_ONE:
            p += 1
            at = _character(text, at, size)
        elif p < pattern_size and pattern[p] == text[at]:
            p += 1
            at += 1
        elif not free:
            return False
        else:
            begun = _character(text, begun, size)
            if pattern[part] < LIKE_ONE and begun < size:
                next = <const uint8_t*> memchr(text + begun, pattern[part], size - begun)
                if next == NULL:
                    return False
                begun = <size_t> (next - text)
            at = begun
            p = part
    while p < pattern_size and pattern[p] == LIKE_ANY:
        p += 1
    return p == pattern_size


# Compilation

cdef class Compilation:
    """The steps of one program, the last first: so that a step's successors are known when it is written."""

    cdef:
        Attributes attributes
        list steps         # (code, mask, attribute, label if true, label if false, operand)
        list acquired      # numbers of attributes
        int counters       # of AT LEAST
        set last           # identities of leaves that come after others: they are expected to be true

    def __cinit__(self, Attributes attributes, list last):
        self.attributes = attributes
        self.last = set(map(id, last))
        self.steps = []
        self.acquired = []

    cdef int entry(self, object node, int on_true, int on_false) except? -3:
        """The label of the step that decides `node`, which goes on at these labels."""
        cdef int counter, next, count
        if isinstance(node, Leaf):
            return self.test(node.test, node.negated, on_true, on_false)
        parts = sorted(node.parts, key=self.cost, reverse=True)
        if isinstance(node, AllOf):
            for part in parts:
                on_true = self.entry(part, on_true, on_false)
            return on_true
        if isinstance(node, AnyOf):
            for part in parts:
                on_false = self.entry(part, on_true, on_false)
            return on_false
        counter = self.counters
        self.counters += 1
        next = on_false
        for part in parts:
            count = self.step(HITS_COUNT, counter, 0, on_true, next, struct.pack("=II", node.count, 0))
            next = self.entry(part, count, next)
        return self.step(HITS_RESET, counter, 0, next, next, bytes(8))

    def cost(self, node: object) -> int:
        if isinstance(node, Leaf):
            return COSTS[type(node.test)] + (LATER if id(node) in self.last else 0)
        return sum([self.cost(part) for part in node.parts])

    cdef int step(
        self, int code, int mask, int attribute, int on_true, int on_false, object operand
    ) except? -3:
        self.steps.append((code, mask, attribute, on_true, on_false, operand))
        return <int> len(self.steps) - 1

    cdef int test(self, object test, bint negated, int on_true, int on_false) except? -3:
        if isinstance(test, Compare):
            mask = MASKS[test.operator]
            return self.compared(test.attribute, mask ^ MASK_ALL if negated else mask, test.value, on_true, on_false)
        if isinstance(test, Between):
            return self.between(test, negated, on_true, on_false)
        number = self.acquire(test.attribute)
        if isinstance(test, Present):
            return self.step(TEST_PRESENT, NEGATED if negated else 0, number, on_true, on_false, bytes(8))
        if isinstance(test, Like):
            return self.like(number, test, negated, on_true, on_false)
        if isinstance(test, Matches):
            mask = (NEGATED if negated else 0) | (IN_MQTT if test.syntax == "mqtt" else 0)
            return self.step(TEST_TOPIC, mask, number, on_true, on_false, _Text(comparable(test.filter)))
        return self.among(number, test, negated, on_true, on_false)

    cdef int between(self, object test, bint negated, int on_true, int on_false) except? -3:
        cdef int above, within
        attribute = test.attribute
        if not negated:
            within = self.compared(attribute, MASK_BELOW | MASK_EQUAL, test.high, on_true, on_false)
            return self.compared(attribute, MASK_ABOVE | MASK_EQUAL, test.low, within, on_false)
        # Below or above. Where the two have different types, also: it can be compared with both, as untyped text can.
        above = self.compared(attribute, MASK_ABOVE, test.high, on_true, on_false)
        above = self.compared(attribute, MASK_BELOW, test.low, on_true, above)
        if _type(test.low) is _type(test.high):
            return above
        above = self.compared(attribute, MASK_ALL, test.high, above, on_false)
        return self.compared(attribute, MASK_ALL, test.low, above, on_false)

    cdef int acquire(self, object attribute) except -1:
        cdef int number = self.attributes.acquire(attribute)
        self.acquired.append(number)
        return number

    cdef int compared(self, object attribute, int mask, object value, int on_true, int on_false) except? -3:
        cdef int number
        value = comparable(value)
        number = self.acquire(attribute)
        if isinstance(value, bool):
            return self.step(TEST_BOOLEAN, mask, number, on_true, on_false, struct.pack("=II", value, 0))
        if isinstance(value, int):
            return self.step(TEST_INTEGER, mask, number, on_true, on_false, struct.pack("=q", value))
        if isinstance(value, float):
            return self.step(TEST_FLOAT, mask, number, on_true, on_false, struct.pack("=d", value))
        return self.step(TEST_TEXT, mask, number, on_true, on_false, _Text(value))

    cdef int like(self, int number, object test, bint negated, int on_true, int on_false) except? -3:
        cdef bytes pattern = like_pattern(test)
        cdef bytes anywhere = bytes((LIKE_ANY,))
        mask = NEGATED if negated else 0
        plain = pattern.strip(anywhere)
        if LIKE_ONE in plain or LIKE_ANY in plain or (plain and pattern == anywhere + plain + anywhere):
            return self.step(TEST_LIKE, mask, number, on_true, on_false, _Text(pattern))
        if pattern == plain:
            mask = MASK_EQUAL ^ (MASK_ALL if negated else 0)
            return self.step(TEST_TEXT, mask, number, on_true, on_false, _Text(plain))
        code = TEST_PREFIX if pattern.endswith(anywhere) else TEST_SUFFIX
        return self.step(code, mask, number, on_true, on_false, _Text(plain))

    cdef int among(self, int number, object test, bint negated, int on_true, int on_false) except? -3:
        values = [comparable(value) for value in test.values]
        mask = NEGATED if negated else 0
        for value in values:
            if isinstance(value, bool):
                mask |= IN_TRUE if value else IN_FALSE
        integers = sorted({value for value in values if isinstance(value, int) and not isinstance(value, bool)})
        floats = sorted({value for value in values if isinstance(value, float)})
        texts = sorted({value for value in values if isinstance(value, bytes)})
        return self.step(TEST_IN, mask, number, on_true, on_false, _Listed(integers, floats, texts))

    cdef bytes block(self, int first):
        """Header, steps and data."""
        cdef int count = <int> len(self.steps)
        data = bytearray()
        start = sizeof(Program) + count * sizeof(Step)
        written = bytearray()
        for code, mask, attribute, on_true, on_false, operand in reversed(self.steps):
            if not isinstance(operand, bytes):
                operand = operand.written(data, start)
            written += struct.pack(
                "=BBHHH8s", code, mask, attribute, _target(on_true, count), _target(on_false, count), operand
            )
        data += bytes(-len(data) & 3)
        units = (start + len(data)) // 4
        return struct.pack("=IHH", units, count, _target(first, count)) + bytes(written) + bytes(data)


class _Text:
    """The operand of a test of text."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def written(self, data: bytearray, start: int) -> bytes:
        """Into the data, which begins at `start`; what the step has."""
        at = start + len(data)
        data += self.text
        return struct.pack("=II", at, len(self.text))


class _Listed:
    """The operand of IN."""

    def __init__(self, integers: list[int], floats: list[float], texts: list[bytes]) -> None:
        self.lists = integers, floats, texts

    def written(self, data: bytearray, start: int) -> bytes:
        integers, floats, texts = self.lists
        data += bytes(-len(data) & 3)
        at = start + len(data)
        data += struct.pack("=III", len(integers), len(floats), len(texts))
        data += struct.pack(f"={len(integers)}q", *integers) + struct.pack(f"={len(floats)}d", *floats)
        text_at = start + len(data) + 8 * len(texts)
        for text in texts:
            data += struct.pack("=II", text_at, len(text))
            text_at += len(text)
        data += b"".join(texts)
        return struct.pack("=II", at // 4, 0)


def _target(label: int, count: int) -> int:
    return ENDS_TRUE if label == TRUE else ENDS_FALSE if label == FALSE else count - 1 - label


def _tests(node: object) -> int:
    return 1 if isinstance(node, Leaf) else sum(_tests(part) for part in node.parts)


def comparable(value: object) -> object:
    """A value as steps have it: a float that is an integer as that, text as its bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a selector compares with finite numbers; got {value}")
        return int(value) if value.is_integer() and -(2.0**63) <= value < 2.0**63 else float(value)
    if not isinstance(value, int):
        raise ValueError(f"a selector compares with numbers, text and booleans; got {value!r}")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} has more than 64 bits")
    return value


def _type(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def like_pattern(test: Like) -> bytes:
    """The pattern of LIKE as bytes, several `%` in a row as one."""
    made = bytearray()
    escaped = False
    for character in test.pattern:
        if not escaped and character == test.escape:
            escaped = True
        elif escaped or character not in "%_":
            made += character.encode("utf-8", "surrogatepass")
            escaped = False
        elif character == "_":
            made.append(LIKE_ONE)
        elif not made or made[len(made) - 1] != LIKE_ANY:
            made.append(LIKE_ANY)
    return bytes(made)


cdef bytes program_of(object normal, Attributes attributes, list last):
    cdef Compilation made = Compilation(attributes, last)
    if (count := _tests(normal)) > TESTS_AT_MOST:
        raise ValueError(f"{count} tests, more than {TESTS_AT_MOST}")
    try:
        return made.block(made.entry(normal, TRUE, FALSE))
    except BaseException:
        for number in made.acquired:
            attributes.drop(number)
        raise


cdef void program_release(const Program* program, Attributes attributes) noexcept nogil:
    cdef const Step* steps = program_steps(program)
    cdef uint32_t i
    for i in range(program.steps):
        if steps[i].code < TESTS:
            attributes.drop(steps[i].attribute)


def _holds(selector: object, mapping: object) -> bool:
    """For tests: whether a selector is true of these fields, by its program alone."""
    attributes = Attributes()
    cdef bytes block = program_of(normal_form(selector), attributes, [])
    cdef Fields fields = Fields(attributes)
    fields.load(mapping)
    cdef const Program* program = <const Program*> <const char*> block
    held = program_holds(program, fields.at)
    program_release(program, attributes)
    if attributes.count != 0:
        raise AssertionError(f"{attributes.count} attributes are still held")
    return held


def _like(text: bytes, pattern: object) -> tuple:
    """For tests: whether a text is like the pattern of a `Like`, and in how many steps that was decided."""
    cdef bytes compiled = like_pattern(pattern)
    cdef uint64_t steps = 0
    held = text_is_like(
        <const uint8_t*> <const char*> text, len(text), <const uint8_t*> <const char*> compiled, len(compiled), &steps
    )
    return held, steps
