"""The cells of a decision table, read as conditions on the attribute of their column.

    cell            the attribute
    * or empty      anything, or absent: no condition
    foo             is foo: a number if it reads as one, TRUE or FALSE, else text
    'foo' "10"      is this text, whatever it looks like
    foo*            begins so; `*` elsewhere is any characters, too
    >=10 <5 = <>    is compared
    [10,20) (0,1]   is in the range: a bracket includes the end, a parenthesis does not; an end may be missing, `[10,)`
    {a,b,c*}        is one of the cells
    !a              is there, of the type of `a`, and not `a`; of any cell but `*`

A range needs two numbers or two texts.
"""

import math
import re
from typing import NoReturn

from matchcore.errors import InvalidSelector
from matchcore.selector import And, Attribute, Compare, In, Like, Not, Or, Selector, Value
from matchcore.where import INT64, MAX_DEPTH, MAX_TEXT_BYTES, MAX_VALUES

__all__ = ["cell_condition", "cell_value"]

ESCAPE = "!"
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
OPERATOR = re.compile(r"(<=|>=|<>|!=|<|>|=)\s*(.*)", re.DOTALL)
QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
RANGE = re.compile(r"([\[(])(.*)([\])])", re.DOTALL)


def cell_condition(attribute: Attribute, cell: object, depth: int = 0) -> Selector | None:
    """The condition that a cell is; None: no condition. Raises InvalidSelector.

    A cell is text; or, from JSON, TOML and Python, a value of its own type, None for no condition, or a list of cells,
    of which one must be true.
    """
    if cell is None:
        return None
    if isinstance(cell, (list, tuple)):
        return _one_of(attribute, list(cell), str(cell), depth)
    if not isinstance(cell, str):
        return Compare(attribute, "=", cell_value(cell))
    text = cell.strip()
    if text in ("", "*"):
        return None
    if text[0] == "!" and not text.startswith("!="):
        return Not(_wanted(attribute, text[1:], text, depth))
    if text[0] == "{" and text[-1] == "}":
        return _one_of(attribute, list(_parts(text[1:-1])), text, depth)
    if found := RANGE.fullmatch(text):
        return _in_range(attribute, found[1], found[2], found[3], text)
    if found := OPERATOR.fullmatch(text):
        return _compared(attribute, {"!=": "<>"}.get(found[1], found[1]), cell_value(found[2]), text)
    value = cell_value(text)
    if isinstance(value, str) and "*" in text and not QUOTED.fullmatch(text):
        return Like(attribute, re.sub(f"[%_{ESCAPE}]", rf"{ESCAPE}\g<0>", text).replace("*", "%"), ESCAPE)
    return Compare(attribute, "=", value)


def cell_value(cell: object) -> Value:
    """The value that a cell is, if it is one. Raises InvalidSelector."""
    if isinstance(cell, (bool, int, float)):
        value: Value = cell
    elif isinstance(cell, str):
        value = _read(cell.strip())
    else:
        _invalid(repr(cell), "it is no text, number or boolean", "quote it, or leave it empty for no condition")
    if isinstance(value, float) and not math.isfinite(value):
        _invalid(str(cell), "it is beyond what a float holds", "use a smaller number")
    if isinstance(value, int) and value not in INT64:
        _invalid(str(cell), "it has more than 64 bits", "write it as 1e20 is, or quote it")
    return value


def _read(text: str) -> Value:
    if len(text) > MAX_TEXT_BYTES:
        _invalid(text, f"more than {MAX_TEXT_BYTES} characters", "write a shorter one")
    if QUOTED.fullmatch(text):
        return text[1:-1].replace(text[0] * 2, text[0])
    if text.upper() in ("TRUE", "FALSE"):
        return text.upper() == "TRUE"
    if NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return text


def _invalid(text: str, reason: str, advice: str) -> NoReturn:
    raise InvalidSelector(text.encode("utf-8", "surrogatepass"), 0, reason, advice)


def _wanted(attribute: Attribute, cell: object, whole: str, depth: int) -> Selector:
    if depth == MAX_DEPTH:
        _invalid(whole, f"more than {MAX_DEPTH} cells inside each other", "write it flatter")
    condition = cell_condition(attribute, cell, depth + 1)
    if condition is None:
        _invalid(whole, "`*` is no condition, so nothing is left to be", "leave the cell empty")
    return condition


def _one_of(attribute: Attribute, cells: list[object], whole: str, depth: int) -> Selector:
    if not cells:
        _invalid(whole, "it has no value", "write {a,b}, or leave the cell empty for no condition")
    conditions = [_wanted(attribute, cell, whole, depth) for cell in cells]
    values = [one.value for one in conditions if isinstance(one, Compare) and one.operator == "="]
    distinct: dict[tuple[bool, Value], Value] = {}
    for value in values:
        distinct.setdefault((isinstance(value, bool), value), value)  # 1 and TRUE are equal in Python
    if len(distinct) > MAX_VALUES:
        _invalid(whole, f"more than {MAX_VALUES} values", "divide them among several rules")
    others = [one for one in conditions if not (isinstance(one, Compare) and one.operator == "=")]
    parts: list[Selector] = [*([In(attribute, tuple(distinct.values()))] if distinct else []), *others]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _parts(text: str) -> list[str]:
    """The text between the commas; those between quotation marks do not count."""
    quoted = QUOTED.pattern
    return [part for part in re.findall(rf"(?:{quoted}|[^,])+", text) if part.strip()]


def _in_range(attribute: Attribute, start: str, inner: str, end: str, whole: str) -> Selector:
    ends = re.findall(rf"(?:{QUOTED.pattern}|[^,])+|(?<=,)$|^(?=,)", inner)
    if len(ends) != 2:
        _invalid(whole, "a range has two ends", "write [10,20), or quote it if it is text")
    low, high = (cell_value(text) if text.strip() else None for text in ends)
    tests: list[Selector] = []
    if low is not None:
        tests.append(_compared(attribute, ">=" if start == "[" else ">", low, whole))
    if high is not None:
        tests.append(_compared(attribute, "<=" if end == "]" else "<", high, whole))
    if not tests:
        _invalid(whole, "a range has one end at least", "leave the cell empty for no condition")
    if low is not None and high is not None and isinstance(low, str) is not isinstance(high, str):
        _invalid(whole, "one end is a number, the other text", "give both ends the same type")
    return tests[0] if len(tests) == 1 else And(tuple(tests))


def _compared(attribute: Attribute, operator: str, value: Value, whole: str) -> Selector:
    if value == "" and operator not in ("=", "<>"):
        _invalid(whole, f"{operator} without a value", "write >=10, or quote the cell if it is text")
    if isinstance(value, bool) and operator not in ("=", "<>"):
        _invalid(whole, "TRUE and FALSE have no order", "use = or <>")
    return Compare(attribute, operator, value)
