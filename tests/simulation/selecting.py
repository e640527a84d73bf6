"""Messages with fields, and selectors that ask for them: who wants what, by the definition of selectors.

What a message has follows from its number, so that it needs no memory and is the same when it is published again.
"""

from collections.abc import Mapping
from functools import lru_cache

from matchcore.kleene import Untyped, holds, with_topic
from matchcore.where import parse_where

KINDS = "red", "blue", None
WHERES = (
    "kind = 'red'", "kind <> 'red'", "n > 10 OR kind IS NULL", "NOT (kind = 'blue')", "n < 1000 AND $words = 2",
    "kind LIKE '%e' AND n BETWEEN 3 AND 30",
)  # fmt: skip
NEVER = "kind = 'green'"

Fields = Mapping[str, str]


def fields_of(number: int) -> Fields:
    """What the message with this number of its publisher has; every third has no kind."""
    kind = KINDS[number % len(KINDS)]
    return {"n": str(number)} if kind is None else {"n": str(number), "kind": kind}


@lru_cache(4_096)
def _wants(where: str, topic: str, separator: str, fields: tuple[tuple[str, str], ...]) -> bool:
    # In the native protocol n is a number; as text without a type it says the same to these selectors.
    known = {name: Untyped(value) for name, value in fields}
    return holds(parse_where(where), with_topic(known, topic.encode().split(separator.encode()))) is True


def wants(where: str | None, topic: str, fields: Fields, separator: str = "/") -> bool:
    """Whether a subscription with this selector, or none, is to get such a message of a topic that it matches."""
    return where is None or _wants(where, topic, separator, tuple(fields.items()))
