"""Types of columns as text: those of SQL, as a decoder's file has them and as Spark prints them.

    boolean  int  bigint  float  double  string  binary  date  timestamp  decimal(10,2)
    array<double>    map<string, bigint>    struct<lat: double, lon: double>

Spark's own reader of such texts needs its JVM, which a data source does not have where its schema is asked for.
"""

import re
from typing import Any, Final

from fanlight_archive.arrow import pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
DECIMAL_DIGITS: Final = 38
DEPTH_MAX: Final = 16  # of types inside types
_PLAIN: Final = {
    "boolean": pa.bool_(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": TIMESTAMP,
}  # fmt: skip
_TOKEN: Final = re.compile(r"\s*(`[^`]+`|\w+|[<>(),:])")


def type_of(text: str) -> Any:
    """The type in Arrow. Raises ValueError, which quotes the text."""
    reader = _Reader(text)
    try:
        found = reader.type(0)
        reader.end()
    except _Unreadable as error:
        raise ValueError(f"{text!r} is no type: {error}") from None
    return found


def text_of(kind: Any) -> str:
    """The text of a type; the opposite of `type_of`."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{text_of(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{text_of(kind.key_type)}, {text_of(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{_name(field.name)}: {text_of(field.type)}' for field in kind)}>"
    return next(name for name, plain in _PLAIN.items() if plain == kind)


def _name(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"`{text}`"


class _Unreadable(Exception):
    """What is wrong with a text."""


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"{text!r} is no type: {text[at:].strip()[0]!r} at character {at}")
            self._tokens.append(found[1])
            at = found.end()
        self._tokens.reverse()

    def type(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise _Unreadable(f"deeper than {DEPTH_MAX}")
        name = self._next("a type").lower()
        if name in _PLAIN:
            return _PLAIN[name]
        if name == "decimal":
            return self._decimal()
        if name == "array":
            (inner,) = self._within(lambda: self.type(depth + 1))
            return pa.list_(inner)
        if name == "map":
            self._take("<")
            key = self.type(depth + 1)
            if key != pa.string():
                raise _Unreadable("the keys of a map are string")
            self._take(",")
            item = self.type(depth + 1)
            self._take(">")
            return pa.map_(key, item)
        if name == "struct":
            fields = self._within(lambda: self._field(depth + 1), many=True)
            if len({name.lower() for name, _ in fields}) < len(fields):
                raise _Unreadable("two fields have the same name")
            return pa.struct(fields)
        has = ", ".join(sorted({*_PLAIN, "decimal", "array", "map", "struct"}))
        raise _Unreadable(f"{name!r} is none of {has}")

    def end(self) -> None:
        if self._tokens:
            raise _Unreadable(f"{self._tokens[-1]!r} behind it")

    def _decimal(self) -> Any:
        self._take("(")
        precision = self._number()
        self._take(",")
        scale = self._number()
        self._take(")")
        if not 1 <= precision <= DECIMAL_DIGITS or scale > precision:
            raise _Unreadable(f"a decimal has 1 to {DECIMAL_DIGITS} digits, and no more behind the point")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        text = self._next("a number")
        if not text.isdecimal():
            raise _Unreadable(f"{text!r} in place of a number")
        return int(text)

    def _field(self, depth: int) -> tuple[str, Any]:
        name = self._next("a name").strip("`")
        self._take(":")
        return name, self.type(depth)

    def _within(self, one: Any, *, many: bool = False) -> list[Any]:
        self._take("<")
        found = [one()]
        while many and self._tokens and self._tokens[-1] == ",":
            self._tokens.pop()
            found.append(one())
        self._take(">")
        return found

    def _take(self, wanted: str) -> None:
        if (found := self._next(repr(wanted))) != wanted:
            raise _Unreadable(f"{found!r} in place of {wanted!r}")

    def _next(self, wanted: str) -> str:
        if not self._tokens:
            raise _Unreadable(f"it ends where {wanted} is wanted")
        return self._tokens.pop()
