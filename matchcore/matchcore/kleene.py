"""What a selector means: the oracle of the property tests, and the definition.

`holds` is True, False, or None for unknown (Kleene's strong logic of three values; Jakarta Messaging 3.1, section
3.8.1.2). A test is unknown of an attribute that is absent or null, and of a value of another type than the one it is
compared with:

    in the test      what is compared
    a number         integers and floats, exactly, also beyond 2^53; `Untyped` text that is a number
    text             text, by its bytes in UTF-8
    TRUE, FALSE      booleans; `Untyped` "true" and "false"
    a filter         text, as a topic: split at the filter's separator, and not checked

Bytes, lists and maps are present, and no more. A float that is no number (NaN) counts as absent.

    AND         false if a part is false, else unknown if one is unknown, else true
    OR          true if a part is true, else unknown if one is unknown, else false
    AT LEAST k  true if k parts are true; false if more than n-k are false; else unknown
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from matchcore.selector import (
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Constant,
    In,
    Like,
    Matches,
    Not,
    Or,
    Present,
    Selector,
    Source,
    Test,
    Value,
)

__all__ = [
    "OF_TOPIC",
    "Fields",
    "Untyped",
    "attribute_of",
    "holds",
    "is_like",
    "is_on",
    "key_of",
    "topic_fields",
    "typed",
    "with_topic",
]

Fields = Mapping[str, object] | Mapping[Attribute, object] | Mapping[str | Attribute, object]

OF_TOPIC = frozenset({"word", "words"})  # names of what the words of the topic say: `topic_fields`
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
COMPARED = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class Untyped(str):
    """Text that came without a type, as MQTT's user properties do: a number where it is compared with one."""


@lru_cache(1_024)  # fields have the same names again and again
def attribute_of(key: str) -> Attribute:
    """The attribute that a key of `fields` names: `payload.a.b`, `$qos`, `$word[2]`, else a header."""
    if key.startswith("payload."):
        return Attribute(Source.PAYLOAD, tuple(key.split(".")[1:]))
    if key.startswith("$"):
        return Attribute(Source.MESSAGE, tuple(key[1:].removesuffix("]").split("[")))
    return Attribute(Source.HEADER, (key,))


def key_of(attribute: Attribute) -> str | Attribute:
    """The key of `fields` that names an attribute; where no text does (`payload."a.b"`), the attribute itself."""
    name = attribute.path[0]
    if attribute.source is Source.MESSAGE:
        key = f"${name}" + "".join(f"[{index}]" for index in attribute.path[1:])
    else:
        key = ".".join(("payload", *attribute.path)) if attribute.source is Source.PAYLOAD else name
    return key if attribute_of(key) == attribute else attribute


def topic_fields(words: Sequence[bytes]) -> dict[str, object]:
    """What the words of its topic say of a message: `$words`, `$word[1]`. A word that is no UTF-8 is present only."""
    fields: dict[str, object] = {"$words": len(words)}
    for number, word in enumerate(words, 1):
        try:
            fields[f"$word[{number}]"] = word.decode()
        except UnicodeDecodeError:
            fields[f"$word[{number}]"] = word
    return fields


def with_topic(fields: Fields, words: Sequence[bytes]) -> dict[str | Attribute, object]:
    """The fields, and what the words of the topic say."""
    values: dict[str | Attribute, object] = {}
    values.update(fields.items())
    values.update(topic_fields(words))
    return values


def holds(selector: Selector, fields: Fields) -> bool | None:
    """Whether the selector is true of a message with these fields; None: unknown."""
    return _holds(selector, {_attribute(key): value for key, value in fields.items()})


def _attribute(key: str | Attribute) -> Attribute:
    return attribute_of(key) if isinstance(key, str) else key


def _holds(selector: Selector, values: Mapping[Attribute, object]) -> bool | None:
    match selector:
        case Constant(value):
            return value
        case Not(part):
            inner = _holds(part, values)
            return None if inner is None else not inner
        case And(parts):
            return _at_least(len(parts), [_holds(part, values) for part in parts])
        case Or(parts):
            return _at_least(1, [_holds(part, values) for part in parts])
        case AtLeast(count, parts):
            return _at_least(count, [_holds(part, values) for part in parts])
        case Present(attribute):
            return not _is_absent(values.get(attribute))
        case _:
            return _tested(selector, values.get(selector.attribute))


def _at_least(count: int, parts: list[bool | None]) -> bool | None:
    if parts.count(True) >= count:
        return True
    return False if parts.count(False) > len(parts) - count else None


def _tested(test: Test, found: object) -> bool | None:
    match test:
        case Compare(_, operator, value):
            order = _order(found, value)
            return None if order is None else COMPARED[operator](order)
        case Between(_, low, high):
            above, below = _order(found, low), _order(found, high)
            return None if above is None or below is None else above >= 0 and below <= 0
        case In(_, values):
            return _at_least(1, [None if (order := _order(found, value)) is None else order == 0 for value in values])
        case Like():
            return is_like(found, test.pieces) if isinstance(found, str) else None
        case Matches():
            return is_on(found, test) if isinstance(found, str) else None
        case Present():
            return not _is_absent(found)


def _is_absent(found: object) -> bool:
    return found is None or (isinstance(found, float) and math.isnan(found))


def _order(found: object, value: Value) -> int | None:
    """-1, 0, 1: below, equal, above; None where the two cannot be compared."""
    if isinstance(found, Untyped) and not isinstance(value, str):
        found = typed(found, value)
    if _is_absent(found):
        return None
    if isinstance(value, bool) or isinstance(found, bool):
        return (found > value) - (found < value) if isinstance(value, bool) and isinstance(found, bool) else None
    if isinstance(value, str):
        if not isinstance(found, str):
            return None
        mine, other = found.encode("utf-8", "surrogatepass"), value.encode("utf-8", "surrogatepass")
        return (mine > other) - (mine < other)
    return (found > value) - (found < value) if isinstance(found, (int, float)) else None


def typed(text: str, value: Value) -> object:
    if isinstance(value, bool):
        return {"true": True, "false": False}.get(str(text))
    if not NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdigit():
        return int(text) if -(2**63) <= int(text) < 2**63 else None
    return number if math.isfinite(number := float(text)) else None


def is_on(text: str, test: Matches) -> bool:
    """Whether a text is on a filter: MQTT's rule about `$`, then word by word as `is_like` compares characters."""
    if test.syntax == "mqtt" and text.startswith("$") and not test.pieces[0]:
        return False
    return is_like([f"={word}" for word in test.words(text)], test.pieces)


def is_like(text: Iterable[str], pieces: tuple[str | None, ...]) -> bool:
    places = _without_more({0}, pieces)
    for character in text:
        after = {at for at in places if at < len(pieces) and pieces[at] is None}
        after |= {at + 1 for at in places if at < len(pieces) and pieces[at] in ("", character)}
        places = _without_more(after, pieces)
    return len(pieces) in places


def _without_more(places: set[int], pieces: tuple[str | None, ...]) -> set[int]:
    """And the places that `%` lets be reached without another character."""
    reached = set(places)
    for at, piece in enumerate(pieces):
        if at in reached and piece is None:
            reached.add(at + 1)
    return reached
