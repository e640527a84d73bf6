"""Selectors as dicts: event patterns, as Amazon EventBridge spells them, read into the same tree.

    {"region": ["eu", "us"], "price": [{"numeric": [">", 100, "<=", 200]}], "payload": {"order": {"urgent": [True]}}}

Each key names an attribute; all keys must hold, and of the values of a key any. A key may be a path, `payload.a`; a
dict below it goes on with the path, `{"payload": {"a": [1]}}`. `"$or"` has a list of dicts of which any must hold.

    "x", 1, True                          equal to it
    None                                  absent or null, which is one in a selector
    {"numeric": [">", 1, "<=", 2]}        comparisons of numbers, all of them
    {"prefix": "a"} {"suffix": "a"} {"wildcard": "a*b"}       text; `\\*` is a star, `\\\\` a backslash
    {"anything-but": ["x", 1]}            present, of the type of a value, and none of them; also a prefix or suffix
    {"exists": True}                      present; False: absent

Source: "Creating Amazon EventBridge event patterns" of Amazon's user guide. Not here: `equals-ignore-case` and `cidr`,
for which a selector has no test.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeGuard

from matchcore.errors import InvalidSelector
from matchcore.selector import (
    And,
    Attribute,
    Compare,
    In,
    Like,
    Not,
    Or,
    Present,
    Selector,
    Source,
    Value,
)
from matchcore.where import MAX_DEPTH, parse_where

__all__ = ["Where", "parse_pattern", "selector_of"]

ESCAPE = "!"
OPERATORS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
Where = str | bytes | Mapping[str, object] | Selector


def parse_pattern(pattern: Mapping[str, object]) -> Selector:
    """The selector of a pattern. Raises InvalidSelector: its reason names the key, its position is 0.

    The limits are those of a text (`parse_where`), for the text that the selector has.
    """
    selector = _all(pattern, ())
    return parse_where(str(selector))


def _invalid(path: tuple[str, ...], reason: str, advice: str) -> NoReturn:
    where = ".".join(path)
    raise InvalidSelector(where.encode("utf-8", "surrogatepass"), 0, reason, advice)


def _all(pattern: Mapping[str, object], path: tuple[str, ...]) -> Selector:
    if len(path) > MAX_DEPTH:
        _invalid(path[:3], f"more than {MAX_DEPTH} dicts inside each other", "write the pattern flatter")
    if not pattern:
        _invalid(path, "an empty dict", 'name an attribute: {"price": [1]}')
    return _flat([_one(path, key, wanted) for key, wanted in pattern.items()])


def _one(path: tuple[str, ...], key: object, wanted: object) -> Selector:
    if not isinstance(key, str):
        _invalid(path, f"the key {key!r} is not text", "use the attribute's name")
    if key == "$or":
        if not isinstance(wanted, (list, tuple)) or not wanted or not all(isinstance(one, Mapping) for one in wanted):
            _invalid((*path, key), "$or without a list of dicts", 'write {"$or": [{"a": [1]}, {"b": [2]}]}')
        return _either([_all(one, path) for one in wanted])
    here = (*path, *_parts(key))
    if isinstance(wanted, Mapping):
        return _all(wanted, here)
    if not isinstance(wanted, (list, tuple)):
        _invalid(here, f"{wanted!r} is not in a list", f"write [{wanted!r}]")
    if not wanted:
        _invalid(here, "an empty list", "give a value, or leave the key out")
    return _any(_attribute(here), wanted, here)


def _parts(key: str) -> list[str]:
    return key.split(".") if key.startswith("payload.") else [key]


def _attribute(path: tuple[str, ...]) -> Attribute:
    if path[0] == "payload" and len(path) > 1:
        return Attribute(Source.PAYLOAD, path[1:])
    if len(path) > 1:
        _invalid(path, "only the payload has fields inside fields", 'write {"payload": {...}}')
    if path[0].startswith("$"):
        known = parse_where(f"{path[0]} IS NOT NULL")
        assert isinstance(known, Present)
        return known.attribute
    return Attribute(Source.HEADER, path)


def _any(attribute: Attribute, wanted: Iterable[object], path: tuple[str, ...]) -> Selector:
    values: list[Value] = []
    others: list[Selector] = []
    for one in wanted:
        if _is_value(one):
            values.append(one)
        elif one is None:
            others.append(Not(Present(attribute)))
        elif isinstance(one, Mapping) and len(one) == 1:
            ((kind, operand),) = one.items()
            others.append(_special(attribute, kind, operand, path))
        else:
            _invalid(path, f"{one!r} is no value", 'use text, a number, true, null, or a dict such as {"prefix": "a"}')
    return _either([*([_equal(attribute, values)] if values else []), *others])


def _is_value(one: object) -> TypeGuard[Value]:
    return isinstance(one, (bool, int, str)) or (isinstance(one, float) and math.isfinite(one))


def _equal(attribute: Attribute, values: list[Value]) -> Selector:
    return Compare(attribute, "=", values[0]) if len(values) == 1 else In(attribute, tuple(values))


def _special(attribute: Attribute, kind: object, operand: object, path: tuple[str, ...]) -> Selector:
    if kind == "numeric":
        return _numeric(attribute, operand, path)
    if kind == "exists" and isinstance(operand, bool):
        return Present(attribute) if operand else Not(Present(attribute))
    if kind in ("prefix", "suffix", "wildcard") and isinstance(operand, str):
        return _like(attribute, str(kind), operand)
    if kind == "anything-but":
        return _anything_but(attribute, operand, path)
    advice = "use numeric, prefix, suffix, wildcard, anything-but, exists"
    _invalid(path, f"{{{kind!r}: {operand!r}}} is not known", advice)


def _numeric(attribute: Attribute, operand: object, path: tuple[str, ...]) -> Selector:
    advice = 'write {"numeric": [">", 1, "<=", 2]}'
    if not isinstance(operand, (list, tuple)) or not operand or len(operand) % 2:
        _invalid(path, f"numeric {operand!r}", advice)
    tests: list[Selector] = []
    for operator, value in zip(operand[::2], operand[1::2], strict=True):
        if operator not in OPERATORS or not _is_value(value) or isinstance(value, (bool, str)):
            _invalid(path, f"numeric {operator!r} {value!r}", advice)
        tests.append(Compare(attribute, OPERATORS[operator], value))
    return _flat(tests)


def _like(attribute: Attribute, kind: str, text: str) -> Like:
    pieces = [_plain(character) for character in text]
    if kind == "wildcard":
        pieces = []
        characters = iter(text)
        for character in characters:
            plain = next(characters, character) if character == "\\" else character
            pieces.append("%" if character == "*" else _plain(plain))
    pattern = "".join(pieces)
    return Like(attribute, {"prefix": f"{pattern}%", "suffix": f"%{pattern}"}.get(kind, pattern), ESCAPE)


def _plain(character: str) -> str:
    return f"{ESCAPE}{character}" if character in ("%", "_", ESCAPE) else character


def _anything_but(attribute: Attribute, operand: object, path: tuple[str, ...]) -> Selector:
    if isinstance(operand, Mapping) and len(operand) == 1:
        ((kind, text),) = operand.items()
        texts = text if isinstance(text, (list, tuple)) else [text]
        if kind in ("prefix", "suffix", "wildcard") and texts and all(isinstance(one, str) for one in texts):
            return _flat([Not(_like(attribute, str(kind), one)) for one in texts])
    listed = operand if isinstance(operand, (list, tuple)) else [operand]
    values = [value for value in listed if _is_value(value)]
    if not values or len(values) < len(listed):
        _invalid(path, f"anything-but {operand!r}", 'write {"anything-but": ["x", "y"]}')
    return Not(_equal(attribute, values))


def _flat(parts: list[Selector]) -> Selector:
    """All of the parts; of those that are an AND themselves, its parts."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _either(parts: list[Selector]) -> Selector:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def selector_of(where: Where) -> Selector:
    """The selector of a text, a pattern or a tree, within the limits of a text. Raises InvalidSelector."""
    if isinstance(where, (str, bytes)):
        return parse_where(where)
    if isinstance(where, Mapping):
        return parse_pattern(where)
    if isinstance(where, Selector):
        return parse_where(str(where))
    raise TypeError(f"where must be text, a dict or a selector, not {type(where).__name__}")
