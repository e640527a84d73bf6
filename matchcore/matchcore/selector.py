"""Selectors as values: the tree of conditions that a text or a dict is read into.

    selector                            what it says of a message
    Compare(attribute, "<", 5)          = <> < <= > >= with a value
    Between(attribute, 1, 5)            both ends belong to it
    In(attribute, (1, 2))               one of the values
    Like(attribute, "a%_")              `%` any characters, `_` one; `escape` before either makes it plain
    Matches(attribute, "site/+/temp")   the text is a topic on this filter
    Present(attribute)                  the attribute is there and is not null
    Constant(True)                      always, or never
    Not, And, Or, AtLeast(k, parts)     of other selectors

A test of an attribute that is absent, or whose value has another type, is neither true nor false: it is unknown, as in
SQL (ISO 9075, three-valued logic; Jakarta Messaging 3.1, section 3.8.1.2). A message is delivered where the selector is
true. How unknown spreads is in `kleene.py`, the definition; `normal_form` gives a tree without `Not` that needs two
values only.

`str` of a selector is its text, which `parse_where` reads into an equal selector.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "And",
    "AtLeast",
    "Attribute",
    "Between",
    "Compare",
    "Constant",
    "In",
    "Like",
    "Matches",
    "Not",
    "Or",
    "Present",
    "Selector",
    "Source",
    "Test",
    "Value",
    "leaves",
]

Value = bool | int | float | str
"""What an attribute is compared with. Integers are those of 64 bits; a float is finite; text is compared as UTF-8."""

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
BARE_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
BARE = BARE_FIRST | frozenset("0123456789")
KEYWORDS = frozenset(
    ("AND", "AT", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LEAST", "LIKE", "NOT", "NULL", "OF", "OR", "TRUE")
)
SEPARATORS = {"amqp": ".", "mqtt": "/"}
ONE = {"amqp": "*", "mqtt": "+"}
MESSAGE = ("words", "bytes", "qos", "retain", "content_type", "client", "user", "time")  # and word[n]


class Source(Enum):
    """Where an attribute of a message is found."""

    HEADER = "header"    # a header, a user property
    PAYLOAD = "payload"  # a field of a body that is a map, by its path
    MESSAGE = "message"  # what the broker knows of the message: `$qos`, `$word[2]`


@dataclass(frozen=True, slots=True)
class Attribute:
    """The name of a value of a message: ("price",), ("a", "b") of the payload, ("word", "2") of the message."""

    source: Source
    path: tuple[str, ...]

    def __str__(self) -> str:
        if self.source is Source.MESSAGE:
            return f"${self.path[0]}" + "".join(f"[{index}]" for index in self.path[1:])
        spelled = ".".join(_name(part) for part in self.path)
        return f"payload.{spelled}" if self.source is Source.PAYLOAD else spelled


@dataclass(frozen=True, slots=True)
class Compare:
    attribute: Attribute
    operator: str
    value: Value

    def __str__(self) -> str:
        return f"{self.attribute} {self.operator} {_literal(self.value)}"


@dataclass(frozen=True, slots=True)
class Between:
    attribute: Attribute
    low: Value
    high: Value

    def __str__(self) -> str:
        return f"{self.attribute} BETWEEN {_literal(self.low)} AND {_literal(self.high)}"


@dataclass(frozen=True, slots=True)
class In:
    attribute: Attribute
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.attribute} IN ({', '.join(map(_literal, self.values))})"


@dataclass(frozen=True, slots=True)
class Like:
    attribute: Attribute
    pattern: str
    escape: str | None = None

    def __str__(self) -> str:
        escape = "" if self.escape is None else f" ESCAPE {_literal(self.escape)}"
        return f"{self.attribute} LIKE {_literal(self.pattern)}{escape}"

    @property
    def pieces(self) -> tuple[str | None, ...]:
        """The pattern in pieces: a character, "" for any one character, None for any characters."""
        pieces: list[str | None] = []
        characters = iter(self.pattern)
        for character in characters:
            if character == self.escape:
                pieces.append(next(characters))
            else:
                pieces.append({"%": None, "_": ""}.get(character, character))
        return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Matches:
    """The text of the attribute, read as a topic, is on the filter, which is valid.

    A filter with `/` or `+` is one of MQTT, any other one of AMQP. The text is split at the same separator.
    """

    attribute: Attribute
    filter: str

    def __str__(self) -> str:
        return f"{self.attribute} MATCHES {_literal(self.filter)}"

    @property
    def syntax(self) -> str:
        return "mqtt" if "/" in self.filter or "+" in self.filter else "amqp"

    @property
    def pieces(self) -> tuple[str | None, ...]:
        """Word by word: "=word", "" for any one word, None for any words."""
        return tuple({"#": None, ONE[self.syntax]: ""}.get(word, f"={word}") for word in self.words(self.filter))

    def words(self, text: str) -> list[str]:
        """A text in words: the empty one has none in AMQP, and an empty one in MQTT."""
        return text.split(SEPARATORS[self.syntax]) if text or self.syntax == "mqtt" else []

    @property
    def affixes(self) -> tuple[str, str]:
        """How each text on the filter begins and ends; of a filter without wildcards the whole text, and ""."""
        pieces, separator = self.pieces, SEPARATORS[self.syntax]
        wild = [at for at, piece in enumerate(pieces) if not piece]
        if not wild:
            return self.filter, ""
        before = "".join(f"{(piece or '')[1:]}{separator}" for piece in pieces[: wild[0]])
        behind = "".join(f"{separator}{(piece or '')[1:]}" for piece in pieces[wild[-1] + 1 :])
        # `#` also stands for no words, and then there is one separator less.
        return (
            before.removesuffix(separator) if pieces[wild[0]] is None else before,
            behind.removeprefix(separator) if pieces[wild[-1]] is None else behind,
        )


@dataclass(frozen=True, slots=True)
class Present:
    attribute: Attribute

    def __str__(self) -> str:
        return f"{self.attribute} IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool

    def __str__(self) -> str:
        return "TRUE" if self.value else "FALSE"


@dataclass(frozen=True, slots=True)
class Not:
    part: "Selector"

    def __str__(self) -> str:
        # No parentheses but those that whoever wrote it needed as well: a text at the bound of depth is read again.
        part = self.part
        if isinstance(part, Present):
            return f"{part.attribute} IS NULL"
        if isinstance(part, (Between, In, Like, Matches)):
            attribute = str(part.attribute)
            return f"{attribute} NOT{str(part)[len(attribute) :]}"
        return f"NOT ({part})" if isinstance(part, (And, Or)) else f"NOT {part}"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple["Selector", ...]

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, (And, Or)) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple["Selector", ...]

    def __str__(self) -> str:
        return " OR ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """True where `count` or more of the parts are: hits, as iMatix's matcher counts them."""

    count: int
    parts: tuple["Selector", ...]

    def __str__(self) -> str:
        return f"AT LEAST {self.count} OF ({', '.join(map(str, self.parts))})"


Test = Compare | Between | In | Like | Matches | Present
Selector = Test | Constant | Not | And | Or | AtLeast


def leaves(selector: Selector) -> Iterator[Test]:
    """The tests of a selector, from the left to the right; the same one as often as it is written."""
    match selector:
        case Constant():
            return
        case Not(part):
            yield from leaves(part)
        case And(parts) | Or(parts) | AtLeast(parts=parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield selector


def _name(part: str) -> str:
    bare = part[:1] in BARE_FIRST and all(character in BARE for character in part)
    if bare and part.upper() not in KEYWORDS and part != "payload":
        return part
    return '"' + part.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a selector compares with finite numbers; got {value}")
    return repr(value)
