# cython: language_level=3, cdivision=True
"""The access cover of a selector: tests of which at least one is true whenever the selector is.

    AND               its cheapest part
    OR                all its parts
    AT LEAST k OF n   the n-k+1 cheapest: no more than n-k can fail

A test costs the share of the messages for which it is expected to be true: a value one of those that the column has
seen, a range the cells that it overlaps. Linear in the selector: nothing is multiplied out (access predicates: Fabret
et al., "Filtering algorithms and implementation for very fast publish/subscribe systems", 2001).
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from matchcore.access cimport (
    AFFIX_AT_MOST, CELLS, CELLS_AT_MOST, KEY_NOTED, KEY_PREFIX, KEY_PRESENT, KEY_RANGE, KEY_SUFFIX, KEY_VALUE, Access,
    AccessColumn, access_cell, access_column, access_forget, access_has_cells, access_make_column, access_sample,
    access_see, access_values, tag_of_affix, tag_of_hash, tag_of_presence,
)
from matchcore.fields cimport Attributes
from matchcore.hashing cimport hash_secret
from matchcore.program cimport LIKE_ANY, LIKE_ONE, MASK_ABOVE, MASK_ALL, MASK_BELOW, MASK_EQUAL
from matchcore.values cimport hash_boolean, hash_float, hash_integer, hash_text, ordered_float

import struct

from matchcore.normal_form import AllOf, HitsOf, Leaf
from matchcore.program import MASKS, comparable, like_pattern
from matchcore.selector import Between, Compare, In, Matches, Present

NEVER_CHEAP = float("inf")
CHEAP = 0.5                               # of the messages: what a cover lets through at most
BOOLEAN_COST = 0.5
PRESENT_COST = 0.25
AFFIX_COSTS = (1.0, 1 / 16, 1 / 32, 1 / 64)  # by the bytes of a prefix or suffix
LEAST_AFFIX_COST = 1 / 256                # where many were seen: one may begin like another
ANY, ONE = bytes((LIKE_ANY,)), bytes((LIKE_ONE,))

cdef enum:
    VALUES_AT_LEAST = 16    # that a column is taken to have while few were seen
    VALUES_AT_MOST = 1_024  # beyond which they cannot be counted

cdef uint64_t LOWEST = 0
cdef uint64_t HIGHEST = 0xFFFFFFFFFFFFFFFF


cdef class Cover:
    """Chooses the keys of one selector, and counts what it sees."""

    cdef:
        Access* access
        Attributes attributes
        list entries
        list acquired      # numbers of attributes, held until the program holds them

    cdef uint32_t acquire(self, object attribute) except? 0xFFFFFFFF:
        cdef uint32_t number = self.attributes.acquire(attribute)
        self.acquired.append(number)
        return number

    cdef AccessColumn* column(self, uint32_t number) except NULL:
        """The column of an attribute, with one entry more. Valid until Python code may run."""
        entry = struct.pack("=HH", number, KEY_NOTED)
        self.entries.append(entry)
        cdef AccessColumn* column = access_make_column(self.access, number)
        if column == NULL:
            self.entries.pop()
            raise MemoryError()
        column.holders += 1
        return column

    cdef tuple of(self, object node):
        """(cost, entries with keys, leaves that have these) of a cover."""
        if isinstance(node, Leaf):
            cost, entries = self.of_test(node.test, node.negated)
            return cost, entries, (node,)
        parts = [self.of(part) for part in node.parts]
        if isinstance(node, AllOf):
            parts += [(*self.of_range(attribute, low, high), ()) for attribute, low, high in _limits(node.parts)]
            return min(parts, key=_cost, default=(NEVER_CHEAP, (), ()))
        if isinstance(node, HitsOf):
            parts = sorted(parts, key=_cost)[: len(parts) - node.count + 1]
        return (
            sum(map(_cost, parts)),
            tuple([entry for _, entries, _ in parts for entry in entries]),
            tuple([leaf for _, _, leaves in parts for leaf in leaves]),
        )

    cdef tuple of_test(self, object test, bint negated):
        cdef uint32_t number
        if isinstance(test, Compare):
            return self.of_compared(test, MASKS[test.operator] ^ (MASK_ALL if negated else 0))
        if negated:
            return NEVER_CHEAP, ()
        if isinstance(test, Between):
            return self.of_range(test.attribute, comparable(test.low), comparable(test.high))
        if isinstance(test, In):
            return self.of_values(test.attribute, [comparable(value) for value in test.values])
        pattern = None if isinstance(test, Present) else _pattern(test)
        number = self.acquire(test.attribute)
        self.column(number)
        if isinstance(test, Present):
            return PRESENT_COST, (struct.pack("=HHI", number, KEY_PRESENT, tag_of_presence(number)),)
        return self.of_pattern(number, pattern)

    cdef tuple of_compared(self, object test, int mask):
        value = comparable(test.value)
        if isinstance(value, bool):
            # FALSE is below TRUE: which of the two are let through?
            passing = [each for each in (False, True) if mask >> (each - value + 1) & 1]
            return self.of_values(test.attribute, passing) if len(passing) == 1 else (NEVER_CHEAP, ())
        if mask == MASK_EQUAL:
            return self.of_values(test.attribute, [value])
        if mask & ~MASK_EQUAL == MASK_BELOW:
            return self.of_range(test.attribute, None, value)
        if mask & ~MASK_EQUAL == MASK_ABOVE:
            return self.of_range(test.attribute, value, None)
        return NEVER_CHEAP, ()

    cdef tuple of_values(self, object attribute, list values):
        cdef uint32_t number = self.acquire(attribute)
        cdef list hashes = [_hash(number, value) for value in values]
        cdef AccessColumn* column = self.column(number)
        for hash in hashes:
            access_see(column, hash)
        cdef double share = 1 / _values(column)
        cost = sum([BOOLEAN_COST if isinstance(value, bool) else share for value in values])
        tags = {tag_of_hash(hash) for hash in hashes}
        return cost, tuple([struct.pack("=HHI", number, KEY_VALUE, tag) for tag in tags])

    cdef tuple of_range(self, object attribute, object low, object high):
        """From `low` to `high`, both within; None: no end there."""
        cdef uint32_t number
        cdef AccessColumn* column
        cdef uint32_t cells
        cdef uint64_t from_ = LOWEST
        cdef uint64_t to = HIGHEST
        if isinstance(low, (bool, bytes)) or isinstance(high, (bool, bytes)):
            return NEVER_CHEAP, ()
        if low is not None:
            from_ = ordered_float(<double> low)
        if high is not None:
            to = ordered_float(<double> high)
        number = self.acquire(attribute)
        column = self.column(number)
        if low is not None and access_sample(self.access, column, from_) < 0:
            raise MemoryError()
        if high is not None and access_sample(self.access, column, to) < 0:
            raise MemoryError()
        if from_ > to or not access_has_cells(column):
            return NEVER_CHEAP, ()
        cells = access_cell(column, to) - access_cell(column, from_) + 1
        if cells > CELLS_AT_MOST:
            return NEVER_CHEAP, ()
        return <double> cells / CELLS, (struct.pack("=HHQQ", number, KEY_RANGE, from_, to),)

    cdef tuple of_pattern(self, uint32_t number, bytes pattern):
        cdef AccessColumn* column
        cdef uint32_t tag
        parts = pattern.replace(ONE, ANY).split(ANY)
        if len(parts) == 1:
            tag = tag_of_hash(hash_text(hash_secret(), number, <const char*> pattern, len(pattern)))
            return AFFIX_COSTS[3], (struct.pack("=HHI", number, KEY_VALUE, tag),)
        prefix, suffix = parts[0][:AFFIX_AT_MOST], parts[-1][-AFFIX_AT_MOST:]
        if not prefix and not suffix:
            return NEVER_CHEAP, ()
        kind, affix = (KEY_PREFIX, prefix) if len(prefix) >= len(suffix) else (KEY_SUFFIX, suffix)
        tag = tag_of_affix(number, kind, <const char*> <bytes> affix, len(affix))
        column = access_column(self.access, number)
        access_see(column, tag)
        cost = AFFIX_COSTS[min(3, len(affix))]
        if len(affix) >= 4 and access_values(column) > 64:
            cost = max(1 / access_values(column), LEAST_AFFIX_COST)  # long enough to be one of many, as a value is
        return cost, (struct.pack("=HHII", number, kind, tag, len(affix)),)


cdef bytes _pattern(object test):
    """As `like_pattern`: what each text has of which LIKE, or MATCHES, is true."""
    if not isinstance(test, Matches):
        return like_pattern(test)
    prefix, suffix = map(comparable, test.affixes)
    return prefix if all(test.pieces) else prefix + ANY + suffix


cdef double _values(const AccessColumn* column) noexcept nogil:
    """How many a column is taken to have: those that were seen, once that is often enough to know."""
    cdef double seen = access_values(column)
    cdef double least = 2 if column.holders > 8 * seen else VALUES_AT_LEAST
    return min(max(seen, least), <double> VALUES_AT_MOST)


def _limits(parts: tuple) -> list:
    """(attribute, low, high) of those that parts of an AND hold between two numbers: `a > 1 AND a < 3`."""
    lows, highs = {}, {}
    for part in parts:
        if isinstance(part, Leaf) and isinstance(part.test, Compare):
            value = comparable(part.test.value)
            mask = MASKS[part.test.operator] ^ (MASK_ALL if part.negated else 0)
            if isinstance(value, (bool, bytes)):
                continue
            attribute = part.test.attribute
            if mask & ~MASK_EQUAL == MASK_ABOVE:
                lows[attribute] = max(value, lows.get(attribute, value))
            elif mask & ~MASK_EQUAL == MASK_BELOW:
                highs[attribute] = min(value, highs.get(attribute, value))
    return [(attribute, low, highs[attribute]) for attribute, low in lows.items() if attribute in highs]


def _cost(part: tuple) -> float:
    return part[0]


cdef uint64_t _hash(uint32_t number, object value) except? 0:
    cdef const uint64_t* secret = hash_secret()
    cdef int64_t integer
    if isinstance(value, bool):
        return hash_boolean(secret, number, value)
    if isinstance(value, bytes):
        return hash_text(secret, number, <const char*> <bytes> value, len(value))
    if isinstance(value, float):
        return hash_float(secret, number, value)
    integer = value
    return hash_integer(secret, number, integer)


cdef bytes access_entries(
    Access* access, object normal, Attributes attributes, list acquired, list leaves, bint* is_keyed
):
    cdef Cover cover = Cover()
    cover.access = access
    cover.attributes = attributes
    cover.entries = []
    cover.acquired = acquired
    is_keyed[0] = False
    try:
        cost, entries, chosen = cover.of(normal)
    except BaseException:
        made = b"".join(cover.entries)
        access_forget(access, <const uint32_t*> <const char*> <bytes> made, <uint32_t> (len(made) // 4))
        raise
    if cost <= CHEAP:
        is_keyed[0] = True
        cover.entries += entries
        leaves += chosen
    return b"".join(cover.entries)
