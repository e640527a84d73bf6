"""A record index: records in, a selector looked up; which records, how many, how many by a value, the sum of a value.

    index = RecordIndex()
    index.append({"country": "GB", "sector": "Energies"})         # 0
    index.append({"country": "FR", "sector": "Financials"})       # 1
    index.ids("country IN ('GB', 'FR') AND sector <> 'Energies'")  # array([1])
    index.count_by("country")                                     # {'FR': 1, 'GB': 1}

The mirror image of a FilterIndex: there selectors are kept and a message is looked up. A record is found where the
selector is true of it (kleene.py), not where it is unknown. Records are numbered from 0 in the order in which they come
and do not change: an index is made once, of what is closed.

`freeze` gives the index in one piece of bytes (record_file.py), which is what every question is answered from: of
attributes rows (record_columns.py), a selector a program over them (record_query.py, record_rows.pyx).

What an index was not given it does not answer: a test of an attribute, or of a type, that it `lacks` raises NotIndexed,
unless `verify` is passed, which is then asked about each record that the rows leave in question.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy

from matchcore.frozen_records import Candidates, FrozenRecordIndex, Ids, Key, Verify
from matchcore.kleene import Untyped, attribute_of, typed
from matchcore.patterns import Where
from matchcore.record_columns import (
    NumberColumn,
    TextColumn,
    number_section,
    text_sections,
)  # fmt: skip
from matchcore.record_file import pack_record_file
from matchcore.record_query import (
    BOOLEAN,
    NUMBER,
    PRESENT,
    TEXT,
)  # fmt: skip
from matchcore.record_writing import encode_rows
from matchcore.selector import Attribute

__all__ = [
    "Candidates", "ColumnOf", "FrozenRecordIndex", "NumberColumn", "RecordIndex", "TextColumn", "freeze_columns",
    "numbers_of",
]  # fmt: skip

TEXTS_MAX: Final = 65_536  # distinct texts of an attribute: more is no column to look things up in
Fields = Mapping[str, object] | Mapping[Attribute, object]


class ColumnOf(NamedTuple):
    """A column that is given as a whole; see `freeze_columns`."""

    texts: TextColumn | None = None
    numbers: NumberColumn | None = None
    booleans: Any = None  # of each record 1, 0, or -1: it has none
    present: Any = None  # of each record, whether it has the attribute
    lacks: frozenset[str] = frozenset()


def freeze_columns(
    records: int, columns: Mapping[Attribute, ColumnOf], *, is_complete: bool = False, notes: Mapping[str, Any] = {}
) -> bytes:
    """The bytes of an index, of whole columns.

    is_complete  no record has an attribute that is not here; else tests of others are not answered
    notes        JSON, which FrozenRecordIndex.notes has
    ValueError: a value that its basis does not have.
    """
    sections: list[bytes] = []

    def kept(data: bytes) -> int:
        sections.append(data)
        return len(sections) - 1

    described: list[dict[str, Any]] = []
    for attribute, column in columns.items():
        one: dict[str, Any] = {"source": attribute.source.value, "path": attribute.path, "lacks": sorted(column.lacks)}
        if column.present is not None:
            one[PRESENT] = kept(_rows([numpy.flatnonzero(column.present)]))
        if column.texts is not None:
            words, rows = text_sections(column.texts)
            one[TEXT] = {"words": kept(words), "rows": kept(rows)}
        if column.booleans is not None:
            states = numpy.asarray(column.booleans)
            rows = _rows([numpy.flatnonzero(found) for found in (states == 0, states == 1, states >= 0)])
            one[BOOLEAN] = {"rows": kept(rows)}
        if column.numbers is not None:
            about, rows, listed = number_section(column.numbers)
            one[NUMBER] = about | {"rows": kept(rows)}
            if listed is not None:
                one[NUMBER]["values"] = kept(listed)
        described.append(one)
    whole = {"attributes": described, "complete": is_complete, "notes": dict(notes)}
    return pack_record_file(records, whole, sections)


def _rows(rows: Sequence[Any]) -> bytes:
    bounds = numpy.cumsum([0, *(len(row) for row in rows)], dtype=numpy.int64)
    return encode_rows(numpy.concatenate(rows).astype(numpy.uint32), bounds)


class RecordIndex:
    """Records in memory, and questions about them: see the top of this module.

    bases      of attributes of integers from 0: the radix of each digit, the lowest first, e.g. (31, 3, 4)
    texts_max  distinct texts of an attribute that are indexed; of one that has more, text is not

    A question is answered from the frozen form, which is made when it is first needed after an `append`, from all
    records: many questions, few changes.
    """

    def __init__(
        self, *, bases: Mapping[str | Attribute, Sequence[int]] | None = None, texts_max: int = TEXTS_MAX
    ) -> None:
        self._bases = {_attribute(name): tuple(basis) for name, basis in (bases or {}).items()}
        if any(not basis or min(basis) < 2 for basis in self._bases.values()):
            raise ValueError("a basis is one radix or more, each at least 2")
        self._texts_max = texts_max
        self._values: dict[Attribute, tuple[list[int], list[object]]] = {}
        self._records = 0
        self._frozen: FrozenRecordIndex | None = None

    def __len__(self) -> int:
        return self._records

    def append(self, fields: Fields) -> int:
        """The number of the record."""
        for name, value in fields.items():
            if value is None or (isinstance(value, float) and math.isnan(value)):
                continue
            ids, values = self._values.setdefault(_attribute(name), ([], []))
            ids.append(self._records)
            values.append(value)
        self._frozen = None
        self._records += 1
        return self._records - 1

    def freeze(self) -> FrozenRecordIndex:
        """The same records, in bytes. ValueError: a value that its basis does not have."""
        if self._frozen is None:
            self._frozen = FrozenRecordIndex(self.to_bytes())
        return self._frozen

    def to_bytes(self) -> bytes:
        """The bytes for FrozenRecordIndex. ValueError as in `freeze`."""
        columns = {attribute: self._gathered(attribute) for attribute in self._values}
        return freeze_columns(self._records, columns, is_complete=True)

    def ids(self, where: Where | None = None, *, verify: Verify | None = None) -> Ids:
        return self.freeze().ids(where, verify=verify)

    def count(self, where: Where | None = None, *, verify: Verify | None = None) -> int:
        return self.freeze().count(where, verify=verify)

    def count_by(
        self, attribute: str | Attribute, where: Where | None = None, *, verify: Verify | None = None
    ) -> dict[Key, int]:
        return self.freeze().count_by(attribute, where, verify=verify)

    def sum(
        self, attribute: str | Attribute, where: Where | None = None, *, verify: Verify | None = None
    ) -> int | float:
        return self.freeze().sum(attribute, where, verify=verify)

    def _gathered(self, attribute: Attribute) -> ColumnOf:
        ids, values = self._values[attribute]
        present = numpy.zeros(self._records, numpy.bool_)
        present[ids] = True
        codes = numpy.full(self._records, -1, numpy.int64)
        words: dict[bytes, int] = {}
        states = numpy.full(self._records, -1, numpy.int8)
        numbers: dict[int, int | float] = {}
        for id, value in zip(ids, values, strict=True):
            if isinstance(value, str):
                codes[id] = words.setdefault(value.encode("utf-8", "surrogatepass"), len(words))
            if (truth := typed(value, True) if isinstance(value, Untyped) else value) in (True, False) and isinstance(
                truth, bool
            ):
                states[id] = truth
            number = typed(value, 0) if isinstance(value, Untyped) else value
            if isinstance(number, int | float) and not isinstance(number, bool):
                numbers[id] = number
        lacks = frozenset((TEXT,)) if len(words) > self._texts_max else frozenset()
        return ColumnOf(
            TextColumn(codes, list(words)) if words and not lacks else None,
            numbers_of(self._records, numbers, self._bases.get(attribute)) if numbers else None,
            states if (states >= 0).any() else None, present, lacks,
        )  # fmt: skip


def numbers_of(records: int, numbers: Mapping[int, int | float], basis: Sequence[int] | None = None) -> NumberColumn:
    """A column of the numbers of some records, by the records' numbers."""
    found = list(numbers.values())
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in found):
        kind: Any = numpy.int64
    elif all(isinstance(value, float) or abs(value) <= 2**53 for value in found):
        kind = numpy.float64
    else:
        kind = object  # integers beyond 2^53 beside floats, or beyond 64 bits
    values, known = numpy.zeros(records, kind), numpy.zeros(records, numpy.bool_)
    at = list(numbers)
    values[at], known[at] = numpy.array(found, kind), True
    return NumberColumn(values, known, basis)


def _attribute(name: str | Attribute) -> Attribute:
    return attribute_of(name) if isinstance(name, str) else name
