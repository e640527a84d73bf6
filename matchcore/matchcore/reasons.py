"""Why a selector is not true of a message, in a sentence: "price is 80; the selector wants > 100"."""

from collections.abc import Mapping
from math import isnan

from matchcore.kleene import Fields, attribute_of, holds
from matchcore.normal_form import AllOf, AnyOf, HitsOf, Leaf, Normal, normal_form
from matchcore.selector import Attribute, Compare, Present, Selector, leaves

__all__ = ["shown_value", "true_tests", "why_not_true"]

SHOWN_CHARACTERS = 60  # of a value or a list of values
SHOWN_PARTS = 3  # of an OR
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

Values = Mapping[Attribute, object]


def why_not_true(selector: Selector, fields: Fields) -> str | None:
    """Why the selector is not true of a message with these fields; None if it is."""
    return _unmet(normal_form(selector), _by_attribute(fields))


def true_tests(selector: Selector, fields: Fields) -> tuple[str, ...]:
    """The tests of a selector that are true, as they are written."""
    values = _by_attribute(fields)
    return tuple(dict.fromkeys(str(test) for test in leaves(selector) if holds(test, values) is True))


def _by_attribute(fields: Fields) -> Values:
    return {attribute_of(key) if isinstance(key, str) else key: value for key, value in fields.items()}


def _unmet(normal: Normal, values: Values) -> str | None:
    match normal:
        case Leaf():
            return _unmet_test(normal, values)
        case AllOf(parts):
            return next((reason for part in parts if (reason := _unmet(part, values))), None)
        case AnyOf(()):
            return "the selector is never true"
        case AnyOf(parts) | HitsOf(parts=parts):
            wanted = normal.count if isinstance(normal, HitsOf) else 1
    reasons = [reason for part in parts if (reason := _unmet(part, values))]
    met = len(parts) - len(reasons)
    if met >= wanted:
        return None
    shown = " ".join(f"({number}) {reason}" for number, reason in enumerate(reasons[:SHOWN_PARTS], 1))
    more = f", and {len(reasons) - SHOWN_PARTS} more" if len(reasons) > SHOWN_PARTS else ""
    return f"{met} of {len(parts)} alternatives are true, {wanted} must be: {shown}{more}"


def _unmet_test(leaf: Leaf, values: Values) -> str | None:
    test = leaf.test
    found = values.get(test.attribute)
    is_true = holds(test, values)
    if is_true is not None and is_true is not leaf.negated:
        return None
    compared = "" if is_true is not None or _is_absent(found) else f" ({_kind(found)}, not compared)"
    return f"{test.attribute} is {shown_value(found)}{compared}; the selector wants {_wanted(leaf)}"


def _wanted(leaf: Leaf) -> str:
    test = leaf.test
    if leaf.negated and isinstance(test, Present):
        return "IS NULL"
    if leaf.negated and isinstance(test, Compare):
        test = Compare(test.attribute, OPPOSITE[test.operator], test.value)
        return str(test).removeprefix(f"{test.attribute} ")
    text = _cut(str(test).removeprefix(f"{test.attribute} "))
    return f"NOT {text}" if leaf.negated else text


def shown_value(found: object) -> str:
    """A value as selectors write it, cut to a part of a line."""
    if _is_absent(found):
        return "absent"
    if isinstance(found, bool):
        return "TRUE" if found else "FALSE"
    return _cut(repr(str(found)) if isinstance(found, str) else repr(found))


def _is_absent(found: object) -> bool:
    return found is None or (isinstance(found, float) and isnan(found))


def _kind(found: object) -> str:
    if isinstance(found, bool):
        return "a boolean"
    return "text" if isinstance(found, str) else "a number" if isinstance(found, (int, float)) else "no plain value"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
