# cython: language_level=3
"""Conjunctions of conditions, indexed so that a message looks only at those that share something selective with it.

Drawn in conditions.pxd. A message is asked about as octets by the lane, and as values by Python; the tests compare the
two, and both with a list of bindings that are tried one by one.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t
from libc.stdlib cimport qsort

from fanlight_broker.wire.allocator cimport deallocate, reallocate

from fanlight_broker.protocols.amqp.exchanges.header_values cimport canonical_octets
from fanlight_broker.protocols.amqp.table_octets cimport value_size

from fanlight_broker.protocols.amqp.exchanges.arguments import NESTED

cpdef enum:
    CROWD = 16           # conjunctions verified in a row: less than 1 µs


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


@cython.final
@cython.no_gc
cdef class AskedName:
    """A name that conditions ask for, and what they ask of it."""

    def __cinit__(self):
        self.values = {}


@cython.final
@cython.no_gc
cdef class Conjunction:
    """Several conditions, and the destinations of the bindings that have exactly these."""

    def __cinit__(self, tuple conditions):
        self.conditions = conditions
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
            self.hung[condition] = conjunction
        elif type(branch) is Conjunction:
            self.hung[condition] = [branch, conjunction]
        elif type(branch) is ConditionTree:
            (<ConditionTree> branch).insert(conjunction)
        elif len(<list> branch) < CROWD:
            (<list> branch).append(conjunction)
        else:
            tree = self.hung[condition] = ConditionTree()
            for other in <list> branch:
                tree.insert(other)
            tree.insert(conjunction)
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
                self.hung[condition] = (<list> branch)[0]
        elif type(branch) is ConditionTree:
            (<ConditionTree> branch).remove(conjunction, depth + 1)
            if not (<ConditionTree> branch).count:
                del self.hung[condition]
        else:
            del self.hung[condition]
        return 0

    cdef int find(self, list met, ConditionIndex index) except -1:
        """Pour what all conditions of which are met."""
        cdef HeaderCondition condition
        if self.here is not None:
            index.pour(self.here.held)
        cdef list asked = met
        if len(met) > len(self.hung):
            # The shorter of the two: a message with many headers must not be walked through for each small tree.
            asked = [condition for condition in self.hung if condition.met == index.serial]
        for condition in asked:
            branch = self.hung.get(condition)
            if branch is None:
                continue
            if type(branch) is ConditionTree:
                (<ConditionTree> branch).find(met, index)
            elif type(branch) is list:
                for each in <list> branch:
                    verify(each, index)
            else:
                verify(branch, index)
        return 0


cdef int verify(Conjunction conjunction, ConditionIndex index) except -1:
    cdef HeaderCondition condition
    for condition in conjunction.conditions:
        if condition.met != index.serial:
            return 0
    return index.pour(conjunction.held)


@cython.final
cdef class ConditionIndex:
    """Numbers of destinations by conjunctions. A condition is (name, canonical value), or (name, None): it is there."""

    def __cinit__(self):
        self.names, self.several, self.tree, self.came = {}, {}, ConditionTree(), []

    def __dealloc__(self):
        deallocate(self.ids)

    @property
    def is_empty(self):
        """Nothing is left, trees and counts included."""
        tree = self.tree
        return not (self.names or self.several or tree.hung or tree.count) and self.always is None and tree.here is None

    def add(self, list conditions not None, uint32_t number):
        """conditions: without repetition, always in the same order."""
        cdef tuple asked = tuple([self.condition_of(name, value) for name, value in conditions])
        cdef Conjunction conjunction
        cdef HeaderCondition condition
        if not asked:
            self.always = with_number(self.always, number)
        elif len(asked) == 1:
            condition = asked[0]
            condition.held = with_number(condition.held, number)
        else:
            conjunction = self.several.get(asked)
            if conjunction is None:
                conjunction = self.several[asked] = Conjunction(asked)
                for condition in asked:
                    condition.uses += 1
                self.tree.insert(conjunction)
            conjunction.held = with_number(conjunction.held, number)

    def remove(self, list conditions not None, uint32_t number):
        """What was added."""
        cdef tuple asked = tuple([self.condition_of(name, value) for name, value in conditions])
        cdef Conjunction conjunction
        cdef HeaderCondition condition
        if not asked:
            self.always = without_number(self.always, number)
        elif len(asked) == 1:
            condition = asked[0]
            condition.held = without_number(condition.held, number)
            self.forget(condition)
        else:
            conjunction = self.several[asked]
            conjunction.held = without_number(conjunction.held, number)
            if conjunction.held is None:
                del self.several[asked]
                self.tree.remove(conjunction, 0)
                for condition in asked:
                    condition.uses -= 1
                    self.forget(condition)

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
                asked.values[value] = found
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
            del asked.values[condition.value]
            asked.nested -= condition.value[:1] == NESTED
        if not asked.values and asked.present is None:
            del self.names[condition.name]
        return 0

    def find(self, headers):
        """The numbers that a message reaches: (name, canonical value) of each header, each name once."""
        cdef AskedName asked
        self.begin()
        for name, value in headers:
            asked = self.names.get(name)
            if asked is not None:
                self.meet(asked, asked.values.get(value))
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
                    self.meet(asked, asked.values.get(canonical_octets(at, taken)))
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
