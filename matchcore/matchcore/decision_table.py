"""Decision tables, read into the rows of a RuleIndex: CSV, JSON, TOML, or rows that are there already.

    name,salience,country,price,result         country and price are attributes, their cells conditions (cells.py)
    dear,1,*,>=1000,ask                        an empty cell, or `*`, is no condition
    near,2,"{de,at}",,take

Six columns are no attributes: `result`, `name`, `salience` (a number, 0 if there is none), `topic` (a filter), `syntax`
(of the topic) and `where` (a selector beside the cells). An attribute of such a name is written in quotation marks:
`"name"`. JSON has a list of objects, TOML a list `[[rules]]`, with the same names; JSON may have `{"rules": [...]}`,
too. Other columns are named as the keys of a fact.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from matchcore.cells import cell_condition, cell_value
from matchcore.errors import InvalidSelector
from matchcore.kleene import attribute_of
from matchcore.patterns import selector_of
from matchcore.selector import And, Attribute, Constant, Present, Selector, leaves
from matchcore.where import MAX_LEAVES, parse_where

__all__ = ["TableRow", "read_table"]


@dataclass(frozen=True, slots=True)
class TableRow:
    selector: Selector
    result: object = None
    salience: int | float = 0
    name: str | None = None
    topic: str | None = None
    syntax: str = "amqp"


def read_table(source: Any, format: str) -> list[TableRow]:
    """The rows of a table, in their order.

    `format` is "csv", "json" or "toml", of a text; or "table", of mappings or an Arrow table. Raises InvalidSelector,
    whose reason names the row, from 1, and the column; ValueError for text that is not of the format.
    """
    if format not in READERS:
        raise ValueError(f"the format is one of {', '.join(READERS)}, not {format!r}")
    rows = READERS[format](source)
    if not isinstance(rows, Iterable) or isinstance(rows, (str, Mapping)):
        raise ValueError("the table has no list of rules")
    return [_row(number, row) for number, row in enumerate(rows, 1)]


def _csv_rows(text: str) -> list[Mapping[str, object]]:
    import csv
    import io

    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        header = [column.strip() for column in next(lines, [])]
        rows = [(lines.line_num, cells) for cells in lines if cells]
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num} of the table: {error}") from None
    if len(set(header)) < len(header):
        raise ValueError(f"two columns of the table have one name: {', '.join(header)}")
    for number, cells in rows:
        if len(cells) > len(header):
            raise ValueError(f"line {number} has {len(cells)} cells, the header {len(header)}")
    return [dict(zip(header, cells, strict=False)) for _, cells in rows]


def _json_rows(text: str) -> object:
    import json

    rows = json.loads(text)
    return rows.get("rules") if isinstance(rows, dict) else rows


def _toml_rows(text: str) -> object:
    import tomllib

    return tomllib.loads(text).get("rules")


def _table_rows(table: Any) -> object:
    return table.to_pylist() if hasattr(table, "to_pylist") else list(table)


def _row(number: int, row: object) -> TableRow:
    if not isinstance(row, Mapping):
        raise ValueError(f"row {number} of the table is no mapping: {row!r}")
    column: object = ""
    try:
        conditions: list[Selector] = []
        given: dict[str, Any] = {}
        for column, cell in row.items():
            if column in RESERVED:
                given |= {} if cell in (None, "") else {column: RESERVED[column](cell)}
            elif condition := cell_condition(_attribute(column), cell):
                conditions.append(condition)
    except InvalidSelector as error:
        reason = f"row {number}, column {column}: {error.reason}"
        raise InvalidSelector(error.text, error.position, reason, error.advice) from None
    where = given.pop("where", None)
    return TableRow(_joined(number, [*([where] if where else []), *conditions]), **given)


def _joined(number: int, conditions: list[Selector]) -> Selector:
    selector = And(tuple(conditions))
    if (count := sum(1 for _ in leaves(selector))) > MAX_LEAVES:
        reason = f"row {number}: {count} tests, more than {MAX_LEAVES}"
        raise InvalidSelector(b"", 0, reason, "use {a,b} for several values, or several rules")
    if not conditions:
        return Constant(True)
    return conditions[0] if len(conditions) == 1 else selector


def _attribute(column: object) -> Attribute:
    if not isinstance(column, str) or not column:
        raise InvalidSelector(str(column).encode(), 0, "the column has no name", "name an attribute")
    if column.startswith("$") or (column.startswith('"') and column.endswith('"')):
        known = parse_where(f"{column} IS NOT NULL")
        if isinstance(known, Present):
            return known.attribute
    return attribute_of(column)


def _salience(cell: object) -> int | float:
    value = cell_value(cell)
    if isinstance(value, (bool, str)):
        advice = "give a number, the smaller the more salient"
        raise InvalidSelector(str(cell).encode("utf-8", "surrogatepass"), 0, f"the salience {cell!r}", advice)
    return value


def _where(cell: object) -> Selector:
    if isinstance(cell, (str, Mapping)):
        return selector_of(cell)
    raise InvalidSelector(repr(cell).encode(), 0, "`where` is neither text nor a dict", "write a selector")


def _unchanged(cell: object) -> object:
    return cell


RESERVED: dict[str, Callable[[Any], Any]] = {
    "result": _unchanged, "name": str, "salience": _salience, "topic": str, "syntax": str, "where": _where,
}  # fmt: skip
READERS: dict[str, Callable[[Any], object]] = {
    "csv": _csv_rows, "json": _json_rows, "toml": _toml_rows, "table": _table_rows,
}  # fmt: skip
