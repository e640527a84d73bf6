"""The rows of a CSV file of permissions. Each column is a key of a rule, and `effect` is allow or deny.

    effect,user,publish
    allow,alice,site/1/#          a row that says so little is read with its neighbours (plain_rows.py)
    deny,,site/+/secret
"""

import csv
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from fanlight_permissions.permission_rule import (
    ACTION_BITS,
    ATTRIBUTES,
    FORMED,
    KEYS_OF_ACTIONS,
    PermissionRule,
    Who,
    WrongPattern,
    pattern_of,
)
from fanlight_permissions.plain_rows import PlainColumns, PlainRows
from fanlight_permissions.reading import did_you_mean

TOGETHER: Final = 128  # rows, some 0.5 ms
EFFECTS: Final = {"allow": True, "deny": False}
KEYS: Final = ("name", "salience", "where", *ATTRIBUTES, *KEYS_OF_ACTIONS)
FILTERS: Final = ACTION_BITS.keys() - {"connect", "admin"}  # whose values are filters
PLACES: Final = {attribute: place for place, attribute in enumerate(ATTRIBUTES)}


class GivenRule(NamedTuple):
    """A rule as it stands in the file."""

    line: int
    allow: bool
    cells: Mapping[str, Any]


def csv_rows(text: str, *, plain: bool = False) -> Iterator[GivenRule | PermissionRule | PlainRows]:
    """plain: as many rows together as say little."""
    lines = csv.reader(_lines(text), skipinitialspace=True, strict=True)
    header = [column.strip() for column in next(lines, [])]
    columns = (*KEYS, "effect")
    if len(set(header)) < len(header):
        raise ValueError("two columns have the same name")
    for column in header:
        if column not in columns:
            raise ValueError(f"there is no column {column!r}{did_you_mean(column, columns)}")
    number = -1  # of the rule before
    places = [(place, column) for place, column in enumerate(header) if column != "effect"]
    effects = header.index("effect") if "effect" in header else len(header)
    simple = [(place, ACTION_BITS[column]) for place, column in places if column in FILTERS]
    asked = [(place, column) for place, column in places if column in PLACES]
    others = [place for place, column in places if column not in FILTERS and column not in PLACES]
    plain_columns = PlainColumns(header, frozenset(PLACES.keys() - FORMED), frozenset(FILTERS))
    for line, cells in _row_by_row(lines, plain_columns if plain else None):
        if isinstance(cells, PlainRows):
            number += len(cells.lines)
            yield cells
            continue
        count = len(cells)
        if count != len(header):
            if count > len(header):
                raise ValueError(f"line {line} has {count} cells, and the header {len(header)}")
            cells += [""] * (len(header) - count)
        effect = cells[effects].strip() if effects < len(cells) else ""
        if effect and effect not in EFFECTS:
            raise ValueError(f"line {line}: the effect is allow or deny, not {effect!r}")
        allow = effect != "deny"
        if not any(map(cells.__getitem__, others)):  # filters alone: half the time of what is below
            try:
                who = _plain_who([(column, cell) for place, column in asked if (cell := cells[place].strip())])
                patterns = [(bits, pattern_of(cell)) for place, bits in simple if (cell := cells[place].strip())]
            except WrongPattern:
                patterns = []
            if who is not None and len(patterns) == 1:
                number += 1
                yield PermissionRule(number, line, None, allow, who, tuple(patterns))
                continue
        found = {column: cell for place, column in places if (cell := cells[place].strip())}
        if found:
            number += 1
            yield GivenRule(line, allow, found)


def _row_by_row(lines: Any, columns: PlainColumns | None) -> Iterator[tuple[int, list[str] | PlainRows]]:
    """Rows with their lines, but for those that are empty; with `columns` TOGETHER of them at once, if they can be.
    """
    if columns is None:
        yield from ((lines.line_num, cells) for cells in lines if cells)
        return
    while numbered := [(lines.line_num, cells) for cells in islice(lines, TOGETHER)]:
        numbers, block = zip(*numbered, strict=True)
        rows = columns.rows(numbers, block)
        if rows is not None:
            yield 0, rows
        else:
            yield from ((line, cells) for line, cells in numbered if cells)


def _lines(text: str) -> Iterator[str]:
    """With their ends. io.StringIO copies all of a large text first, which stops everything for some ms."""
    start = 0
    while end := text.find("\n", start) + 1:
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _plain_who(given: list[tuple[str, str]]) -> Who | None:
    """Of one name that is compared as it is, or of everybody. None: it takes more."""
    if not given:
        return ()
    attribute, value = given[0]
    if len(given) > 1 or attribute in FORMED or "*" in value or "%" in value:
        return None
    return ((attribute, (value,)),)
