# cython: language_level=3, cdivision=True
"""Selectors compiled once for all contenders. Drawn in selections.pxd.

A selector becomes a disjunction of conjunctions, as Siena, Le Subscribe and the k-index have them: OR is written out,
AT LEAST as all its combinations. One that would have more than 64 conjunctions is one conjunction without criteria,
which is always a candidate.
"""

from libc.math cimport HUGE_VAL
from libc.string cimport memcpy

from fanlight_content.growth cimport grown
from matchcore.allocator cimport allocate, deallocate
from matchcore.hashing cimport hash_secret
from matchcore.compilation cimport program_of
from matchcore.program cimport program_holds, program_release
from matchcore.values cimport hash_boolean, hash_float, hash_integer, hash_text

from itertools import combinations, product

from matchcore.normal_form import AllOf, AnyOf, Leaf, normal_form
from matchcore.selector import Attribute, Between, Compare, In, Not, Source

CONJUNCTIONS_AT_MOST = 64
FILTERS = (Attribute(Source.HEADER, ("wide filter",)), Attribute(Source.HEADER, ("narrow filter",)))
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def conjunctions_of(selector: object) -> object:
    """Lists of leaves, of which one is wholly true where the selector is; None: there would be too many."""
    return _written_out(normal_form(selector))


def _written_out(normal: object) -> object:
    if isinstance(normal, Leaf):
        return [[normal]]
    parts = [_written_out(part) for part in normal.parts]
    if None in parts:
        return None
    if isinstance(normal, AnyOf):
        made = [conjunction for part in parts for conjunction in part]
        return made if len(made) <= CONJUNCTIONS_AT_MOST else None
    made = []
    for chosen in [parts] if isinstance(normal, AllOf) else combinations(parts, normal.count):
        for together in product(*chosen):
            made.append([leaf for conjunction in together for leaf in conjunction])
            if len(made) > CONJUNCTIONS_AT_MOST:
                return None
    return made


cdef bint _is_number(object value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


cdef class Selections:
    """The selectors of one workload. A message may match one filter below `wide`, and one of the others."""

    def __cinit__(self, wide: int) -> None:
        self.allocator.allowance = self.beside.allowance = -1
        self.attributes = Attributes()
        self.test_numbers = {}
        self.selectors = []
        self.wide = wide
        for at in range(2):
            self.filter_attributes[at] = self.attributes.acquire(FILTERS[at])

    def __dealloc__(self) -> None:
        cdef size_t i
        for i in range(self.count):
            self._free(self.items[i].program)
        for i in range(self.test_count):
            self._free(self.tests[i])
        deallocate(&self.beside, self.items, self.capacity * sizeof(Selection))
        deallocate(&self.beside, self.conjunctions, self.conjunction_capacity * sizeof(Conjunction))
        deallocate(&self.beside, self.criteria, self.criterion_capacity * sizeof(Criterion))
        deallocate(&self.beside, self.tests, self.test_capacity * sizeof(Program*))

    cdef Program* _copied(self, object selector) except NULL:
        """The program of a selector, in a block of its own."""
        cdef bytes block = program_of(selector, self.attributes)
        cdef Program* program = <Program*> allocate(&self.allocator, len(block))
        if program == NULL:
            program_release(<const Program*> <const char*> block, self.attributes)
            raise MemoryError()
        memcpy(program, <const char*> block, len(block))
        return program

    cdef void _free(self, Program* program) noexcept:
        program_release(program, self.attributes)
        deallocate(&self.allocator, program, <size_t> program.units * 4)

    def insert(self, slot: int, id: int, selector: object) -> None:
        """Raises what matchcore raises of a selector that it cannot hold."""
        cdef Selection made
        conjunctions = conjunctions_of(selector)
        made.slot, made.id = slot, id
        made.first = <uint32_t> self.conjunction_count
        self.items = <Selection*> grown(
            &self.beside, self.items, &self.capacity, self.count + 1, sizeof(Selection)
        )
        made.program = self._copied(selector)
        try:
            for leaves in [[]] if conjunctions is None else conjunctions:
                self._conjunction(leaves, made.slot)
        except BaseException:
            self._free(made.program)
            raise
        made.conjunctions = <uint32_t> self.conjunction_count - made.first
        self.items[self.count] = made
        self.selectors.append(selector)
        self.count += 1

    cdef int _conjunction(self, list leaves, uint32_t slot) except -1:
        cdef Conjunction made
        cdef Criterion topic
        cdef uint32_t constraint = 0
        made.selection = <uint32_t> self.count
        made.first = self.criterion_count
        for leaf in leaves:
            self._leaf(leaf, constraint)
            constraint += 1
        made.constraints = constraint
        made.count = self.criterion_count - made.first
        topic.kind, topic.domain, topic.constraint = BY_VALUE, OF_NUMBERS, constraint
        topic.attribute = <uint16_t> self.filter_attributes[0 if slot < self.wide else 1]
        topic.value = hash_integer(hash_secret(), topic.attribute, slot)
        topic.low = topic.high = slot
        self._push(&topic)
        self.conjunctions = <Conjunction*> grown(
            &self.beside, self.conjunctions, &self.conjunction_capacity, self.conjunction_count + 1, sizeof(Conjunction)
        )
        self.conjunctions[self.conjunction_count] = made
        self.conjunction_count += 1
        return 0

    cdef int _push(self, const Criterion* criterion) except -1:
        self.criteria = <Criterion*> grown(
            &self.beside, self.criteria, &self.criterion_capacity, self.criterion_count + 1, sizeof(Criterion)
        )
        self.criteria[self.criterion_count] = criterion[0]
        self.criterion_count += 1
        return 0

    cdef int _leaf(self, object leaf, uint32_t constraint) except -1:
        cdef Criterion made
        test = leaf.test
        low, high = -HUGE_VAL, HUGE_VAL
        if isinstance(test, Compare):
            operator = OPPOSITE[test.operator] if leaf.negated else test.operator
            if operator == "=":
                return self._value(test.attribute, test.value, constraint)
            if operator == "<>" or not _is_number(test.value):
                return self._test(leaf, constraint)
            if operator in ("<", "<="):
                high = test.value
            else:
                low = test.value
        elif isinstance(test, In) and not leaf.negated:
            for value in test.values:
                self._value(test.attribute, value, constraint)
            return 0
        elif isinstance(test, Between) and not leaf.negated and _is_number(test.low) and _is_number(test.high):
            low, high = test.low, test.high
        else:
            return self._test(leaf, constraint)
        made.kind, made.domain, made.constraint, made.value = BY_RANGE, OF_NUMBERS, constraint, 0
        made.attribute = <uint16_t> self.attributes.number(test.attribute)
        made.low, made.high = low, high
        return self._push(&made)

    cdef int _value(self, object attribute, object value, uint32_t constraint) except -1:
        cdef Criterion made
        cdef const uint64_t* secret = hash_secret()
        cdef bytes text
        made.kind, made.constraint = BY_VALUE, constraint
        made.attribute = <uint16_t> self.attributes.number(attribute)
        found = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        if isinstance(found, bytes):
            text = found
            made.domain, made.value = OF_TEXTS, hash_text(secret, made.attribute, text, len(text))
            made.low = <double> made.value
        elif isinstance(found, bool):
            made.domain, made.value = OF_BOOLEANS, hash_boolean(secret, made.attribute, found)
            made.low = found
        else:
            made.domain, made.low = OF_NUMBERS, found
            if isinstance(found, int):
                made.value = hash_integer(secret, made.attribute, found)
            else:
                made.value = hash_float(secret, made.attribute, found)  # of a whole one that of the integer
        made.high = made.low
        return self._push(&made)

    cdef int _test(self, object leaf, uint32_t constraint) except -1:
        """A test that is evaluated: the same one once, however many selectors have it."""
        cdef Criterion made
        number = self.test_numbers.get(leaf)
        if number is None:
            self.tests = <Program**> grown(
                &self.beside, self.tests, &self.test_capacity, self.test_count + 1, sizeof(Program*)
            )
            self.tests[self.test_count] = self._copied(Not(leaf.test) if leaf.negated else leaf.test)
            number = self.test_numbers[leaf] = self.test_count
            self.test_count += 1
        made.kind, made.domain, made.constraint, made.value = BY_TEST, OF_NUMBERS, constraint, number
        made.attribute = <uint16_t> self.attributes.number(leaf.test.attribute)
        made.low = made.high = 0
        return self._push(&made)

    def slots(self) -> list[int]:
        """The filter of each selection."""
        return [self.items[i].slot for i in range(self.count)]

    def holding(self, selections: object, Asked asked not None) -> list:
        """The ids of those that are true of a message: for contenders in Python."""
        cdef size_t i
        found = []
        for number in selections:
            i = number
            if i >= self.count:
                raise IndexError(i)
            if program_holds(self.items[i].program, asked.fields.at):
                found.append(self.items[i].id)
        return found

    def selector(self, number: int) -> object:
        """As it was given."""
        return self.selectors[number]

    @property
    def nbytes(self) -> int:
        """Of the programs."""
        return self.allocator.bytes


cdef class Asked:
    """A message to ask about, on filters of these slots. Made when all selectors are in."""

    def __cinit__(self, Selections selections not None, slots: object, mapping: object) -> None:
        filters = {FILTERS[0 if slot < selections.wide else 1]: slot for slot in slots}
        if len(filters) != len(slots):
            raise ValueError(f"{slots}: one filter of each kind at most")
        self.fields = Fields(selections.attributes)
        self.fields.load(mapping)
        self.with_filters = Fields(selections.attributes)
        self.with_filters.load({**mapping, **filters})
        self.seen[0] = Seen(self.fields.at, self.fields.numbers, self.fields.count)
        self.seen[1] = Seen(self.with_filters.at, self.with_filters.numbers, self.with_filters.count)
        self.mapping = mapping
        self.filters = tuple(slots)
        self.count = <uint32_t> len(slots)
        for at, slot in enumerate(slots):
            self.slots[<int> at] = slot
