"""A record index that is read: selectors looked up in the bytes that `records.freeze_columns` makes.

Of attributes there are rows (record_columns.py); a selector becomes a program over them (record_query.py), which runs
over the bytes where they are (record_rows.pyx).
"""

import json
import math
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy
from typing_extensions import Buffer

from matchcore.errors import InvalidFrozenIndex, NotIndexed
from matchcore.kleene import attribute_of
from matchcore.normal_form import AllOf, normal_form
from matchcore.patterns import Where, selector_of
from matchcore.record_columns import (
    SCALES,
    Booleans,
    DistinctTexts,
    Interval,
    Linear,
    Listed,
)  # fmt: skip
from matchcore.record_file import RecordFile
from matchcore.record_query import (
    BOOLEAN,
    NUMBER,
    PRESENT,
    TEXT,
    AttributeRows,
    Row,
    RowProgram,
    TypeRows,
    compile_selector,
    rows_of,
)  # fmt: skip
from matchcore.record_rows import AND, AND_NOT, AND_ROW, OR, OR_ROW, ZERO, RowSection, answer
from matchcore.record_writing import encode_rows
from matchcore.selector import Attribute, Source

__all__ = ["Candidates", "FrozenRecordIndex", "Ids", "Key", "Verify"]

PROGRAMS_MAX = 64  # that an index keeps; each has at most some hundred steps
Verify = Callable[[int], bool]
Ids = Any  # numpy: uint32
Key = str | int | float | bool


class Candidates(NamedTuple):
    """Records of which a selector may be true; `exact`: of all of which it is."""

    ids: Ids
    exact: bool


class FrozenRecordIndex:
    """An index that is read and never changed. For one thread at a time. Raises InvalidFrozenIndex, also later: a part
    is checked when it is first read.

    data    the bytes, which are lent, or a mapped file
    source  its path, for errors
    """

    def __init__(self, data: Buffer, source: str | None = None) -> None:
        self._file = RecordFile(data, source)
        self.records: int = self._file.records
        self._columns: dict[Attribute, AttributeRows] = {}
        self._programs: dict[str, RowProgram] = {}  # by the text of a selector: the same is asked again and again
        try:
            described = self._file.described
            self.notes: dict[str, Any] = described["notes"]
            self._described = {
                Attribute(Source(one["source"]), tuple(one["path"])): one for one in described["attributes"]
            }
            lacks = frozenset() if described["complete"] else frozenset((TEXT, NUMBER, BOOLEAN, PRESENT))
            self._other = AttributeRows(None, {}, lacks)
        except (ValueError, KeyError, TypeError) as error:
            raise self._file.invalid(f"its description is not one: {error!r}") from error

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "FrozenRecordIndex":
        """Map a file. Nobody may shorten it as long as it is open: see record_file.py."""
        with open(path, "rb") as file:
            try:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError as error:  # it is empty
                raise InvalidFrozenIndex(os.fspath(path), str(error)) from error
        return cls(data, os.fspath(path))

    def __len__(self) -> int:
        return self.records

    @property
    def nbytes(self) -> int:
        return self._file.nbytes

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return tuple(self._described)

    # -- questions ----------------------------------------------------------------------------------------------------

    def texts(self, attribute: str | Attribute) -> DistinctTexts | None:
        """The distinct texts of an attribute, by their codes; None: it has none, or they are not indexed."""
        domain = self._column(attribute).domains.get(TEXT)
        return None if domain is None else domain.values  # type: ignore[return-value]

    def candidates(
        self, where: Where | None = None, *, among: Mapping[Attribute, Sequence[Interval]] | None = None
    ) -> Candidates:
        """Records of which the selector may be true: all of which it is, and others only where rows cannot say.

        among: only records with one of these texts in one of these attributes, which have `texts`: intervals of codes.
        Raises InvalidSelector, KeyError.
        """
        program = self._program(where)
        if among is not None:
            rows, steps = list(program.rows), list(program.steps)
            steps.append((ZERO, 1, 0))
            for attribute, found in among.items():
                steps += rows_of(self._column(attribute).domains[TEXT], found, rows, 2)
                steps.append((OR, 1, 2))
            program = RowProgram([*steps, (AND, 0, 1)], rows, program.unanswered)
        return Candidates(self._answered(program, want_ids=True), not program.unanswered)

    def ids(self, where: Where | None = None, *, verify: Verify | None = None) -> Ids:
        """The records of which the selector is true, ascending, uint32. Raises InvalidSelector, NotIndexed.

        verify: asked about a record where rows cannot say, whether the selector is true of it.
        """
        program = self._program(where)
        return self._verified(program, verify) if program.unanswered else self._answered(program, want_ids=True)

    def count(self, where: Where | None = None, *, verify: Verify | None = None) -> int:
        """How many they are. Raises as `ids`."""
        program = self._program(where)
        if program.unanswered:
            return len(self._verified(program, verify))
        return int(self._answered(program))

    def count_by(
        self, attribute: str | Attribute, where: Where | None = None, *, verify: Verify | None = None
    ) -> dict[Key, int]:
        """How many of them have each value of an attribute; those without one are not counted. Text that came without
        a type counts as text. Raises as `ids`."""
        column, program = self._column(attribute), self._settled(where, verify)
        if missing := column.lacks - {PRESENT}:
            raise NotIndexed(str(attribute), f"of this attribute {', '.join(sorted(missing))} is not indexed")
        counts: dict[Key, int] = {}
        text = column.domains.get(TEXT)
        for kind in (TEXT, BOOLEAN):
            if (domain := column.domains.get(kind)) is not None:
                among = program if kind == TEXT else _without(program, text)
                each = [(domain.rows, code) for code in range(domain.values.count)]
                for code, count in enumerate(self._answered(among, each).tolist()):
                    if count:
                        values = domain.values
                        counts[values.text(code) if isinstance(values, DistinctTexts) else values[code]] = count
        if (domain := column.domains.get(NUMBER)) is not None:
            codes = self._codes(domain, _without(program, text))
            for code, count in zip(*(one.tolist() for one in numpy.unique(codes, return_counts=True)), strict=True):
                counts[domain.values[code]] = count  # type: ignore[index]
        return counts

    def sum(
        self, attribute: str | Attribute, where: Where | None = None, *, verify: Verify | None = None
    ) -> int | float:
        """The sum of an attribute's numbers in them; 0 without one. Exact, and rounded once if it is no integer: of the
        decimals that the numbers are written as where all have at most 9 digits behind the point, else of the floats.
        Raises as `ids`."""
        column, program = self._column(attribute), self._settled(where, verify)
        if NUMBER in column.lacks:
            raise NotIndexed(str(attribute), "of this attribute numbers are not indexed")
        domain = column.domains.get(NUMBER)
        if domain is None:
            return 0
        values = domain.values
        if not isinstance(values, Linear):
            codes, counts = numpy.unique(self._codes(domain, program), return_counts=True)
            terms = [(values[code], count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)]
            return _exact_sum(terms, values.scale)  # type: ignore[arg-type, union-attr]
        # Each slice says of how many records a digit is at most so much.
        counted = self._answered(program, [(domain.rows, row) for row in range(len(domain.rows))]).tolist()
        known, at_most = counted[0], iter(counted[1:])
        total: int = values.base * known
        weight = 1
        for radix in domain.basis:
            total += weight * sum(known - next(at_most) for _ in range(radix - 1))
            weight *= radix
        return total / 10**values.scale if values.scale else total

    # -- inside -------------------------------------------------------------------------------------------------------

    def _program(self, where: Where | None) -> RowProgram:
        known = self._programs.get(where) if isinstance(where, str) else None
        if known is None:
            normal = AllOf(()) if where is None else normal_form(selector_of(where))
            known = compile_selector(normal, self._column)
            if isinstance(where, str):
                if len(self._programs) >= PROGRAMS_MAX:
                    self._programs.clear()
                self._programs[where] = known
        return known

    def _settled(self, where: Where | None, verify: Verify | None) -> RowProgram:
        """A program that finds the records of which the selector is true and no others."""
        program = self._program(where)
        if not program.unanswered:
            return program
        ids = self._verified(program, verify)
        row = RowSection(encode_rows(ids, numpy.array([0, len(ids)], numpy.int64)))
        return RowProgram([(ZERO, 0, 0), (OR_ROW, 0, 0)], [(row, 0)], ())

    def _verified(self, program: RowProgram, verify: Verify | None) -> Ids:
        if verify is None:
            test = program.unanswered[0]
            raise NotIndexed(str(test), "the index has no rows that answer this")
        ids = self._answered(program, want_ids=True)
        return ids[[verify(id) for id in ids.tolist()]] if len(ids) else ids

    def _answered(self, program: RowProgram, each: list[Row] | None = None, *, want_ids: bool = False) -> Any:
        try:
            return answer(self.records, program.steps, program.rows, each, want_ids)
        except ValueError as error:
            raise self._file.invalid(str(error)) from error

    def _codes(self, domain: TypeRows, program: RowProgram) -> Any:
        """The codes of those records that are found and have one, in their order."""
        known = _with(program, domain.known)
        ids = self._answered(known, want_ids=True)
        codes = numpy.zeros(len(ids), numpy.uint64)
        row, weight = 1, 1
        for radix in domain.basis:
            for _ in range(radix - 1):
                at_most = self._answered(_with(known, (domain.rows, row)), want_ids=True)
                above = numpy.ones(len(ids), numpy.bool_)
                above[numpy.searchsorted(ids, at_most)] = False
                codes[above] += numpy.uint64(weight)
                row += 1
            weight *= radix
        return codes

    def _column(self, attribute: str | Attribute) -> AttributeRows:
        if isinstance(attribute, str):
            attribute = attribute_of(attribute)
        found = self._columns.get(attribute)
        if found is None:
            described = self._described.get(attribute)
            if described is None:
                return self._other
            try:
                found = self._columns[attribute] = self._read(described)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if isinstance(error, InvalidFrozenIndex):
                    raise
                raise self._file.invalid(f"{attribute}: {error}") from error
        return found

    def _read(self, described: dict[str, Any]) -> AttributeRows:
        def rows(number: int, least: int) -> RowSection:
            section = RowSection(self._file.section(number))
            if len(section) < least:
                raise ValueError(f"a section has {len(section)} rows, and not {least}")
            return section

        domains: dict[str, TypeRows] = {}
        if (about := described.get(TEXT)) is not None:
            words = DistinctTexts(self._file.section(about["words"]))
            domains[TEXT] = TypeRows(words, rows(about["rows"], words.count + 1))
        if (about := described.get(BOOLEAN)) is not None:
            domains[BOOLEAN] = TypeRows(Booleans(), rows(about["rows"], 3))
        if (about := described.get(NUMBER)) is not None:
            basis = [int(radix) for radix in about["basis"]]
            if not basis or min(basis) < 2 or not 0 <= int(about["scale"] or 0) <= SCALES:
                raise ValueError(f"the basis {basis}, the scale {about['scale']}")
            values: Linear | Listed
            if "values" in about:
                listed = json.loads(bytes(self._file.section(about["values"])))
                if not all(type(value) in (int, float) for value in listed):
                    raise ValueError("values that are no numbers")
                values = Listed(listed, about["scale"])
            else:
                values = Linear(int(about["base"]), int(about["scale"]), math.prod(basis))
            if values.count > math.prod(basis):
                raise ValueError(f"{values.count} values in the basis {basis}")
            domains[NUMBER] = TypeRows(values, rows(about["rows"], 1 + sum(radix - 1 for radix in basis)), basis)
        present = described.get(PRESENT)
        return AttributeRows(None if present is None else (rows(present, 1), 0), domains, frozenset(described["lacks"]))


def _with(program: RowProgram, row: Row) -> RowProgram:
    """What is found and is in the row."""
    return RowProgram([*program.steps, (AND_ROW, 0, len(program.rows))], [*program.rows, row], ())


def _without(program: RowProgram, domain: TypeRows | None) -> RowProgram:
    """What is found and has no value in the domain."""
    if domain is None:
        return program
    steps = [*program.steps, (ZERO, 1, 0), (OR_ROW, 1, len(program.rows)), (AND_NOT, 0, 1)]
    return RowProgram(steps, [*program.rows, domain.known], ())


def _exact_sum(terms: Sequence[tuple[int | float, int]], scale: int | None) -> int | float:
    if scale is not None:
        whole: int = sum(round(Fraction(value) * 10**scale) * count for value, count in terms)
        return float(Fraction(whole, 10**scale)) if scale else whole
    if not all(isinstance(value, int) or math.isfinite(value) for value, _ in terms):
        return math.fsum(float(value) for value, _ in terms)  # inf, or a ValueError for inf - inf
    total = sum((Fraction(value) * count for value, count in terms), Fraction(0))
    return int(total) if all(isinstance(value, int) for value, _ in terms) else float(total)
