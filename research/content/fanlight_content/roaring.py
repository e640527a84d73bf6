"""The bitmaps of bitmaps.pyx in Roaring containers, in Python with pyroaring: what a Python user would reach for.

Lemire, Ssi-Yan-Kai, Kaser: "Consistently faster and smaller compressed bitmaps with Roaring", Software: Practice and
Experience 46(11), 2016. Rows for values, and for cells of numbers; for each attribute (value's row OR rest), all of
them ANDed. Compressed rows take the memory of their bits, so many values cost nothing; each operation is a call.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap

from fanlight_content.selections import Asked, Selections, conjunctions_of
from matchcore.kleene import Untyped, typed
from matchcore.normal_form import Leaf
from matchcore.selector import Attribute, Between, Compare, In, Value

MOST_CELLS = 64
ONE_SIDED = {"<": (False, True), "<=": (False, True), ">": (True, False), ">=": (True, False)}
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "<>", "<>": "="}


@dataclass(slots=True)
class AttributeRows:
    """The conditions on one attribute."""

    values: dict[tuple[str, Value], BitMap] = field(default_factory=lambda: defaultdict(BitMap))
    ranges: list[tuple[float, float, int]] = field(default_factory=list)  # low, high, column
    bounds: list[float] = field(default_factory=list)
    cells: list[BitMap] = field(default_factory=list)
    met: BitMap = field(default_factory=BitMap)  # columns that have a condition
    rest: BitMap = field(default_factory=BitMap)  # the others

    def finish(self, columns: int) -> None:
        ends = sorted(end for low, high, _ in self.ranges for end in (low, high) if math.isfinite(end))
        count = min(len(ends) + 1, MOST_CELLS)
        self.bounds = [ends[(at + 1) * len(ends) // count] for at in range(count - 1)]
        self.cells = [BitMap() for _ in range(count)]
        for low, high, column in self.ranges:
            for cell in range(bisect.bisect_right(self.bounds, low), bisect.bisect_right(self.bounds, high) + 1):
                self.cells[cell].add(column)
        self.rest = BitMap(range(columns)) - self.met

    def of(self, found: object) -> BitMap:
        """The columns whose condition a value may meet, and the rest."""
        row = self.rest
        for kind, value in _values(found):
            if (kind, value) in self.values:
                row = row | self.values[kind, value]
            if kind == "number" and self.ranges:
                row = row | self.cells[bisect.bisect_right(self.bounds, value)]
        return row


def _values(found: object) -> list[tuple[str, Value]]:
    """What a value may be compared as."""
    if isinstance(found, Untyped):
        return [*_values(str(found)), *_values(typed(found, 0)), *_values(typed(found, True))]
    if isinstance(found, bool):
        return [("boolean", found)]
    if isinstance(found, int):
        return [("number", found if abs(found) < 2**70 else math.copysign(math.inf, found))]
    if isinstance(found, float):
        return [] if math.isnan(found) else [("number", found)]
    return [("text", found)] if isinstance(found, str) else []


class FilterRows:
    """The selectors of one filter."""

    def __init__(self) -> None:
        self.columns: list[int] = []  # selections
        self.attributes: dict[Attribute, AttributeRows] = defaultdict(AttributeRows)

    def add(self, selection: int, leaves: Sequence[Leaf]) -> None:
        column = len(self.columns)
        self.columns.append(selection)
        for leaf in leaves:
            attribute = self.attributes[leaf.test.attribute]
            if column not in attribute.met and _put(attribute, leaf, column):
                attribute.met.add(column)

    def find(self, asked: Asked) -> BitMap:
        found = BitMap(range(len(self.columns)))
        for attribute, rows in self.attributes.items():
            found &= rows.of(asked.mapping.get(attribute))
            if not found:
                break
        return found


def _put(attribute: AttributeRows, leaf: Leaf, column: int) -> bool:
    """Whether the condition has a row."""
    test = leaf.test
    if isinstance(test, In) and not leaf.negated:
        values: Sequence[Value] = test.values
    elif isinstance(test, Compare):
        operator = OPPOSITE[test.operator] if leaf.negated else test.operator
        if operator in ONE_SIDED and _is_number(test.value):
            low, high = ONE_SIDED[operator]
            attribute.ranges.append((test.value if low else -math.inf, test.value if high else math.inf, column))  # type: ignore[arg-type]
            return True
        if operator != "=":
            return False
        values = (test.value,)
    elif isinstance(test, Between) and not leaf.negated and _is_number(test.low) and _is_number(test.high):
        attribute.ranges.append((test.low, test.high, column))  # type: ignore[arg-type]
        return True
    else:
        return False
    for value in values:
        for key in _values(value):
            attribute.values[key].add(column)
    return True


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Roaring:
    """Rows for each filter."""

    def __init__(self, selections: Selections) -> None:
        self.selections = selections
        self.filters: dict[int, FilterRows] = defaultdict(FilterRows)
        for number, slot in enumerate(selections.slots()):
            conjunctions = conjunctions_of(selections.selector(number))
            for leaves in [[]] if conjunctions is None else conjunctions:
                self.filters[slot].add(number, leaves)
        for rows in self.filters.values():
            for attribute in rows.attributes.values():
                attribute.finish(len(rows.columns))

    def match(self, asked: Asked) -> tuple[int, ...]:
        """The ids of the selectors that are true, ascending."""
        found: set[int] = set()
        for slot in asked.filters:
            if rows := self.filters.get(slot):
                found.update(rows.columns[column] for column in rows.find(asked))
        return tuple(sorted(self.selections.holding(found, asked)))

    def ask(self, asked: Sequence[Asked], times: int = 1) -> int:
        """How many ids are found in all."""
        return sum(len(self.match(one)) for one in asked for _ in range(times))

    @property
    def nbytes(self) -> int:
        """Of the rows as they are written to a file, and 8 bytes a column: Python's own objects are left out."""
        return sum(
            8 * len(rows.columns)
            + sum(
                len(row.serialize())
                for attribute in rows.attributes.values()
                for row in (*attribute.values.values(), *attribute.cells, attribute.rest)
            )
            for rows in self.filters.values()
        )
