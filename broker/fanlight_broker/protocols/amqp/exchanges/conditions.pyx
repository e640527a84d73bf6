# cython: language_level=3
"""Conjunctions of conditions, indexed so that a message looks only at those that share something selective with it.

Drawn in conditions.pxd. A message is asked about as octets by the lane, and as values by Python; the tests compare the
two, and both with a list of bindings that are tried one by one.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from fanlight_broker.wire.allocator cimport allocate, deallocate, reallocate

from fanlight_broker.protocols.amqp.exchanges.header_values cimport canonical_octets
from fanlight_broker.protocols.amqp.table_octets cimport value_size

from fanlight_broker.protocols.amqp.exchanges.arguments import NESTED

cpdef enum:
    CROWD = 16           # conjunctions verified in a row: less than 1 µs


cdef char gone = 0    # in a slot, in place of a condition that was dropped

# -- what a condition or a conjunction leads to: None, a number, or a dict of numbers with bindings ------------------


cdef object with_number(object held, uint32_t number):
    cdef dict several
    if held is None:
        return number
    several = held if type(held) is dict else {held: 1}
    several[number] = several.get(number, 0) + 1
    return several


cdef object without_number(object held, uint32_t number):
    """None: nothing is left."""
    cdef dict several
    if type(held) is not dict:
        return None
    several = held
    several[number] -= 1
    if not several[number]:
        del several[number]
    return several if several else None


cdef object changed(object held, uint32_t number, bint added):
    return with_number(held, number) if added else without_number(held, number)


cdef int ascending(const void* one, const void* other) noexcept nogil:
    cdef uint32_t first = (<const uint32_t*> one)[0], second = (<const uint32_t*> other)[0]
    return (first > second) - (first < second)


# -- the index ------------------------------------------------------------------------------------------------------


@cython.final
@cython.no_gc
cdef class HeaderCondition:
    """A name with a value, or a name alone."""

    def __cinit__(self, bytes name, bytes value):
        self.name, self.value = name, value
        if value is not None:
            self.size = PyBytes_GET_SIZE(value)
            memcpy(self.octets, PyBytes_AS_STRING(value), min(self.size, <Py_ssize_t> SHORT))


@cython.final
@cython.no_gc
cdef class AskedName:
    """A name that conditions ask for, and what they ask of it."""

    def __cinit__(self):
        self.values = {}

    def __dealloc__(self):
        deallocate(self.slots)

    cdef HeaderCondition with_value(self, bytes value):
        """The condition that it is this one, or None."""
        cdef Py_hash_t hashed = hash(value)
        cdef size_t at = <size_t> hashed & self.mask
        cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
        cdef HeaderCondition found
        while self.slots is not NULL and self.slots[at].condition is not NULL:
            if self.slots[at].hash == hashed and self.slots[at].condition is not <void*> &gone:
                found = <HeaderCondition> self.slots[at].condition
                if found.size == size and found.has_octets(PyBytes_AS_STRING(value), size):
                    return found
            at = (at + 1) & self.mask
        return None

    cdef int enter(self, HeaderCondition condition) except -1:
        self.values[condition.value] = condition
        if self.slots is NULL or 3 * (self.taken + 1) > 2 * (self.mask + 1):
            return self.make_slots()
        self.put(condition, hash(condition.value))
        return 0

    cdef int drop(self, HeaderCondition condition) except -1:
        cdef size_t at = <size_t> hash(condition.value) & self.mask
        del self.values[condition.value]
        while self.slots[at].condition is not <void*> condition:
            at = (at + 1) & self.mask
        self.slots[at].condition = <void*> &gone
        return 0

    cdef int make_slots(self) except -1:
        """Anew, with room for as many again."""
        cdef size_t count = 4
        cdef HeaderCondition condition
        cdef ValueSlot* slots
        while count < <size_t> (2 * len(self.values)):
            count *= 2
        slots = <ValueSlot*> allocate(count * sizeof(ValueSlot))
        if slots is NULL:
            raise MemoryError()
        deallocate(self.slots)
        memset(slots, 0, count * sizeof(ValueSlot))
        self.slots, self.mask, self.taken = slots, count - 1, 0
        for condition in self.values.values():
            self.put(condition, hash(condition.value))
        return 0

    cdef void put(self, HeaderCondition condition, Py_hash_t hashed) noexcept:
        cdef size_t at = <size_t> hashed & self.mask
        while self.slots[at].condition is not NULL:
            at = (at + 1) & self.mask
        self.slots[at].hash, self.slots[at].condition = hashed, <void*> condition
        self.taken += 1


@cython.final
@cython.no_gc
cdef class Conjunction:
    """Several conditions, and the destinations of the bindings that have exactly these."""

    def __cinit__(self, tuple conditions):
        cdef Py_ssize_t i
        self.conditions = conditions
        self.count = len(conditions)
        for i in range(min(self.count, <Py_ssize_t> FEW)):
            self.few[i] = <void*> PyTuple_GET_ITEM(conditions, i)
        self.path = ()


@cython.final
@cython.no_gc
cdef class ConditionTree:
    """Conjunctions that have the conditions of a path in common."""

    def __cinit__(self):
        self.hung = {}

    cdef int insert(self, Conjunction conjunction) except -1:
        """path of the conjunction: that of this tree."""
        cdef HeaderCondition each, condition = None
        cdef Py_ssize_t least = 0, hanging
        cdef ConditionTree tree
        self.count += 1
        for each in conjunction.conditions:
            if each not in conjunction.path:
                hanging = self.hanging(each)
                if condition is None or hanging < least:
                    condition, least = each, hanging
        if condition is None:
            self.here = conjunction
            return 0
        conjunction.path += (condition,)
        branch = self.hung.get(condition)
        if branch is None:
            self.hang(condition, conjunction)
        elif type(branch) is Conjunction:
            self.hang(condition, [branch, conjunction])
        elif type(branch) is ConditionTree:
            (<ConditionTree> branch).insert(conjunction)
        elif len(<list> branch) < CROWD:
            (<list> branch).append(conjunction)
        else:
            tree = ConditionTree()
            self.hang(condition, tree)
            for other in <list> branch:
                tree.insert(other)
            tree.insert(conjunction)
        return 0

    cdef int hang(self, HeaderCondition condition, branch) except -1:
        """Under a condition, in place of what was there; None: nothing."""
        if branch is not None:
            self.hung[condition] = branch
        else:
            del self.hung[condition]
        if self.is_root:
            condition.branch = <void*> branch if branch is not None else NULL
        return 0

    cdef Py_ssize_t hanging(self, HeaderCondition condition) except -1:
        branch = self.hung.get(condition)
        if branch is None:
            return 0
        if type(branch) is Conjunction:
            return 1
        return (<ConditionTree> branch).count if type(branch) is ConditionTree else len(<list> branch)

    cdef int remove(self, Conjunction conjunction, Py_ssize_t depth) except -1:
        """It is in this tree, which is at that depth of its path."""
        self.count -= 1
        if depth == len(conjunction.path):
            self.here = None
            return 0
        condition = conjunction.path[depth]
        branch = self.hung[condition]
        if type(branch) is list:
            (<list> branch).remove(conjunction)
            if len(<list> branch) == 1:
                self.hang(condition, (<list> branch)[0])
        elif type(branch) is ConditionTree:
            (<ConditionTree> branch).remove(conjunction, depth + 1)
            if not (<ConditionTree> branch).count:
                self.hang(condition, None)
        else:
            self.hang(condition, None)
        return 0

    cdef int find(self, list met, ConditionIndex index) except -1:
        """Pour what all conditions of which are met."""
        cdef HeaderCondition condition
        if self.here is not None:
            index.pour(self.here.held)
        cdef list asked = met
        if self.is_root:
            for condition in met:
                if condition.branch is not NULL:
                    follow(<object> condition.branch, met, index)
            return 0
        if len(met) > len(self.hung):
            # The shorter of the two: a message with many headers must not be walked through for each small tree.
            asked = [condition for condition in self.hung if condition.met == index.serial]
        for condition in asked:
            branch = self.hung.get(condition)
            if branch is not None:
                follow(branch, met, index)
        return 0


cdef int follow(object branch, list met, ConditionIndex index) except -1:
    """What hangs under a condition that is met."""
    if type(branch) is Conjunction:
        return verify(<Conjunction> branch, index)
    if type(branch) is ConditionTree:
        return (<ConditionTree> branch).find(met, index)
    for each in <list> branch:
        verify(<Conjunction> each, index)
    return 0


cdef int verify(Conjunction conjunction, ConditionIndex index) except -1:
    cdef Py_ssize_t i
    for i in range(min(conjunction.count, <Py_ssize_t> FEW)):
        if (<HeaderCondition> conjunction.few[i]).met != index.serial:
            return 0
    for i in range(FEW, conjunction.count):
        if (<HeaderCondition> PyTuple_GET_ITEM(conjunction.conditions, i)).met != index.serial:
            return 0
    return index.pour(conjunction.held)


@cython.final
cdef class ConditionIndex:
    """Numbers of destinations by conjunctions. A condition is (name, canonical value), or (name, None): it is there."""

    def __cinit__(self):
        self.names, self.several, self.tree, self.came = {}, {}, ConditionTree(), []
        self.tree.is_root = True

    def __dealloc__(self):
        deallocate(self.ids)

    @property
    def is_empty(self):
        """Nothing is left, trees and counts included."""
        tree = self.tree
        return not (self.names or self.several or tree.hung or tree.count) and self.always is None and tree.here is None

    def add(self, list conditions not None, uint32_t number):
        """conditions: without repetition, always in the same order."""
        self.change(conditions, number, True)

    def remove(self, list conditions not None, uint32_t number):
        """What was added. KeyError if it was not."""
        self.change(conditions, number, False)

    cdef int change(self, list conditions, uint32_t number, bint added) except -1:
        cdef tuple asked = tuple([self.condition_of(name, value) for name, value in conditions])
        cdef Conjunction conjunction
        cdef HeaderCondition condition
        if not asked:
            self.always = changed(self.always, number, added)
        elif len(asked) == 1:
            condition = asked[0]
            condition.held = changed(condition.held, number, added)
            self.forget(condition)
        else:
            conjunction = self.several.get(asked)
            if conjunction is None:
                if not added:
                    raise KeyError(conditions)
                conjunction = self.begin_conjunction(asked)
            conjunction.held = changed(conjunction.held, number, added)
            if conjunction.held is None:
                self.end_conjunction(conjunction)
        return 0

    cdef Conjunction begin_conjunction(self, tuple asked):
        cdef Conjunction conjunction = Conjunction(asked)
        cdef HeaderCondition condition
        self.several[asked] = conjunction
        for condition in asked:
            condition.uses += 1
        self.tree.insert(conjunction)
        return conjunction

    cdef int end_conjunction(self, Conjunction conjunction) except -1:
        cdef HeaderCondition condition
        del self.several[conjunction.conditions]
        self.tree.remove(conjunction, 0)
        for condition in conjunction.conditions:
            condition.uses -= 1
            self.forget(condition)
        return 0

    cdef HeaderCondition condition_of(self, bytes name, bytes value):
        """The one that there is, or a new one."""
        cdef AskedName asked = self.names.get(name)
        cdef HeaderCondition found
        if asked is None:
            asked = self.names[name] = AskedName()
        found = asked.present if value is None else asked.values.get(value)
        if found is None:
            found = HeaderCondition(name, value)
            if value is None:
                asked.present = found
            else:
                asked.enter(found)
                asked.nested += value[:1] == NESTED
        return found

    cdef int forget(self, HeaderCondition condition) except -1:
        """Drop it, and its name, if nothing needs it any more."""
        cdef AskedName asked
        if condition.uses or condition.held is not None:
            return 0
        asked = self.names[condition.name]
        if condition.value is None:
            asked.present = None
        else:
            asked.drop(condition)
            asked.nested -= condition.value[:1] == NESTED
        if not asked.values and asked.present is None:
            del self.names[condition.name]
        return 0

    def asks(self, bytes name not None):
        """Does any condition ask for a header of this name?"""
        return name in self.names

    def find(self, headers):
        """The numbers that a message reaches: (name, canonical value) of each header, each name once."""
        cdef AskedName asked
        self.begin()
        for name, value in headers:
            asked = self.names.get(name)
            if asked is not None:
                self.meet(asked, asked.with_value(value))
        self.finish()
        return tuple([self.ids[i] for i in range(self.count)])

    def find_in(self, bytes entries not None):
        """The same for the entries of a table as octets: `find_octets` for tests."""
        self.find_octets(<const unsigned char*> PyBytes_AS_STRING(entries), len(entries))
        return tuple([self.ids[i] for i in range(self.count)])

    cdef int find_octets(self, const unsigned char* at, Py_ssize_t size) except -1:
        """`ids` and `count` of a message by the entries of its headers, which are well-formed. Of a name that comes
        several times the last value counts.
        """
        cdef const unsigned char* end = at + size
        cdef AskedName asked
        cdef Py_ssize_t taken
        self.begin()
        while at < end:
            asked = self.names.get(PyBytes_FromStringAndSize(<const char*> at + 1, at[0]))
            at += 1 + at[0]
            taken = value_size(at, end, 1)
            if asked is not None:
                if not asked.values or ((at[0] == c"F" or at[0] == c"A") and not asked.nested):
                    self.meet(asked, None)
                else:
                    self.meet(asked, asked.with_value(canonical_octets(at, taken)))
            at += taken
        return self.finish()

    # -- one search -------------------------------------------------------------------------------------------------

    cdef int begin(self) except -1:
        self.serial += 1
        self.count = 0
        self.came.clear()
        return 0

    cdef int meet(self, AskedName asked, HeaderCondition found) except -1:
        """A name has come with a value that this condition asks for; None: no condition does."""
        if asked.seen != self.serial:
            asked.seen = self.serial
            self.came.append(asked)
        asked.found = found
        return 0

    cdef int finish(self) except -1:
        """All headers have come."""
        cdef AskedName asked
        cdef HeaderCondition condition
        cdef list met = []
        cdef size_t i, kept = 0
        for asked in self.came:
            for condition in (asked.found, asked.present):
                if condition is not None:
                    condition.met = self.serial
                    met.append(condition)
            asked.found = None
        self.pour(self.always)
        for condition in met:
            self.pour(condition.held)
        if self.several:
            self.tree.find(met, self)
        if self.count > 1:
            qsort(self.ids, self.count, sizeof(uint32_t), ascending)
            for i in range(self.count):
                if i == 0 or self.ids[i] != self.ids[kept - 1]:
                    self.ids[kept] = self.ids[i]
                    kept += 1
            self.count = kept
        return 0

    cdef int pour(self, object held) except -1:
        """What it holds is reached."""
        if held is None:
            return 0
        if type(held) is not dict:
            return self.push(held)
        for number in <dict> held:
            self.push(number)
        return 0

    cdef int push(self, uint32_t number) except -1:
        cdef void* larger
        if self.count == self.capacity:
            larger = reallocate(self.ids, (2 * self.capacity + 16) * sizeof(uint32_t))
            if larger is NULL:
                raise MemoryError()
            self.ids, self.capacity = <uint32_t*> larger, 2 * self.capacity + 16
        self.ids[self.count] = number
        self.count += 1
        return 0
