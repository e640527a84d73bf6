"""A selector as a program over the rows of a record index (record_rows.pyx has the operations).

The selector is brought into normal form, in which only tests are negated (normal_form.py). A test, or its negation, is
a set of codes in a domain of its attribute (record_columns.py), and a set is rows:

    text, boolean   the rows of its codes, united; or those of the other codes, taken away from the row of all that have
                    one, where these are fewer
    number          the range evaluation of Chan and Ioannidis, "Bitmap index design and evaluation" (RangeEval-Opt): at
                    most two slices a digit and bound. `code < 0` is nothing, and not the code -1; and in the end only
                    records that have a number are kept, also for `<=`.

A test that the rows cannot answer counts as true. The program then finds all records of which the selector is true, and
perhaps others: normal forms are monotone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from matchcore.normal_form import AllOf, AnyOf, HitsOf, Leaf, Normal
from matchcore.record_columns import Booleans, DistinctTexts, Interval, Linear, Listed, common, joined, outside
from matchcore.record_rows import AND, AND_NOT, AND_ROW, COPY, ONES, OR, OR_ROW, SKIP_IF_EMPTY, ZERO, RowSection
from matchcore.selector import Attribute, Between, Compare, In, Like, Matches, Present, Test, Value

__all__ = ["AttributeRows", "RowProgram", "TypeRows", "compile_selector", "rows_of"]

TEXT: Final = "text"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
PRESENT: Final = "present"
Step = tuple[int, int, int]
Row = tuple[RowSection, int]


@dataclass(frozen=True, slots=True)
class TypeRows:
    """The values of one type of an attribute.

    values  by their codes
    rows    of text and booleans: a row for each code, then the row of those records that have one;
            of numbers: the row of those that have one, then the slices
    basis   of the slices, the lowest digit first; () for rows
    """

    values: DistinctTexts | Linear | Listed | Booleans
    rows: RowSection
    basis: Sequence[int] = ()

    @property
    def known(self) -> Row:
        return self.rows, 0 if self.basis else self.values.count


@dataclass(frozen=True, slots=True)
class AttributeRows:
    """What an index has of one attribute.

    present  the row of those records that have it
    domains  those in which any record has a value
    lacks    those that are not indexed, `present` among them
    """

    present: Row | None
    domains: Mapping[str, TypeRows]
    lacks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RowProgram:
    steps: Sequence[Step]
    rows: list[Row]
    unanswered: tuple[Test, ...]  # tests that count as true


def compile_selector(normal: Normal, column_of: Callable[[Attribute], AttributeRows]) -> RowProgram:
    maker = _Maker(column_of)
    steps = maker.normal(0, normal)
    return RowProgram(steps, maker.rows, tuple(maker.unanswered))


def rows_of(domain: TypeRows, found: Sequence[Interval], rows: list[Row], to: int = 0) -> list[Step]:
    """Steps that bring the records whose code is in `found` into the register `to`; `rows` gets what they read."""
    maker = _Maker(lambda _: AttributeRows(None, {}))
    maker.rows = rows
    return maker.set_of(to, domain, found)


class _Maker:
    """Makes steps; each method's are for a result in the register `to`, and use none below it."""

    def __init__(self, column_of: Callable[[Attribute], AttributeRows]) -> None:
        self.rows: list[Row] = []
        self.unanswered: list[Test] = []
        self._column_of = column_of

    def normal(self, to: int, normal: Normal) -> list[Step]:
        match normal:
            case Leaf(test, negated):
                return self._leaf(to, test, negated)
            case AllOf(parts):
                return self._all(to, [self.normal(to + 1, part) for part in parts])
            case AnyOf(parts):
                return self._any(to, [self.normal(to + 1, part) for part in parts])
            case HitsOf(count, parts):
                return self._hits(to, count, parts)

    def set_of(self, to: int, domain: TypeRows, found: Sequence[Interval]) -> list[Step]:
        if domain.basis:
            ranges = [self._range(to + 1, domain, low, high) for low, high in found]
            return [*self._any(to, ranges), (AND_ROW, to, self._row(domain.known))]
        others = outside(found, domain.values.count)
        if _size(others) + 1 < _size(found):
            without = [self._codes(to + 1, domain, others), [(AND_NOT, to, to + 1)]] if others else []
            return [*self._one(to, domain.known), *(step for steps in without for step in steps)]
        return self._codes(to, domain, found)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _row(self, row: Row) -> int:
        self.rows.append(row)
        return len(self.rows) - 1

    def _one(self, to: int, row: Row) -> list[Step]:
        return [(ZERO, to, 0), (OR_ROW, to, self._row(row))]

    def _codes(self, to: int, domain: TypeRows, found: Sequence[Interval]) -> list[Step]:
        codes = [code for low, high in found for code in range(low, high + 1)]
        return [(ZERO, to, 0), *((OR_ROW, to, self._row((domain.rows, code))) for code in codes)]

    def _range(self, to: int, domain: TypeRows, low: int, high: int) -> list[Step]:
        steps = self._at_most(to, domain, high)
        return [*steps, *self._at_most(to + 1, domain, low - 1), (AND_NOT, to, to + 1)] if low else steps

    def _at_most(self, to: int, domain: TypeRows, code: int) -> list[Step]:
        """code or less; for records without a number anything."""
        steps: list[Step] = [(ONES, to, 0)]
        first = 1  # row 0 has those that have a number
        for place, radix in enumerate(domain.basis):
            code, digit = divmod(code, radix)
            if digit < radix - 1:
                row = self._row((domain.rows, first + digit))
                steps = [(ZERO, to, 0), (OR_ROW, to, row)] if place == 0 else [*steps, (AND_ROW, to, row)]
            if digit and place:
                steps.append((OR_ROW, to, self._row((domain.rows, first + digit - 1))))
            first += radix - 1
        return steps

    def _all(self, to: int, parts: list[list[Step]]) -> list[Step]:
        """`parts` have their results in to + 1. The cheapest is first; an empty chunk needs no others."""
        parts = sorted(parts, key=len)
        steps: list[Step] = []
        for part in reversed(parts):
            match part:
                case [(operation, _, _), (also, _, row)] if (operation, also) == (ZERO, OR_ROW):
                    joined_by = [(AND_ROW, to, row)]
                case _:
                    joined_by = [*part, (AND, to, to + 1)]
            if part is parts[0]:
                joined_by = [*part, (COPY, to, to + 1)]
            steps = [*joined_by, *([(SKIP_IF_EMPTY, to, len(steps))] if steps else []), *steps]
        return steps or [(ONES, to, 0)]

    @staticmethod
    def _any(to: int, parts: list[list[Step]]) -> list[Step]:
        """`parts` have their results in to + 1."""
        return [(ZERO, to, 0), *(step for part in parts for step in (*part, (OR, to, to + 1)))]

    def _hits(self, to: int, count: int, parts: Sequence[Normal]) -> list[Step]:
        """to + k: those with k hits or more so far."""
        part_at, spare = to + count + 1, to + count + 2
        steps = [(ZERO, to + hits, 0) for hits in range(1, count + 1)]
        for part in parts:
            steps += self.normal(part_at, part)
            for hits in range(count, 1, -1):
                steps += [(COPY, spare, to + hits - 1), (AND, spare, part_at), (OR, to + hits, spare)]
            steps.append((OR, to + 1, part_at))
        return [*steps, (COPY, to, to + count)]

    def _leaf(self, to: int, test: Test, negated: bool) -> list[Step]:
        column = self._column_of(test.attribute)
        if isinstance(test, Present):
            if PRESENT in column.lacks:
                return self._unanswered(to, test)
            there = [(ZERO, to + 1, 0)] if column.present is None else self._one(to + 1, column.present)
            return [(ONES, to, 0), *there, (AND_NOT if negated else AND, to, to + 1)]
        found = _found(test, column)
        if found is None:
            return self._unanswered(to, test)
        sets = []
        for kind, kept in found.items():
            domain = column.domains.get(kind)
            if domain is None:
                sets.append([(ZERO, to + 1, 0)])
            else:
                sets.append(self.set_of(to + 1, domain, outside(kept, domain.values.count) if negated else kept))
        # IN is true where a type says so, and false where all do: a value that cannot be compared is unknown.
        return self._all(to, sets) if negated else self._any(to, sets)

    def _unanswered(self, to: int, test: Test) -> list[Step]:
        self.unanswered.append(test)
        return [(ONES, to, 0)]


def _found(test: Test, column: AttributeRows) -> dict[str, list[Interval]] | None:
    """By type the codes for which the test is true; None: some are not indexed. Not for Present."""
    match test:
        case Compare(_, operator, value):
            compared = [(operator, value)]
        case Between(_, low, high):
            compared = [(">=", low), ("<=", high)]
        case In(_, values):
            compared = [("=", value) for value in values]
        case Like():
            if TEXT in column.lacks:
                return None
            texts = column.domains.get(TEXT)
            return {
                TEXT: texts.values.like(test) if texts is not None and isinstance(texts.values, DistinctTexts) else []
            }
        case Matches():
            return None
        case Present():
            raise TypeError("presence is a row, and no set of codes")
    kinds = [kind_of(value) for _, value in compared]
    if column.lacks & {*kinds} or (isinstance(test, Between) and kinds[0] != kinds[1]):
        return None
    found: dict[str, list[Interval]] = {kind: [] for kind in kinds}
    for kind, (operator, value) in zip(kinds, compared, strict=True):
        if (domain := column.domains.get(kind)) is None:
            continue
        kept = domain.values.compared(operator, value)
        if isinstance(test, Between) and found[kind]:
            found[kind] = common(found[kind], kept, domain.values.count)
        elif isinstance(test, Between) and operator == "<=":
            found[kind] = []  # nothing is high enough
        else:
            found[kind] = joined([*found[kind], *kept])
    return found


def kind_of(value: Value) -> str:
    if isinstance(value, bool):
        return BOOLEAN
    return TEXT if isinstance(value, str) else NUMBER


def _size(found: Sequence[Interval]) -> int:
    return sum(high - low + 1 for low, high in found)
