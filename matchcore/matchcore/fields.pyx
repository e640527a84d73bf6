# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Attributes: which names selectors ask for, each with a number. Fields: the values of one message, by number.

The tables are drawn in fields.pxd. Nothing here knows a frame: a decoder asks `Attributes` for the number of each name
that it meets, and writes the value into `Fields`; `load` does the same from a dict.
"""

cimport cython
from libc.math cimport HUGE_VAL
from libc.string cimport memcmp, memcpy, memset

from matchcore.allocator cimport allocate_zeros, deallocate, numbers_free, numbers_reserve, reallocate
from matchcore.arena cimport (
    arena_free, arena_give_back, arena_init, arena_is_sparse, arena_like, arena_reserve, arena_take,
)
from matchcore.hashing cimport hash_add, hash_secret, hash_word
from matchcore.message_names cimport index_name, is_name, known_name
from matchcore.table cimport NONE, table_drop, table_first, table_free, table_next, table_put, table_reserve

import struct

from matchcore.kleene import Untyped, attribute_of
from matchcore.selector import MESSAGE, Attribute, Source

__all__ = ["Attributes", "Fields"]

ROOTS = {Source.HEADER: HEADERS_ROOT, Source.PAYLOAD: PAYLOAD_ROOT, Source.MESSAGE: MESSAGE_ROOT}
SOURCES = tuple(ROOTS)
if len(MESSAGE) != MESSAGE_NAMES:
    raise ImportError("fields.pxd and selector.py name different attributes of messages")

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef enum:
    ROOTS_COUNT = 3
    LEAST_FIELDS = 64


cdef inline uint32_t _tag(uint32_t parent, const char* name, size_t size) noexcept nogil:
    cdef const uint64_t* secret = hash_secret()
    return <uint32_t> (hash_add(secret, hash_word(secret, name, size), parent) >> 32)


cdef inline uint32_t _units(size_t size) noexcept nogil:
    """Of the block that has a name of `size` bytes."""
    return <uint32_t> (1 + (size + 3) // 4)


@cython.final
cdef class Attributes:
    """The attributes that any selector of one broker, or of one index, asks for; each has a small number.

    Counted by its holders: `acquire` as often as `release`. Numbers are used again.
    """

    def __cinit__(self) -> None:
        self.allocator.allowance = -1
        arena_init(&self.names, &self.allocator)
        self.free_number = NONE
        memset(self.known, 0xFF, sizeof(self.known))
        memset(self.words, 0xFF, sizeof(self.words))
        self.places = <Place*> allocate_zeros(&self.allocator, 8 * sizeof(Place))
        if self.places == NULL:
            raise MemoryError()
        self.place_capacity = 8
        self.place_count = ROOTS_COUNT
        for root in range(ROOTS_COUNT):
            self.places[root].number = -1

    def __dealloc__(self) -> None:
        deallocate(&self.allocator, self.places, self.place_capacity * sizeof(Place))
        table_free(&self.allocator, &self.table)
        arena_free(&self.names)
        numbers_free(&self.allocator, &self.ends)

    cdef uint32_t _find(self, uint32_t parent, const char* name, size_t size) noexcept nogil:
        """The place of this name, or NONE."""
        cdef uint32_t tag = _tag(parent, name, size)
        cdef uint32_t at
        cdef uint32_t found = table_first(&self.table, tag, &at)
        cdef const Place* place
        cdef const uint32_t* block
        while found != NONE:
            place = &self.places[found]
            block = &self.names.units[place.name]
            if place.parent == parent and block[0] == size and memcmp(block + 1, name, size) == 0:
                return found
            found = table_next(&self.table, tag, &at)
        return NONE

    cdef int header(self, const char* name, size_t size) noexcept nogil:
        cdef uint32_t place
        if self.places[HEADERS_ROOT].below == 0:
            return -1
        place = self._find(HEADERS_ROOT, name, size)
        return -1 if place == NONE else self.places[place].number

    cdef int child(self, int node, const char* name, size_t size) noexcept nogil:
        cdef uint32_t place
        if self.places[node].below == 0:
            return -1
        place = self._find(<uint32_t> node, name, size)
        return -1 if place == NONE else <int> place

    cdef int number_of(self, int node) noexcept nogil:
        return self.places[node].number

    cdef bint has_below(self, int node) noexcept nogil:
        return self.places[node].below != 0

    cdef int message(self, int which) noexcept nogil:
        return self.known[which]

    cdef int word(self, int n) noexcept nogil:
        return self.words[n] if 1 <= n <= WORDS_AT_MOST else -1

    cdef uint32_t _path(self, object attribute) except? 0xFFFFFFFF:
        """The place of an attribute; NONE: there is no such place."""
        cdef uint32_t place = ROOTS[attribute.source]
        cdef bytes name
        for name in [part.encode("utf-8", "surrogatepass") for part in attribute.path]:
            place = self._find(place, name, len(name))
            if place == NONE:
                break
        return place

    def number(self, attribute: object) -> int:
        """The number of an attribute, -1: nobody asks for it."""
        cdef uint32_t place = self._path(attribute)
        return -1 if place == NONE else self.places[place].number

    def attribute(self, number: int) -> object:
        """The attribute that has a number. Raises ValueError where none has it."""
        cdef uint32_t place
        if not 0 <= number < self.room or self._end(number) == HEADERS_ROOT:
            raise ValueError(f"no attribute has the number {number}")
        place = self._end(number)
        path = []
        while place >= ROOTS_COUNT:
            path.append(_name_of(&self.names.units[self.places[place].name]))
            place = self.places[place].parent
        return Attribute(SOURCES[place], tuple(reversed(path)))

    def acquire(self, attribute: object) -> int:
        """The number of an attribute, which has one holder more. All or nothing.

        Raises OverflowError where 65,535 others have a number, ValueError of a path without a name.
        """
        names = [part.encode("utf-8", "surrogatepass") for part in attribute.path]
        spelled = struct.pack("=II", ROOTS[attribute.source], len(names))
        return self.acquire_spelled(spelled + b"".join([struct.pack("=I", len(name)) + name for name in names]))

    cdef int acquire_spelled(self, const char* spelled) except -1:
        cdef uint32_t[2] head
        cdef uint32_t place, below, size
        memcpy(head, spelled, sizeof(head))
        spelled += sizeof(head)
        place = head[0]
        if head[1] == 0:
            raise ValueError("an attribute has a name at least")
        while head[1] != 0:
            memcpy(&size, spelled, sizeof(size))
            spelled += sizeof(size)
            below = self._find(place, spelled, size)
            if below == NONE:
                below = _add(self, place, spelled, size)
            if below == NONE:
                _prune(self, place)
                raise MemoryError()
            place = below
            spelled += size
            head[1] -= 1
        if self.places[place].number < 0:
            try:
                self._number(place)
            except BaseException:
                _prune(self, place)
                raise
        self.places[place].holders += 1
        return self.places[place].number

    def release(self, number: int) -> None:
        """One holder less. With the last one the number is free. Never needs memory."""
        if not 0 <= number < self.room or self._end(number) == HEADERS_ROOT:
            raise ValueError(f"no attribute has the number {number}")
        self.drop(number)

    cdef uint32_t _end(self, uint32_t number) noexcept nogil:
        """The place of a number in use; of a free one the root of the headers, which has no number."""
        cdef uint32_t place = self.ends.items[number]
        return place if place < self.place_count and self.places[place].number == <int32_t> number else HEADERS_ROOT

    cdef void hold(self, uint32_t number) noexcept nogil:
        self.places[self.ends.items[number]].holders += 1

    cdef void drop(self, uint32_t number) noexcept nogil:
        cdef uint32_t at = self.ends.items[number]
        cdef Place* place = &self.places[at]
        place.holders -= 1
        if place.holders != 0:
            return
        self._number_known(at, -1)
        place.number = -1
        self.ends.items[number] = self.free_number
        self.free_number = number
        self._count(at, -1)
        _prune(self, at)
        if arena_is_sparse(&self.names):
            self._pack()

    cdef void _pack(self) noexcept nogil:
        """All names into a new arena, when more than half as much is free as is in use (arena.pxd)."""
        cdef Arena made
        cdef uint32_t place, at, units
        if arena_like(&made, &self.names) < 0:
            return  # without memory for it the holes stay
        for place in range(ROOTS_COUNT, self.place_count):
            if self.places[place].is_used:
                units = _units(self.names.units[self.places[place].name])
                at = arena_take(&made, units)
                memcpy(&made.units[at], &self.names.units[self.places[place].name], units * sizeof(uint32_t))
                self.places[place].name = at
        arena_free(&self.names)
        self.names = made

    cdef int _number(self, uint32_t place) except -1:
        cdef uint32_t number = self.free_number
        if number == NONE:
            number = self.room
            if number == ATTRIBUTES_AT_MOST:
                raise OverflowError(f"{ATTRIBUTES_AT_MOST:,} attributes, more than an index has numbers for")
            if number == self.capacity:
                self._make_room()
            if numbers_reserve(&self.allocator, &self.ends, number + 1) < 0:
                raise MemoryError()
            self.ends.size = self.room = number + 1
        else:
            self.free_number = self.ends.items[number]
        self.ends.items[number] = place
        self.places[place].number = <int32_t> number
        self._number_known(place, <int32_t> number)
        self._count(place, 1)
        return 0

    cdef int _make_room(self) except -1:
        """In each Fields for twice as many numbers."""
        cdef uint32_t capacity = max(<uint32_t> LEAST_FIELDS, 2 * self.capacity)
        cdef void* next = self.fields
        while next != NULL:
            if (<Fields> next)._resize(capacity) < 0:
                raise MemoryError()  # some have more room than they need: no harm
            next = (<Fields> next).after
        self.capacity = capacity
        return 0

    cdef void _number_known(self, uint32_t place, int32_t number) noexcept nogil:
        """What `message` and `word` answer."""
        cdef uint32_t parent = self.places[place].parent
        cdef int n
        if parent == MESSAGE_ROOT:
            n = known_name(&self.names.units[self.places[place].name])
            if n >= 0:
                self.known[n] = number
        elif parent >= ROOTS_COUNT and self.places[parent].parent == MESSAGE_ROOT:
            n = index_name(&self.names.units[self.places[place].name])
            if 1 <= n <= WORDS_AT_MOST and is_name(&self.names.units[self.places[parent].name], b"word", 4):
                self.words[n] = number

    cdef void _count(self, uint32_t place, int change) noexcept nogil:
        """One attribute more, or less, below a root."""
        while place >= ROOTS_COUNT:
            place = self.places[place].parent
        self.asked[place] += change
        self.count += change
        self.changes += 1

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.allocator.bytes + <size_t> type(self).__basicsize__

    def _fail_after(self, allocations: int) -> None:
        """For tests: the next `allocations` growths of memory succeed, then none; -1: all."""
        self.allocator.allowance = allocations


cdef uint32_t _add(Attributes attributes, uint32_t parent, const char* name, size_t size) noexcept nogil:
    """A new place below `parent`; NONE: no memory, and nothing made."""
    cdef uint32_t at = attributes.free_place
    cdef uint32_t capacity
    cdef Place* place
    cdef Place* places
    if at == 0 and attributes.place_count == attributes.place_capacity:
        capacity = 2 * attributes.place_capacity
        places = <Place*> reallocate(&attributes.allocator, attributes.places,
                                     attributes.place_capacity * sizeof(Place), capacity * sizeof(Place))
        if places == NULL:
            return NONE
        attributes.places = places
        attributes.place_capacity = capacity
    if table_reserve(&attributes.allocator, &attributes.table) < 0 \
            or arena_reserve(&attributes.names, _units(size)) < 0:
        return NONE
    if at == 0:
        at = attributes.place_count
        attributes.place_count += 1
    else:
        attributes.free_place = attributes.places[at].parent
    place = &attributes.places[at]
    memset(place, 0, sizeof(Place))
    place.parent = parent
    place.is_used = True
    place.number = -1
    place.tag = _tag(parent, name, size)
    place.name = arena_take(&attributes.names, _units(size))
    attributes.names.units[place.name] = <uint32_t> size
    memcpy(&attributes.names.units[place.name + 1], name, size)
    table_put(&attributes.table, place.tag, at)
    attributes.places[parent].below += 1
    return at


cdef void _prune(Attributes attributes, uint32_t at) noexcept nogil:
    """Removes a place that nobody asks for, and those on the way to it that are on the way to no other."""
    cdef Place* place = &attributes.places[at]
    cdef uint32_t parent
    while at >= ROOTS_COUNT and place.number < 0 and place.below == 0:
        parent = place.parent
        table_drop(&attributes.allocator, &attributes.table, place.tag, at)
        arena_give_back(&attributes.names, place.name, _units(attributes.names.units[place.name]))
        place.is_used = False
        place.parent = attributes.free_place
        attributes.free_place = at
        at = parent
        place = &attributes.places[at]
        place.below -= 1


cdef str _name_of(const uint32_t* block):
    return (<bytes> (<const char*> (block + 1))[:block[0]]).decode("utf-8", "surrogatepass")


@cython.final
@cython.no_gc
cdef class Fields:
    """The values of one message. Made once, for one Attributes, and cleared for each message."""

    def __cinit__(self, Attributes attributes not None):
        self.allocator.allowance = -1
        self.attributes = attributes
        if self._resize(max(<uint32_t> LEAST_FIELDS, attributes.capacity)) < 0:
            raise MemoryError()
        self.after = attributes.fields
        if self.after != NULL:
            (<Fields> self.after).before = <void*> self
        attributes.fields = <void*> self
        if attributes.capacity == 0:
            attributes.capacity = LEAST_FIELDS

    def __dealloc__(self) -> None:
        if self.at != NULL:
            deallocate(&self.allocator, self.at, _bytes(self.capacity))
        if self.before != NULL:
            (<Fields> self.before).after = self.after
        elif self.attributes is not None and self.attributes.fields == <void*> self:
            self.attributes.fields = self.after
        if self.after != NULL:
            (<Fields> self.after).before = self.before

    cdef int _resize(self, uint32_t capacity) noexcept nogil:
        """Room for that many numbers, a multiple of 64; what is set stays. -1: no memory."""
        cdef char* block
        cdef Field* at
        cdef uint64_t* present
        cdef uint32_t* numbers
        cdef FieldView* views
        if capacity <= self.capacity:
            return 0
        block = <char*> allocate_zeros(&self.allocator, _bytes(capacity))
        if block == NULL:
            return -1
        at = <Field*> block
        present = <uint64_t*> (block + <size_t> capacity * sizeof(Field))
        numbers = <uint32_t*> (present + capacity // 64)
        views = <FieldView*> (numbers + capacity)
        memset(views, 0xFF, <size_t> capacity * sizeof(FieldView))
        if self.at != NULL:
            memcpy(at, self.at, <size_t> self.capacity * sizeof(Field))
            memcpy(present, self.present, self.capacity // 8)
            memcpy(numbers, self.numbers, <size_t> self.count * sizeof(uint32_t))
            deallocate(&self.allocator, self.at, _bytes(self.capacity))
        self.at, self.present, self.numbers, self.views = at, present, numbers, views
        self.is_viewed = False
        self.capacity = capacity
        return 0

    cdef void clear(self) noexcept nogil:
        cdef uint32_t i, number
        for i in range(self.count):
            number = self.numbers[i]
            self.at[number].kind = FIELD_ABSENT
            self.present[number >> 6] = 0
            self.views[number].value = self.views[number].mask = 0xFFFF
        self.count = 0
        self.is_viewed = False

    cdef Field* set(self, int number) noexcept nogil:
        cdef Field* field = &self.at[number]
        cdef uint64_t bit = <uint64_t> 1 << (number & 63)
        if not self.present[number >> 6] & bit:
            self.present[number >> 6] |= bit
            self.numbers[self.count] = <uint32_t> number
            self.count += 1
        field.kind = FIELD_ABSENT
        field.number = 0
        self.is_viewed = False
        return field

    cdef bint has(self, int number) noexcept nogil:
        return self.present[number >> 6] >> (number & 63) & 1

    def load(self, mapping: object) -> None:
        """Cleared, then these values: the keys are names as `kleene.attribute_of` reads them, or attributes.

        Integers of more than 64 bits are taken as the nearest float. Text that is longer than 4 GiB is no text.
        """
        cdef uint32_t place
        self.clear()
        self.texts = []
        for key, value in mapping.items():
            place = self.attributes._path(attribute_of(key) if isinstance(key, str) else key)
            if place != NONE and self.attributes.places[place].number >= 0:
                self._load(<uint32_t> self.attributes.places[place].number, value)

    cdef int _load(self, uint32_t number, object value) except -1:
        cdef Field* field = self.set(<int> number)
        cdef int overflow = 0
        cdef long long integer
        cdef bytes text
        if value is None:
            return 0
        if isinstance(value, bool):
            field_boolean(field, value is True)
        elif isinstance(value, int):
            integer = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow == 0:
                field_integer(field, integer)
            else:
                field_float(field, _nearest(value, overflow))
        elif isinstance(value, float):
            field_float(field, value)
        elif isinstance(value, str):
            text = (<str> value).encode("utf-8", "surrogatepass")
            self.texts.append(text)
            if len(text) <= <size_t> 0xFFFFFFFF:
                field_text(
                    field, FIELD_UNTYPED if isinstance(value, Untyped) else FIELD_TEXT, <const char*> text,
                    <uint32_t> len(text),
                )
            else:
                field.kind = FIELD_OTHER
        else:
            field.kind = FIELD_OTHER
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the text that `load` made."""
        return self.allocator.bytes + <size_t> type(self).__basicsize__


cdef inline size_t _bytes(uint32_t capacity) noexcept nogil:
    return <size_t> capacity * (sizeof(Field) + sizeof(uint32_t) + sizeof(FieldView)) + capacity // 8


cdef double _nearest(object value, int sign) except? -1:
    try:
        return float(value)
    except OverflowError:
        return HUGE_VAL if sign > 0 else -HUGE_VAL
